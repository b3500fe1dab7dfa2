//! What a key does while a line is typed.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{choose, command};
use crate::tui::message::Effect;
use crate::tui::model::{Model, Prompt, Purpose, Query};

pub(super) fn key(model: &mut Model, key: KeyEvent) -> Vec<Effect> {
    let Some(mut prompt) = model.prompt.take() else {
        return Vec::new();
    };
    let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Enter => return finish(model, prompt),
        KeyCode::Esc => return Vec::new(),
        KeyCode::Char('c') if ctrl => return Vec::new(),
        KeyCode::Char('u') if ctrl => prompt.text.clear(),
        KeyCode::Char('w') if ctrl => prompt.erase_word(),
        KeyCode::Char('h') if ctrl => prompt.erase(),
        KeyCode::Backspace => prompt.erase(),
        KeyCode::Char(char) if !ctrl => prompt.insert(char.encode_utf8(&mut [0; 4])),
        _ => {}
    }
    if prompt.purpose == Purpose::Filter {
        prompt.error = Query::parse(&prompt.text).err();
    }
    model.prompt = Some(prompt);
    Vec::new()
}

fn finish(model: &mut Model, mut prompt: Prompt) -> Vec<Effect> {
    match prompt.purpose {
        Purpose::Filter => match Query::parse(&prompt.text) {
            Ok(query) => {
                model.filter = (prompt.text.trim().into(), query);
                choose::begin(model);
            }
            Err(error) => {
                prompt.error = Some(error);
                model.prompt = Some(prompt);
            }
        },
        Purpose::Search => {
            if let Some((_, reading)) = model.pages.last_mut() {
                reading.search = prompt.text;
                command::find(model, false);
            }
        }
        Purpose::Save if prompt.text.trim().is_empty() => {}
        Purpose::Save => return save(model, prompt.text.trim()),
    }
    Vec::new()
}

fn save(model: &mut Model, path: &str) -> Vec<Effect> {
    if model.unfinished {
        model.note = Some("the filter is still at work; try again in a moment".into());
        return Vec::new();
    }
    vec![Effect::Save(path.into(), Box::new(model.saved()))]
}
