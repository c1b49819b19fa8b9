//! A module of IR: its functions, global objects and types.

use super::lexer::{self, words};
use super::types::Definitions;
use crate::error::{Error, Result};

/// An instruction or another line.
#[derive(Debug)]
pub struct Line<'a> {
    /// Its text.
    pub text: &'a str,
    /// Its words, metadata left out.
    pub words: Vec<&'a str>,
    /// Number of its place.
    pub place: Option<u64>,
}

/// A function.
#[derive(Debug)]
pub struct Function<'a> {
    /// Its name with `@`.
    pub name: &'a str,
    /// The line with its parameters.
    pub head: Line<'a>,
    /// Its instructions.
    pub lines: Vec<Line<'a>>,
}

/// A module's parts.
#[derive(Debug, Default)]
pub struct Module<'a> {
    /// Its functions.
    pub functions: Vec<Function<'a>>,
    /// Its global objects.
    pub globals: Vec<Line<'a>>,
    /// Everything else that must be equal.
    pub rest: Vec<Line<'a>>,
    /// Named types.
    pub definitions: Definitions<'a>,
}

fn line(text: &str) -> Line<'_> {
    let mut words = words(text);
    let place =
        words.windows(2).find(|two| two[0] == "!dbg").and_then(|two| two[1].strip_prefix('!')?.parse().ok());
    // Attachments stand at the end: `, !dbg !57, !tbaa !12`, at a function's head without a comma.
    let attached = words.windows(2).position(|two| {
        two[0] == "," && two[1].starts_with('!') || two[0].starts_with("!dbg") && two[1].starts_with('!')
    });
    if let Some(at) = attached {
        let has_brace = words.last() == Some(&"{");
        words.truncate(at);
        words.extend(has_brace.then_some("{"));
    }
    Line { text, words, place }
}

/// Reads a module.
pub fn module<'a>(unit: &str, text: &'a str) -> Result<Module<'a>> {
    let unreadable = |what: &str| Error::Unreadable { unit: unit.into(), what: what.into() };
    let mut module = Module { definitions: Definitions::read(text), ..Module::default() };
    let mut is_open = false;
    for text in text.lines() {
        let trimmed = text.trim();
        if trimmed.is_empty() || trimmed.starts_with([';', '!']) || text.starts_with("source_filename") {
            continue;
        }
        if is_open {
            if text == "}" {
                is_open = false;
            } else if !trimmed.contains("@llvm.dbg.")
                && let Some(function) = module.functions.last_mut()
            {
                let next = line(trimmed);
                // Long switches and calls go on in the next line.
                let goes_on = function.lines.last().is_some_and(|last| {
                    lexer::group(&last.words[last.words.iter().position(|word| *word == "[").unwrap_or(0)..])
                        .is_none()
                        && last.words.first() == Some(&"switch")
                });
                match function.lines.last_mut().filter(|_| goes_on) {
                    Some(last) => last.words.extend(next.words),
                    None => function.lines.push(next),
                }
            }
        } else if text.starts_with("define") {
            let head = line(text);
            let name = head.words.iter().find(|word| word.starts_with('@'));
            let name = name.copied().ok_or_else(|| unreadable("a function without a name"))?;
            module.functions.push(Function { name, head, lines: Vec::new() });
            is_open = true;
        } else if text.starts_with('@') {
            module.globals.push(line(text));
        } else if !text.starts_with('%') {
            module.rest.push(line(text));
        }
    }
    match is_open {
        true => Err(unreadable("it ends within a function")),
        false => Ok(module),
    }
}
