//! The choice of a backend: the options, and what is taken where none is named.

use std::fmt;

use clap::ValueEnum;

use super::backend::Ready;
use super::size::parse_size;
use super::{Failure, OutputArgs, remedy, say};
use crate::capture::Clock;
use crate::capture::ebpf::{self, DEFAULT_RING, Options, Probe, ProbeError};
use crate::capture::ptrace::Trace;
use crate::session;

/// Options of what is captured.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Capture")]
pub(super) struct CaptureArgs {
    /// What sees the bytes
    #[arg(long, value_name = "BACKEND", value_enum, default_value_t)]
    pub(super) backend: Choice,
    /// The ring buffer between kernel and observer: a power of two, at least 64KiB
    /// [default: 64MiB]
    ///
    /// A larger one takes longer bursts without a gap. ptrace needs none.
    #[arg(long, value_name = "SIZE", value_parser = parse_ring_size)]
    ring_size: Option<u32>,
    /// The longest line that is taken for a message; longer ones count as noise
    /// [default: 64MiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    max_frame: Option<usize>,
}

/// What is to see the bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Choice {
    /// eBPF where it is allowed, else ptrace
    #[default]
    Auto,
    /// A probe in the kernel: needs root or its capabilities, and costs little
    Ebpf,
    /// By ptrace(2): needs no rights over your own processes, and slows them down
    Ptrace,
}

impl CaptureArgs {
    /// Gets the backend ready, which watches nobody yet. Says which one it is where the user
    /// might expect the other.
    ///
    /// # Errors
    ///
    /// Where nothing can be captured here, with the remedy.
    pub(super) fn load(&self, output: &OutputArgs) -> Result<Ready, Failure> {
        let refused = match self.backend {
            Choice::Ptrace => return trace(),
            Choice::Ebpf => return self.probe(nobody(), output),
            Choice::Auto => match self.try_probe(nobody(), output) {
                Ok(probe) => {
                    if output.verbosity() > 0 {
                        say("capturing with eBPF, which is allowed here");
                    }
                    return Ok(Ready::probe(probe));
                }
                // No other backend is what was asked for then.
                Err(error @ ProbeError::RingSize(_)) => return Err(error.into()),
                Err(error) => error,
            },
        };
        let ready = trace()?;
        if !output.is_quiet() {
            say(Instead(&refused));
        }
        Ok(ready)
    }

    /// Gets the one backend ready that can watch a whole machine.
    ///
    /// # Errors
    ///
    /// Where that cannot be done here, or another one was asked for.
    pub(super) fn load_for_all(&self, output: &OutputArgs) -> Result<Ready, Failure> {
        if self.backend == Choice::Ptrace {
            return Err(remedy::only_attached());
        }
        self.probe(ebpf::Scope::Machine, output)
            .map_err(remedy::or_attach)
    }

    fn probe(&self, scope: ebpf::Scope, output: &OutputArgs) -> Result<Ready, Failure> {
        Ok(Ready::probe(self.try_probe(scope, output)?))
    }

    /// With a verbosity of 2 the probe's own diagnostics are shown.
    fn try_probe(&self, scope: ebpf::Scope, output: &OutputArgs) -> Result<Probe, ProbeError> {
        let mut options = Options::new(scope);
        options.ring_bytes = self.ring_bytes();
        options.log = (output.verbosity() >= 2).then_some(show as fn(&str));
        Probe::load(&options)
    }

    /// The ring buffer's size.
    pub(super) fn ring_bytes(&self) -> u32 {
        self.ring_size.unwrap_or(DEFAULT_RING)
    }

    /// The session's settings.
    pub(super) fn session(&self) -> session::Settings {
        let mut settings = session::Settings::default();
        settings.max_frame = self.max_frame.unwrap_or(settings.max_frame);
        settings
    }
}

/// The scope of a probe that is told later whom to watch.
fn nobody() -> ebpf::Scope {
    ebpf::Scope::Pids(Vec::new())
}

/// The backend that needs no rights.
///
/// # Errors
///
/// Where no thread can be made.
pub(super) fn trace() -> Result<Ready, Failure> {
    Ok(Ready::trace(Trace::start(Clock::start())?))
}

/// Which backend is taken in the other's place, and why, in one line.
struct Instead<'a>(&'a ProbeError);

impl fmt::Display for Instead<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "capturing with ptrace, as eBPF is not allowed here: {}",
            remedy::with_causes(self.0)
        )
    }
}

fn show(diagnostic: &str) {
    say(diagnostic);
}

fn parse_ring_size(text: &str) -> Result<u32, String> {
    let size = parse_size(text)?;
    u32::try_from(size)
        .ok()
        .filter(|size| size.is_power_of_two() && *size >= ebpf::SMALLEST_RING)
        .ok_or_else(|| "give a power of two from 64KiB to 2GiB, such as 16MiB".into())
}
