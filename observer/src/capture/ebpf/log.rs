//! The programs' own diagnostics, which `-vv` shows.

use aya::Ebpf;
use aya_log::EbpfLogger;
use log::{Metadata, Record};

use super::{Options, ProbeError};

/// Reads the programs' log ring.
pub(super) struct Log {
    logger: EbpfLogger<Lines>,
}

impl Log {
    pub(super) fn open(ebpf: &mut Ebpf, line: fn(&str)) -> Result<Self, ProbeError> {
        let logger = EbpfLogger::init_with_logger(ebpf, Lines(line))
            .map_err(|_| ProbeError::Missing("map AYA_LOGS"))?;
        Ok(Self { logger })
    }

    /// Hands out the lines that have come.
    pub(super) fn flush(&mut self) {
        self.logger.flush();
    }
}

/// The level that the programs log at: all, or nothing.
pub(super) fn level(options: &Options) -> &'static u8 {
    const NOTHING: u8 = 0;
    const ALL: u8 = aya_log::Level::Trace as u8;
    if options.log.is_some() {
        &ALL
    } else {
        &NOTHING
    }
}

/// Hands each line to a function.
struct Lines(fn(&str));

impl log::Log for Lines {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        let Self(line) = self;
        line(&format!(
            "probe: {}: {}",
            record.level().as_str().to_lowercase(),
            record.args()
        ));
    }

    fn flush(&self) {}
}
