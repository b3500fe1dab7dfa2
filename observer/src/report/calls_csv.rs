//! Calls as comma-separated values (RFC 4180), one row a call, as they end.

use super::build::Open;
use super::model::Call;
use crate::capture::Timestamp;
use crate::pipeline::Output;
use crate::record::Word;
use crate::verdict;

const COLUMNS: [&str; 18] = [
    "log",
    "connection",
    "host",
    "server",
    "from",
    "id",
    "method",
    "name",
    "outcome",
    "sent_s",
    "ended_s",
    "duration_s",
    "wasted_s",
    "request_bytes",
    "response_bytes",
    "progress",
    "cancelled_s",
    "cancel_reason",
];

/// The rows.
#[derive(Debug)]
pub(super) struct Calls;

impl Calls {
    #[expect(clippy::unused_self, reason = "the twin of the other stream's")]
    pub(super) fn begin(&self, out: &mut Vec<u8>) {
        row(&COLUMNS.map(str::to_owned), out);
    }

    #[expect(clippy::unused_self, reason = "the twin of the other stream's")]
    pub(super) fn handle_output(&self, open: &Open, output: &Output, out: &mut Vec<u8>) {
        let Output::Derived(verdict::Output::Call(call)) = output else {
            return;
        };
        let call = Call::new(call);
        let sides = open.parties.of(call.conn);
        let title = |side: Option<String>| text(side.as_deref().unwrap_or_default());
        row(
            &[
                text(&open.log.name),
                call.conn.to_string(),
                title(sides.map(|sides| sides.host.title())),
                title(sides.map(|sides| sides.server.title())),
                call.from.word().into(),
                text(&call.id),
                text(&call.tool.method),
                text(call.tool.name.as_deref().unwrap_or_default()),
                call.outcome.word().into(),
                seconds(Some(call.sent)),
                seconds(call.ended),
                call.took()
                    .map(|took| decimal(took.as_secs_f64()))
                    .unwrap_or_default(),
                call.wasted
                    .map(|wasted| decimal(wasted.as_secs_f64()))
                    .unwrap_or_default(),
                call.request_bytes.to_string(),
                call.response_bytes
                    .map(|bytes| bytes.to_string())
                    .unwrap_or_default(),
                call.progress.to_string(),
                seconds(call.cancelled),
                text(call.reason.as_deref().unwrap_or_default()),
            ],
            out,
        );
    }
}

fn row(fields: &[String; COLUMNS.len()], out: &mut Vec<u8>) {
    let mut writer = csv::WriterBuilder::new()
        .buffer_capacity(1 << 10)
        .from_writer(out);
    #[expect(clippy::expect_used, reason = "a Vec takes every write")]
    writer
        .write_record(fields)
        .and_then(|()| writer.flush().map_err(Into::into))
        .expect("a row is written");
}

/// Observed text. A spreadsheet takes what begins like a formula for one.
fn text(text: &str) -> String {
    match text.starts_with(['=', '+', '-', '@']) && text.parse::<f64>().is_err() {
        true => format!("'{text}"),
        false => text.to_owned(),
    }
}

fn seconds(at: Option<Timestamp>) -> String {
    at.map(|at| decimal(at.as_secs_f64())).unwrap_or_default()
}

fn decimal(seconds: f64) -> String {
    format!("{seconds:.6}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cell_is_a_formula() {
        assert_eq!(text("=HYPERLINK(1)"), "'=HYPERLINK(1)");
        assert_eq!(text("-1"), "-1");
        assert_eq!(text("slow"), "slow");
    }
}
