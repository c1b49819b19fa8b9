//! The text of a prefetch, in the style of its file.

use crate::patch::text_edits::Edit;
use lineup_model::chase::{Address, Insertion};

/// Turns ahead where none is named: an address without a distance has no use of it.
const TURNS: u32 = 16;

/// The statement: one line, or a test with the prefetch below it.
pub(super) fn statement(address: &Address, turns: Option<u32>) -> Vec<String> {
    match address {
        Address::Pointer { pointer, member: None } => vec![format!("__builtin_prefetch({pointer});")],
        Address::Pointer { pointer, member: Some(member) } => {
            vec![format!("if ({pointer})"), format!("__builtin_prefetch(&{pointer}->{member});")]
        }
        Address::Element { before, after, is_address, member, index, bound } => {
            let turns = turns.unwrap_or(TURNS);
            let limit = &bound.limit;
            let test = match (bound.is_unsigned, bound.is_inclusive) {
                (false, false) => format!("{index} < {limit} - {turns}"),
                (false, true) => format!("{index} <= {limit} - {turns}"),
                (true, false) => format!("{limit} - {index} > {turns}"),
                (true, true) => format!("{limit} - {index} >= {turns}"),
            };
            let element = format!("{before}{index} + {turns}{after}");
            let (test, target) = match (is_address, member) {
                (true, None) => (test, format!("&{element}")),
                (true, Some(member)) => (test, format!("&{element}.{member}")),
                (false, None) => (test, element),
                (false, Some(member)) => (format!("{test} && {element}"), format!("&{element}->{member}")),
            };
            vec![format!("if ({test})"), format!("__builtin_prefetch({target});")]
        }
    }
}

/// The edits that add a statement at a place.
pub(super) fn edits(text: &str, place: Insertion, statement: &[String]) -> Vec<Edit> {
    let style = Style::of(text);
    match place {
        Insertion::Behind(at) => vec![style.behind(text, at, statement)],
        Insertion::Before(at) => vec![style.before(text, at, statement)],
        Insertion::Around { start, end } => style.around(text, (start, end), statement),
    }
}

/// True of edits that replace common bytes.
pub(super) fn overlap((one, _): &Edit, (other, _): &Edit) -> bool {
    one.start < other.end && other.start < one.end
}

/// How a file is laid out.
struct Style {
    line_end: &'static str,
    /// One step of indentation.
    step: String,
    /// Braces stand on lines of their own.
    braces_alone: bool,
}

impl Style {
    fn of(text: &str) -> Style {
        let lines = || text.lines();
        let tabs = lines().filter(|line| line.starts_with('\t')).count();
        let blanks = lines().filter(|line| line.starts_with("  ")).count();
        let statements = lines().filter(|line| line.trim_end().ends_with(';'));
        let widths = statements.map(|line| line.len() - line.trim_start_matches(' ').len());
        let width = widths.filter(|width| (2..=8).contains(width)).min().unwrap_or(4);
        // Braces of functions stand alone in other styles, too.
        let alone = lines().filter(|line| line.trim() == "{" && !line.starts_with('{')).count();
        let behind = lines().filter(|line| line.trim_end().ends_with(") {")).count();
        Style {
            line_end: if text.contains("\r\n") { "\r\n" } else { "\n" },
            step: if tabs > blanks { "\t".into() } else { " ".repeat(width) },
            braces_alone: alone > behind,
        }
    }

    /// A statement's lines, each with its indentation.
    fn lines(&self, indentation: &str, statement: &[String]) -> Vec<String> {
        let line =
            |(depth, line): (usize, &String)| format!("{indentation}{}{line}", self.step.repeat(depth));
        statement.iter().enumerate().map(line).collect()
    }

    fn behind(&self, text: &str, at: usize, statement: &[String]) -> Edit {
        let line_end = text[at..].find('\n').map_or(text.len(), |end| at + end + 1);
        let rest = text[at..line_end].trim();
        let is_comment = rest.starts_with("//") && !rest.ends_with('\\')
            || rest.starts_with("/*") && rest.find("*/") == rest.len().checked_sub(2);
        if !(rest.is_empty() || is_comment) {
            return (at..at, format!(" {}", statement.join(" ")));
        }
        let own = indentation(text, at.saturating_sub(1)).to_owned();
        let indentation = match text[..at].ends_with('{') {
            true => self.inside(&text[line_end..], &own),
            false => own,
        };
        let lines = self.lines(&indentation, statement).join(self.line_end);
        (line_end..line_end, lines + self.line_end)
    }

    /// The indentation of a block's first line, else a step more than that of its brace.
    fn inside(&self, block: &str, brace: &str) -> String {
        let first = block.lines().find(|line| !line.trim().is_empty() && !line.starts_with('#'));
        match first.filter(|line| !line.trim_start().starts_with('}')) {
            Some(line) => line[..line.len() - line.trim_start().len()].to_owned(),
            None => format!("{brace}{}", self.step),
        }
    }

    fn before(&self, text: &str, at: usize, statement: &[String]) -> Edit {
        let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
        if !text[start..at].trim().is_empty() {
            return (at..at, format!("{} ", statement.join(" ")));
        }
        let lines = self.lines(&text[start..at], statement).join(self.line_end);
        (start..start, lines + self.line_end)
    }

    /// Braces around the one statement of a loop or an `if`.
    fn around(&self, text: &str, (start, end): (usize, usize), statement: &[String]) -> Vec<Edit> {
        let header = text[..start].trim_end().len();
        let outer = indentation(text, header.saturating_sub(1)).to_owned();
        let is_on_own_line = text[header..start].contains('\n');
        let inner = match is_on_own_line {
            true => indentation(text, start).to_owned(),
            false => format!("{outer}{}", self.step),
        };
        let brace = match self.braces_alone {
            true => format!("{}{outer}{{", self.line_end),
            false => " {".to_owned(),
        };
        let lines = self.lines(&inner, statement).join(self.line_end);
        let before = format!("{brace}{end}{lines}{end}{inner}", end = self.line_end);
        vec![(header..start, before), (end..end, format!("{}{outer}}}", self.line_end))]
    }
}

/// The blanks at the beginning of the line of a place.
fn indentation(text: &str, at: usize) -> &str {
    let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let line = &text[start..];
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patch::text_edits::apply;

    fn with(text: &str, place: Insertion) -> String {
        apply(text, edits(text, place, &["if (x)".into(), "f();".into()])).expect("edits apart")
    }

    #[test]
    fn a_statement_has_lines_of_its_own_where_the_block_has() {
        let text = "void g()\n{\n\tfor (;;) {  /* all */\n\t\ta();\n\t}\n}\n";
        let at = text.find(") {").expect("there") + 3;
        let edited = with(text, Insertion::Behind(at));
        assert!(edited.contains("{  /* all */\n\t\tif (x)\n\t\t\tf();\n\t\ta();\n"), "{edited}");
        let at = text.find("a()").expect("there");
        assert!(with(text, Insertion::Before(at)).contains("\n\t\tif (x)\n\t\t\tf();\n\t\ta();\n"));
    }

    #[test]
    fn a_block_on_one_line_stays_on_it() {
        let text = "for (;;) { a(); b(); }\n";
        assert_eq!(with(text, Insertion::Behind(10)), "for (;;) { if (x) f(); a(); b(); }\n");
        assert_eq!(with(text, Insertion::Before(16)), "for (;;) { a(); if (x) f(); b(); }\n");
    }

    #[test]
    fn one_statement_gets_braces_in_the_style_of_the_file() {
        let text = "  if (c) {\n    b();\n  }\n  for (;;)\n    a();\n  d();\n";
        let start = text.find("a()").expect("there");
        let edited = with(text, Insertion::Around { start, end: start + 4 });
        assert!(edited.contains("  for (;;) {\n    if (x)\n      f();\n    a();\n  }\n  d();\n"), "{edited}");
        let alone = "  if (c)\n  {\n    b();\n  }\n  for (;;) a();\n";
        let start = alone.find("a()").expect("there");
        let edited = with(alone, Insertion::Around { start, end: start + 4 });
        assert!(edited.contains("  for (;;)\n  {\n    if (x)\n      f();\n    a();\n  }\n"), "{edited}");
    }

    #[test]
    fn the_test_of_a_distance_neither_overflows_nor_wraps() {
        let element = |is_unsigned, is_inclusive| Address::Element {
            before: "x[b[".into(),
            after: "]]".into(),
            is_address: true,
            member: None,
            index: "i".into(),
            bound: lineup_model::chase::Bound { limit: "n".into(), is_inclusive, is_unsigned },
        };
        let lines = |is_unsigned, is_inclusive| statement(&element(is_unsigned, is_inclusive), Some(8));
        assert_eq!(lines(false, false), ["if (i < n - 8)", "__builtin_prefetch(&x[b[i + 8]]);"]);
        assert_eq!(lines(true, false)[0], "if (n - i > 8)");
        assert_eq!(lines(true, true)[0], "if (n - i >= 8)");
    }
}
