//! The audit log: one record a line.

use std::time::Instant;

use super::{Outlet, WriteError};
use crate::pipeline::Output;
use crate::record::{Header, Record};

/// Writes an audit log.
pub struct Jsonl {
    outlet: Outlet,
    written: u64,
}

impl Jsonl {
    /// A log that goes to `outlet`.
    pub const fn new(outlet: Outlet) -> Self {
        Self { outlet, written: 0 }
    }

    /// Writes the first line, at once: a log is a log from its beginning.
    ///
    /// # Errors
    /// As [`Outlet::flush`].
    pub fn begin(&mut self, header: Header) -> Result<(), WriteError> {
        self.append(&Record::Header(Box::new(header)))?;
        self.outlet.flush()
    }

    /// Takes what came out of the pipeline.
    ///
    /// # Errors
    /// As [`Outlet::append`].
    pub fn handle_output(&mut self, output: &Output) -> Result<(), WriteError> {
        match output {
            Output::Observed(observed) => self.append(&Record::from(observed)),
            Output::Derived(derived) => self.append(&Record::from(derived)),
            Output::GiveUp(_) | Output::Forget(_) => Ok(()),
        }
    }

    /// How many bytes the log has, with what waits to be written.
    pub const fn written(&self) -> u64 {
        self.written
    }

    /// See [`Outlet::flush_due`].
    ///
    /// # Errors
    /// As [`Outlet::flush`].
    pub fn flush_due(&mut self, now: Instant) -> Result<(), WriteError> {
        self.outlet.flush_due(now)
    }

    /// See [`Outlet::flush`].
    ///
    /// # Errors
    /// As [`Outlet::flush`].
    pub fn flush(&mut self) -> Result<(), WriteError> {
        self.outlet.flush()
    }

    fn append(&mut self, record: &Record) -> Result<(), WriteError> {
        self.outlet.append(|lines| {
            let before = lines.len();
            record.write_line(lines);
            self.written += (lines.len() - before) as u64;
        })
    }
}
