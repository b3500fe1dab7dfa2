//! The one zero from which all sources of a capture count their time.

use std::time::Duration;

use super::Timestamp;

/// `CLOCK_MONOTONIC`, counted from the beginning of the capture. Copy it to every source, so
/// that their timestamps can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// Nanoseconds on `CLOCK_MONOTONIC` when the capture began.
    zero: u64,
}

impl Clock {
    /// A capture that begins now.
    pub fn start() -> Self {
        Self { zero: monotonic() }
    }

    /// A capture that began at this value of `CLOCK_MONOTONIC`, in nanoseconds.
    pub const fn since(zero: u64) -> Self {
        Self { zero }
    }

    /// The present moment.
    pub fn now(self) -> Timestamp {
        self.at(monotonic())
    }

    /// A value of `CLOCK_MONOTONIC`, such as `bpf_ktime_get_ns()` gives. What was before the
    /// beginning counts as the beginning.
    pub const fn at(self, monotonic: u64) -> Timestamp {
        Timestamp::from_nanos(monotonic.saturating_sub(self.zero))
    }
}

/// A clock that stands still while the machine is suspended, as the log's does.
#[cfg(not(target_vendor = "apple"))]
const STEADY: libc::clockid_t = libc::CLOCK_MONOTONIC;
/// Here `CLOCK_MONOTONIC` goes on.
#[cfg(target_vendor = "apple")]
const STEADY: libc::clockid_t = libc::CLOCK_UPTIME_RAW;

/// `CLOCK_MONOTONIC` in nanoseconds. May be called in a signal handler.
pub(super) fn monotonic() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `now` is valid for writes. The clock always exists, so this cannot fail.
    unsafe { libc::clock_gettime(STEADY, &raw mut now) };
    let since_boot = Duration::new(
        now.tv_sec.unsigned_abs(),
        u32::try_from(now.tv_nsec).unwrap_or(0),
    );
    u64::try_from(since_boot.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_counts_from_the_zero_and_never_below_it() {
        let clock = Clock::since(1_000);
        assert_eq!(clock.at(1_500), Timestamp::from_nanos(500));
        assert_eq!(clock.at(999), Timestamp::ZERO);
    }

    #[test]
    fn now_goes_forward() {
        let clock = Clock::start();
        let first = clock.now();
        assert!(clock.now() >= first);
    }
}
