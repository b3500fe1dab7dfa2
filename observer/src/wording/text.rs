//! Times, sizes and observed text as people read them.

use std::time::Duration;

use crate::capture::Timestamp;
use crate::record::printable;

/// A time since the capture began: `4.171`, and `1:02:03.004` after the first hour.
pub(crate) fn time(at: Timestamp) -> String {
    let millis = at.as_nanos() / 1_000_000;
    let (seconds, millis) = (millis / 1_000, millis % 1_000);
    if seconds < 3_600 {
        return format!("{seconds}.{millis:03}");
    }
    let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
    format!("{hours}:{minutes:02}:{:02}.{millis:03}", seconds % 60)
}

/// A length of time, with three digits that matter.
pub(crate) fn span(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    match duration.as_millis() {
        0..1 => format!("{} us", duration.as_micros()),
        1..1_000 => format!("{} ms", duration.as_millis()),
        1_000..10_000 => format!("{seconds:.2} s"),
        10_000..120_000 => format!("{seconds:.1} s"),
        120_000..7_200_000 => format!("{:.1} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3_600.0),
    }
}

/// A size in bytes: `812 B`, `1.2 kB`, `64.0 MB`.
#[expect(clippy::cast_precision_loss, reason = "two digits are shown")]
pub(crate) fn size(bytes: u64) -> String {
    let mut value = bytes as f64;
    if bytes < 1_000 {
        return format!("{bytes} B");
    }
    for unit in ["kB", "MB", "GB"] {
        value /= 1_000.0;
        if value < 999.95 {
            return format!("{value:.1} {unit}");
        }
    }
    format!("{:.1} TB", value / 1_000.0)
}

/// `1 call`, `2 calls`.
pub(crate) fn count(number: u64, one: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        _ => format!("{number} {one}s"),
    }
}

/// Observed text: safe to print, and at most `limit` characters of it.
pub(crate) fn observed(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        None => printable(text),
        Some((end, _)) => format!("{}...", printable(&text[..end])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_reads_well() {
        for (nanos, text) in [
            (0, "0.000"),
            (4_170_923_000, "4.170"),
            (3_599_999_999_999, "3599.999"),
            (3_723_004_000_000, "1:02:03.004"),
        ] {
            assert_eq!(time(Timestamp::from_nanos(nanos)), text);
        }
    }

    #[test]
    fn a_span_reads_well() {
        for (micros, text) in [
            (0, "0 us"),
            (999, "999 us"),
            (1_000, "1 ms"),
            (1_580_000, "1.58 s"),
            (15_040_000, "15.0 s"),
            (600_000_000, "10.0 min"),
            (86_400_000_000, "24.0 h"),
        ] {
            assert_eq!(span(Duration::from_micros(micros)), text);
        }
    }

    #[test]
    fn a_size_reads_well() {
        for (bytes, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1_000, "1.0 kB"),
            (999_949, "999.9 kB"),
            (999_950, "1.0 MB"),
            (67_108_864, "67.1 MB"),
            (5_000_000_000_000, "5.0 TB"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }

    #[test]
    fn observed_text_is_cut_and_harmless() {
        assert_eq!(observed("\x1b]0;title\x07", 20), r"\u{1b}]0;title\u{7}");
        assert_eq!(observed("äöü", 2), "äö...");
    }
}
