//! The `if` that a place in the text belongs to, and which part of it other places are in.

use crate::text::syntax::{text_of, visit};
use lineup_model::branch::{Side, SourcePosition};
use std::collections::BTreeMap;
use std::ops::Range;
use tree_sitter::{Node, Tree};

/// An `if`, by bytes of its text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct If {
    /// The text between the condition's parentheses.
    pub(super) condition: (usize, usize),
    whole: (usize, usize),
    then: (usize, usize),
    otherwise: Option<(usize, usize)>,
    /// The reason why its condition cannot be given a hint.
    pub(super) unfit: Option<&'static str>,
}

/// The part of an `if` that holds the code of a branch's side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    /// In the branch for a condition that holds.
    Then,
    /// Behind its `else`.
    Otherwise,
    /// Outside the `if`.
    Outside,
    /// The part is unknown.
    Unknown,
}

/// A text with the start of each line.
pub(super) struct Lines<'t> {
    text: &'t str,
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    pub(super) fn of(text: &'t str) -> Self {
        let after = text.match_indices('\n').map(|(at, _)| at + 1);
        Lines { text, starts: std::iter::once(0).chain(after).collect() }
    }

    /// The byte of a place; `None` without a column, and outside the text.
    fn byte(&self, place: SourcePosition) -> Option<usize> {
        let line = self.line_bytes(place.line)?;
        let at = line.start.checked_add(usize::try_from(place.column?).ok()?.checked_sub(1)?)?;
        (at < line.end).then_some(at)
    }

    fn line_bytes(&self, line: u32) -> Option<Range<usize>> {
        let index = usize::try_from(line).ok()?.checked_sub(1)?;
        let end = self.starts.get(index + 1).copied().unwrap_or(self.text.len());
        Some(*self.starts.get(index)?..end)
    }
}

/// The `if` in whose condition a place lies.
pub(super) fn if_at(tree: &Tree, lines: &Lines<'_>, place: SourcePosition) -> Option<If> {
    let at = lines.byte(place)?;
    let mut node = tree.root_node().descendant_for_byte_range(at, at)?;
    loop {
        if node.kind() == "if_statement" {
            let condition = node.child_by_field_name("condition")?;
            return condition.byte_range().contains(&at).then(|| read(node, condition, lines.text))?;
        }
        // Decisions in a function within the condition are separate.
        if node.kind() == "lambda_expression" || node.kind() == "compound_statement" {
            return None;
        }
        node = node.parent()?;
    }
}

fn read(node: Node<'_>, condition: Node<'_>, text: &str) -> Option<If> {
    let words = text_of(condition, text);
    let inner = words.strip_prefix('(')?.strip_suffix(')')?;
    let start = condition.start_byte() + 1;
    let bytes = |node: Node<'_>| (node.start_byte(), node.end_byte());
    Some(If {
        condition: (start, start + inner.len()),
        whole: bytes(node),
        then: bytes(node.child_by_field_name("consequence")?),
        otherwise: node.child_by_field_name("alternative").map(bytes),
        unfit: unfit(node, condition, text),
    })
}

/// The reason why a condition gets no hint.
fn unfit(node: Node<'_>, condition: Node<'_>, text: &str) -> Option<&'static str> {
    let mut why = None;
    visit(condition, |part| {
        let operator = part.child_by_field_name("operator").map(|operator| text_of(operator, text));
        why = why.or(match part.kind() {
            "conditional_expression" => Some("its condition consists of several"),
            "binary_expression" if matches!(operator, Some("&&" | "||" | "and" | "or")) => {
                Some("its condition consists of several")
            }
            "declaration" | "init_statement" | "condition_declaration" => {
                Some("its condition declares a variable")
            }
            "compound_statement" | "lambda_expression" => Some("its condition has statements in it"),
            kind if kind.starts_with("preproc") => Some("its condition has preprocessor lines in it"),
            _ => None,
        });
    });
    let words = text_of(condition, text);
    why.or_else(|| words.contains('#').then_some("its condition has preprocessor lines in it")).or_else(
        || node.has_error().then_some("its text is not understood, which macros may be the reason of"),
    )
}

impl If {
    /// Whether a hint stands in the condition already.
    pub(super) fn has_hint(&self, text: &str) -> bool {
        let words = text.get(self.condition.0..self.condition.1).unwrap_or_default();
        words.contains("__builtin_expect") || words.to_ascii_lowercase().contains("likely")
    }

    /// The part that holds the code of a side, by the places of its instructions.
    fn part(&self, side: &Side, lines: &Lines<'_>) -> Part {
        let has = |wanted| side.places.iter().any(|place| self.part_of(*place, lines) == wanted);
        match (has(Part::Then), has(Part::Otherwise), has(Part::Outside)) {
            (true, false, _) => Part::Then,
            (false, true, _) => Part::Otherwise,
            (false, false, true) => Part::Outside,
            // It leaves the inlined copy that the branch lies in, with nothing of the body behind it.
            (false, false, false) if side.places.is_empty() => Part::Outside,
            _ => Part::Unknown,
        }
    }

    fn part_of(&self, place: SourcePosition, lines: &Lines<'_>) -> Part {
        let range = match (lines.byte(place), lines.line_bytes(place.line)) {
            (Some(byte), _) => byte..byte + 1,
            // A line without a column must belong to one part for certain.
            (None, Some(line)) => line,
            (None, None) => return Part::Unknown,
        };
        let meets = |(start, end): (usize, usize)| start < range.end && range.start < end;
        let condition = meets((self.whole.0, self.condition.1 + 1));
        match (condition, meets(self.then), self.otherwise.is_some_and(meets)) {
            (false, true, false) => Part::Then,
            (false, false, true) => Part::Otherwise,
            (false, false, false) => Part::Outside,
            _ => Part::Unknown,
        }
    }

    /// The execution count of code of the rarer outcome, reached from anywhere; `None` if no code is of that outcome
    /// alone.
    pub(super) fn executed(
        &self,
        is_likely: bool,
        places: Option<&BTreeMap<SourcePosition, u64>>,
        lines: &Lines<'_>,
    ) -> Option<u64> {
        let wanted = match is_likely {
            true => self.otherwise.map(|_| Part::Otherwise)?,
            false => Part::Then,
        };
        let own = places.into_iter().flatten().filter(|(place, _)| self.part_of(**place, lines) == wanted);
        Some(own.map(|(_, times)| *times).max().unwrap_or(0))
    }

    /// The numbers of times the condition held and did not; `None` if the code does not identify the sides.
    pub(super) fn outcomes(&self, sides: &[Side; 2], lines: &Lines<'_>) -> Option<[u64; 2]> {
        let [first, second] = sides.each_ref().map(|side| self.part(side, lines));
        let is_other = |part| match self.otherwise {
            Some(_) => part == Part::Otherwise,
            None => part == Part::Outside,
        };
        match (first, second) {
            (Part::Then, other) if is_other(other) => Some([sides[0].times, sides[1].times]),
            (other, Part::Then) if is_other(other) => Some([sides[1].times, sides[0].times]),
            _ => None,
        }
    }
}
