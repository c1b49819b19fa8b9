//! Statements of GIMPLE.

use super::expression::{Operand, Reader, Scope};
use super::lexer::Token;
use super::{Line, Types, declared};
use crate::facts::Short;

/// The right side of an assignment, or what a branch compares.
// Each lives for one statement: a box would only cost time.
#[expect(clippy::large_enum_variant)]
#[derive(Debug)]
pub enum Value<'a> {
    /// One operand.
    One(Operand<'a>),
    /// Two with a sign between them.
    Two(Operand<'a>, &'a str, Operand<'a>),
}

/// A statement.
#[expect(clippy::large_enum_variant)]
#[derive(Debug)]
pub enum Statement<'a> {
    /// It has no operands: a label, a jump, a brace.
    Nothing,
    /// It declares a local variable, with the values of a static one.
    Local(&'a str, Short),
    /// A value goes to a place.
    Assign(Operand<'a>, Value<'a>),
    /// A value is computed, compared or returned.
    Use(Value<'a>),
    /// Assembler.
    Assembler,
}

const PLAIN: [&str; 11] =
    ["{", "}", "goto", "try", "finally", "catch", "else", "<", "typedef", "case", "default"];

/// Reads a statement; none when it has a form that is not known here.
pub fn read<'a>(line: &Line<'a>, scope: &Scope<'a, '_>, types: &Types<'_>) -> Option<Statement<'a>> {
    let words = strip(&line.words);
    let Some(first) = words.first() else { return Some(Statement::Nothing) };
    if first.is("__asm__") {
        return Some(Statement::Assembler);
    }
    // A note of the compiler.
    if first.is("/") && words.get(1).is_some_and(|word| word.is("/")) {
        return Some(Statement::Nothing);
    }
    let is_retval = first.is("<") && words.get(1).is_some_and(|word| word.is("retval"));
    let is_label = words.get(1).is_some_and(|word| word.is(":"));
    if PLAIN.iter().any(|plain| first.is(plain)) && !is_retval || is_label {
        return Some(Statement::Nothing);
    }
    if first.is("return") {
        let mut reader = Reader::new(&words[1..], scope);
        if words.len() == 1 {
            return Some(Statement::Nothing);
        }
        let operand = reader.operand()?;
        return reader.rest().is_empty().then_some(Statement::Use(Value::One(operand)));
    }
    if first.is("if") || first.is("switch") {
        let end = words.iter().rposition(|word| word.is("goto") || word.is("<") && first.is("switch"));
        let inside = match first.is("if") {
            true => {
                let goto = words.iter().position(|word| word.is("goto")).or(end)?;
                words.get(2..goto.checked_sub(1)?)?
            }
            false => {
                let close = words.iter().position(|word| word.is(")"))?;
                words.get(2..close)?
            }
        };
        return Some(Statement::Use(value(inside, scope)?));
    }
    let second_is = |sign: &str| words.get(1).is_some_and(|word| word.is(sign));
    let is_function = second_is("(")
        && words.get(2).is_some_and(|word| word.is("*"))
        && words.get(3).is_some_and(|word| word.is("<") || word.name().is_some());
    let is_declaration = first.name().is_some()
        && (words.get(1).is_some_and(|word| word.name().is_some())
            || second_is("*")
            || is_function
            || second_is("<"))
        && line.words.last().is_some_and(|word| word.is(";") || word.is("="));
    if is_declaration || first.is("extern") {
        return match declared(words, types) {
            Some((name, short)) => Some(Statement::Local(name, short)),
            None => Some(Statement::Nothing),
        };
    }
    let mut depth = 0_i32;
    let equal = words.iter().position(|word| {
        depth += i32::from(word.is("(") || word.is("[") || word.is("{"));
        depth -= i32::from(word.is(")") || word.is("]") || word.is("}"));
        depth == 0 && word.is("=")
    });
    let Some(equal) = equal else {
        return Some(Statement::Use(value(words, scope)?));
    };
    let mut reader = Reader::new(&words[..equal], scope);
    let to = reader.operand()?;
    if !reader.rest().is_empty() {
        return None;
    }
    let mut right = &words[equal + 1..];
    if right.len() > 3 && right[0].is("{") && right[1].is("v") && right[2].is("}") {
        right = &right[3..];
    }
    if right.get(1).is_some_and(|word| word.name().is_some_and(|name| name.starts_with("CLOBBER"))) {
        return Some(Statement::Nothing);
    }
    Some(Statement::Assign(to, value(right, scope)?))
}

/// Without the semicolon and GCC's notes on calls, `[tail call]`.
fn strip<'w, 'a>(words: &'w [Token<'a>]) -> &'w [Token<'a>] {
    let mut words = words;
    while let Some((last, rest)) = words.split_last() {
        let note = words.iter().rposition(|word| word.is("["));
        let is_note = last.is("]")
            && note.is_some_and(|at| {
                at > 0
                    && (words[at - 1].is(")") || words[at - 1].is(";"))
                    && words[at + 1..].iter().filter(|word| word.name().is_some()).count() > 1
            });
        match (last.is(";"), is_note, note) {
            (true, ..) => words = rest,
            (_, true, Some(at)) => words = &words[..at],
            _ => return words,
        }
    }
    words
}

fn value<'a>(words: &[Token<'a>], scope: &Scope<'a, '_>) -> Option<Value<'a>> {
    let mut reader = Reader::new(words, scope);
    let one = reader.operand()?;
    let Some(sign) = reader.rest().first() else { return Some(Value::One(one)) };
    let (Token::Other(mut sign) | Token::Name(mut sign)) = *sign else { return None };
    reader.skip();
    // Rotations are written `r<<`, comparisons that hold of what is no number `u<`.
    if matches!(sign, "r" | "u") {
        sign = if sign == "r" { "rotate" } else { "unordered" };
        reader.skip();
    }
    let other = reader.operand()?;
    reader.rest().is_empty().then_some(Value::Two(one, sign, other))
}
