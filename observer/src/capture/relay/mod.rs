//! The relay backend: a program before the server's command, that passes the bytes on.
//!
//! Owns what stands between a host and the server that it believes to have started. Works on any
//! Unix. Must behave as if it were not there: the bytes, the ends of file, the signals, the
//! process group and the exit status are those that there would be without it. Must never write
//! a byte of its own to the host, nor look at one before it is passed on.
//!
//! Four processes take part, because no single one can do all of that:
//!
//! ```text
//! host ── starts ──▶ front ──▶ server      front: what the host waits for and sends signals to;
//!   │                  ├────▶ witness             it ends as the server ends, when it ends
//!   │                  └────▶ passer       witness: tells signals to the group from those to one
//!   └── bytes ◀──────────▶ passer ◀── bytes ──▶ server
//! ```
//!
//! The front, the witness and the server are in the process group that the host chose. A signal to
//! the group (Ctrl-C, `killpg`) reaches the server by itself, one to the front alone is passed on.
//! The passer is in a session of its own: it outlives a `kill -9` of the group by the moment that
//! the log needs, and passes on what grandchildren write after the server has gone. Everything
//! ends by end of file, except that a front that was killed takes the server with it.

mod control;
mod describe;
mod fate;
mod front;
mod passer;
mod pump;
mod queue;
mod server;
mod signals;
mod witness;

use std::ffi::OsString;
use std::io;

use nix::unistd::{ForkResult, fork};
use thiserror::Error;

pub use front::Front;
pub use passer::Passer;
pub use queue::{Feed, Received};

/// Which of the relay's processes this one has become. See [`start`].
#[derive(Debug)]
pub enum Role {
    /// The process that the host started. It has nothing to do but to follow the server.
    Front(Box<Front>),
    /// The process that passes the bytes on, and in which they can be looked at.
    Passer(Passer),
}

/// Why a relay could not begin.
#[derive(Debug, Error)]
pub enum StartError {
    /// The server's command could not be executed.
    #[error("cannot start {}: {source}", program.display())]
    Server {
        /// The command's first word.
        program: OsString,
        /// Why.
        source: io::Error,
    },
    /// Something else that the relay needs could not be had.
    #[error("cannot {operation}: {source}")]
    System {
        /// What failed.
        operation: &'static str,
        /// Why.
        source: io::Error,
    },
}

impl StartError {
    fn system<E: Into<io::Error>>(operation: &'static str) -> impl FnOnce(E) -> Self {
        move |source| Self::System {
            operation,
            source: source.into(),
        }
    }
}

/// Starts a server between the descriptors 0 and 1 of this process, and everything around it.
///
/// Returns twice, as `fork` does: once in each process of [`Role`]. Must be called while this
/// process has one thread only, before anything else is opened.
///
/// # Errors
/// Where the server cannot be started, or descriptors or processes run out. Nothing is left
/// running then.
pub fn start(program: OsString, args: Vec<OsString>) -> Result<Role, StartError> {
    let inherited = server::inherited_descriptors();
    let host = describe::parent();
    let before = signals::hold_back().map_err(StartError::system("block signals"))?;
    let witness =
        witness::Witness::start(&inherited).map_err(StartError::system("start a process"))?;
    let links = control::Links::new().map_err(StartError::system("open a pipe"))?;
    let server = server::start(program, args, before)?;
    server::close(&inherited);
    // SAFETY: this process has one thread (asked of the caller), so the child may go on as it is.
    let forked = unsafe { fork() }.map_err(|error| {
        server.process.kill();
        StartError::system("start a process")(error)
    })?;
    match forked {
        ForkResult::Parent { child } => {
            drop(server.stdio);
            let (reports, control) = links.into_front();
            let front = Front::new(server.process, host, child, witness, reports, control)?;
            Ok(Role::Front(Box::new(front)))
        }
        ForkResult::Child => {
            drop(witness);
            let (reports, control) = links.into_passer();
            Passer::new(server, host, reports, control).map(Role::Passer)
        }
    }
}
