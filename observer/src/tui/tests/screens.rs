//! Each screen at the two usual sizes, and small ones without damage.

use ratatui::style::{Color, Modifier};

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
    for (name, keys) in [
        ("calls_60x15", ""),
        ("connections_60x15", "1"),
        ("findings_60x15", "3"),
        ("frames_60x15", "4"),
        ("timeline_60x15", "5"),
        ("details_60x15", "<enter>"),
    ] {
        insta::assert_snapshot!(name, Eye::on(RETRY).press(keys).see(60, 15));
    }
}

#[test]
fn the_names_of_host_and_server_have_room_on_every_screen() {
    for columns in 40..130 {
        let screen = Eye::on(ESC).press("1").see(columns, 24);
        let row = screen.lines().nth(4).expect("a row");
        assert!(
            row.contains("codex-mcp-client ") && row.contains(" lab-slow"),
            "{screen}"
        );
        let heads = screen.lines().nth(3).expect("the heads");
        let under = |head, text| heads.find(head) == row.find(text);
        assert!(
            under("HOST", "codex") && under("SERVER", "lab-slow"),
            "{screen}"
        );
    }
}

#[test]
fn the_row_that_is_looked_at_has_one_style() {
    for keys in ["", "1", "3", "4", "5", "<enter>"] {
        let buffer = Eye::on(RETRY).press(keys).buffer(80, 24);
        let is_chosen = |y: &u16| {
            let last = &buffer[(79, *y)];
            *y > 1 && last.modifier.contains(Modifier::REVERSED)
        };
        let y = (0..24).find(is_chosen).expect("a row that is looked at");
        let style = |x| buffer[(x, y)].style();
        assert!((0..80).all(|x| style(x) == style(0)), "after {keys}");
    }
}

#[test]
fn the_tabs_count_what_the_filter_shows_before_they_are_visited() {
    let mut eye = Eye::on(RETRY);
    let screen = eye.press("/id:4<enter>").see(80, 24);
    assert!(
        screen.contains("2 Calls 1  3 Findings 1  4 Frames 1"),
        "{screen}"
    );
    let screen = eye.press("/<C-u>id:none<enter>").see(80, 24);
    assert!(
        screen.contains("3 Findings 0") && screen.contains("───────"),
        "{screen}"
    );
}

#[test]
fn a_terminal_without_unicode_or_colours_gets_neither() {
    let theme = Theme {
        colors: false,
        unicode: false,
        light: false,
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
fn a_light_terminal_gets_no_colour_that_cannot_be_read_on_it() {
    let light = Theme {
        light: true,
        ..super::THEME
    };
    for keys in ["", "<enter>", "1", "3", "4", "5", "?"] {
        let mut eye = Eye::on(RETRY);
        eye.press(keys);
        for cell in &eye.buffer_in(&light, 80, 24).content {
            let faint = matches!(cell.fg, Color::Yellow | Color::Cyan);
            assert!(!faint, "{} after {keys}", cell.symbol());
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
