//! The records of all relays that send them, together.
//!
//! Listens on a socket that only this user's processes can reach, and gives what the relays have
//! observed as one stream: connections numbered anew, times on one clock. Needs no privileges and
//! no backend.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use thiserror::Error;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::incoming::{Incoming, Origin};
use super::place::{self, PlaceError};
use crate::capture::Clock;
use crate::session::Observed;

/// So many batches wait to be taken; then the relays' sockets fill, and they pass records over.
const BATCHES: usize = 64;

/// Why nothing can be collected.
#[derive(Debug, Error)]
pub enum CollectError {
    /// The socket's place will not do.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// Somebody collects there already.
    #[error("another observer listens at {}", .path.display())]
    Taken {
        /// The socket.
        path: PathBuf,
    },
    /// The system refuses.
    #[error("cannot {operation} {}: {source}", .path.display())]
    Io {
        /// What was tried.
        operation: &'static str,
        /// With which socket.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Listens for relays. Must live within a tokio runtime; dropping it ends it all.
#[derive(Debug)]
pub struct Collector {
    path: PathBuf,
    batches: mpsc::Receiver<Vec<Observed>>,
    _tasks: JoinSet<()>,
}

impl Collector {
    /// Listens at `socket`, or where relays look for it by default. Times count from `clock`,
    /// which must have begun a moment ago.
    ///
    /// # Errors
    /// Where the socket cannot be made, others could reach it, or it is in use.
    pub fn bind(socket: Option<PathBuf>, clock: Clock) -> Result<Self, CollectError> {
        let path = socket.unwrap_or_else(place::default_socket);
        if let Some(folder) = path.parent() {
            place::make_folder(folder)?;
            place::check_private(folder)?;
        }
        let failed = |operation, source| CollectError::Io {
            operation,
            path: path.clone(),
            source,
        };
        if std::os::unix::net::UnixStream::connect(&path).is_ok() {
            return Err(CollectError::Taken { path });
        }
        // What an earlier collector left.
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(failed("remove", error));
            }
            _ => {}
        }
        let listener = UnixListener::bind(&path).map_err(|error| failed("listen at", error))?;
        let (sender, batches) = mpsc::channel(BATCHES);
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, sender, Origin::new(clock)));
        Ok(Self {
            path,
            batches,
            _tasks: tasks,
        })
    }

    /// Where it listens.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What was observed next; `None` when no relay can come any more. Nothing is lost where the
    /// future is dropped.
    pub async fn next(&mut self) -> Option<Vec<Observed>> {
        self.batches.recv().await
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        // A socket without a listener does no harm.
        let _ = fs::remove_file(&self.path);
    }
}

async fn accept(listener: UnixListener, sender: mpsc::Sender<Vec<Observed>>, origin: Origin) {
    let mut relays = JoinSet::new();
    loop {
        // A connection that was gone before it was accepted; or too many, for the moment.
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        if is_own(&stream) {
            let relay = Incoming::new(origin.clone());
            relays.spawn(relay.collect(stream, sender.clone()));
        }
        while relays.try_join_next().is_some() {}
    }
}

/// Whether a process of this user, or of root, is at the other end.
fn is_own(stream: &UnixStream) -> bool {
    let own = nix::unistd::geteuid().as_raw();
    stream
        .peer_cred()
        .is_ok_and(|peer| [0, own].contains(&peer.uid()))
}
