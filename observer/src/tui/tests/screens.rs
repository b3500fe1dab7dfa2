//! Each screen at the two usual sizes, and small ones without damage.

use ratatui::style::Color;

use super::Eye;
use crate::tui::view::Theme;

const RETRY: &str = "made/codex-0.163-retry.jsonl";
const ESC: &str = "hosts/codex-old-esc.jsonl";

macro_rules! shows {
    ($name:ident, $trace:expr, $keys:literal) => {
        #[test]
        fn $name() {
            let mut eye = Eye::on($trace);
            eye.tell(crate::tui::message::Message::Resize(80, 24))
                .press($keys);
            let name = stringify!($name);
            insta::assert_snapshot!(format!("{name}_80x24"), eye.see(80, 24));
            insta::assert_snapshot!(format!("{name}_120x40"), eye.see(120, 40));
        }
    };
}

shows!(calls, RETRY, "");
shows!(connections, RETRY, "1");
shows!(findings, RETRY, "3");
shows!(frames, ESC, "4G");
shows!(timeline, RETRY, "5");
shows!(timeline_with_a_key, ESC, "5");
shows!(details, RETRY, "<enter>");
shows!(details_of_an_interrupted_call, ESC, "<enter>");
shows!(details_of_a_frame, ESC, "4ggjj<enter>");
shows!(details_of_a_connection, RETRY, "1<enter>");
shows!(comparison, RETRY, "mjc");
shows!(filtered, RETRY, "/outcome:torn-down<enter>");
shows!(help, RETRY, "?");

#[test]
fn nothing_is_damaged_on_a_small_screen() {
    for keys in ["", "1", "3", "4", "5", "<enter>", "?", "/tool:slow"] {
        let mut eye = Eye::on(RETRY);
        eye.press(keys);
        for (columns, lines) in [(60, 15), (40, 10), (20, 5), (10, 3), (3, 2), (1, 1)] {
            eye.see(columns, lines);
        }
    }
    insta::assert_snapshot!("calls_60x15", Eye::on(RETRY).see(60, 15));
    insta::assert_snapshot!("details_60x15", Eye::on(RETRY).press("<enter>").see(60, 15));
}

#[test]
fn a_terminal_without_unicode_or_colours_gets_neither() {
    let theme = Theme {
        colors: false,
        unicode: false,
    };
    for keys in ["", "<enter>", "1", "3", "4", "5", "?"] {
        let mut eye = Eye::on(RETRY);
        eye.press(keys);
        for cell in &eye.buffer_in(&theme, 80, 24).content {
            assert!(cell.symbol().is_ascii(), "{} after {keys}", cell.symbol());
            assert_eq!((cell.fg, cell.bg), (Color::Reset, Color::Reset));
        }
    }
}

#[test]
fn all_traces_can_be_looked_at() {
    let traces = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/traces/hosts");
    for entry in std::fs::read_dir(traces).expect("traces") {
        let path = entry.expect("an entry").path();
        if path
            .extension()
            .is_none_or(|extension| extension != "jsonl")
        {
            continue;
        }
        let log = std::fs::read(&path).expect("a trace");
        let mut eye = Eye::on_log(&log, super::ROOMY);
        for keys in [
            "", "<enter>", "G", "q", "1", "<enter>", "q3", "<enter>", "q4G", "<enter>", "q5",
        ] {
            eye.press(keys);
            let seen = eye.see(80, 24);
            assert!(seen.contains("observer"), "{} after {keys}", path.display());
        }
    }
}
