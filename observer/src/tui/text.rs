//! Text in columns of a terminal: cut and wrapped by what a reader sees as one character.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// Stands for what was cut off.
const CUT: &str = "…";

/// How many columns the text takes.
pub(super) fn width(text: &str) -> usize {
    UnicodeWidthStr::width(text)
}

/// The text, cut to so many columns. A wide character is never halved.
pub(super) fn cut(text: &str, columns: usize) -> String {
    // No character is wider than its bytes are many, so most texts are told by their length.
    if text.len() <= columns || width(text) <= columns {
        return text.into();
    }
    let Some(room) = columns.checked_sub(1) else {
        return String::new();
    };
    let (mut out, mut taken) = (String::new(), 0);
    for cluster in text.graphemes(true) {
        taken += width(cluster);
        if taken > room {
            break;
        }
        out.push_str(cluster);
    }
    out.push_str(CUT);
    out
}

/// The text, cut or filled up with blanks to exactly so many columns.
pub(super) fn left(text: &str, columns: usize) -> String {
    let mut out = cut(text, columns);
    out.push_str(&" ".repeat(columns.saturating_sub(width(&out))));
    out
}

/// As [`left`], with the blanks before the text.
pub(super) fn right(text: &str, columns: usize) -> String {
    let out = cut(text, columns);
    let blanks = " ".repeat(columns.saturating_sub(width(&out)));
    blanks + &out
}

/// The text on lines of so many columns, broken between words where that is possible.
pub(super) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(1);
    let mut lines = vec![String::new()];
    let mut room = columns;
    for word in text.split_word_bounds() {
        let wide = width(word);
        if wide > room && wide <= columns {
            lines.push(String::new());
            room = columns;
            if word.trim().is_empty() {
                continue;
            }
        }
        for cluster in word.graphemes(true) {
            let wide = width(cluster);
            if wide > room {
                lines.push(String::new());
                room = columns;
            }
            room = room.saturating_sub(wide);
            if let Some(line) = lines.last_mut() {
                line.push_str(cluster);
            }
        }
    }
    for line in &mut lines {
        line.truncate(line.trim_end().len());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(cut("slow_tool", 9), "slow_tool");
        assert_eq!(cut("slow_tool", 5), "slow…");
        assert_eq!(cut("你好世界", 5), "你好…");
        assert_eq!(cut("你好世界", 4), "你…");
        assert_eq!(cut("e\u{301}e\u{301}e\u{301}", 2), "e\u{301}…");
        assert_eq!(cut("שלום עולם", 5), "שלום…");
        assert_eq!(cut("x", 0), "");
    }

    #[test]
    fn a_column_is_as_wide_as_it_should_be() {
        for text in ["", "a", "你好世界", "👩‍👩‍👧‍👦 family", "e\u{301}"] {
            for columns in 0..8 {
                assert_eq!(width(&left(text, columns)), columns, "{text} {columns}");
                assert_eq!(width(&right(text, columns)), columns, "{text} {columns}");
            }
        }
    }

    #[test]
    fn lines_break_between_words_where_they_can() {
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(wrap("你好 世界", 5), ["你好", "世界"]);
        assert_eq!(wrap("", 5), [""]);
        assert_eq!(wrap("ab", 0), ["a", "b"]);
    }
}
