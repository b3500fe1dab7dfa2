//! The revisions of MCP, and the clauses that a rule rests on in each.

/// A published revision of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Revision {
    /// 2024-11-05.
    R20241105,
    /// 2025-03-26: the one with batches.
    R20250326,
    /// 2025-06-18.
    R20250618,
    /// 2025-11-25: tasks.
    R20251125,
    /// 2026-07-28: stateless, every request names its revision.
    R20260728,
}

impl Revision {
    /// All of them, oldest first.
    pub const ALL: [Self; 5] = [
        Self::R20241105,
        Self::R20250326,
        Self::R20250618,
        Self::R20251125,
        Self::R20260728,
    ];

    /// The date that names it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::R20241105 => "2024-11-05",
            Self::R20250326 => "2025-03-26",
            Self::R20250618 => "2025-06-18",
            Self::R20251125 => "2025-11-25",
            Self::R20260728 => "2026-07-28",
        }
    }

    /// The revision that a `protocolVersion` names; for a date that is none of them the newest
    /// that is older, for anything else nothing.
    pub fn parse(version: &str) -> Option<Self> {
        let date = version.get(..10)?;
        let shaped = date.bytes().enumerate().all(|(place, byte)| match place {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
        shaped.then(|| {
            Self::ALL
                .into_iter()
                .rev()
                .find(|known| known.as_str() <= date)
        })?
    }

    /// Whether requests carry their revision themselves and nobody sends `initialize`.
    pub const fn is_stateless(self) -> bool {
        matches!(self, Self::R20260728)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_by_their_date() {
        for revision in Revision::ALL {
            assert_eq!(Revision::parse(revision.as_str()), Some(revision));
        }
        assert_eq!(
            Revision::parse("2026-09-01-draft"),
            Some(Revision::R20260728)
        );
        assert_eq!(Revision::parse("2025-01-01"), Some(Revision::R20241105));
        assert_eq!(Revision::parse("2024-01-01"), None);
        assert_eq!(Revision::parse("1.0"), None);
        assert_eq!(Revision::parse("DRAFT-2026"), None);
    }
}
