//! Programs as GCC has them before it optimises.

mod allocation;
mod calls;
mod conversions;
pub mod equal;
pub mod expression;
pub mod lexer;
pub mod library;
mod numbers;
pub mod program;
pub mod statement;
pub mod uses;

use crate::error::{Error, Result};
use crate::facts::{Facts, Short, TypeId};
use lexer::{Token, words};
use std::collections::HashMap;

/// A line of a function.
#[derive(Debug)]
pub struct Line<'a> {
    /// Its text.
    pub text: &'a str,
    /// Its words, places left out.
    pub words: Vec<Token<'a>>,
    /// Its place in the source.
    pub place: Option<&'a str>,
}

/// A function of a dump.
#[derive(Debug)]
pub struct Function<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its head, up to the brace.
    pub head: Line<'a>,
    /// Its lines.
    pub lines: Vec<Line<'a>>,
}

/// Reads a dump.
pub fn functions<'a>(unit: &str, text: &'a str) -> Result<Vec<Function<'a>>> {
    let unreadable = |what: String| Error::Unreadable { unit: unit.into(), what };
    let mut found: Vec<Function<'a>> = Vec::new();
    let mut is_open = false;
    for line in text.lines() {
        let (words, place) = words(line);
        let Some(first) = words.first() else { continue };
        let starts = !line.starts_with([' ', '\t']);
        if is_open {
            if starts && first.is("}") && words.len() == 1 {
                is_open = false;
                continue;
            }
            if first.is("#") {
                continue;
            }
            let Some(function) = found.last_mut() else { continue };
            function.lines.push(Line { text: line.trim(), words, place });
        } else if first.is("{") {
            if found.is_empty() {
                return Err(unreadable("a body without a function".into()));
            }
            is_open = true;
        } else if starts && (first.is("__attribute__") || line.starts_with(";;")) {
        } else if starts {
            let name = name_in_head(&words).ok_or_else(|| unreadable(format!("no function: {line}")))?;
            found.push(Function { name, head: Line { text: line, words, place }, lines: Vec::new() });
        } else {
            return Err(unreadable(format!("a line outside of functions: {}", line.trim())));
        }
    }
    match is_open {
        true => Err(unreadable("it ends within a function".into())),
        false => Ok(found),
    }
}

/// The name before the parameters: the last group of parentheses at the outermost level.
fn name_in_head<'a>(words: &[Token<'a>]) -> Option<&'a str> {
    let open = parameters_start(words)?;
    words.get(open.checked_sub(1)?)?.name()
}

fn parameters_start(words: &[Token<'_>]) -> Option<usize> {
    let mut depth = 0;
    let mut start = None;
    for (index, word) in words.iter().enumerate() {
        if word.is("(") {
            if depth == 0 && index > 0 && words[index - 1].name().is_some() {
                start = Some(index);
            }
            depth += 1;
        } else if word.is(")") {
            depth -= 1;
        }
    }
    start
}

/// Splits at commas outside of brackets.
pub fn at_commas<'w, 'a>(words: &'w [Token<'a>]) -> Vec<&'w [Token<'a>]> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0_i32, 0);
    for (index, word) in words.iter().enumerate() {
        if ["(", "[", "{"].iter().any(|open| word.is(open)) {
            depth += 1;
        } else if [")", "]", "}"].iter().any(|close| word.is(close)) {
            depth -= 1;
        } else if word.is(",") && depth == 0 {
            parts.push(&words[start..index]);
            start = index + 1;
        }
    }
    if start < words.len() {
        parts.push(&words[start..]);
    }
    parts
}

/// Names of types in a unit, in short.
#[derive(Debug)]
pub struct Types<'a> {
    /// The unit's types.
    pub facts: &'a Facts,
    typedefs: HashMap<&'a str, Short>,
}

impl<'a> Types<'a> {
    /// The types of a unit.
    pub fn new(facts: &'a Facts) -> Self {
        let short = |(name, id): (&'a String, &TypeId)| (name.as_str(), facts.short(*id));
        Self { facts, typedefs: facts.typedefs.iter().map(short).collect() }
    }

    /// Reads a type as GCC prints it, such as `const struct node * *`; none when it is none.
    pub fn read(&self, words: &[Token<'_>]) -> Option<Short> {
        let mut short = Short::default();
        let mut names: Vec<&str> = Vec::new();
        let mut has_tag = false;
        let mut index = 0;
        while let Some(word) = words.get(index) {
            match word {
                Token::Name(
                    "const" | "volatile" | "restrict" | "__restrict__" | "static" | "extern" | "register"
                    | "_Atomic",
                ) => {}
                Token::Name("struct" | "union" | "enum" | "class") => has_tag = true,
                Token::Name(name) if short.stars == 0 => names.push(name),
                Token::Name(_) => return None,
                Token::Other("*" | "&") => short.stars += 1,
                Token::Other("[") => {
                    short.dimensions += usize::from(short.stars == 0);
                    index += words[index..].iter().position(|word| word.is("]"))?;
                }
                Token::Other("(") => {
                    // A pointer to an array `(*)[4]` counts as one to its element; others are functions.
                    let is_array = words[index..].iter().any(|word| word.is("[")) && words.last()?.is("]");
                    if is_array {
                        short.stars += words[index..].iter().filter(|word| word.is("*")).count();
                    } else {
                        let returned = self.read(&words[..index]);
                        let list = words[index + 1..].iter().position(|word| word.is("("));
                        let list = list.map_or(&[][..], |at| &words[index + at + 2..words.len() - 1]);
                        let known = |part: &&[Token<'_>]| !(part.len() == 1 && part[0].is("void"));
                        let parts = at_commas(list).into_iter().filter(known);
                        let parameters = parts.map(|part| self.read(part).unwrap_or_default()).collect();
                        return Some(Short::function(parameters, returned));
                    }
                    has_tag = false;
                    break;
                }
                Token::Other("{") => {
                    // `{ref-all}` after a star.
                    index += words[index..].iter().position(|word| word.is("}"))?;
                }
                Token::Other("<") => {
                    let end = words[index..].iter().position(|word| word.is(">"))?;
                    names.push("<unnamed>");
                    index += end;
                }
                _ => return None,
            }
            index += 1;
        }
        if names.is_empty() && !has_tag {
            return None;
        }
        let base = names.join(" ");
        // GCC writes `struct alias` of `typedef struct tag alias`, too.
        let is_alias = !has_tag || self.facts.record(&base).is_none();
        let known =
            self.typedefs.get(base.as_str()).filter(|known| is_alias && (!has_tag || known.is_record));
        if let Some(known) = known {
            let dimensions = if short.stars == 0 { short.dimensions + known.dimensions } else { 0 };
            return Some(Short { stars: short.stars + known.stars, dimensions, ..known.clone() });
        }
        short.is_record = self.facts.record(&base).is_some();
        short.base = base;
        Some(short)
    }
}

/// A declaration `TYPE NAME` of a parameter or local variable: its name and type.
pub fn declared<'a>(words: &[Token<'a>], types: &Types<'_>) -> Option<(&'a str, Short)> {
    let end = words.iter().position(|word| word.is("=") || word.is(";")).unwrap_or(words.len());
    let words = &words[..end];
    // An array's dimensions stand behind the name.
    let behind = words
        .iter()
        .position(|word| word.is("["))
        .filter(|at| *at > 1 && words[..*at].iter().all(|word| !word.is("(")));
    let (front, back) = words.split_at(behind.unwrap_or(words.len()));
    let (name, front) = front.split_last()?;
    let name = name.name()?;
    if front.is_empty() {
        return None;
    }
    let mut short = types.read(front)?;
    if short.stars == 0 || !back.is_empty() {
        short.dimensions += back.iter().filter(|word| word.is("[")).count();
    }
    Some((name, short))
}

impl<'a> Function<'a> {
    /// Parameters with their types; an unnamed one has no name.
    pub fn parameters(&self, types: &Types<'_>) -> Vec<(Option<&'a str>, Option<Short>)> {
        let words = &self.head.words;
        let Some(open) = parameters_start(words) else { return Vec::new() };
        let inside = &words[open + 1..words.len().saturating_sub(1).max(open + 1)];
        let parts = at_commas(inside);
        parts
            .into_iter()
            .filter(|part| !(part.len() == 1 && part[0].is("void")))
            .map(|part| match declared(part, types) {
                Some((name, short)) => (Some(name), Some(short)),
                None => (part.last().and_then(Token::name), None),
            })
            .collect()
    }

    /// A pointer to it, in short.
    pub fn short(&self, types: &Types<'_>) -> Short {
        let parameters = self.parameters(types).into_iter().map(|(_, short)| short.unwrap_or_default());
        Short::function(parameters.collect(), self.returned(types))
    }

    /// The type that it returns.
    pub fn returned(&self, types: &Types<'_>) -> Option<Short> {
        let open = parameters_start(&self.head.words)?;
        types.read(self.head.words.get(..open.checked_sub(1)?)?)
    }
}
