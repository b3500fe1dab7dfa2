//! What stands in the place of what is hidden.
//!
//! A mark is an HMAC-SHA-256 under a key that is made for one observation and never written: equal
//! texts have equal marks within a log, so that a retry is still one; without the key nobody can
//! try out guesses, however short the secret was, and nobody can follow a text from log to log.

use std::fmt;

use sha2::{Digest as _, Sha256};

use super::Redactor;
use crate::jsonrpc::{as_str, members};
use crate::record::Digest;

/// SHA-256 takes its input in blocks of so many bytes (FIPS 180-4, 5.2.1).
const BLOCK: usize = 64;

/// The key of a log's marks. It must be random, and used for one log.
#[derive(Clone)]
pub struct Key([u8; 32]);

impl Key {
    /// These 32 random bytes.
    pub const fn new(random: [u8; 32]) -> Self {
        Self(random)
    }

    /// HMAC-SHA-256 (RFC 2104).
    fn hash(&self, parts: [&[u8]; 2]) -> Digest {
        let padded = |pad: u8| {
            let mut block = [pad; BLOCK];
            block
                .iter_mut()
                .zip(self.0)
                .for_each(|(byte, key)| *byte ^= key);
            Sha256::new().chain_update(block)
        };
        let inner = parts.iter().fold(padded(0x36), Sha256::chain_update);
        Digest::from(padded(0x5c).chain_update(inner.finalize()))
    }
}

impl fmt::Debug for Key {
    /// Nothing of it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

impl Redactor {
    /// The mark of a JSON value: an object that says how long it was.
    pub(super) fn mark_value(&self, raw: &str) -> String {
        let raw = raw.trim_ascii();
        let (kind, text) = match as_str(raw) {
            // However it is spelled.
            Some(text) => (b"s", text),
            None => (b"v", raw.into()),
        };
        let sha256 = self.key.hash([kind, text.as_bytes()]);
        format!("{{\"sha256\":\"{sha256}\",\"bytes\":{}}}", text.len())
    }

    /// The mark that stands in the middle of a text.
    pub(super) fn mark_text(&self, text: &str) -> String {
        let sha256 = self.key.hash([b"s", text.as_bytes()]).to_string();
        format!("[hidden {}]", &sha256[..16])
    }

    /// Whether a value is the mark of an earlier redaction.
    pub(super) fn is_mark(&self, raw: &str) -> bool {
        if !self.plan.marked || !raw.starts_with("{\"sha256\":\"") {
            return false;
        }
        let mut fields = members(raw);
        let sha256 = fields.next().and_then(|(_, value)| as_str(value));
        let bytes = fields.next().filter(|(key, _)| key == "bytes");
        sha256.is_some_and(|text| Digest::parse(&text).is_some())
            && bytes.is_some_and(|(_, value)| value.parse::<u64>().is_ok())
            && fields.next().is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4231, test case 1, whose key is shorter; 2 has text. Keys are padded with zeros.
    #[test]
    fn the_hash_is_hmac_sha_256() {
        let mut key = [0; 32];
        key[..20].fill(0x0b);
        assert_eq!(
            Key(key).hash([b"Hi ", b"There"]).to_string(),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
        );
        let mut key = [0; 32];
        key[..4].copy_from_slice(b"Jefe");
        assert_eq!(
            Key(key)
                .hash([b"what do ya want ", b"for nothing?"])
                .to_string(),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
    }
}
