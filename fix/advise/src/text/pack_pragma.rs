//! `#pragma pack` at a declaration, for each outcome of the conditions around the pragmas.

use crate::constraints::constraint::{Binding, Constraint};
use crate::text::lex::Kind;
use crate::text::located_declaration::LocatedDeclaration;

/// Numbers in `#pragma pack(push, 8)` that change nothing on a machine whose members need no more.
const NATURAL: [&str; 3] = ["8", "16", "32"];

/// With more conditions than this, each pragma counts as one that the compiler reads.
const MOST_CONDITIONS: usize = 8;

enum Directive<'t> {
    /// `#if` and its like, by its text.
    If(&'t str),
    ElseIf(&'t str),
    Else,
    EndIf,
    /// A token that packs.
    Pack(usize),
    Unpack,
}

/// `#pragma pack(n)` in force at the declaration, for an `n` that may press members together.
pub(crate) fn in_force(found: &LocatedDeclaration<'_>) -> Option<Binding> {
    let tokens = (0..found.declaration.close).filter(|&at| found.lexed.tokens[at].kind == Kind::Directive);
    let mut directives: Vec<Directive<'_>> =
        tokens.filter_map(|at| directive(at, found.lexed.str(at))).collect();
    let mut conditions = deciding_conditions(&directives);
    if conditions.len() > MOST_CONDITIONS {
        directives.retain(|directive| matches!(directive, Directive::Pack(_) | Directive::Unpack));
        conditions.clear();
    }
    let index = (0..1_usize << conditions.len()).find_map(|outcome| {
        let is_true = |text: &str| {
            conditions.iter().position(|known| *known == text).is_none_or(|at| outcome >> at & 1 == 1)
        };
        packing(&directives, is_true).filter(|&index| !is_natural(found.lexed.str(index)))
    })?;
    let line = found.lexed.line_at(found.lexed.tokens[index].start());
    Some(Binding::new(Constraint::Packed).at(&found.path, line).because("#pragma pack"))
}

fn directive(index: usize, text: &str) -> Option<Directive<'_>> {
    let words = text.trim_start_matches('#').trim_start();
    let end = words.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(words.len());
    Some(match &words[..end] {
        "if" | "ifdef" | "ifndef" => Directive::If(words),
        "elif" | "elifdef" | "elifndef" => Directive::ElseIf(words),
        "else" => Directive::Else,
        "endif" => Directive::EndIf,
        "pragma" if words.contains("pack") => {
            let closes =
                words.contains("pop") || words.split_whitespace().collect::<String>().contains("pack()");
            if closes { Directive::Unpack } else { Directive::Pack(index) }
        }
        _ => return None,
    })
}

/// The conditions by which pragmas are read or not. One text has one outcome.
fn deciding_conditions<'t>(directives: &[Directive<'t>]) -> Vec<&'t str> {
    let mut open: Vec<Vec<&str>> = Vec::new();
    let mut found = Vec::new();
    for directive in directives {
        match directive {
            Directive::If(text) => open.push(vec![text]),
            Directive::ElseIf(text) => open.last_mut().into_iter().for_each(|arms| arms.push(text)),
            Directive::Else => {}
            Directive::EndIf => _ = open.pop(),
            Directive::Pack(_) | Directive::Unpack => found.extend(open.iter().flatten()),
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// The pragma in force at the end of the directives.
fn packing(directives: &[Directive<'_>], is_true: impl Fn(&str) -> bool) -> Option<usize> {
    // For each open condition: an arm of it was read, and the current one is.
    let mut open: Vec<(bool, bool)> = Vec::new();
    let mut in_force = Vec::new();
    for directive in directives {
        let is_read = open.iter().all(|(_, is_read)| *is_read);
        match directive {
            Directive::If(text) => open.push((is_true(text), is_true(text))),
            Directive::ElseIf(_) | Directive::Else => {
                let Some((was_read, is_read)) = open.last_mut() else { continue };
                *is_read = !*was_read && !matches!(directive, Directive::ElseIf(text) if !is_true(text));
                *was_read |= *is_read;
            }
            Directive::EndIf => _ = open.pop(),
            Directive::Pack(index) if is_read => in_force.push(*index),
            Directive::Unpack if is_read => _ = in_force.pop(),
            Directive::Pack(_) | Directive::Unpack => {}
        }
    }
    in_force.pop()
}

fn is_natural(pragma: &str) -> bool {
    pragma.split(|c: char| !c.is_alphanumeric()).any(|word| NATURAL.contains(&word))
}
