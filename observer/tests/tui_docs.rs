//! `docs/tui.md` lists the keys and the filter's fields as the tables in the code have them. With
//! `UPDATE_DOCS=1` it is brought up to date.
#![expect(
    clippy::expect_used,
    reason = "a test fails by panicking, in its helpers too"
)]

use std::fs;
use std::path::Path;

use observer::tui;

#[test]
fn the_documentation_has_the_tables_of_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/tui.md");
    let committed = fs::read_to_string(&path).expect("docs/tui.md");
    let text = with_part(&committed, "keys", &tui::keys_markdown());
    let text = with_part(&text, "fields", &tui::fields_markdown());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, &text).expect("docs/tui.md is written");
        return;
    }
    assert_eq!(
        committed, text,
        "run UPDATE_DOCS=1 cargo test --test tui_docs"
    );
}

/// The text, with `part` between the comments of that name.
fn with_part(text: &str, name: &str, part: &str) -> String {
    let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- /{name} -->\n"));
    let (before, rest) = text.split_once(&begin).expect("where the part begins");
    let (_, after) = rest.split_once(&end).expect("where the part ends");
    format!("{before}{begin}\n{part}{end}{after}")
}
