//! What a policy makes of a run.

use std::fmt::Write;

use super::finding::{outcomes, wrap};
use super::palette::Palette;
use crate::policy::{Level, Objection, Ruling};
use crate::verdict::Summary;
use crate::wording::{count, observed};

/// So many objections are listed.
const LISTED: usize = 100;

/// A title is cut to this many characters.
const TITLE: usize = 400;

/// Sentences begin at this column.
const TEXT: usize = 11;

/// The ruling under the summary of a run.
pub(super) fn after_summary(ruling: &Ruling, palette: &Palette, out: &mut Vec<u8>) {
    let mut text = String::new();
    let strong = palette.strong;
    let _ = write!(text, "\n{strong}Policy{strong:#}: ");
    match (ruling.denied, ruling.warned, ruling.uncovered.len()) {
        (0, 0, 0) => text.push_str("kept\n"),
        (denied, warned, missing) => {
            let _ = writeln!(
                text,
                "{denied} denied, {}, {missing} missing",
                count(warned, "warning")
            );
        }
    }
    objections(ruling, palette, &mut text);
    out.extend_from_slice(text.as_bytes());
}

/// A log's title, what was in it, and the ruling.
pub(super) fn of_log(
    title: &str,
    summary: &Summary,
    ruling: &Ruling,
    palette: &Palette,
    out: &mut Vec<u8>,
) {
    let mut text = String::new();
    let strong = palette.strong;
    let _ = writeln!(text, "{strong}{}{strong:#}", observed(title, TITLE));
    let calls: u64 = summary.calls.values().sum();
    let evidence = match summary.complete {
        true => "complete",
        false => "incomplete",
    };
    let _ = writeln!(
        text,
        "  calls {}; {}; evidence {evidence}",
        outcomes(calls, &summary.calls, palette),
        count(summary.messages, "message")
    );
    objections(ruling, palette, &mut text);
    out.extend_from_slice(text.as_bytes());
}

fn objections(ruling: &Ruling, palette: &Palette, text: &mut String) {
    let worded = ruling.objections.iter().take(LISTED);
    let mut listed = 0;
    for objection in worded.filter(|objection| !objection.message.is_empty()) {
        objection_lines(objection, palette, text);
        listed += 1;
    }
    let more = (ruling.denied + ruling.warned).saturating_sub(listed);
    if more > 0 {
        let _ = writeln!(text, "  and {more} more");
    }
    for missing in &ruling.uncovered {
        let style = palette.warning;
        let _ = write!(text, "  {style}missing{style:#}  ");
        wrap(missing, TEXT, text);
    }
}

fn objection_lines(objection: &Objection, palette: &Palette, text: &mut String) {
    let (style, word) = match objection.level {
        Level::Deny => (palette.error, "deny"),
        Level::Warn => (palette.warning, "warn"),
        Level::Allow => (palette.dim, "allow"),
    };
    let (subject, detail) = (objection.subject.name(), &objection.detail);
    let _ = writeln!(text, "  {style}{word:<7}{style:#}  {subject}{detail}");
    wrap(&objection.message, TEXT, text);
}
