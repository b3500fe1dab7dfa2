//! A request: who asks, under which revision, and whether its id is free.

use super::Place;
use crate::jsonrpc::Id;
use crate::session::{ConnId, Side};
use crate::verdict::call::{Call, Seq};
use crate::verdict::host::KnownHost;
use crate::verdict::judge::{Due, Judge};
use crate::verdict::lane::Early;
use crate::verdict::occurrence::Occurrence;
use crate::verdict::reading::Asked;
use crate::verdict::{Outcome, Revision};

impl Judge {
    pub(super) fn request(&mut self, place: Place, id: &Id, method: &str, params: Option<&str>) {
        let Place { conn, from, .. } = place;
        let mut asked = Asked::read(method, params);
        if from == Side::Client && method == "initialize" {
            self.begin_session(place, id);
        }
        let older = self.older(conn, from, id, method);
        let revision = self.introduce(place, method, &asked);
        let Some(connection) = self.state.conns.get_mut(&conn) else {
            return;
        };
        let mut call = Call {
            conn,
            seq: connection.next_seq(),
            from,
            id: id.clone(),
            method: method.into(),
            name: asked.name.take(),
            sent: place.at,
            sent_active: connection.clock.at(place.at),
            bytes: place.bytes,
            end: place.end,
            revision,
            token: asked.token.take(),
            turn: std::mem::take(&mut asked.turn),
            fingerprint: asked.fingerprint,
            as_task: asked.as_task,
            progress: 0,
            last_progress: None,
            cancel: None,
            cancel_end: None,
            request: None,
            // Two directions have no mutual order: the gap may hold the answer to this request.
            clouded: connection
                .gap(from.peer())
                .is_some_and(|gap| place.at.since(gap) <= self.state.settings.reorder),
            tainted: older.is_some(),
            within: None,
            left: false,
            case: None,
        };
        if from == Side::Server {
            call.within = connection.work().last().map(|call| call.seq);
        }
        let seq = call.seq;
        let token = call.token.clone();
        self.enter(call);
        self.set_clock(conn);
        self.doubled(conn, from, older, seq);
        self.tell_of_call((conn, from, seq), |conn, call| Occurrence::Sent {
            conn,
            call,
            asked: &asked,
        });
        if from == Side::Client {
            self.watch(conn, seq);
        }
        self.catch_up(conn, from, id, token.as_ref());
    }

    /// A session begins. One that begins anew on the same wire (a host that was restarted behind a
    /// named pipe, a server that its wrapper started again) ends what the one before owed, and how
    /// that one was about to end is its own.
    fn begin_session(&mut self, place: Place, id: &Id) {
        let Place { conn, at, .. } = place;
        let Some(connection) = self.state.conns.get_mut(&conn) else {
            return;
        };
        if connection.begin_session(id, at) {
            self.end_calls(conn, Some(at));
            if let Some(connection) = self.state.conns.get_mut(&conn) {
                connection.ends.begin_anew();
            }
        }
    }

    /// Learns from a request who the host is and which revision is in force for it.
    fn introduce(&mut self, place: Place, method: &str, asked: &Asked) -> Option<Revision> {
        let more = &self.state.settings.hosts;
        let conn = self.state.conns.get_mut(&place.conn)?;
        if place.from == Side::Client {
            if method == "initialize" {
                conn.revision = asked.revision;
            }
            if let Some(client) = &asked.client
                && conn.info.as_ref() != Some(client)
            {
                conn.known = KnownHost::find(client, more);
                conn.info = Some(client.clone());
            }
        }
        if method != "initialize" {
            conn.stateless = asked.revision.or(conn.stateless);
        }
        asked.revision.or(conn.revision)
    }

    /// The request in flight that has the id already.
    fn older(&mut self, conn: ConnId, from: Side, id: &Id, method: &str) -> Option<Seq> {
        let lane = self.state.conns.get(&conn)?.lane(from);
        let older = lane.by_id(id)?;
        let call = lane.get(older)?;
        // A probe that nobody answered is followed by the handshake; and an answer may be what
        // went by unseen, so that the id is free again.
        let probed = call.method.as_ref() == "server/discover" && method == "initialize";
        if probed || call.clouded {
            self.end_call(conn, from, older, Outcome::Unknown, self.state.now, None);
            return None;
        }
        if let Some(began) = self.state.conns.get(&conn)?.outlived(call) {
            self.end_unanswered((conn, from, older), Some(began));
            return None;
        }
        Some(older)
    }

    /// Two requests under one id: at once, or one after the other.
    fn doubled(&mut self, conn: ConnId, from: Side, older: Option<Seq>, newer: Seq) {
        let Some(connection) = self.state.conns.get_mut(&conn) else {
            return;
        };
        let Some(older) = older else {
            let lane = connection.lane(from);
            let Some(past) = lane.get(newer).and_then(|call| lane.past(&call.id)) else {
                return;
            };
            if connection.outlived(&past.call).is_some() {
                // Which of the two a server will answer that has lived on, nobody knows.
                let unsure = !past.answered;
                if let Some(call) = connection.lane_mut(from).get_mut(newer) {
                    call.tainted |= unsure;
                }
            } else {
                self.tell_of(conn, |conn| {
                    let call = conn.lane(from).get(newer)?;
                    Some(Occurrence::Reused {
                        call,
                        past: conn.lane(from).past(&call.id)?,
                    })
                });
            }
            return;
        };
        let stateless = connection
            .lane(from)
            .get(newer)
            .and_then(|call| call.revision)
            .is_some_and(Revision::is_stateless);
        if stateless {
            // The id may be used again once it is answered; the answer's record may be late.
            self.set_timer(
                self.state.settings.reorder,
                Due::Duplicate(conn, from, older, newer),
            );
        } else {
            self.duplicate_due(conn, from, older, newer);
        }
    }

    pub(in super::super) fn duplicate_due(
        &mut self,
        conn: ConnId,
        from: Side,
        older: Seq,
        newer: Seq,
    ) {
        let Some(connection) = self.state.conns.get_mut(&conn) else {
            return;
        };
        let lane = connection.lane_mut(from);
        if lane.get(newer).is_none() {
            return;
        }
        let Some(call) = lane.get_mut(older) else {
            if let Some(call) = lane.get_mut(newer) {
                call.tainted = false;
            }
            return;
        };
        call.tainted = true;
        self.tell_of(conn, |conn| {
            let lane = conn.lane(from);
            Some(Occurrence::Duplicate {
                older: lane.get(older)?,
                newer: lane.get(newer)?,
            })
        });
    }

    /// Hands a request what came for it before it was seen.
    fn catch_up(&mut self, conn: ConnId, from: Side, id: &Id, token: Option<&Id>) {
        let Some(connection) = self.state.conns.get_mut(&conn) else {
            return;
        };
        for held in connection.lane_mut(from).take_held(id, token) {
            match held.what {
                Early::Answer(answer) => {
                    if let Some(seq) = self.in_flight(conn, from, id) {
                        self.answer(conn, from, seq, &answer, None);
                    }
                }
                Early::Progress(token) => self.count_progress(conn, from, &token, held.at),
            }
        }
    }

    fn in_flight(&self, conn: ConnId, from: Side, id: &Id) -> Option<Seq> {
        self.state.conns.get(&conn)?.lane(from).by_id(id)
    }
}
