//! Command lines: the program stays, and what tells which one it is.

use super::Redactor;
use crate::record::Payload;
use crate::wording;

impl Redactor {
    /// Hides the secrets in a command line, and with the payload all that was said to a program.
    pub(super) fn argv(&self, argv: &mut [String]) {
        let script = wording::told_by(argv);
        let mut secret_follows = false;
        for (at, arg) in argv.iter_mut().enumerate() {
            let follows = std::mem::take(&mut secret_follows);
            if at == 0 || Some(at) == script {
                self.clean_in_place(arg);
                continue;
            }
            let option = arg.trim_start_matches('-');
            let is_option = option.len() < arg.len();
            if follows && !is_option {
                *arg = self.mark_text(arg);
                continue;
            }
            match arg.split_once('=') {
                Some((left, value)) if is_option || is_name(left) => {
                    let hidden = self.hides_some(left.trim_start_matches('-'));
                    if hidden || is_option && self.plan.payload != Payload::Full {
                        *arg = format!("{left}={}", self.mark_text(value));
                        continue;
                    }
                }
                _ => secret_follows = is_option && self.hides_some(option),
            }
            match self.plan.payload {
                Payload::Full => self.clean_in_place(arg),
                Payload::Redacted | Payload::None => self.keep_option(arg),
            }
        }
    }

    fn clean_in_place(&self, arg: &mut String) {
        if let Some(cleaned) = self.clean(arg) {
            *arg = cleaned;
        }
    }

    /// `--all` and `-v` stay; `-ptext` may hold anything after its letter.
    fn keep_option(&self, arg: &mut String) {
        let long = arg
            .strip_prefix("--")
            .is_some_and(|name| name.is_empty() || is_name(name));
        let short = arg
            .strip_prefix('-')
            .is_some_and(|name| name.chars().count() <= 1);
        if long || short {
            return;
        }
        let letter = arg.starts_with('-').then(|| arg.chars().nth(1)).flatten();
        *arg = match letter.filter(char::is_ascii_alphabetic) {
            Some(letter) => format!("-{letter}{}", self.mark_text(&arg[2..])),
            None => self.mark_text(arg),
        };
    }
}

fn is_name(text: &str) -> bool {
    let plain = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-' | '.');
    !text.is_empty() && text.chars().all(plain)
}
