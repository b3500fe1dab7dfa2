//! Request ids, kept as written: `0`, `"0"` and `1` are three ids.

/// A request id. Numbers compare by the text they were written with, strings by what they mean
/// (escapes decoded). Never judged by truth: `0` and `""` are ids like any other.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Id {
    /// A JSON number, as written.
    Number(Box<str>),
    /// A JSON string, decoded.
    String(Box<str>),
    /// `null`: no MCP revision allows it for a request; errors may carry it.
    Null,
}
