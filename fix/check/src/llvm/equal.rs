//! Two modules of IR, equal up to the map.

use super::ir_module::{Function, Line, Module};
use super::lexer::{at_commas, group};
use super::types::{Definitions, record_name};
use crate::error::{Error, Result};
use crate::map::Pair;
use std::collections::HashMap;

/// A difference that the map explains.
#[derive(Debug)]
pub struct Difference {
    /// The line of the function.
    pub line: usize,
    /// The type that explains a number; nothing for an index, an alignment or data.
    pub record: Option<String>,
}

/// An address that is computed: source type, base, indices.
#[derive(Debug)]
pub struct Gep<'w, 'a> {
    /// The type that the base points at.
    pub source: &'w [&'a str],
    /// Type and value of the base.
    pub base: &'w [&'a str],
    /// Types and values of indices.
    pub indices: Vec<&'w [&'a str]>,
    /// Words that it takes.
    pub length: usize,
}

/// Reads an address whose words begin with `getelementptr`.
pub fn gep<'w, 'a>(words: &'w [&'a str]) -> Option<Gep<'w, 'a>> {
    let mut start = 1;
    while matches!(words.get(start), Some(&("inbounds" | "inrange"))) {
        start += 1;
    }
    let (inside, length) = match words.get(start)? {
        &"(" => {
            let length = group(&words[start..])?;
            (&words[start + 1..start + length - 1], start + length)
        }
        _ => (&words[start..], words.len()),
    };
    let parts = at_commas(inside);
    let (source, rest) = parts.split_first()?;
    let (base, indices) = rest.split_first()?;
    Some(Gep { source, base, indices: indices.to_vec(), length })
}

/// A run of initialising stores is at most this long.
const RUN: usize = 400;

/// The address of the member in the text of a place: a cast around it is left out.
fn member(place: &str) -> &str {
    let Some(start) = place.find("(getelementptr") else { return place };
    let mut depth = 0;
    for (at, letter) in place[start..].char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &place[start..=start + at];
        }
    }
    place
}

/// Stores of an initialiser, each with its value; names of the run are replaced by what they stand for.
struct Run<'c, 'a, 'm> {
    comparison: &'c Comparison<'a, 'm>,
    function: &'c Function<'a>,
    is_old: bool,
    made: HashMap<&'a str, String>,
    stores: Vec<(String, String)>,
    root: Option<&'a str>,
}

impl<'c, 'a, 'm> Run<'c, 'a, 'm> {
    fn new(comparison: &'c Comparison<'a, 'm>, function: &'c Function<'a>, is_old: bool) -> Self {
        Self { comparison, function, is_old, made: HashMap::new(), stores: Vec::new(), root: None }
    }

    fn is_local(&self, name: &str) -> bool {
        let lines = &self.function.lines;
        lines.iter().any(|line| line.words.first() == Some(&name) && line.words.get(2) == Some(&"alloca"))
    }

    fn spell(&self, words: &[&'a str]) -> Option<String> {
        let text = self.comparison.moved_words(words, self.is_old)?;
        let word = |word: &str| self.made.get(word).cloned().unwrap_or_else(|| word.to_owned());
        Some(text.split(' ').filter(|word| *word != "noundef").map(word).collect::<Vec<_>>().join(" "))
    }

    /// Adds a line; none when it does more than to compute and to store.
    fn add(&mut self, at: usize) -> Option<()> {
        let line = self.function.lines.get(at)?;
        match line.words.as_slice() {
            ["store", rest @ ..] if rest.first() != Some(&"volatile") => {
                let parts = at_commas(rest);
                let place = parts.get(1)?;
                let (to, value) = (self.spell(place)?, self.spell(parts.first()?)?);
                // All stores go to members of one object.
                let root = place.last().copied()?;
                let root = self.base(root)?;
                if *self.root.get_or_insert(root) != root {
                    return None;
                }
                self.stores.push((to, value));
                Some(())
            }
            // Zeroes for a member that is an array or a struct.
            ["call", "void", callee, rest @ ..] if callee.starts_with("@llvm.memset.") => {
                let arguments = at_commas(rest.get(1..rest.len().checked_sub(1)?)?);
                let (place, values) = arguments.split_first()?;
                let root = self.base(place.last()?)?;
                if *self.root.get_or_insert(root) != root {
                    return None;
                }
                self.stores.push((self.spell(place)?, format!("{values:?}")));
                Some(())
            }
            [name, "=", operation, rest @ ..] => {
                let is_pure = !matches!(
                    *operation,
                    "call"
                        | "invoke"
                        | "alloca"
                        | "phi"
                        | "tail"
                        | "atomicrmw"
                        | "cmpxchg"
                        | "landingpad"
                        | "va_arg"
                );
                // A load is safe where no store of the run can reach: another local variable.
                let is_safe_load = *operation != "load"
                    || rest.first() != Some(&"volatile")
                        && at_commas(rest)
                            .get(1)
                            .and_then(|place| place.last())
                            .is_some_and(|place| self.is_local(place) && self.root != Some(*place));
                if !is_pure || !is_safe_load {
                    return None;
                }
                let text = format!(
                    "({operation} {})",
                    self.spell(rest)
                        .filter(|_| *operation != "getelementptr")
                        .or_else(|| self.spell(&line.words[2..]))?
                );
                self.made.insert(name, text);
                Some(())
            }
            _ => None,
        }
    }

    /// The object that an address is computed from.
    fn base(&self, name: &'a str) -> Option<&'a str> {
        let mut name = name;
        for _ in 0..RUN {
            let line = self.function.lines.iter().find(|line| line.words.first() == Some(&name));
            match line.map(|line| line.words.as_slice()) {
                Some([_, "=", "getelementptr", ..]) => name = gep(&line?.words[2..])?.base.last()?,
                Some([_, "=", "bitcast", of @ ..]) => {
                    name = of.get(of.iter().rposition(|word| *word == "to")?.checked_sub(1)?)?;
                }
                _ => return Some(name),
            }
        }
        None
    }

    /// Nothing behind the run uses its names.
    fn is_over(&self, at: usize) -> bool {
        let lines = self.function.lines.get(at..).unwrap_or_default();
        !lines.iter().any(|line| line.words.iter().any(|word| self.made.contains_key(word)))
    }
}

/// Both variants of a module.
#[derive(Debug)]
pub struct Comparison<'a, 'm> {
    unit: &'m str,
    old: &'m Module<'a>,
    new: &'m Module<'a>,
    pair: &'m Pair<'m>,
}

impl<'a, 'm> Comparison<'a, 'm> {
    /// A comparison.
    pub fn new(unit: &'m str, old: &'m Module<'a>, new: &'m Module<'a>, pair: &'m Pair<'m>) -> Self {
        Self { unit, old, new, pair }
    }

    fn differs(&self, function: &str, place: &str, before: &str, after: &str) -> Error {
        Error::Differs {
            unit: self.unit.into(),
            function: function.into(),
            place: place.into(),
            before: before.into(),
            after: after.into(),
        }
    }

    /// The types' elements lie where debug information says.
    pub fn definitions(&self) -> Result<()> {
        for (name, before) in &self.old.definitions.named {
            let Some(after) = self.new.definitions.named.get(name) else { continue };
            let is_holder = record_name(name).is_some_and(|record| self.pair.holders.contains(record));
            let wrong = || self.differs(name, "its definition", &before.join(" "), &after.join(" "));
            if !is_holder {
                if before != after {
                    return Err(wrong());
                }
                continue;
            }
            let (Some(old), Some(new)) =
                (self.old.definitions.elements(before), self.new.definitions.elements(after))
            else {
                return Err(wrong());
            };
            let record = record_name(name).unwrap_or_default();
            for element in &old {
                let is_padding = matches!(element.of, ["i8"] | ["[", _, "x", "i8", "]"]);
                let moved = self.moved(record, element.at, element.bytes);
                let has = moved
                    .is_some_and(|moved| new.iter().any(|other| other.at == moved && other.of == element.of));
                if !has && !is_padding {
                    return Err(wrong());
                }
            }
        }
        Ok(())
    }

    /// Where all bytes of an element go; none when they do not stay together.
    fn moved(&self, record: &str, at: u64, bytes: u64) -> Option<u64> {
        let first = self.pair.moved(record, at)?;
        let inner = self.pair.old.record(record)?.members.iter().find(|member| member.at_bits == at * 8);
        let is_holder = inner.and_then(|member| self.pair.old.record_of(member.of));
        if is_holder.is_some_and(|inner| self.pair.holders.contains(&inner.name)) {
            return inner.and_then(|member| {
                let other =
                    self.pair.new.record(record)?.members.iter().find(|other| other.name == member.name)?;
                Some(other.at_bits / 8)
            });
        }
        let stay = (1..bytes).all(|byte| {
            // Bytes between members are no member's.
            self.pair.moved(record, at + byte).is_none_or(|moved| moved == first + byte)
        });
        stay.then_some(first)
    }

    /// Declarations and flags are equal.
    pub fn rest(&self) -> Result<()> {
        let texts = |module: &Module<'a>| -> Vec<String> {
            let mut texts: Vec<String> = module.rest.iter().map(|line| line.words.join(" ")).collect();
            texts.sort();
            texts
        };
        let (old, new) = (texts(self.old), texts(self.new));
        match old.iter().zip(&new).find(|(one, other)| one != other) {
            Some((one, other)) => Err(self.differs("the module", "", one, other)),
            None if old.len() != new.len() => Err(self.differs("the module", "", "other declarations", "")),
            None => Ok(()),
        }
    }

    /// Compares functions, in their order.
    pub fn functions(&self) -> Result<Vec<Vec<Difference>>> {
        let (old, new) = (&self.old.functions, &self.new.functions);
        if old.len() != new.len() {
            return Err(self.differs("the module", "", "other functions", ""));
        }
        old.iter().zip(new).map(|(one, other)| self.function(one, other)).collect()
    }

    fn function(&self, old: &Function<'a>, new: &Function<'a>) -> Result<Vec<Difference>> {
        let mut found = Vec::new();
        if self.same(&old.head.words, &new.head.words, usize::MAX, &mut found).is_none() {
            return Err(self.differs(new.name, "its head", old.head.text, new.head.text));
        }
        let mut at = 0;
        while let (Some(one), Some(other)) = (old.lines.get(at), new.lines.get(at)) {
            let known = found.len();
            if self.same(&one.words, &other.words, at, &mut found).is_some() {
                at += 1;
                continue;
            }
            found.truncate(known);
            // The base's address alone may already be equal: the run began a line before.
            let count = self.permuted(old, new, at);
            let Some(count) = count else {
                return Err(self.differs(new.name, &format!("line {}", at + 1), one.text, other.text));
            };
            found.push(Difference { line: at, record: None });
            at += count;
        }
        match old.lines.len() == new.lines.len() {
            true => Ok(found),
            false => Err(self.differs(new.name, "its end", "another number of instructions", "")),
        }
    }

    /// The number of lines from `at` on that store the same values to the same members in another order.
    fn permuted(&self, old: &Function<'a>, new: &Function<'a>, at: usize) -> Option<usize> {
        let (mut one, mut other) = (Run::new(self, old, true), Run::new(self, new, false));
        for count in 1..=RUN {
            one.add(at + count - 1)?;
            other.add(at + count - 1)?;
            if one.stores.len() < 2 || one.stores.len() != other.stores.len() {
                continue;
            }
            let sorted = |run: &Run<'_, 'a, '_>| {
                let mut stores = run.stores.clone();
                stores.sort();
                stores
            };
            let stores = sorted(&one);
            // One place within another: their order matters.
            let is_within =
                |at: usize, other: usize| at != other && stores[at].0.contains(member(&stores[other].0));
            let is_distinct =
                !(0..stores.len()).any(|at| (0..stores.len()).any(|other| is_within(at, other)));
            if is_distinct && stores == sorted(&other) && one.root == other.root {
                return (one.is_over(at + count) && other.is_over(at + count)).then_some(count);
            }
        }
        None
    }

    /// Words with the indices that they have after the change.
    fn moved_words(&self, words: &[&'a str], is_old: bool) -> Option<String> {
        let mut text = String::new();
        let mut at = 0;
        while at < words.len() {
            if words[at] != "getelementptr" {
                if words[at] == "align" {
                    // Alignment follows from the place.
                    at += 2;
                    continue;
                }
                text.push_str(words[at]);
                text.push(' ');
                at += 1;
                continue;
            }
            let address = gep(&words[at..])?;
            at += address.length;
            text.push_str(&format!("address {} {}", address.source.join(" "), address.base.join(" ")));
            let mut of = (address.source, address.source);
            for (number, index) in address.indices.iter().enumerate() {
                let mut value = index.last()?.to_string();
                if let Some(element) = array_element(of.0).filter(|_| number > 0) {
                    of = (element, array_element(of.1)?);
                } else if number > 0 {
                    let elements =
                        (self.old.definitions.elements(of.0), self.new.definitions.elements(of.1)?);
                    let index: usize = value.parse().ok()?;
                    let record = of.0.first().and_then(|name| record_name(name));
                    let record = record.filter(|record| is_old && self.pair.holders.contains(*record));
                    let index = match record {
                        Some(record) => {
                            let elements_before = elements.0?;
                            let element = elements_before.get(index)?;
                            let moved = self.moved(record, element.at, element.bytes)?;
                            let found = elements.1.iter().position(|other| other.at == moved)?;
                            of = (element.of, elements.1.get(found)?.of);
                            found
                        }
                        None => {
                            let element = elements.1.get(index)?.of;
                            of = (element, element);
                            index
                        }
                    };
                    value = index.to_string();
                }
                text.push_str(&format!(" , {value}"));
            }
        }
        Some(text)
    }

    /// Compares words; none when they differ otherwise than the map says.
    fn same(&self, old: &[&'a str], new: &[&'a str], line: usize, found: &mut Vec<Difference>) -> Option<()> {
        let (mut one, mut other) = (0, 0);
        while one < old.len() && other < new.len() {
            if old[one] == "getelementptr" && new[other] == "getelementptr" {
                let (first, second) = (gep(&old[one..])?, gep(&new[other..])?);
                self.same_address(&first, &second, line, found)?;
                one += first.length;
                other += second.length;
                continue;
            }
            if old[one] != new[other] {
                let before = one.checked_sub(1).map(|at| old[at]);
                let numbers = (old[one].parse::<i128>().ok()?, new[other].parse::<i128>().ok()?);
                match before {
                    // Alignment follows from the place.
                    Some("align") => found.push(Difference { line, record: None }),
                    _ => {
                        let record = self.pair.explains(numbers.0, numbers.1)?;
                        found.push(Difference { line, record: Some(record) });
                    }
                }
            }
            one += 1;
            other += 1;
        }
        (one == old.len() && other == new.len()).then_some(())
    }

    fn same_address(
        &self,
        old: &Gep<'_, 'a>,
        new: &Gep<'_, 'a>,
        line: usize,
        found: &mut Vec<Difference>,
    ) -> Option<()> {
        if old.source != new.source || old.indices.len() != new.indices.len() {
            return None;
        }
        self.same(old.base, new.base, line, found)?;
        let mut types: (&[&'a str], &[&'a str]) = (old.source, new.source);
        for (number, (one, other)) in old.indices.iter().zip(&new.indices).enumerate() {
            if number == 0 {
                self.same(one, other, line, found)?;
                continue;
            }
            if let Some(element) = array_element(types.0) {
                self.same(one, other, line, found)?;
                types = (element, array_element(types.1)?);
                continue;
            }
            let indices: (usize, usize) = (one.last()?.parse().ok()?, other.last()?.parse().ok()?);
            let elements = (self.old.definitions.elements(types.0)?, self.new.definitions.elements(types.1)?);
            let (before, after) = (elements.0.get(indices.0)?, elements.1.get(indices.1)?);
            let holder = types.0.first().and_then(|name| record_name(name));
            match holder.filter(|record| self.pair.holders.contains(*record)) {
                Some(record) => {
                    if self.moved(record, before.at, before.bytes) != Some(after.at) {
                        return None;
                    }
                    if indices.0 != indices.1 {
                        found.push(Difference { line, record: None });
                    }
                }
                None if indices.0 != indices.1 => return None,
                None => {}
            }
            if before.of != after.of {
                return None;
            }
            types = (before.of, after.of);
        }
        Some(())
    }

    /// Compares initial data.
    pub fn globals(&self) -> Result<Vec<Vec<Difference>>> {
        let (old, new) = (&self.old.globals, &self.new.globals);
        if old.len() != new.len() {
            return Err(self.differs("the module", "", "other objects", ""));
        }
        let mut all = Vec::new();
        for (one, other) in old.iter().zip(new) {
            let mut found = Vec::new();
            if self.global(&one.words, &other.words, &mut found).is_none() {
                let name = other.words.first().copied().unwrap_or("");
                return Err(self.differs(name, "its data", &shown(one), &shown(other)));
            }
            all.push(found);
        }
        Ok(all)
    }

    fn global(&self, old: &[&'a str], new: &[&'a str], found: &mut Vec<Difference>) -> Option<()> {
        let start = |words: &[&str]| {
            words.iter().position(|word| matches!(*word, "global" | "constant")).map(|at| at + 1)
        };
        let (Some(one), Some(other)) = (start(old), start(new)) else { return self.same(old, new, 0, found) };
        self.same(&old[..one], &new[..other], 0, found)?;
        let (parts, others) = (at_commas(&old[one..]), at_commas(&new[other..]));
        if parts.len() != others.len() {
            return None;
        }
        for (number, (part, another)) in parts.iter().zip(&others).enumerate() {
            match number {
                0 => self.value(part, another, found, 60)?,
                _ => self.same(part, another, 0, found)?,
            }
        }
        Some(())
    }

    /// Compares a type and its value.
    fn value(
        &self,
        old: &[&'a str],
        new: &[&'a str],
        found: &mut Vec<Difference>,
        depth: usize,
    ) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        let length = Definitions::length(old)?;
        if old.get(..length) != new.get(..length) {
            return None;
        }
        let (of, before, after) = (&old[..length], &old[length..], &new[length..]);
        let holder = of.first().and_then(|name| record_name(name)).filter(|_| length == 1);
        let holder = holder.filter(|record| self.pair.holders.contains(*record));
        let inside = |words: &'_ [&'a str]| match words {
            ["{" | "[", .., "}" | "]"] => Some((1, words.len() - 1)),
            ["<", "{", .., "}", ">"] => Some((2, words.len() - 2)),
            _ => None,
        };
        let (Some(one), Some(other)) = (inside(before), inside(after)) else {
            return self.same(before, after, 0, found);
        };
        let (parts, others) = (at_commas(&before[one.0..one.1]), at_commas(&after[other.0..other.1]));
        let Some(record) = holder else {
            if parts.len() != others.len() {
                return None;
            }
            return parts
                .iter()
                .zip(&others)
                .try_for_each(|(one, other)| self.value(one, other, found, depth));
        };
        let elements = (self.old.definitions.elements(of)?, self.new.definitions.elements(of)?);
        if elements.0.len() != parts.len() || elements.1.len() != others.len() {
            return None;
        }
        found.push(Difference { line: 0, record: None });
        for (element, part) in elements.0.iter().zip(&parts) {
            let is_empty = matches!(part.last(), Some(&("undef" | "zeroinitializer")));
            let moved = self.moved(record, element.at, element.bytes);
            let at = elements.1.iter().position(|other| Some(other.at) == moved && other.of == element.of);
            match at {
                Some(at) => self.value(part, others[at], found, depth)?,
                None if is_empty => {}
                None => return None,
            }
        }
        // New elements must be padding.
        elements.1.iter().zip(&others).try_for_each(|(element, other)| {
            let is_empty = matches!(other.last(), Some(&("undef" | "zeroinitializer")));
            let is_known =
                elements.0.iter().any(|old| self.moved(record, old.at, old.bytes) == Some(element.at));
            (is_empty || is_known).then_some(())
        })
    }
}

fn shown(line: &Line<'_>) -> String {
    line.text.chars().take(400).collect()
}

/// The element of an array or vector type.
pub fn array_element<'w, 'a>(of: &'w [&'a str]) -> Option<&'w [&'a str]> {
    match of {
        ["[", _, "x", rest @ .., "]"] => Some(rest),
        ["<", _, "x", rest @ .., ">"] => Some(rest),
        _ => None,
    }
}
