//! Which two streams make a connection, and which side each is.
//!
//! One rule for pipes, socket pairs, proxies and wrappers: the client's stream is written by whom
//! the server's stream is read by (the host), and read by whom the other is written by (the
//! server). Actual reads and writes count, so that a wrapper that only holds the descriptors
//! is nobody, and a proxy is the server of one connection and the host of another.
//!
//! Where the two sets do not meet, more is asked: answers to requests that were seen, and that one
//! side is the same all the same. Where that is the host, which reads the answers of many servers,
//! the processes that should be one server must be kin. A missing pairing is better than a wrong
//! one.

use super::event::Side;
use super::processes::{ProcId, Processes};
use super::streams::{Stream, Undecided};
use crate::capture::{StreamId, StreamKind};
use crate::jsonrpc::Id;

/// How well two streams fit together. Greater is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fit {
    /// Host and server differ, or are not known.
    None,
    /// The server is the same, and the host writes and reads in different processes.
    Server,
    /// The host is the same, and the server's reader and writer are kin (`server | tee log`).
    ServerKin,
    /// One side is the same, and the other is not known yet on one of the streams.
    HalfKnown,
    /// Both sides are the same.
    Both,
}

/// Which side writes the stream, if it is known to be MCP.
pub(super) fn writing_side(stream: &Stream, processes: &Processes) -> Option<Side> {
    if let Some(side) = relayed(stream) {
        return Some(side);
    }
    let Undecided { evidence, .. } = stream.undecided()?;
    if !evidence.mcp || stream.writers.is_only_stderr() {
        return None;
    }
    evidence.sender.or_else(|| leaning(stream, processes))
}

/// Which side writes it, if it is a direction of a relay: that knows.
fn relayed(stream: &Stream) -> Option<Side> {
    let side = if stream.id.object == 0 {
        Side::Client
    } else {
        Side::Server
    };
    (stream.id.kind == StreamKind::Relay).then_some(side)
}

/// The other direction of a relay.
pub(super) fn relay_peer(id: StreamId) -> Option<StreamId> {
    let peer = StreamId {
        object: u64::from(id.object == 0),
        ..id
    };
    (id.kind == StreamKind::Relay).then_some(peer)
}

/// Which side writes it, from all but its content.
fn leaning(stream: &Stream, processes: &Processes) -> Option<Side> {
    if stream.readers.is_stdin() && !stream.writers.is_stdout() {
        return Some(Side::Client);
    }
    if stream.writers.is_stdout() && !stream.readers.is_stdin() {
        return Some(Side::Server);
    }
    let started = |elders: &[ProcId], others: &[ProcId]| {
        others
            .iter()
            .any(|&other| elders.iter().any(|&elder| processes.descends(other, elder)))
    };
    let (writers, readers) = (stream.writers.known(), stream.readers.known());
    match (started(writers, readers), started(readers, writers)) {
        (true, false) => Some(Side::Client),
        (false, true) => Some(Side::Server),
        _ => None,
    }
}

/// How well a stream from the client and one from the server fit together.
pub(super) fn fit(client: &Stream, server: &Stream, processes: &Processes) -> Fit {
    if relayed(client).or(relayed(server)).is_some() {
        let same = client.id.kind == server.id.kind && client.id.scope == server.id.scope;
        return if same { Fit::Both } else { Fit::None };
    }
    let host = client.writers.meet(&server.readers);
    let peer = client.readers.meet(&server.writers);
    match (host, peer) {
        (Some(true), Some(true)) => Fit::Both,
        (Some(true), None) | (None, Some(true)) => Fit::HalfKnown,
        (Some(true), Some(false)) => {
            let top = client.writers.known();
            let (readers, writers) = (client.readers.known(), server.writers.known());
            let kin = readers.iter().any(|&one| {
                writers
                    .iter()
                    .any(|&other| processes.are_kin_below(one, other, top))
            });
            if kin { Fit::ServerKin } else { Fit::None }
        }
        (Some(false), Some(true)) => Fit::Server,
        _ => Fit::None,
    }
}

/// Whether an undecided stream may be what the server sends to `client`, as far as the stream
/// itself shows: JSON-RPC, or being somebody's stdout.
pub(super) fn may_answer(candidate: &Stream, client: &Stream, asked: &[Id]) -> bool {
    let Some(Undecided { evidence, .. }) = candidate.undecided() else {
        return false;
    };
    if relayed(candidate) == Some(Side::Server) {
        return true;
    }
    if candidate.writers.is_only_stderr() || evidence.sender == Some(Side::Client) {
        return false;
    }
    // A process that talks to itself reads and writes everything: only answers tell.
    let itself = client.writers.meet(&client.readers) == Some(true);
    answers(evidence.answers.as_slice(), asked)
        || !itself && (evidence.frames > 0 || candidate.writers.is_stdout())
}

/// Whether one of these answers is to one of these requests.
pub(super) fn answers(answers: &[Id], asked: &[Id]) -> bool {
    answers.iter().any(|id| asked.contains(id))
}
