//! Variables that are found by their names where the compiler's tree shows nothing: in assembly, in aliases, by
//! `dlsym`.

use crate::compiler_command::CompileCommand;
use crate::facts::{Act, Facts, PointerPlace, Value, Where};
use crate::tree::Name;
use std::collections::BTreeSet;
use std::path::Path;

/// The words before a parenthesis with texts that name variables in C sources, and the name of each construct.
const FINDERS: [(&str, &str); 8] = [
    ("asm", "assembly"),
    ("__asm", "assembly"),
    ("__asm__", "assembly"),
    ("alias", "an alias"),
    ("__alias__", "an alias"),
    ("dlsym", "dlsym()"),
    ("dlvsym", "dlvsym()"),
    ("GetProcAddress", "GetProcAddress()"),
];

/// Words that may stand between `asm` and its parenthesis.
const QUALIFIERS: [&str; 5] = ["volatile", "__volatile__", "__volatile", "goto", "inline"];

/// Adds to the facts the lookups by name in a source, a header or a file of assembly.
pub(crate) fn note(facts: &mut Facts, path: &Path) {
    let text = std::fs::read(path).unwrap_or_default();
    let text = &*String::from_utf8_lossy(&text);
    let found = match CompileCommand::is_assembly(path) {
        true => in_assembly(text),
        false => in_source(text),
    };
    let file: Name = path.to_string_lossy().as_ref().into();
    for (name, by, line) in found {
        let at = Where { file: file.clone(), line };
        if by.ends_with("()") {
            facts.looked_up.insert((name.into(), by.into(), at.clone()));
        }
        for place in [format!("c:@{name}"), format!("c:@{name} (defined)"), format!("c:@{name} (behind)")] {
            let value = Value::place(PointerPlace::Variable(place.into()));
            facts.acts.insert((value, Act::Found(by.into()), at.clone()));
        }
    }
}

/// The name, the construct that finds it, and the line.
type HiddenName<'t> = (&'t str, &'static str, u32);

fn in_assembly(text: &str) -> BTreeSet<HiddenName<'_>> {
    let lines = (1..).zip(text.lines());
    lines.flat_map(|(line, text)| words(text).map(move |(_, word)| (word, "assembly", line))).collect()
}

/// The words in the texts of every `asm(…)`, `alias(…)` and `dlsym(…)`.
fn in_source(text: &str) -> BTreeSet<HiddenName<'_>> {
    let mut found = BTreeSet::new();
    for (at, word) in words(text) {
        let Some((_, by)) = FINDERS.iter().find(|(known, _)| *known == word) else { continue };
        let Some(inside) = parenthesis(text, at + word.len()) else { continue };
        let line = text[..at].matches('\n').count() as u32 + 1;
        found.extend(literals(inside).flat_map(words).map(|(_, word)| (word, *by, line)));
    }
    found
}

/// Identifiers, with where they begin.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut rest = 0;
    std::iter::from_fn(move || {
        let start = rest + text[rest..].find(is_part)?;
        let length = text[start..].find(|c| !is_part(c)).unwrap_or(text.len() - start);
        rest = start + length;
        Some((start, &text[start..rest]))
    })
    .filter(|(_, word)| !word.starts_with(|c: char| c.is_ascii_digit()))
}

/// The contents of the parenthesis that opens behind `at`, up to its closing one.
fn parenthesis(text: &str, at: usize) -> Option<&str> {
    let mut rest = text[at..].trim_start();
    while let Some(after) = QUALIFIERS.iter().find_map(|word| rest.strip_prefix(word)) {
        rest = after.trim_start();
    }
    let inside = rest.strip_prefix('(')?;
    let (mut depth, mut in_text, mut is_escaped) = (1, false, false);
    for (at, c) in inside.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = in_text,
            '"' => in_text = !in_text,
            '(' if !in_text => depth += 1,
            ')' if !in_text => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(&inside[..at]);
        }
    }
    None
}

/// The texts between quotes.
fn literals(text: &str) -> impl Iterator<Item = &str> {
    text.split('"').skip(1).step_by(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<(&str, &str, u32)> {
        in_source(text).into_iter().collect()
    }

    #[test]
    fn assembly_aliases_and_lookups_name_variables() {
        assert_eq!(
            names("__asm__ volatile (\"movq cur+8(%rip), %0\" : : );")
                .iter()
                .filter(|f| f.0 == "cur")
                .count(),
            1
        );
        assert_eq!(
            names("int a;\nextern int v[4] __attribute__((alias(\"real\")));"),
            [("real", "an alias", 2)]
        );
        assert_eq!(names("p = dlsym(open(\"x(\"), \"cfg\");"), [("cfg", "dlsym()", 1), ("x", "dlsym()", 1)]);
    }

    #[test]
    fn other_texts_name_none() {
        assert_eq!(names("puts(\"real\"); int alias = 3; plasm(\"cur\"); f(dlsym);"), []);
        assert_eq!(names("asm(\"open"), []);
    }

    #[test]
    fn all_words_of_assembly_count() {
        let found = in_assembly("second:\n  movq cur+8(%rip), %rax\n");
        assert!(found.contains(&("cur", "assembly", 2)) && found.contains(&("second", "assembly", 1)));
    }
}
