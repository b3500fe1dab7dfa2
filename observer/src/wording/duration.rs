//! Durations as people write them, on the command line and in the live view's filter.

use std::time::Duration;

/// `30s`, `1.5s`, `200ms`, `2min`, `1h`, or a bare number of seconds.
///
/// # Errors
/// A sentence for the user where it is none of them.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let digits = text.find(|char: char| char != '.' && !char.is_ascii_digit());
    let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
    let seconds = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3_600.0,
        _ => return Err("give a duration such as 30s, 200ms, 2min or 1h".into()),
    };
    number
        .parse::<f64>()
        .ok()
        .and_then(|number| Duration::try_from_secs_f64(number * seconds).ok())
        .ok_or_else(|| "give a duration such as 30s, 200ms, 2min or 1h".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_a_unit_or_is_in_seconds() {
        for (text, millis) in [
            ("30", 30_000),
            ("1.5s", 1_500),
            ("200ms", 200),
            ("2min", 120_000),
            ("1h", 3_600_000),
        ] {
            assert_eq!(
                parse_duration(text),
                Ok(Duration::from_millis(millis)),
                "{text}"
            );
        }
        for text in [
            "",
            "s",
            "-1s",
            "1 s",
            "1d",
            "1e9",
            "..s",
            "99999999999999999999999h",
        ] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }
}
