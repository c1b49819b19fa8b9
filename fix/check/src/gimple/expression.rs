//! Operands of GIMPLE statements and their types.

use super::Types;
use super::lexer::Token;
use crate::facts::Short;
use std::collections::HashMap;

/// A member that a path goes through.
#[derive(Clone, Debug)]
pub struct Step {
    /// The record.
    pub record: String,
    /// The member.
    pub member: String,
    /// The member's type.
    pub of: Option<Short>,
    /// An index of an array follows, with its number if it is one.
    pub index: Option<Option<i128>>,
}

/// A place or value in a statement.
#[derive(Clone, Debug, Default)]
pub struct Operand<'a> {
    /// Its type, as far as it is known.
    pub short: Option<Short>,
    /// It is the address of its path.
    pub is_address: bool,
    /// The members on its path, outermost first.
    pub steps: Vec<Step>,
    /// It is a name alone.
    pub name: Option<&'a str>,
    /// The name that it begins with.
    pub root: Option<&'a str>,
    /// It is a number.
    pub int: Option<i128>,
    /// It reads or writes memory through a pointer of this type as another type: both.
    pub seen_as: Vec<(Option<Short>, Option<Short>)>,
    /// It casts: from and to.
    pub cast: Option<(Option<Short>, Option<Short>)>,
    /// It reads through a pointer.
    pub is_load: bool,
    /// It lists the members or elements of an object.
    pub is_list: bool,
    /// Operands within it: indices, elements of lists.
    pub inner: Vec<Operand<'a>>,
    /// It calls: arguments are in `inner`.
    pub callee: Option<&'a str>,
}

/// Types of names in a function.
#[derive(Debug)]
pub struct Scope<'a, 't> {
    /// The unit's types.
    pub types: &'t Types<'t>,
    /// Types of parameters and local variables.
    pub names: HashMap<&'a str, Short>,
    /// Types of global variables.
    pub globals: &'t HashMap<&'t str, Short>,
    /// Types that functions of the unit return.
    pub returned: &'t HashMap<&'t str, Option<Short>>,
    /// Types that functions of other units return.
    pub others: &'t HashMap<&'t str, Option<Short>>,
}

impl Scope<'_, '_> {
    /// The type of a name.
    pub fn of(&self, name: &str) -> Option<&Short> {
        self.names.get(name).or_else(|| self.globals.get(name))
    }
}

/// Reads operands.
#[derive(Debug)]
pub struct Reader<'w, 'a, 's, 't> {
    words: &'w [Token<'a>],
    at: usize,
    scope: &'s Scope<'a, 't>,
    depth: usize,
}

/// Operands within operands are not read further.
const DEPTH: usize = 60;

fn scalar(base: &str) -> Option<Short> {
    Some(Short { base: base.into(), ..Short::default() })
}

impl<'w, 'a, 's, 't> Reader<'w, 'a, 's, 't> {
    /// A reader of these words.
    pub fn new(words: &'w [Token<'a>], scope: &'s Scope<'a, 't>) -> Self {
        Self { words, at: 0, scope, depth: 0 }
    }

    /// The words that are not yet read.
    pub fn rest(&self) -> &'w [Token<'a>] {
        &self.words[self.at.min(self.words.len())..]
    }

    /// Leaves out a word.
    pub fn skip(&mut self) {
        self.at += 1;
    }

    fn next_is(&self, sign: &str) -> bool {
        self.words.get(self.at).is_some_and(|word| word.is(sign))
    }

    fn take(&mut self, sign: &str) -> Option<()> {
        self.next_is(sign).then(|| self.at += 1)
    }

    /// The words up to the bracket that closes the one at `self.at - 1`.
    fn bracketed(&mut self, open: &str, close: &str) -> Option<&'w [Token<'a>]> {
        let start = self.at;
        let mut depth = 1;
        while let Some(word) = self.words.get(self.at) {
            depth += i32::from(word.is(open)) - i32::from(word.is(close));
            self.at += 1;
            if depth == 0 {
                return Some(&self.words[start..self.at - 1]);
            }
        }
        None
    }

    /// Reads one operand.
    pub fn operand(&mut self) -> Option<Operand<'a>> {
        self.depth += 1;
        if self.depth > DEPTH {
            return None;
        }
        let found = self.prefixed();
        self.depth -= 1;
        found
    }

    fn whole(&self, words: &'w [Token<'a>]) -> Option<Operand<'a>> {
        let mut reader = Reader { words, at: 0, scope: self.scope, depth: self.depth };
        let operand = reader.operand()?;
        reader.rest().is_empty().then_some(operand)
    }

    fn prefixed(&mut self) -> Option<Operand<'a>> {
        if self.take("&").is_some() {
            let inner = self.operand()?;
            return Some(Operand {
                short: inner.short.as_ref().map(Short::address),
                is_address: true,
                name: None,
                int: None,
                is_load: false,
                ..inner
            });
        }
        if self.take("*").is_some() {
            let inner = self.operand()?;
            return Some(Operand {
                short: inner.short.as_ref().and_then(Short::pointed),
                is_load: true,
                name: None,
                ..inner
            });
        }
        if self.next_is("-") || self.next_is("~") || self.next_is("!") {
            self.at += 1;
            let inner = self.operand()?;
            return Some(Operand { name: None, int: None, inner: vec![inner], ..Operand::default() });
        }
        if self.next_is("(") {
            let start = self.at;
            self.at += 1;
            let inside = self.bracketed("(", ")")?;
            let is_operand = inside.first().is_some_and(|word| {
                word.is("*") || word.is("&") || word.name().is_some_and(|name| self.scope.of(name).is_some())
            });
            if !is_operand {
                let to = self.scope.types.read(inside)?;
                let inner = self.operand()?;
                return Some(Operand {
                    cast: Some((inner.short.clone(), Some(to.clone()))),
                    short: Some(to),
                    root: inner.root,
                    inner: vec![inner],
                    ..Operand::default()
                });
            }
            let inner = self.whole(inside);
            self.at = start + inside.len() + 2;
            return self.behind(inner?);
        }
        let primary = self.primary()?;
        self.behind(primary)
    }

    fn primary(&mut self) -> Option<Operand<'a>> {
        let word = *self.words.get(self.at)?;
        self.at += 1;
        match word {
            Token::Int(value) => {
                Some(Operand { int: Some(value), short: scalar("int"), ..Operand::default() })
            }
            Token::Name("MEM") => self.memory(),
            // `.VA_ARG (list, 0B, 0B)` gives a value of any type.
            Token::Other(".") if self.next_is("VA_ARG") => self.primary(),
            // `*.LC3` is a constant of the compiler, whose type it does not print.
            Token::Other(".") => {
                let label = self.words.get(self.at)?.name()?;
                self.at += 1;
                label.starts_with("LC").then(Operand::default)
            }
            Token::Name(name) if self.next_is("(") => {
                self.at += 1;
                let inside = self.bracketed("(", ")")?;
                let parts = super::at_commas(inside);
                let arguments: Option<Vec<_>> = parts.into_iter().map(|part| self.whole(part)).collect();
                let short =
                    self.scope.returned.get(name).or_else(|| self.scope.others.get(name)).cloned().flatten();
                Some(Operand { callee: Some(name), inner: arguments?, short, ..Operand::default() })
            }
            Token::Name(name) if self.next_is("<") && name.ends_with("_EXPR") || name.ends_with("_REF") => {
                self.at += 1;
                let inside = self.bracketed("<", ">")?;
                let parts = super::at_commas(inside);
                let is_view = name == "VIEW_CONVERT_EXPR";
                if is_view {
                    let to = self.scope.types.read(inside);
                    self.take("(")?;
                    let inside = self.bracketed("(", ")")?;
                    let inner = self.whole(inside)?;
                    let seen_as =
                        vec![(inner.short.as_ref().map(Short::address), to.as_ref().map(Short::address))];
                    return Some(Operand {
                        short: to,
                        seen_as,
                        root: inner.root,
                        inner: vec![inner],
                        ..Operand::default()
                    });
                }
                let inner: Option<Vec<_>> = parts.into_iter().map(|part| self.whole(part)).collect();
                let inner = inner?;
                let seen_as = match name == "BIT_FIELD_REF" {
                    true => vec![(inner.first().and_then(|of| of.short.as_ref()).map(Short::address), None)],
                    false => Vec::new(),
                };
                Some(Operand { inner, seen_as, ..Operand::default() })
            }
            Token::Name(name) => Some(Operand {
                short: self.scope.of(name).cloned(),
                name: Some(name),
                root: Some(name),
                ..Operand::default()
            }),
            Token::Other("<") if self.next_is("retval") => {
                self.at += 2;
                Some(Operand {
                    short: self.scope.of("<retval>").cloned(),
                    name: Some("<retval>"),
                    root: Some("<retval>"),
                    ..Operand::default()
                })
            }
            Token::Other("{") => {
                let inside = self.bracketed("{", "}")?;
                Some(Operand { is_list: true, inner: self.list(inside), ..Operand::default() })
            }
            Token::Other(text)
                if text.starts_with(['"', '\''])
                    || text.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit()) =>
            {
                let short = match text.starts_with('"') {
                    true => Some(Short { base: "char".into(), dimensions: 1, ..Short::default() }),
                    false => scalar("number"),
                };
                Some(Operand { short, ..Operand::default() })
            }
            _ => None,
        }
    }

    /// The values of `{.a=1, .b=&x}`.
    fn list(&self, inside: &'w [Token<'a>]) -> Vec<Operand<'a>> {
        let value = |part: &'w [Token<'a>]| {
            let start = part.iter().position(|word| word.is("=")).map_or(0, |at| at + 1);
            self.whole(&part[start..])
        };
        super::at_commas(inside).into_iter().filter_map(value).collect()
    }

    /// `MEM[(T *)p + 8B]` or `MEM <T> [(S *)p + 8B]`.
    fn memory(&mut self) -> Option<Operand<'a>> {
        let mut seen = None;
        if self.take("<").is_some() {
            let inside = self.bracketed("<", ">")?;
            seen = self.scope.types.read(inside);
        }
        self.take("[")?;
        let inside = self.bracketed("[", "]")?;
        let mut reader = Reader { words: inside, at: 0, scope: self.scope, depth: self.depth };
        let pointer = reader.operand()?;
        let mut distance = 0;
        if reader.take("+").is_some() {
            distance = reader.operand()?.int?;
        }
        if !reader.rest().is_empty() {
            return None;
        }
        let of = match &pointer.cast {
            Some((of, _)) => of.clone(),
            None => pointer.short.clone(),
        };
        let to = seen.as_ref().map(Short::address).or_else(|| pointer.short.clone());
        let mut seen_as = Vec::new();
        let is_array = seen.as_ref().is_some_and(|seen| seen.dimensions > 0);
        if of != to || distance != 0 || is_array {
            seen_as.push((of, to.clone()));
        }
        let short = to.as_ref().and_then(Short::pointed);
        Some(Operand {
            short,
            seen_as,
            is_load: true,
            root: pointer.root,
            inner: pointer.inner,
            ..Operand::default()
        })
    }

    /// Members and indices behind an operand.
    fn behind(&mut self, mut operand: Operand<'a>) -> Option<Operand<'a>> {
        loop {
            let is_arrow = self.next_is("->");
            if is_arrow || self.next_is(".") {
                self.at += 1;
                let member = self.words.get(self.at)?.name()?;
                self.at += 1;
                let record = match is_arrow {
                    true => operand.short.as_ref().and_then(Short::pointed),
                    false => operand.short.clone(),
                };
                operand.is_load |= is_arrow;
                operand.name = None;
                if member.starts_with("D.") {
                    // An unnamed member: what is named in it is found without it.
                    operand.short = record;
                    continue;
                }
                let record = record.filter(Short::is_object);
                let facts = self.scope.types.facts;
                let found =
                    record.as_ref().and_then(|record| facts.member(facts.record(&record.base)?, member));
                let of = found.map(|(member, _)| facts.short(member.of));
                operand.steps.push(Step {
                    record: record.map_or_else(|| "?".into(), |record| record.base),
                    member: member.into(),
                    of: of.clone(),
                    index: None,
                });
                operand.short = of;
            } else if self.next_is("[") {
                self.at += 1;
                let inside = self.bracketed("[", "]")?;
                let index = self.whole(inside);
                if let Some(step) = operand.steps.last_mut().filter(|step| step.index.is_none()) {
                    step.index = Some(index.as_ref().and_then(|index| index.int));
                }
                operand.inner.extend(index);
                operand.name = None;
                operand.short = operand.short.map(|short| match short.dimensions {
                    0 => short,
                    dimensions => Short { dimensions: dimensions - 1, ..short },
                });
            } else {
                return Some(operand);
            }
        }
    }
}
