//! The audit log: one record a line.

use std::time::{Duration, Instant};

use super::{Outlet, WriteError};
use crate::pipeline::Output;
use crate::record::{Chain, Header, Record};

/// Lines of a running observation wait so long for their seal, at most.
const UNSEALED: Duration = Duration::from_secs(1);

/// Writes an audit log, and seals it.
pub struct Jsonl {
    outlet: Outlet,
    chain: Chain,
    /// When the last seal was due by the clock; `None` where none ever is.
    sealed: Option<Instant>,
}

impl Jsonl {
    /// A log of what happens now: what the observer has written stays sealed where it is killed.
    pub fn live(outlet: Outlet) -> Self {
        Self {
            sealed: Some(Instant::now()),
            ..Self::made(outlet)
        }
    }

    /// A log that is made from another: the same from the same, down to the byte.
    pub fn made(outlet: Outlet) -> Self {
        Self {
            outlet,
            chain: Chain::new(),
            sealed: None,
        }
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

    /// See [`Outlet::flush_due`].
    ///
    /// # Errors
    /// As [`Outlet::flush`].
    pub fn flush_due(&mut self, now: Instant) -> Result<(), WriteError> {
        self.seal_due(now)?;
        self.outlet.flush_due(now)
    }

    /// See [`Outlet::flush`].
    ///
    /// # Errors
    /// As [`Outlet::flush`].
    pub fn flush(&mut self) -> Result<(), WriteError> {
        self.seal_due(Instant::now())?;
        self.outlet.flush()
    }

    fn append(&mut self, record: &Record) -> Result<(), WriteError> {
        let chain = &mut self.chain;
        self.outlet.append(|out| chain.write_line(record, out))
    }

    fn seal_due(&mut self, now: Instant) -> Result<(), WriteError> {
        let due = |sealed| now.saturating_duration_since(sealed) >= UNSEALED;
        if !self.chain.is_open() || !self.sealed.is_some_and(due) {
            return Ok(());
        }
        self.sealed = Some(now);
        let chain = &mut self.chain;
        self.outlet.append(|out| chain.write_seal(out))
    }
}
