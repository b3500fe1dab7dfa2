//! What a message changes. Pure: a model and a message in, the changed model and effects out.

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod choose;
mod command;
mod pointer;
mod prompt;

use ratatui::crossterm::event::KeyEventKind;

use super::layout::areas;
use super::message::{Effect, Message};
use super::model::{Model, Screen, State, Subject};
use crate::verdict::Outcome;

/// Takes a message in. What is to be done outside comes back.
pub(crate) fn update(model: &mut Model, message: Message) -> Vec<Effect> {
    let effects = match message {
        Message::Key(key) if key.kind == KeyEventKind::Release => return Vec::new(),
        Message::Key(key) => {
            model.touched = true;
            model.stale = true;
            match model.prompt {
                Some(_) => prompt::key(model, key),
                None => command::key(model, key),
            }
        }
        Message::Mouse(event) => pointer::mouse(model, event),
        Message::Paste(text) => {
            if let Some(prompt) = &mut model.prompt {
                prompt.insert(&text);
                model.stale = true;
            }
            Vec::new()
        }
        Message::Resize(columns, lines) => {
            model.size = (columns, lines);
            model.stale = true;
            refresh_page(model)
        }
        Message::Tick(now) => tick(model, now),
        Message::Arrived(arrivals) => {
            let new_frames = !arrivals.is_empty();
            for arrival in arrivals {
                model.ledger.handle_output(arrival.output, arrival.place);
            }
            model.stale |= new_frames;
            if !model.source.live {
                model.now = model.ledger.newest;
            }
            choose::go_on(model);
            if model.paused {
                Vec::new()
            } else {
                refresh_page(model)
            }
        }
        Message::Skipped(messages) => {
            model.ledger.totals.skipped += messages;
            model.stale = true;
            Vec::new()
        }
        Message::Cut(cut) => {
            model.cut = true;
            model.note = Some(format!("the log is cut: {cut}"));
            model.stale = true;
            Vec::new()
        }
        Message::Printed(bytes) => {
            model.printed.get_or_insert_default().take(&bytes);
            model.stale = true;
            Vec::new()
        }
        Message::Ended(why) => {
            model.ended = Some(why);
            model.now = model.ledger.newest;
            model.stale = true;
            choose::go_on(model);
            choose::sort(model);
            look_at_the_worst(model);
            Vec::new()
        }
        Message::Idle => {
            choose::go_on(model);
            choose::sort(model);
            Vec::new()
        }
        Message::Fetched(number, result) => {
            match result {
                Ok(event) => model.ledger.restore(number, event),
                Err(error) => model.note = Some(error),
            }
            model.stale = true;
            refresh_page(model)
        }
        Message::Note(note) => {
            model.note = Some(note);
            model.stale = true;
            Vec::new()
        }
    };
    settle(model);
    effects
}

/// Time has passed: what is drawn changes only where something shows it.
fn tick(model: &mut Model, now: crate::capture::Timestamp) -> Vec<Effect> {
    if model.ended.is_some() {
        return Vec::new();
    }
    let messages = model.ledger.totals.messages;
    model.stale |= model.rate.tick(now, messages);
    if model.paused {
        return Vec::new();
    }
    let ages = model
        .ledger
        .connections
        .values()
        .any(|connection| connection.open_calls > 0);
    model.now = now.max(model.ledger.newest);
    if !ages {
        return Vec::new();
    }
    model.stale = true;
    refresh_page(model)
}

/// Makes the page that is open anew; what it shows and is not in memory is to be fetched.
fn refresh_page(model: &mut Model) -> Vec<Effect> {
    let Some((subject, mut reading)) = model.pages.pop() else {
        return Vec::new();
    };
    reading.show(model.page(subject, &reading.folded));
    model.pages.push((subject, reading));
    Vec::new()
}

/// A stranger must see at once what went wrong.
fn look_at_the_worst(model: &mut Model) {
    if model.touched {
        return;
    }
    model.calls.follow = false;
    let calls = &model.ledger.calls;
    let abandoned = calls
        .iter()
        .filter(|(_, call)| call.state() == State::Over(Outcome::Abandoned));
    let worst = abandoned.max_by_key(|(number, call)| (call.abandoned, std::cmp::Reverse(*number)));
    let first = worst.or_else(|| calls.iter().find(|(_, call)| !call.findings.is_empty()));
    // Where nothing went wrong, what was cut short is what somebody may wonder about.
    let is_whole = |outcome| matches!(outcome, Outcome::Answered | Outcome::Failed);
    let first = first.or_else(|| {
        calls
            .iter()
            .find(|(_, call)| matches!(call.state(), State::Over(outcome) if !is_whole(outcome)))
    });
    if let Some((number, _)) = first {
        model.calls.select(number);
    }
    model.findings.go(0);
}

/// Keeps what is looked at in view.
fn settle(model: &mut Model) {
    let height = usize::from(areas(model).rows.height);
    if let Some((_, reading)) = model.pages.last_mut() {
        reading.settle(height);
        return;
    }
    model.list_mut(model.screen).settle(height);
}

/// Opens a page about something.
fn open(model: &mut Model, subject: Subject) -> Vec<Effect> {
    if model.pages.last().is_some_and(|(open, _)| *open == subject) {
        return Vec::new();
    }
    model.pages.push((subject, Default::default()));
    let frames = model.frames_of(subject).into_iter();
    let away = frames.filter_map(|number| Some((number, model.ledger.frames.get(number)?)));
    let fetch = away.filter_map(|(number, frame)| match frame.body {
        super::model::Body::InLog(place) => Some(Effect::Fetch(number, place)),
        super::model::Body::Here(_) | super::model::Body::Gone => None,
    });
    let effects: Vec<_> = fetch.collect();
    refresh_page(model);
    effects
}

/// Closes the page that is open.
fn close(model: &mut Model) {
    model.pages.pop();
    if model.pages.is_empty() {
        model.ledger.release();
    }
    refresh_page(model);
}

/// Shows a screen of rows.
fn show(model: &mut Model, screen: Screen) {
    model.pages.clear();
    model.ledger.release();
    model.screen = screen;
}
