//! What a line is that is no JSON-RPC frame.

use super::scan::Scanner;

/// Why a line is no JSON-RPC frame. The names are the audit log's kinds of noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// Text that does not look like JSON.
    Text,
    /// An empty line.
    Blank,
    /// It begins as JSON and is none, or is JSON without being JSON-RPC.
    InvalidJson,
    /// Bytes that are no UTF-8.
    InvalidUtf8,
    /// A `Content-Length:` header as the Language Server Protocol frames messages.
    ContentLength,
}

/// What a line is that is no frame. `position` is how far it was valid JSON.
pub(super) fn fault(text: &str, position: usize) -> Fault {
    let text_at = |at: usize| {
        text.as_bytes()
            .get(at..)
            .unwrap_or_default()
            .trim_ascii_start()
    };
    let line = text_at(0);
    if is_header(line) || is_header(text_at(position)) {
        // The second case: the Language Server Protocol has no newline after a body, so that the
        // next header follows it on the same line.
        return Fault::ContentLength;
    }
    let complete = text_at(position).is_empty() && Scanner::new(text).value().is_ok();
    match line {
        [] => Fault::Blank,
        _ if complete => Fault::InvalidJson,
        // A log line may begin as `[INFO]` or `[2026-07-28 ...`; an array of messages does not.
        [b'[', rest @ ..] => match rest.trim_ascii_start() {
            [] | [b'{' | b'[' | b']' | b'"', ..] => Fault::InvalidJson,
            _ => Fault::Text,
        },
        // Closing brackets and quotes: the lines of JSON that was printed over several.
        [b'{' | b'}' | b']' | b'"', ..] => Fault::InvalidJson,
        _ => Fault::Text,
    }
}

fn is_header(line: &[u8]) -> bool {
    [b"content-length:".as_slice(), b"content-type:"]
        .iter()
        .any(|header| {
            line.get(..header.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(header))
        })
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::jsonrpc::Frame;

    #[test]
    fn what_is_no_frame_is_named() {
        for (line, expected) in [
            ("", Fault::Blank),
            (" \t\r", Fault::Blank),
            ("Server listening", Fault::Text),
            ("[INFO] ready", Fault::Text),
            ("[2026-07-28 10:00] ready", Fault::Text),
            ("\u{1b}[31mred", Fault::Text),
            ("{", Fault::InvalidJson),
            ("  \"jsonrpc\": \"2.0\",", Fault::InvalidJson),
            ("}", Fault::InvalidJson),
            ("[", Fault::InvalidJson),
            (r#"{"level":"info","msg":"x"}"#, Fault::InvalidJson),
            (r#"{"jsonrpc":"2.0"}"#, Fault::InvalidJson),
            (r#"{"jsonrpc":"2.0","id":1}"#, Fault::InvalidJson),
            (r#"{"jsonrpc":"2.0","result":1}"#, Fault::InvalidJson),
            (
                r#"{"jsonrpc":"1.0","id":1,"method":"x"}"#,
                Fault::InvalidJson,
            ),
            (r#"{"jsonrpc":2.0,"id":1,"method":"x"}"#, Fault::InvalidJson),
            (
                r#"{"jsonrpc":"2.0","id":true,"method":"x"}"#,
                Fault::InvalidJson,
            ),
            (r#"{"jsonrpc":"2.0","id":1,"method":2}"#, Fault::InvalidJson),
            (r#"{"id":1,"method":"x"}"#, Fault::InvalidJson),
            (r#"{"jsonrpc":"2.0","method":"x"} x"#, Fault::InvalidJson),
            ("42", Fault::InvalidJson),
            ("Content-Length: 119\r", Fault::ContentLength),
            (
                "{\"jsonrpc\":\"2.0\",\"method\":\"x\"}Content-Length: 20",
                Fault::ContentLength,
            ),
        ] {
            assert_eq!(Frame::parse(Bytes::from(line)), Err(expected), "{line:?}");
        }
        assert_eq!(
            Frame::parse(Bytes::from_static(b"{\"a\":\"\xff\"}")),
            Err(Fault::InvalidUtf8)
        );
    }
}
