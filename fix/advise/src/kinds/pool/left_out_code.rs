//! Code that ends memory under a condition of the preprocessor: another build may compile it, and no reader of this
//! build's units saw it.

use crate::text::lex::{Kind, Lexed, directive_word};
use crate::text::sources::Sources;
use lineup_model::object_uses::{HeapCall, MEMORY_ENDERS};

/// The first place of such code, file and line; the calls that are known aside.
pub(super) fn that_ends_memory(sources: &Sources, known: &[HeapCall]) -> Option<(String, u32)> {
    MEMORY_ENDERS.iter().find_map(|ender| {
        sources.that_may_name(ender).find_map(|(path, _)| {
            let lexed = sources.lexed(path)?;
            let is_known = |line: u32| known.iter().any(|call| call.path == path && call.line == line);
            let mut places = in_conditions(&lexed, ender);
            places.retain(|line| !is_known(*line));
            Some((path.to_owned(), *places.first()?))
        })
    })
}

/// The first place of `__attribute__((cleanup(function)))`: clang shows no call of the function.
pub(super) fn that_ends_scopes(sources: &Sources) -> Option<(String, u32)> {
    const ATTRIBUTE: &str = "__attribute__";
    sources.that_may_name(ATTRIBUTE).find_map(|(path, text)| {
        let ends_scope = |(_, line): &(usize, &str)| {
            line.split_once(ATTRIBUTE).is_some_and(|(_, rest)| rest.contains("cleanup"))
        };
        let (at, _) = text.lines().enumerate().find(ends_scope)?;
        Some((path.to_owned(), u32::try_from(at + 1).unwrap_or(u32::MAX)))
    })
}

/// The lines that have this word in code which some builds compile and others do not.
fn in_conditions(lexed: &Lexed<'_>, word: &str) -> Vec<u32> {
    let mut conditions: Vec<Condition> = Vec::new();
    let mut lines = Vec::new();
    let guard = guard(lexed);
    for (index, token) in lexed.tokens.iter().enumerate() {
        if token.kind == Kind::Directive {
            let text = lexed.str(index);
            match directive_word(text) {
                "if" | "ifdef" | "ifndef" if Some(index) == guard => conditions.push(Condition::Always),
                "if" | "ifdef" | "ifndef" => conditions.push(Condition::of(text)),
                word @ ("elif" | "elifdef" | "elifndef" | "else") => {
                    if let Some(last) = conditions.last_mut() {
                        *last = match last.other() {
                            Condition::Always if word != "else" => Condition::Depends,
                            other => other,
                        };
                    }
                }
                "endif" => drop(conditions.pop()),
                _ => {}
            }
            continue;
        }
        let is_never = conditions.contains(&Condition::Never);
        let depends = conditions.contains(&Condition::Depends);
        if depends && !is_never && lexed.is_word(index) && lexed.str(index) == word {
            lines.push(lexed.line_at(token.start()));
        }
    }
    lines
}

/// Whether builds compile code.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Condition {
    Always,
    Never,
    Depends,
}

impl Condition {
    fn of(directive: &str) -> Condition {
        let words: Vec<&str> = directive.trim_start_matches('#').split_whitespace().collect();
        match words[..] {
            ["if", "0"] => Condition::Never,
            ["if", "1"] => Condition::Always,
            _ => Condition::Depends,
        }
    }

    /// That of the code behind `#else`.
    fn other(self) -> Condition {
        match self {
            Condition::Always => Condition::Never,
            Condition::Never => Condition::Always,
            Condition::Depends => Condition::Depends,
        }
    }
}

/// The `#ifndef` at the head of a file whose next directive defines the same word.
fn guard(lexed: &Lexed<'_>) -> Option<usize> {
    let first = (0..lexed.tokens.len()).find(|&index| !lexed.tokens[index].is_comment())?;
    let is_directive = |index: usize| lexed.tokens.get(index).is_some_and(|one| one.kind == Kind::Directive);
    let second = (first + 1..lexed.tokens.len()).find(|&index| !lexed.tokens[index].is_comment())?;
    let words = |index: usize| lexed.str(index).trim_start_matches('#').split_whitespace().take(2);
    let [mut one, mut other] = [first, second].map(words);
    let is_guard = is_directive(first)
        && is_directive(second)
        && one.next() == Some("ifndef")
        && other.next() == Some("define")
        && one.next() == other.next();
    is_guard.then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_under_conditions_that_builds_decide_are_found() {
        let lines = |text: &str| in_conditions(&Lexed::new(text), "free");
        assert_eq!(lines("#ifdef A\nfree(p);\n#endif\nfree(p);\n"), [2]);
        assert_eq!(lines("#ifdef A\n#else\nfree(p);\n#endif\n"), [3]);
        assert_eq!(lines("#if 1\nfree(p);\n#else\nfree(q);\n#endif\n"), []);
        assert_eq!(lines("#if 0\n#ifdef A\nfree(p);\n#endif\n#else\nfree(q);\n#endif\n"), []);
        assert_eq!(lines("#if 0\n#elif defined(B)\nfree(p);\n#endif\n"), [3]);
        assert_eq!(
            lines("/* x */\n#ifndef X_H\n#define X_H\nfree(p);\n#ifdef A\nfree(q);\n#endif\n#endif\n"),
            [6]
        );
        assert_eq!(lines("#ifndef X_H\nfree(p);\n#endif\n"), [2]);
        assert_eq!(lines("#ifdef A\n/* free */ x = \"free\";\n#endif\n"), []);
    }
}
