//! E12: a thread of the host goes on with another turn while a call of the earlier one is open.

use super::clue;
use crate::session::{ConnId, Side};
use crate::verdict::call::{Seq, Weight};
use crate::verdict::judge::Judge;

/// How many calls in flight are looked at when a turn changes.
const LOOKED_AT: usize = 1000;
/// How many threads are remembered.
const THREADS: usize = 4096;

impl Judge {
    pub(in super::super) fn watch_turns(&mut self, conn: ConnId, seq: Seq) {
        let Some(connection) = self.state.conns.get(&conn) else {
            return;
        };
        let Some(call) = connection.lane(Side::Client).get(seq) else {
            return;
        };
        let Some((thread, turn)) = call.turn.thread.clone().zip(call.turn.turn.clone()) else {
            return;
        };
        let host = connection.client;
        if self.state.turns.len() >= THREADS {
            self.state.turns.clear();
        }
        let before = self
            .state
            .turns
            .insert((host, thread.clone()), turn.clone());
        if before.is_none_or(|before| before == turn) {
            return;
        }
        for (conn, seq) in self.of_earlier_turns(host, &thread, &turn) {
            let detail = "the same thread of the host went on with another turn".into();
            let clue = clue("new-turn", Weight::Sure, self.state.now, detail);
            self.brew(conn, seq, clue);
        }
    }

    fn of_earlier_turns(
        &self,
        host: Option<crate::capture::Pid>,
        thread: &str,
        turn: &str,
    ) -> Vec<(ConnId, Seq)> {
        let conns = self.state.conns.values().filter(|conn| conn.client == host);
        conns
            .flat_map(|conn| conn.work().take(LOOKED_AT))
            .filter(|call| {
                call.turn.thread.as_deref() == Some(thread)
                    && call.turn.turn.as_deref().is_some_and(|other| other != turn)
            })
            .map(|call| (call.conn, call.seq))
            .collect()
    }
}
