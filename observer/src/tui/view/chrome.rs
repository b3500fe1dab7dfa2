//! What frames every screen: the header, the names of the screens, the banner, the keys.

use ratatui::Frame as Canvas;
use ratatui::layout::Rect;
use ratatui::style::Modifier;

use super::{Row, Theme};
use crate::record::{Backend, Scope, Word, printable};
use crate::tui::keys::{Action, Binding, bindings};
use crate::tui::layout;
use crate::tui::model::{Ink, Model, State};
use crate::tui::text::{cut, width};
use crate::verdict::Outcome;
use crate::wording::{count, size};

/// Backend, scope, rates, and what was lost; the loss has room whatever else has none.
pub(super) fn header(model: &Model, theme: &Theme, canvas: &mut Canvas<'_>, area: Rect) {
    let mut row = Row::new(theme, area.width);
    let rate = match (model.source.live, &model.ended) {
        (true, None) => format!("{} msg/s  ", model.rate.per_second),
        _ => String::new(),
    };
    let totals = &model.ledger.totals;
    let seen = format!(
        "{}, {}  {rate}",
        count(totals.messages, "message"),
        size(totals.bytes)
    );
    let (ink, loss) = loss(model);
    row.push(Ink::Strong, " observer  ");
    let wide = width(&seen) + width(&loss);
    let room = row.room.saturating_sub(wide + 1);
    let (scope, seen) = match room < LEAST_SCOPE {
        true => (
            cut(&scope(model), row.room.saturating_sub(width(&loss) + 1)),
            "",
        ),
        false => (cut(&scope(model), room), seen.as_str()),
    };
    row.push(Ink::Plain, &scope);
    row.fill(width(seen) + width(&loss));
    row.push(Ink::Dim, seen);
    let style = theme.ink(ink);
    let style = if ink == Ink::Accent {
        style.add_modifier(Modifier::REVERSED)
    } else {
        style
    };
    row.styled(style, &loss);
    row.draw(canvas, area);
}

/// With less room than this for the scope, the traffic is left out.
const LEAST_SCOPE: usize = 24;

fn scope(model: &Model) -> String {
    let header = &model.source.header;
    let what = match (&header.scope, header.backend) {
        (_, Backend::Replay) => "replay".into(),
        (Some(Scope::Run { .. }), backend) => format!("run, {}", backend.word()),
        (Some(Scope::Attach { pids }), backend) => match pids.as_slice() {
            [pid] => format!("attach to process {pid}, {}", backend.word()),
            _ => format!("attach to {} processes, {}", pids.len(), backend.word()),
        },
        (Some(Scope::Watch), backend) => format!("watch this machine, {}", backend.word()),
        (None, backend) => backend.word().into(),
    };
    match model.source.title.is_empty() {
        true => what,
        false => format!("{what}: {}", printable(&model.source.title)),
    }
}

/// What went by unseen; nothing here is ever left out.
fn loss(model: &Model) -> (Ink, String) {
    let totals = &model.ledger.totals;
    let mut parts = Vec::new();
    if model.cut {
        parts.push("LOG CUT".into());
    }
    if let Some(loss) = totals.loss.filter(|loss| !loss.complete()) {
        parts.push(format!("LOST {}", size(loss.ring_full + loss.unreadable)));
        if loss.events_lost > 0 {
            parts.push(format!("{} events lost", loss.events_lost));
        }
    }
    if totals.gaps > 0 {
        parts.push(count(totals.gaps, "gap"));
    }
    if totals.skipped > 0 {
        parts.push(format!("{} not shown", totals.skipped));
    }
    match (parts.is_empty(), model.ledger.is_complete()) {
        (true, true) => (Ink::Good, "complete ".into()),
        (true, false) => (Ink::Accent, " incomplete ".into()),
        (false, _) => (Ink::Accent, format!(" {} ", parts.join(", "))),
    }
}

/// The screens, and what narrows them.
pub(super) fn tabs(model: &Model, theme: &Theme, canvas: &mut Canvas<'_>, area: Rect) {
    let mut row = Row::new(theme, area.width);
    for (screen, text, _) in layout::tabs(model) {
        let here = screen == model.screen;
        let ink = if here { Ink::Strong } else { Ink::Dim };
        let style = theme.ink(ink);
        row.styled(
            if here {
                style.patch(theme.chosen())
            } else {
                style
            },
            &text,
        );
    }
    if let Some((subject, _)) = model.pages.last() {
        let page = model.page_title(*subject);
        if row.room > width(&page) {
            row.fill(width(&page) + 1);
            row.push(Ink::Note, &page);
        }
    }
    row.draw(canvas, area);
}

/// What narrows or holds the lists, and what goes on.
fn flags(model: &Model) -> String {
    let mut flags = Vec::new();
    if model.unfinished {
        flags.push("filtering…".into());
    }
    if model.paused {
        let new = model
            .ledger
            .frames
            .range()
            .end
            .saturating_sub(model.frames.examined());
        flags.push(format!("PAUSED, {new} more"));
    }
    if let Some(only) = model.only {
        flags.push(format!("connection {only} only"));
    }
    if !model.filter.0.is_empty() {
        flags.push(format!("filter: {}", model.filter.0));
    }
    if model.ledger.running() > 0 {
        flags.push(format!("{} running", model.ledger.running()));
    }
    if model.source.live && model.ended.is_some() {
        flags.push("ended".into());
    } else if model.list(model.screen).follow {
        flags.push("following".into());
    }
    flags.join(", ")
}

/// The one thing that a stranger should know; what holds the lists has room beside it.
pub(super) fn banner(model: &Model, theme: &Theme, canvas: &mut Canvas<'_>, area: Rect) {
    let flags = flags(model);
    let flags = if flags.is_empty() {
        flags
    } else {
        format!("  {flags} ")
    };
    let wide = u16::try_from(width(&flags))
        .unwrap_or(u16::MAX)
        .min(area.width);
    let mut row = Row::new(theme, area.width - wide);
    news(model, theme, &mut row);
    row.fill(0);
    row.room = usize::from(wide);
    row.push(Ink::Note, &flags);
    row.draw(canvas, area);
}

fn news(model: &Model, theme: &Theme, row: &mut Row<'_>) {
    let ledger = &model.ledger;
    let abandoned = ledger.count(Outcome::Abandoned);
    if let Some(Some(why)) = &model.ended {
        row.push(Ink::Accent, &format!(" {}", printable(why)));
    } else if abandoned > 0 {
        let sign = theme.sign(State::Over(Outcome::Abandoned));
        let calls = count(abandoned.into(), "call");
        let (how, what) = match ledger.is_proven() {
            true => ("abandoned", ": the host gave up and did not cancel.  "),
            false => ("very likely abandoned", ": the host did not cancel.  "),
        };
        row.push(Ink::Accent, &format!(" {sign} {calls} {how}"));
        row.push(Ink::Plain, what);
        news_keys(row);
    } else if ledger.suspected() > 0 {
        let calls = count(ledger.suspected(), "call");
        row.push(Ink::Warning, &format!(" ? {calls} perhaps abandoned.  "));
        news_keys(row);
    } else if ledger.totals.standing > 0 {
        let found = count(ledger.totals.standing.into(), "finding");
        row.push(Ink::Warning, &format!(" {found}, no abandoned call"));
    } else if ledger.totals.messages == 0 && model.ended.is_some() {
        // Silence is no success: perhaps nothing of the scope speaks MCP over stdio.
        row.push(Ink::Warning, " no MCP message was seen");
    } else if ledger.totals.messages == 0 && model.source.live {
        row.push(Ink::Dim, " waiting for the first message…");
    } else {
        let so_far = match model.ended {
            None => " nothing found so far",
            Some(_) => " no call was abandoned, and nothing else was found",
        };
        row.push(Ink::Good, so_far);
    }
}

/// What to press about it, where there is room for all of that.
fn news_keys(row: &mut Row<'_>) {
    let keys = [
        (Ink::Key, "n"),
        (Ink::Dim, " next  "),
        (Ink::Key, "Enter"),
        (Ink::Dim, " why"),
    ];
    let wide: usize = keys.iter().map(|(_, text)| width(text)).sum();
    if row.room >= wide {
        for (ink, text) in keys {
            row.push(ink, text);
        }
    }
}

/// What is typed, what there is to tell, or the keys that matter here.
pub(super) fn bottom(model: &Model, theme: &Theme, canvas: &mut Canvas<'_>, area: Rect) {
    let mut row = Row::new(theme, area.width);
    if let Some(prompt) = &model.prompt {
        row.push(Ink::Key, &format!(" {}: ", prompt.purpose.label()));
        row.push(Ink::Plain, &prompt.text);
        row.styled(theme.chosen(), " ");
        if let Some(error) = &prompt.error {
            row.push(Ink::Warning, &format!("  {error}"));
        } else {
            row.push(Ink::Dim, "  Enter to go, Esc to leave it");
        }
    } else if let Some(note) = &model.note {
        row.push(Ink::Note, &format!(" {}", printable(note)));
    } else {
        keys(model, &mut row);
    }
    row.draw(canvas, area);
}

/// The keys that matter here; help and leaving have room whatever else has none.
fn keys(model: &Model, row: &mut Row<'_>) {
    let place = model.pages.is_empty().then_some(model.screen);
    let hints = || bindings(place).filter(|binding| !binding.hint.is_empty());
    let is_last = |binding: &&Binding| matches!(binding.action, Action::Help | Action::Quit);
    let wide = |binding: &Binding| width(&binding.keys[0].name()) + binding.hint.len() + 3;
    let reserved: usize = hints().filter(is_last).map(wide).sum();
    let push = |binding: &Binding, row: &mut Row<'_>| {
        row.push(Ink::Key, &format!(" {} ", binding.keys[0].name()));
        row.push(Ink::Dim, &format!("{} ", binding.hint));
    };
    for binding in hints().filter(|binding| !is_last(binding)) {
        // Half a hint would help nobody.
        if row.room < wide(binding) + reserved {
            break;
        }
        push(binding, row);
    }
    hints()
        .filter(is_last)
        .for_each(|binding| push(binding, row));
}
