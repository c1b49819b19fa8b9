//! Two functions of GIMPLE, equal up to the map.

use super::lexer::Token;
use super::{Function, Line, at_commas};
use crate::error::{Error, Result};
use crate::map::Pair;
use std::collections::{HashMap, HashSet};

/// Names that differ only by GCC's numbers, as they correspond in both variants of a unit.
#[derive(Debug, Default)]
pub struct Numbered<'a> {
    forth: HashMap<&'a str, &'a str>,
    back: HashMap<&'a str, &'a str>,
}

/// A number that differs as the map says, or as its own line does.
#[derive(Debug)]
pub struct Explained {
    /// The line after the change.
    pub line: usize,
    /// The word.
    pub word: usize,
    /// The type that explains it; empty for a list in another order and for a line's number.
    pub record: String,
    /// True for the number of the statement's own line, as `__LINE__` has it.
    pub is_line: bool,
}

fn stem(name: &str) -> Option<&str> {
    let numbers = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit());
    let (stem, number) = name
        .rsplit_once(['.', '_'])
        .filter(|(_, number)| numbers(number) && !number.is_empty())
        .or_else(|| {
            name.strip_prefix('T')
                .filter(|number| numbers(number) && !number.is_empty())
                .map(|rest| ("T", rest))
        })?;
    let is_of_gcc = stem == "T"
        || stem == "D"
        || name[stem.len()..].starts_with('.')
        || stem.rsplit_once('.').is_some_and(|(_, last)| numbers(last));
    let _ = number;
    is_of_gcc.then(|| match stem.rsplit_once('.') {
        Some((before, last)) if numbers(last) => before,
        _ => stem,
    })
}

impl<'a> Numbered<'a> {
    /// Both names are the same, or correspond from now on.
    fn same(&mut self, old: &'a str, new: &'a str) -> bool {
        match (stem(old), stem(new)) {
            (Some(one), Some(other)) if one == other => {
                let forth = *self.forth.entry(old).or_insert(new);
                let back = *self.back.entry(new).or_insert(old);
                forth == new && back == old
            }
            _ => old == new,
        }
    }
}

/// Compares two functions; returns the numbers that differ as the map says.
pub fn compare<'a>(
    unit: &str,
    (old, new): (&Function<'a>, &Function<'a>),
    numbered: &mut Numbered<'a>,
    pair: &Pair<'_>,
) -> Result<Vec<Explained>> {
    let differs = |one: &Line<'_>, other: Option<&Line<'_>>| Error::Differs {
        unit: unit.into(),
        function: new.name.into(),
        place: other.and_then(|line| line.place).or(one.place).unwrap_or("").into(),
        before: one.text.into(),
        after: other.map_or("(nothing)", |line| line.text).into(),
    };
    let mut explained = Vec::new();
    if same_words((&old.head, &new.head), numbered, pair, None).is_none() {
        return Err(differs(&old.head, Some(&new.head)));
    }
    let mut at = 0;
    while at < old.lines.len() {
        let (one, Some(other)) = (&old.lines[at], new.lines.get(at)) else {
            return Err(differs(&old.lines[at], None));
        };
        if let Some(found) = same_words((one, other), numbered, pair, Some(at)) {
            explained.extend(found);
            at += 1;
            continue;
        }
        match permuted(old, new, at, pair) {
            Some(count) => {
                explained.push(Explained { line: at, word: 0, record: String::new(), is_line: false });
                at += count;
            }
            None => return Err(differs(one, Some(other))),
        }
    }
    match new.lines.get(at) {
        Some(more) => Err(differs(more, None)),
        None => Ok(explained),
    }
}

/// Compares words; the numbers that the map explains.
fn same_words<'a>(
    (old_line, new_line): (&Line<'a>, &Line<'a>),
    numbered: &mut Numbered<'a>,
    pair: &Pair<'_>,
    line: Option<usize>,
) -> Option<Vec<Explained>> {
    let (mut old, mut new) = (old_line.words.as_slice(), new_line.words.as_slice());
    let lines = source_line(old_line).zip(source_line(new_line));
    let mut explained = Vec::new();
    if old.len() != new.len() {
        let (before, after);
        ((old, before), (new, after)) = (without_distance(old)?, without_distance(new)?);
        let record = pair.explains(before, after).filter(|_| old.len() == new.len())?;
        explained.push(Explained { line: line?, word: old.len(), record, is_line: false });
    }
    let mut at = 0;
    while at < old.len() {
        // A list of members may have another order.
        if old[at].is("{") && new[at].is("{") && old[at..] != new[at..] {
            let (one, other) = (braced(&old[at..])?, braced(&new[at..])?);
            let is_designated = one.first().is_some_and(|word| word.is("."));
            if is_designated {
                if one.len() != other.len() || sorted_list(one) != sorted_list(other) {
                    return None;
                }
                explained.push(Explained { line: line?, word: at, record: String::new(), is_line: false });
                at += one.len() + 2;
                continue;
            }
        }
        match (old[at], new[at]) {
            (Token::Name(one), Token::Name(other)) if numbered.same(one, other) => {}
            (Token::Int(one), Token::Int(other)) if one != other => {
                let by_layout = pair.explains(one, other);
                let is_line = by_layout.is_none() && lines == Some((one, other));
                let record = if is_line { String::new() } else { by_layout? };
                explained.push(Explained { line: line?, word: at, record, is_line });
            }
            (one, other) if one != other => return None,
            _ => {}
        }
        at += 1;
    }
    Some(explained)
}

/// `p = q` and the distance of `p = q + 8;`. GCC does not print a distance of 0.
fn without_distance<'w, 'a>(words: &'w [Token<'a>]) -> Option<(&'w [Token<'a>], i128)> {
    let words = words.strip_suffix(&[Token::Other(";")])?;
    let (front, distance) = match words {
        [front @ .., Token::Other("+"), Token::Int(distance)] => (front, *distance),
        _ => (words, 0),
    };
    matches!(front, [.., Token::Other("="), Token::Name(_)]).then_some((front, distance))
}

/// The number of the line that a statement stands on, from its place `FILE:LINE:COLUMN`.
fn source_line(line: &Line<'_>) -> Option<i128> {
    line.place?.rsplit(':').nth(1)?.parse().ok()
}

fn braced<'w, 'a>(words: &'w [Token<'a>]) -> Option<&'w [Token<'a>]> {
    let mut depth = 0;
    for (index, word) in words.iter().enumerate() {
        depth += i32::from(word.is("{")) - i32::from(word.is("}"));
        if depth == 0 {
            return Some(&words[1..index]);
        }
    }
    None
}

/// The elements of a list, sorted, those of lists within it as well.
fn sorted_list(words: &[Token<'_>]) -> String {
    let element = |part: &[Token<'_>]| {
        let open = part.iter().position(|word| word.is("{"));
        let inner = open.and_then(|open| Some((open, braced(&part[open..])?)));
        match inner {
            Some((open, inner)) if inner.first().is_some_and(|word| word.is(".")) => {
                format!("{:?}{{{}}}{:?}", &part[..open], sorted_list(inner), &part[open + inner.len() + 2..])
            }
            _ => format!("{part:?}"),
        }
    };
    let mut elements: Vec<String> = at_commas(words).into_iter().map(element).collect();
    elements.sort();
    elements.join(",")
}

/// One store of an initialiser: its destination and its value, temporary names replaced by what they stand for.
struct Store<'a> {
    to: String,
    value: String,
    root: &'a str,
}

/// The stores of the lines from `at` on, while they only initialise members of one object from values that no store
/// of them changes.
fn stores<'a>(function: &Function<'a>, at: usize) -> Vec<(usize, Option<Store<'a>>)> {
    let mut temporaries: HashMap<&str, String> = HashMap::new();
    let mut found: Vec<(usize, Option<Store<'a>>)> = Vec::new();
    let mut root: Option<&str> = None;
    for (index, line) in function.lines.iter().enumerate().skip(at) {
        let Some(equal) = line.words.iter().position(|word| word.is("=")) else { break };
        let (left, right) = (&line.words[..equal], &line.words[equal + 1..]);
        let is_call = right.windows(2).any(|two| two[0].name().is_some() && two[1].is("("));
        let is_volatile =
            right.first().is_some_and(|word| word.is("{")) && right.get(1).is_some_and(|word| word.is("v"));
        if is_call || is_volatile {
            break;
        }
        let spell = |word: &Token<'_>| match word {
            Token::Name(name) => temporaries.get(name).cloned().unwrap_or_else(|| (*name).to_owned()),
            other => format!("{other:?}"),
        };
        let value: Vec<String> = right.iter().map(spell).collect();
        let value = format!("({})", value.join(" "));
        let Some(name) = left.first().and_then(Token::name) else { break };
        if left.len() == 1 && name.starts_with('_') && name[1..].bytes().all(|byte| byte.is_ascii_digit()) {
            temporaries.insert(name, value);
            found.push((index, None));
            continue;
        }
        let is_pointer = left.get(1).is_some_and(|word| word.is("->"));
        if !is_pointer && !left.get(1).is_some_and(|word| word.is(".")) || *root.get_or_insert(name) != name {
            break;
        }
        // A store of the run must not change a value that the run reads.
        let reads = found.len() + 1;
        let lines = function.lines[index + 1 - reads.min(index + 1)..=index].iter().filter(|line| {
            let equal = line.words.iter().position(|word| word.is("=")).unwrap_or(0);
            let right = &line.words[equal + 1..];
            let is_memory = ["->", ".", "["].iter().any(|sign| right.iter().any(|word| word.is(sign)))
                || right.first().is_some_and(|word| word.is("*"));
            right.iter().any(|word| word.is(name)) && !is_pointer || is_pointer && is_memory
        });
        if lines.count() > 0 {
            break;
        }
        let to: Vec<String> = left.iter().map(|word| format!("{word:?}")).collect();
        found.push((index, Some(Store { to: to.join(" "), value, root: name })));
    }
    found
}

/// The number of lines from `at` on that initialise the same members with the same values in another order.
fn permuted(old: &Function<'_>, new: &Function<'_>, at: usize, pair: &Pair<'_>) -> Option<usize> {
    let (one, other) = (stores(old, at), stores(new, at));
    let is_taken = |root: &str| {
        let before = &old.lines[..at];
        before.iter().any(|line| line.words.windows(2).any(|two| two[0].is("&") && two[1].is(root)))
    };
    let mut sets = (Vec::<(&str, &str)>::new(), Vec::<(&str, &str)>::new());
    for count in 1..=one.len().min(other.len()) {
        for (set, run) in [(&mut sets.0, &one), (&mut sets.1, &other)] {
            if let Some(store) = &run[count - 1].1 {
                set.push((&store.to, &store.value));
            }
        }
        if sets.0.len() < 2 || sets.0.len() != sets.1.len() {
            continue;
        }
        let sorted = |set: &[(&str, &str)]| {
            let mut set: Vec<(String, String)> =
                set.iter().map(|(a, b)| ((*a).into(), (*b).into())).collect();
            set.sort();
            set
        };
        let destinations: HashSet<&str> = sets.0.iter().map(|(to, _)| *to).collect();
        let overlaps = sets.0.iter().any(|(to, _)| {
            destinations
                .iter()
                .any(|whole| to != whole && to.starts_with(whole) && to[whole.len()..].starts_with(' '))
        });
        if sorted(&sets.0) == sorted(&sets.1) {
            let is_whole = destinations.len() == sets.0.len() && !overlaps;
            let root = one.iter().find_map(|(_, store)| Some(store.as_ref()?.root))?;
            return (is_whole && !is_taken(root) && !pair.changed.is_empty()).then_some(count);
        }
    }
    None
}
