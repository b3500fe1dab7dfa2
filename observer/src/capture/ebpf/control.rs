//! Steers a running probe from other threads.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc;

use crate::capture::{Pid, StreamId};

use super::ProbeError;

/// What a running probe can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Copy no more content of this stream.
    GiveUp(StreamId),
    /// Forget this stream: it ended.
    Forget(StreamId),
    /// Watch this process, and all that it starts from now on.
    Watch(Pid),
    /// No longer watch this process; what it started stays watched.
    Unwatch(Pid),
    /// Detach, deliver what is left, and return.
    Stop,
}

/// Sends [`Control`]s to a running probe. What is sent after it has returned goes nowhere.
#[derive(Clone, Debug)]
pub struct Handle {
    controls: mpsc::Sender<Control>,
    bell: Arc<OwnedFd>,
}

impl Handle {
    /// Tells the probe something, and wakes it.
    pub fn send(&self, control: Control) {
        if self.controls.send(control).is_err() {
            return; // The probe has returned.
        }
        let one = 1u64.to_ne_bytes();
        // A bell that already rings may be full: then the probe is awake anyway.
        // SAFETY: the descriptor is open, and the buffer is eight readable bytes.
        let _ringing =
            unsafe { libc::write(self.bell.as_raw_fd(), one.as_ptr().cast(), one.len()) };
    }

    /// Short for [`Control::Stop`].
    pub fn stop(&self) {
        self.send(Control::Stop);
    }
}

/// The probe's end.
#[derive(Debug)]
pub(super) struct Receiver {
    controls: mpsc::Receiver<Control>,
    bell: Arc<OwnedFd>,
}

impl Receiver {
    /// The next control, if one is there.
    pub(super) fn next(&self) -> Option<Control> {
        self.controls.try_recv().ok()
    }

    /// Silences the bell, before the controls are read.
    pub(super) fn silence(&self) {
        let mut count = [0u8; 8];
        // SAFETY: the descriptor is open, and the buffer is eight writable bytes.
        let _silent = unsafe {
            libc::read(
                self.bell.as_raw_fd(),
                count.as_mut_ptr().cast(),
                count.len(),
            )
        };
    }

    /// Readable when there are controls.
    pub(super) fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

/// Both ends.
pub(super) fn channel() -> Result<(Handle, Receiver), ProbeError> {
    // SAFETY: takes two numbers and returns a new descriptor or -1.
    let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
    if fd < 0 {
        let source = std::io::Error::last_os_error();
        return Err(ProbeError::Io {
            operation: "create an eventfd",
            source,
        });
    }
    // SAFETY: the descriptor is new, and nobody else owns it.
    let bell = Arc::new(unsafe { OwnedFd::from_raw_fd(fd) });
    let (sender, controls) = mpsc::channel();
    Ok((
        Handle {
            controls: sender,
            bell: Arc::clone(&bell),
        },
        Receiver { controls, bell },
    ))
}
