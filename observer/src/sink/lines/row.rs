//! The columns of a row: `time  connection  word  text`.

use std::fmt::Write;

use anstyle::Style;

use super::palette::Palette;
use crate::capture::Timestamp;
use crate::session::ConnId;
use crate::wording::time;

/// Where the text begins.
pub(super) const TEXT: usize = 30;

/// Appends the columns before the text.
pub(super) fn begin(
    out: &mut String,
    palette: &Palette,
    at: Option<Timestamp>,
    conn: Option<ConnId>,
    style: Style,
    word: &str,
) {
    let dim = palette.dim;
    let time = at.map(time).unwrap_or_default();
    let conn = conn.map(|conn| conn.to_string()).unwrap_or_default();
    // Writing into a String cannot fail.
    let _ = write!(
        out,
        "{dim}{time:>9}  {conn:>3}{dim:#}  {style}{word:<12}{style:#}  "
    );
}
