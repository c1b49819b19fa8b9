//! The part of a text that fits on a screen.

use super::TextStyle;
use super::wrap::wrapped;
use lineup_model::figure::counted;

/// Lines of a first screen.
pub const SCREEN_LINES: usize = 40;

/// The printed part of a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extent {
    /// At most [`SCREEN_LINES`] lines.
    FirstScreen,
    /// All of it.
    All,
}

/// A text for this style: at a terminal its long lines are broken between words. The last line of a first screen gives
/// the number of lines left out, and the way to see them.
///
/// ```
/// use lineup_report::text::{Extent, TextStyle, screen};
/// let text = "a line\n".repeat(50);
/// let shown = screen(&text, TextStyle::Plain, Extent::FirstScreen, "--full");
/// assert!(shown.ends_with("a line\n… 11 lines more: --full\n") && shown.lines().count() == 40);
/// ```
pub fn screen(text: &str, style: TextStyle, extent: Extent, how: &str) -> String {
    let broken: Vec<String> = text.lines().map(|line| fitting(line, style)).collect();
    let lines: Vec<&str> = broken.iter().flat_map(|line| line.split('\n')).collect();
    let shown = match extent {
        Extent::FirstScreen if lines.len() > SCREEN_LINES => SCREEN_LINES - 1,
        Extent::FirstScreen | Extent::All => lines.len(),
    };
    let mut out: String = lines.iter().take(shown).flat_map(|line| [line, "\n"]).collect();
    if shown < lines.len() {
        out.push_str(&format!("… {} more: {how}\n", counted((lines.len() - shown) as u64, "line")));
    }
    out
}

/// A line that fits stays whole; a longer one is broken into several.
fn fitting(line: &str, style: TextStyle) -> String {
    match style {
        TextStyle::Terminal { columns } if line.chars().count() > usize::from(columns) => {
            wrapped(line, usize::from(columns), "  ")
        }
        _ => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_stays_as_it_is() {
        let text = "a line\n".repeat(SCREEN_LINES);
        for extent in [Extent::FirstScreen, Extent::All] {
            assert_eq!(screen(&text, TextStyle::Terminal { columns: 80 }, extent, ""), text);
        }
        let longer = text.repeat(2);
        assert_eq!(screen(&longer, TextStyle::Plain, Extent::All, ""), longer);
    }

    #[test]
    fn lines_that_a_terminal_breaks_count_as_it_shows_them() {
        let text = format!("{}\n", "words and ".repeat(12)).repeat(30);
        let shown = screen(&text, TextStyle::Terminal { columns: 80 }, Extent::FirstScreen, "--full");
        assert_eq!(shown.lines().count(), SCREEN_LINES);
        assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
        assert!(shown.ends_with("… 21 lines more: --full\n"), "{shown}");
    }
}
