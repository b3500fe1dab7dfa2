//! JSON numbers compared by what they mean, exactly: `1`, `1.0` and `10e-1` are one number.

use std::borrow::Cow;

/// A JSON number in the one shape that it has: `digits` times ten to the power of `exponent`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Decimal<'a> {
    negative: bool,
    /// Without zeros at either end; empty is zero.
    digits: Cow<'a, str>,
    exponent: i64,
}

impl<'a> Decimal<'a> {
    /// Reads a number; `None` where it is none, or its exponent is beyond all measure.
    pub(super) fn read(text: &'a str) -> Option<Self> {
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, power) = match text.split_once(['e', 'E']) {
            Some((mantissa, power)) => (mantissa, power.parse::<i64>().ok()?),
            None => (text, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        if whole.is_empty() || !is_digits(whole) || !is_digits(fraction) {
            return None;
        }
        let (whole, fraction) = (
            whole.trim_start_matches('0'),
            fraction.trim_end_matches('0'),
        );
        let all = match (whole, fraction) {
            ("", "") => return Some(Self::ZERO),
            (whole, "") => Cow::Borrowed(whole.trim_end_matches('0')),
            ("", fraction) => Cow::Borrowed(fraction.trim_start_matches('0')),
            _ => Cow::Owned([whole, fraction].concat()),
        };
        let places = match fraction {
            "" => i64::try_from(whole.len() - all.len()).ok()?,
            _ => -i64::try_from(fraction.len()).ok()?,
        };
        Some(Self {
            negative,
            digits: all,
            exponent: power.checked_add(places)?,
        })
    }

    const ZERO: Self = Self {
        negative: false,
        digits: Cow::Borrowed(""),
        exponent: 0,
    };

    /// It as a whole number, where it is one that fits.
    pub(super) fn as_integer(&self) -> Option<i64> {
        if self.digits.is_empty() {
            return Some(0);
        }
        let digits: i64 = self.digits.parse().ok()?;
        let power = 10_i64.checked_pow(u32::try_from(self.exponent).ok()?)?;
        let value = digits.checked_mul(power)?;
        Some(if self.negative { -value } else { value })
    }
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_one_however_it_is_written() {
        for (one, other) in [
            ("1", "1.0"),
            ("1", "1e0"),
            ("1", "1E+0"),
            ("1", "0.1e1"),
            ("10", "1e1"),
            ("1200", "12.00e2"),
            ("10.5", "105e-1"),
            ("0.05", "5e-2"),
            ("0", "-0"),
            ("0", "0.000e7"),
            ("-3", "-3.0"),
            ("9007199254740993", "9007199254740993.0"),
        ] {
            assert_eq!(Decimal::read(one), Decimal::read(other), "{one} {other}");
        }
    }

    #[test]
    fn other_numbers_are_others() {
        for (one, other) in [
            ("1", "10"),
            ("1", "-1"),
            ("1", "1.01"),
            ("0.5", "0.05"),
            ("9007199254740993", "9007199254740992"),
        ] {
            assert_ne!(Decimal::read(one), Decimal::read(other), "{one} {other}");
        }
        for none in [
            "",
            "-",
            "infinity",
            "0x1",
            "+1",
            ".5",
            "1e",
            "1e99999999999999999999",
        ] {
            assert_eq!(Decimal::read(none), None, "{none}");
        }
    }

    #[test]
    fn whole_numbers_are_told() {
        let whole = |text| Decimal::read(text).expect("a number").as_integer();
        assert_eq!(whole("12.00e2"), Some(1200));
        assert_eq!(whole("-3.0"), Some(-3));
        assert_eq!(whole("0.0"), Some(0));
        assert_eq!(whole("1.5"), None);
        assert_eq!(whole("1e40"), None);
    }
}
