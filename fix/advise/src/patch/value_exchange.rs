//! Values in braces that change places with the members that they are for.

use crate::text::sources::Sources;
use crate::text::syntax::{self, line_of};
use crate::text::word_set;
use lineup_model::types::{Member, MemberRole};
use std::collections::BTreeSet;
use std::ops::Range;
use tree_sitter::{Node, Tree};

/// The places of one list's values, by the member that each is for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Values(Vec<Range<usize>>);

impl Values {
    fn span(&self) -> Range<usize> {
        let (first, last) = (self.0.first(), self.0.last());
        first.map_or(0, |first| first.start)..last.map_or(0, |last| last.end)
    }

    /// True when one stands among the values of the other.
    pub(crate) fn overlaps(&self, other: &Values) -> bool {
        let (one, two) = (self.span(), other.span());
        one.start < two.end && two.start < one.end
    }
}

/// Names whose value depends on where they stand: `__LINE__`, `__COUNTER__`, and macros in which these are.
pub(crate) struct Numbering(BTreeSet<String>);

impl Numbering {
    /// The position-dependent names in the sources; only the compiler's own when nothing changes places.
    pub(crate) fn of(sources: &Sources, follows: Follows) -> Numbering {
        let mut names: BTreeSet<String> = ["__LINE__", "__COUNTER__"].map(str::to_string).into();
        if follows == Follows::Named {
            return Numbering(names);
        }
        let bodies: Vec<(&str, Vec<&str>)> = sources.iter().flat_map(|(_, text)| macros(text)).collect();
        loop {
            let known = names.len();
            for (name, body) in &bodies {
                if body.iter().any(|word| names.contains(*word)) {
                    names.insert((*name).to_string());
                }
            }
            if names.len() == known {
                return Numbering(names);
            }
        }
    }

    fn is_in(&self, text: &str) -> bool {
        words_of(text).any(|word| self.0.contains(word))
    }
}

fn words_of(text: &str) -> impl Iterator<Item = &str> {
    let is_separator = |letter: char| !u8::try_from(letter).is_ok_and(word_set::is_part);
    text.split(is_separator).filter(|word| !word.is_empty())
}

/// The macros that a text defines, with the words of their bodies.
fn macros(text: &str) -> Vec<(&str, Vec<&str>)> {
    let mut found: Vec<(&str, Vec<&str>)> = Vec::new();
    let mut continues = false;
    for line in text.lines() {
        let defined = line.trim_start().strip_prefix('#');
        let defined = defined.and_then(|rest| rest.trim_start().strip_prefix("define"));
        if let Some(rest) = defined.filter(|_| !continues) {
            let mut words = words_of(rest);
            found.extend(words.next().map(|name| (name, words.collect())));
            continues = line.ends_with('\\');
        } else if continues {
            if let Some((_, body)) = found.last_mut() {
                body.extend(words_of(line));
            }
            continues = line.ends_with('\\');
        }
    }
    found
}

/// The places of the values in a list that gives every member its own.
///
/// # Errors
/// The reason why they cannot change places.
pub(crate) fn values(
    list: Node<'_>,
    text: &str,
    members: &[Member],
    numbering: &Numbering,
) -> Result<Values, &'static str> {
    let mut cursor = list.walk();
    let children: Vec<Node<'_>> = list.named_children(&mut cursor).collect();
    if children.iter().any(|child| child.kind() == "comment" || child.kind().starts_with("preproc")) {
        return Err("comments or directives stand between its values");
    }
    if children.iter().any(|child| child.kind() == "initializer_pair") {
        return Err("some of its values are named");
    }
    if children.len() != members.len() || members.iter().any(|member| member.role != MemberRole::Field) {
        return Err("it does not give every member a value of its own");
    }
    if text.get(list.byte_range()).is_none_or(|text| numbering.is_in(text)) {
        return Err("a value depends on the line that it stands in");
    }
    Ok(Values(children.iter().map(Node::byte_range).collect()))
}

/// The lines in which lists that were found begin, and no others that have nothing to do with them: it would not be
/// known which of them a compiler means.
pub(crate) fn clear_lines(tree: &Tree, found: &[Range<usize>]) -> BTreeSet<u32> {
    let (mut lines, mut others) = (BTreeSet::new(), BTreeSet::new());
    if found.is_empty() {
        return lines;
    }
    syntax::visit(tree.root_node(), |node| {
        if node.kind() != "initializer_list" {
            return;
        }
        let own = node.byte_range();
        let is_around = |one: &Range<usize>, two: &Range<usize>| one.start <= two.start && two.end <= one.end;
        match found.contains(&own) {
            true => drop(lines.insert(line_of(node))),
            false if found.iter().any(|list| is_around(list, &own) || is_around(&own, list)) => {}
            false => drop(others.insert(line_of(node))),
        }
    });
    &lines - &others
}

/// The text with the values of each list in an order of members.
pub(crate) fn apply(text: &str, lists: &[Values], order: &[usize]) -> String {
    let mut slots: Vec<(&Range<usize>, &Range<usize>)> = Vec::new();
    for Values(values) in lists {
        let taken = order.iter().filter_map(|&member| values.get(member));
        slots.extend(values.iter().zip(taken));
    }
    slots.sort_by_key(|(slot, _)| slot.start);
    let mut new = String::with_capacity(text.len());
    let mut at = 0;
    for (slot, value) in slots {
        new.push_str(text.get(at..slot.start).unwrap_or(""));
        new.push_str(text.get(value.clone()).unwrap_or(""));
        at = slot.end;
    }
    new.push_str(text.get(at..).unwrap_or(""));
    new
}

/// The way values by position follow an order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Follows {
    /// The names of their members are inserted.
    Named,
    /// They change places: no names can stand there.
    Exchanged,
}
