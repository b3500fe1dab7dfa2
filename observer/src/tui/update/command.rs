//! What a key does.

use memchr::memmem;
use ratatui::crossterm::event::KeyEvent;

use super::{choose, close, open, refresh_page, show};
use crate::capture::Timestamp;
use crate::tui::keys::{Action, action};
use crate::tui::layout::areas;
use crate::tui::message::Effect;
use crate::tui::model::{Frame, Model, Prompt, Purpose, Screen, Subject};

pub(super) fn key(model: &mut Model, key: KeyEvent) -> Vec<Effect> {
    model.note = None;
    let place = model.pages.is_empty().then_some(model.screen);
    action(key, place).map_or(Vec::new(), |action| act(model, action))
}

pub(super) fn act(model: &mut Model, action: Action) -> Vec<Effect> {
    let page = isize::try_from(areas(model).rows.height.max(2) - 1).unwrap_or(1);
    match action {
        Action::Up => step(model, -1),
        Action::Down => step(model, 1),
        Action::PageUp => step(model, -page),
        Action::PageDown => step(model, page),
        Action::First => step(model, isize::MIN),
        Action::Last => step(model, isize::MAX),
        Action::Open => return open_row(model),
        Action::Back => back(model),
        Action::NextScreen => turn(model, 1),
        Action::PreviousScreen => turn(model, Screen::ALL.len() - 1),
        Action::Screen(screen) => show(model, screen),
        Action::NextFinding => next_finding(model, true),
        Action::PreviousFinding => next_finding(model, false),
        Action::Pause => pause(model),
        Action::Follow => follow(model),
        Action::Filter => ask(model, Purpose::Filter),
        Action::Only => only(model),
        Action::Sort => sort(model, |(column, _)| (column.next(), false)),
        Action::Reverse => sort(model, |(column, reverse)| (column, !reverse)),
        Action::Mark => mark(model),
        Action::Compare => return compare(model),
        Action::Copy => return copy(model),
        Action::Save => ask(model, Purpose::Save),
        Action::Fold => return fold(model),
        Action::Search => ask(model, Purpose::Search),
        Action::NextMatch => find(model, false),
        Action::PreviousMatch => find(model, true),
        Action::ZoomIn => zoom(model, |span| span / 2),
        Action::ZoomOut => zoom(model, |span| span.saturating_mul(2)),
        Action::PanLeft => pan(model, false),
        Action::PanRight => pan(model, true),
        Action::Fit => model.window = None,
        Action::Help => return open(model, Subject::Help),
        Action::Redraw => return vec![Effect::Redraw],
        Action::Suspend => return vec![Effect::Suspend],
        Action::Quit => return vec![Effect::Quit],
    }
    Vec::new()
}

/// Moves on by so many rows, in the page or the list.
pub(super) fn step(model: &mut Model, by: isize) {
    if let Some((_, reading)) = model.pages.last_mut() {
        reading.step(by);
        return;
    }
    let goes_on = model.source.live && model.ended.is_none();
    let list = model.list_mut(model.screen);
    list.step(by);
    // Whoever goes to the end of what happens now wants to see what happens next.
    list.follow = goes_on && by == isize::MAX;
}

pub(super) fn open_row(model: &mut Model) -> Vec<Effect> {
    let subject = match model.screen {
        Screen::Connections => model
            .current_connection()
            .map(|conn| Subject::Connection(conn.id)),
        Screen::Calls | Screen::Timeline => model.calls.current().map(Subject::Call),
        Screen::Findings => model.findings.current().map(Subject::Finding),
        Screen::Frames => model.frames.current().map(Subject::Frame),
    };
    model.list_mut(model.screen).follow = false;
    subject.map_or(Vec::new(), |subject| open(model, subject))
}

fn back(model: &mut Model) {
    if !model.pages.is_empty() {
        close(model);
    } else if !model.filter.1.is_empty() || model.only.is_some() {
        model.filter = Default::default();
        model.only = None;
        choose::begin(model);
    }
}

fn turn(model: &mut Model, by: usize) {
    let at = Screen::ALL
        .iter()
        .position(|screen| *screen == model.screen)
        .unwrap_or(0);
    show(model, Screen::ALL[(at + by) % Screen::ALL.len()]);
}

/// Looks at the next row with a finding.
fn next_finding(model: &mut Model, forwards: bool) {
    if model.screen == Screen::Findings {
        step(model, if forwards { 1 } else { -1 });
        return;
    }
    if matches!(model.screen, Screen::Connections | Screen::Frames) {
        show(model, Screen::Calls);
    }
    let Model { ledger, calls, .. } = model;
    let rows = calls.rows();
    let from = calls.cursor();
    let found = |place: &usize| {
        let call = rows.get(*place).and_then(|row| ledger.calls.get(*row));
        call.is_some_and(|call| !call.findings.is_empty())
    };
    let count = rows.len();
    let place = (1..=count)
        .map(|step| {
            if forwards {
                (from + step) % count
            } else {
                (from + count - step) % count
            }
        })
        .find(found);
    match place {
        Some(place) => {
            calls.follow = false;
            calls.go(place);
        }
        None if !model.filter.1.is_empty() || model.only.is_some() => {
            model.note = Some("nothing was found in what the filter shows; Esc drops it".into());
        }
        None if ledger.totals.standing > 0 => {
            show(model, Screen::Findings);
        }
        None => model.note = Some("nothing was found".into()),
    }
}

fn pause(model: &mut Model) {
    model.paused = !model.paused;
    if !model.paused {
        choose::go_on(model);
        refresh_page(model);
    }
}

fn follow(model: &mut Model) {
    let list = model.list_mut(model.screen);
    list.follow = !list.follow;
    if list.follow {
        list.go(usize::MAX);
        model.paused = false;
    }
}

fn ask(model: &mut Model, purpose: Purpose) {
    let text = match purpose {
        Purpose::Filter => model.filter.0.clone(),
        Purpose::Search => String::new(),
        Purpose::Save => "filtered.jsonl".into(),
    };
    model.prompt = Some(Prompt::new(purpose, text));
}

fn only(model: &mut Model) {
    let conn = match model.screen {
        Screen::Connections => model.current_connection().map(|conn| conn.id),
        Screen::Findings => model
            .current_finding()
            .and_then(|(_, found)| found.finding.conn),
        Screen::Frames => model
            .current_frame()
            .and_then(|(_, frame)| match frame.place {
                crate::tui::model::Place::Connection(conn) => Some(conn),
                _ => None,
            }),
        Screen::Calls | Screen::Timeline => model.current_call().map(|(_, call)| call.conn),
    };
    model.only = conn.filter(|_| model.only.is_none());
    if model.only.is_some() && model.screen == Screen::Connections {
        show(model, Screen::Calls);
    }
    choose::begin(model);
}

fn sort(
    model: &mut Model,
    change: impl FnOnce((crate::tui::model::Column, bool)) -> (crate::tui::model::Column, bool),
) {
    model.sort = change(model.sort);
    choose::sort(model);
}

/// The message that is looked at.
fn message(model: &Model) -> Option<u32> {
    if let Some((subject, reading)) = model.pages.last() {
        let line = reading.lines.get(reading.cursor)?;
        return line.frame.or(model.frames_of(*subject).first().copied());
    }
    match model.screen {
        Screen::Frames => {
            let frame = model.current_frame();
            frame.and_then(|(number, frame)| frame.is_message().then_some(number))
        }
        _ => model.current_call().and_then(|(_, call)| call.request),
    }
}

fn mark(model: &mut Model) {
    model.marked = message(model);
    let frame = model
        .marked
        .and_then(|number| model.ledger.frames.get(number));
    model.note = Some(match frame {
        Some(frame) => format!("marked {}; c compares another with it", frame.label),
        None => NO_MESSAGE.into(),
    });
}

fn compare(model: &mut Model) -> Vec<Effect> {
    match (model.marked, message(model)) {
        (Some(one), Some(other)) => open(model, Subject::Compare(one, other)),
        (None, _) => {
            model.note = Some("mark a message with m first".into());
            Vec::new()
        }
        (Some(_), None) => {
            model.note = Some(NO_MESSAGE.into());
            Vec::new()
        }
    }
}

const NO_MESSAGE: &str = "there is no message here";

fn copy(model: &mut Model) -> Vec<Effect> {
    let finding = model
        .current_finding()
        .filter(|_| model.screen == Screen::Findings);
    let text = match finding.filter(|_| model.pages.is_empty()) {
        Some((_, found)) => Some(found.finding.message.clone()),
        None => message(model)
            .and_then(|number| model.ledger.frames.get(number)?.text().map(str::to_owned)),
    };
    match text {
        Some(text) => {
            model.note = Some(format!("copied {} bytes", text.len()));
            vec![Effect::Copy(text)]
        }
        None => {
            model.note = Some("there is no text here to copy".into());
            Vec::new()
        }
    }
}

fn fold(model: &mut Model) -> Vec<Effect> {
    let Some((_, reading)) = model.pages.last_mut() else {
        return Vec::new();
    };
    if reading.toggle() {
        return refresh_page(model);
    }
    let call = reading.lines.get(reading.cursor).and_then(|line| line.call);
    call.map_or(Vec::new(), |call| open(model, Subject::Call(call)))
}

/// Goes to the next line of the page that has what is searched for. Where only the beginning of a
/// message is shown, and it is not there, more is shown.
pub(super) fn find(model: &mut Model, backwards: bool) {
    let Some((subject, reading)) = model.pages.last_mut() else {
        return;
    };
    if reading.search.is_empty() {
        model.note = Some("search for something with / first".into());
        return;
    }
    if reading.find(backwards) {
        return;
    }
    let subject = *subject;
    if reading.show_all() {
        refresh_page(model);
        return find(model, backwards);
    }
    let (what, shown) = (reading.search.clone(), reading.lines.len());
    let finder = memmem::Finder::new(&what);
    let further = model.frames_of(subject).into_iter().any(|number| {
        let text = model.ledger.frames.get(number).and_then(Frame::text);
        text.is_some_and(|text| finder.find(text.as_bytes()).is_some())
    });
    model.note = Some(match further {
        true => {
            format!("{what:?} stands in what is folded, or beyond the {shown} lines shown here")
        }
        false => format!("no {what:?} in what is shown here"),
    });
}

/// Shows more or less time around the middle of what is shown.
fn zoom(model: &mut Model, change: impl FnOnce(u64) -> u64) {
    let whole = model.whole();
    let (start, end) = model.window.unwrap_or(whole);
    let length = |(start, end): (Timestamp, Timestamp)| end.as_nanos() - start.as_nanos();
    let span = change(length((start, end))).max(1_000);
    if span >= length(whole) {
        model.window = None;
        return;
    }
    let looked_at = model.current_call().map(|(_, call)| call.sent);
    let middle = looked_at.filter(|at| (start..end).contains(at));
    let middle = middle.map_or(
        start.as_nanos() / 2 + end.as_nanos() / 2,
        Timestamp::as_nanos,
    );
    let start = middle.saturating_sub(span / 2).max(whole.0.as_nanos());
    model.window = Some((
        Timestamp::from_nanos(start),
        Timestamp::from_nanos(start + span),
    ));
}

fn pan(model: &mut Model, later: bool) {
    let whole = model.whole();
    let Some((start, end)) = model.window else {
        return;
    };
    let span = end.as_nanos() - start.as_nanos();
    let by = span / 4;
    let start = match later {
        true => (start.as_nanos() + by).min(whole.1.as_nanos().saturating_sub(by)),
        false => start.as_nanos().saturating_sub(by).max(whole.0.as_nanos()),
    };
    model.window = Some((
        Timestamp::from_nanos(start),
        Timestamp::from_nanos(start + span),
    ));
}
