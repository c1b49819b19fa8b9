//! Words on lines: broken between words, never inside one.

use crate::visible::shortened;

/// The text on lines of at most `width` characters. A word longer than that is cut in its middle, which `…` shows.
pub(super) fn fitted(text: &str, width: usize) -> Vec<String> {
    let cut =
        |word: &str| if word.chars().count() > width { shortened(word, width) } else { word.to_owned() };
    joined(text.split(' ').map(cut), width)
}

/// The text on lines of at most `width` characters, those after the first indented. Words stay whole: one that is longer
/// has a line of its own.
pub(super) fn wrapped(text: &str, width: usize, indent: &str) -> String {
    let start: String = text.chars().take_while(|c| *c == ' ').collect();
    let room = width.saturating_sub(indent.chars().count().max(start.chars().count())).max(1);
    let lines = joined(text.trim_start().split(' ').map(str::to_owned), room);
    let separator = format!("\n{start}{indent}");
    format!("{start}{}", lines.join(&separator))
}

fn joined(words: impl Iterator<Item = String>, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut length = 0;
    for word in words {
        let needs = word.chars().count();
        let is_new = length > 0 && length + 1 + needs > width;
        if is_new {
            lines.push(String::new());
            length = 0;
        }
        if let Some(line) = lines.last_mut() {
            if length > 0 {
                line.push(' ');
                length += 1;
            }
            line.push_str(&word);
        }
        length += needs;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words() {
        assert_eq!(fitted("ab cde f", 6), ["ab cde", "f"]);
        assert_eq!(fitted("abcdefghij k", 7), ["abcd…ij", "k"]);
        assert_eq!(wrapped("- one two three", 10, "  "), "- one\n  two\n  three");
        assert_eq!(wrapped("  one averylongword", 9, ""), "  one\n  averylongword");
    }
}
