//! A line that the user types.

use unicode_segmentation::UnicodeSegmentation;

/// What is typed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Filter,
    Search,
    Save,
}

/// A line being typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Prompt {
    pub(crate) purpose: Purpose,
    pub(crate) text: String,
    /// What is wrong with it.
    pub(crate) error: Option<String>,
}

impl Purpose {
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Filter => "filter",
            Self::Search => "search",
            Self::Save => "save as",
        }
    }
}

impl Prompt {
    pub(crate) const fn new(purpose: Purpose, text: String) -> Self {
        Self {
            purpose,
            text,
            error: None,
        }
    }

    /// Takes what was typed or pasted; what is no text is left out.
    pub(crate) fn insert(&mut self, text: &str) {
        self.text
            .extend(text.chars().filter(|char| !char.is_control()));
        self.error = None;
    }

    /// Takes the last character back.
    pub(crate) fn erase(&mut self) {
        let last = self.text.grapheme_indices(true).next_back();
        self.text.truncate(last.map_or(0, |(at, _)| at));
        self.error = None;
    }

    /// Takes the last word back.
    pub(crate) fn erase_word(&mut self) {
        let kept = self.text.trim_end();
        let end = kept.rfind(char::is_whitespace).map_or(0, |at| at + 1);
        self.text.truncate(end);
        self.error = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_can_be_taken_back() {
        let mut prompt = Prompt::new(Purpose::Filter, String::new());
        prompt.insert("tool:slow e\u{301}\n\u{1b}");
        prompt.erase();
        assert_eq!(prompt.text, "tool:slow ");
        prompt.erase_word();
        assert_eq!(prompt.text, "");
        prompt.erase();
    }
}
