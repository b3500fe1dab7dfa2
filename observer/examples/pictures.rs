//! Draws the pictures of the live view, as SVG, into the folder that is given. `cargo xtask
//! pictures` calls it for `docs/pictures`.

use std::fmt::Write;
use std::path::Path;
use std::{env, fs, io};

use observer::pipeline::{Output, Pipeline};
use observer::record::{Header, Reader, Record};
use observer::tui::{Arrival, Source, Still, Theme};
use observer::{session, verdict};
use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};

/// File, trace, keys, size.
const PICTURES: [(&str, &str, &str, (u16, u16)); 5] = [
    ("calls", "made/codex-0.163-retry.jsonl", "", (100, 26)),
    ("details", "made/codex-0.163-retry.jsonl", "\n", (100, 34)),
    ("timeline", "hosts/codex-old-esc.jsonl", "5", (100, 24)),
    ("frames", "hosts/codex-old-esc.jsonl", "4gjjjj", (100, 28)),
    (
        "findings",
        "made/ts-sdk-1.32-stale-and-late.jsonl",
        "3",
        (100, 24),
    ),
];

fn main() -> io::Result<()> {
    let folder = env::args()
        .nth(1)
        .ok_or_else(|| io::Error::other("no folder is given"))?;
    for (name, trace, keys, size) in PICTURES {
        let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/traces");
        let log = fs::read(traces.join(trace))?;
        let mut still = replayed(&log, trace, size);
        still.type_in(keys);
        let file = Path::new(&folder).join(format!("{name}.svg"));
        fs::write(file, svg(still.draw()))?;
    }
    Ok(())
}

fn replayed(log: &[u8], trace: &str, size: (u16, u16)) -> Still {
    let mut reader = Reader::new();
    let mut lines = log
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty());
    let first = lines
        .next()
        .and_then(|line| reader.handle_line(line).ok().flatten());
    let header = match first {
        Some(Record::Header(header)) => Header { ..*header },
        _ => unreachable!("a trace begins with its header"),
    };
    let title = trace.rsplit('/').next().unwrap_or(trace).into();
    let theme = Theme {
        colors: true,
        unicode: true,
        light: false,
    };
    let mut still = Still::new(
        Source {
            header,
            title,
            live: false,
        },
        theme,
        1 << 30,
        size,
    );
    let mut pipeline = Pipeline::new(session::Settings::default(), verdict::Settings::default());
    let mut end = observer::capture::Timestamp::ZERO;
    for line in lines {
        let Ok(Some(record)) = reader.handle_line(line) else {
            continue;
        };
        end = end.max(record.t());
        if let Some(observed) = record.into_observed() {
            pipeline.handle_observed(observed);
        }
    }
    pipeline.finish(end);
    let outputs: Vec<Output> = std::iter::from_fn(|| pipeline.poll_output()).collect();
    still.arrive(
        outputs
            .into_iter()
            .map(|output| Arrival {
                output,
                place: None,
            })
            .collect(),
    );
    still.end();
    still
}

/// The size of a cell, in the units of the picture.
const WIDE: f32 = 8.4;
const HIGH: f32 = 18.0;

const BACKGROUND: &str = "#1d2021";
const FOREGROUND: &str = "#d5d0c4";

fn svg(buffer: &Buffer) -> String {
    let area = buffer.area;
    let (width, height) = (
        f32::from(area.width) * WIDE + 16.0,
        f32::from(area.height) * HIGH + 16.0,
    );
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\" \
         font-size=\"14\">\n<rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"{BACKGROUND}\"/>\n"
    );
    for y in 0..area.height {
        let mut x = 0;
        while x < area.width {
            let first = &buffer[(x, y)];
            let same = |x: &u16| style(&buffer[(*x, y)]) == style(first);
            let end = (x..area.width)
                .take_while(same)
                .last()
                .map_or(x + 1, |last| last + 1);
            let text: String = (x..end).map(|x| buffer[(x, y)].symbol()).collect();
            run(&mut out, (x, y), end - x, &text, first);
            x = end;
        }
    }
    out + "</svg>\n"
}

fn style(cell: &Cell) -> (Color, Modifier) {
    (cell.fg, cell.modifier)
}

/// Cells of one style, as a rectangle where they stand out and a text.
fn run(out: &mut String, (x, y): (u16, u16), cells: u16, text: &str, cell: &Cell) {
    let (left, top) = (f32::from(x) * WIDE + 8.0, f32::from(y) * HIGH + 8.0);
    let wide = f32::from(cells) * WIDE;
    let (mut ink, mut paper) = (color(cell.fg), None);
    if cell.modifier.contains(Modifier::REVERSED) {
        paper = Some(ink);
        ink = BACKGROUND;
    }
    // Writing into a String cannot fail.
    if let Some(paper) = paper {
        let _ = writeln!(
            out,
            "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{wide:.1}\" height=\"{HIGH}\" fill=\"{paper}\"/>"
        );
    }
    if text.trim().is_empty() {
        return;
    }
    let mut more = String::new();
    for (modifier, attribute) in [
        (Modifier::BOLD, " font-weight=\"bold\""),
        (Modifier::UNDERLINED, " text-decoration=\"underline\""),
        (Modifier::DIM, " opacity=\"0.65\""),
    ] {
        if cell.modifier.contains(modifier) {
            more += attribute;
        }
    }
    let text = text
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    let base = top + 13.5;
    let _ = writeln!(
        out,
        "<text x=\"{left:.1}\" y=\"{base:.1}\" textLength=\"{wide:.1}\" xml:space=\"preserve\" \
         fill=\"{ink}\"{more}>{text}</text>"
    );
}

const fn color(color: Color) -> &'static str {
    match color {
        Color::Red => "#fb6a4a",
        Color::Green => "#9fb878",
        Color::Yellow => "#e6c06a",
        Color::Magenta => "#c9a0c0",
        Color::Cyan => "#86b8c4",
        _ => FOREGROUND,
    }
}
