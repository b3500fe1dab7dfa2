//! Sizes on the command line.

/// `65536`, `64KiB`, `64k`, `16MiB`, `16M`, `1GiB`, `1G`: in bytes, and powers of 1024.
///
/// # Errors
///
/// A sentence for the user where it is none of them.
pub(super) fn parse_size(text: &str) -> Result<usize, String> {
    let digits = text
        .find(|char: char| !char.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let shift = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        _ => return Err("give a size such as 65536, 64KiB or 16MiB".into()),
    };
    number
        .parse::<usize>()
        .ok()
        .and_then(|number| number.checked_mul(1 << shift))
        .filter(|size| *size > 0)
        .ok_or_else(|| "give a size such as 65536, 64KiB or 16MiB".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_has_a_unit_or_is_in_bytes() {
        for (text, size) in [
            ("1", 1),
            ("65536", 65_536),
            ("64KiB", 65_536),
            ("64k", 65_536),
            ("16M", 16 << 20),
            ("2gib", 2 << 30),
        ] {
            assert_eq!(parse_size(text), Ok(size), "{text}");
        }
        for text in [
            "",
            "0",
            "k",
            "-1",
            "1.5M",
            "1 k",
            "1T",
            "99999999999999999999",
            "17179869184G",
        ] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }
}
