//! Names from a program's symbols are hostile until shown otherwise: here they become text that can only
//! be read, not act.

use std::borrow::Cow;

/// True for characters that steer a terminal or the direction of text, or cannot be seen.
fn acts(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{00ad}'
            | '\u{061c}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

fn replace(text: &str, keep: impl Fn(char) -> bool) -> Cow<'_, str> {
    // Most text is plain, and bytes are faster to look through than characters.
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~') || byte < b' ' && keep(char::from(byte));
    if text.bytes().all(is_plain) || !text.chars().any(|c| acts(c) && !keep(c)) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if acts(c) && !keep(c) { shown.extend(c.escape_unicode()) } else { shown.push(c) }
    }
    Cow::Owned(shown)
}

/// The text on one line: characters that act are spelled out.
///
/// ```
/// use lineup_report::visible::one_line;
/// assert_eq!(one_line("plain"), "plain");
/// assert_eq!(one_line("a\u{202e}b\x1b[2J\n"), r"a\u{202e}b\u{1b}[2J\u{a}");
/// ```
pub fn one_line(text: &str) -> Cow<'_, str> {
    replace(text, |_| false)
}

/// The text with its line ends and tabs; other characters that act are spelled out.
pub fn many_lines(text: &str) -> Cow<'_, str> {
    replace(text, |c| c == '\n' || c == '\t')
}

/// The text on one line, in at most `most` characters (three or more): the middle gives way to `…`.
///
/// ```
/// use lineup_report::visible::shortened;
/// assert_eq!(shortened("abcdefgh", 8), "abcdefgh");
/// assert_eq!(shortened("abcdefghi", 8), "abcde…hi");
/// ```
pub fn shortened(text: &str, most: usize) -> String {
    let shown = one_line(text);
    let length = shown.chars().count();
    if length <= most {
        return shown.into_owned();
    }
    let room = most.max(3) - 1;
    let tail = room / 3;
    let head = room - tail;
    shown.chars().take(head).chain(['…']).chain(shown.chars().skip(length - tail)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_steering_character_is_spelled_out() {
        for c in [
            '\u{1b}',
            '\0',
            '\u{85}',
            '\u{202a}',
            '\u{2066}',
            '\u{200f}',
            '\u{feff}',
            '\u{2029}',
            '\u{e0041}',
        ] {
            let shown = one_line(&format!("a{c}b")).into_owned();
            assert_eq!(shown, format!("a{}b", c.escape_unicode()));
        }
    }

    #[test]
    fn letters_of_any_script_stay() {
        assert_eq!(one_line("größe_שלום_構造体::<T>"), "größe_שלום_構造体::<T>");
        assert!(matches!(one_line("größe"), Cow::Borrowed(_)));
    }

    #[test]
    fn line_ends_and_tabs_stay_where_lines_are_shown() {
        assert_eq!(many_lines("+\tu32 a;\r\n-x"), "+\tu32 a;\\u{d}\n-x");
    }

    #[test]
    fn a_huge_name_is_cut_in_its_middle() {
        let name = "x".repeat(100_000);
        assert_eq!(shortened(&name, 60).chars().count(), 60);
        assert_eq!(shortened("abcdef", 0), "ab…");
    }
}
