//! The project's own macros for hints: `likely`, `unlikely`, `__cold`.

use crate::text::sources::Sources;
use crate::text::word_set::has_word;
use std::collections::BTreeMap;

/// Macros by their names.
#[derive(Default, Debug)]
pub(super) struct Macros {
    /// The expected value of a condition, by macro.
    expecting: BTreeMap<String, bool>,
    cold: Vec<String>,
}

/// Macros that lead to macros are followed so far.
const MOST_STEPS: usize = 4;

impl Macros {
    pub(super) fn of(sources: &Sources) -> Macros {
        let mut macros = Macros::default();
        let mut leads: BTreeMap<String, String> = BTreeMap::new();
        for (_, text) in sources.iter().filter(|(_, text)| {
            text.contains("__builtin_expect") || text.contains("likely") || text.contains("cold")
        }) {
            for (name, parameter, body) in defined(text) {
                match parameter {
                    Some(parameter) => match expected(body) {
                        Some(value) => drop(macros.expecting.insert(name.to_owned(), value)),
                        None => {
                            let called = body.strip_suffix(&format!("({parameter})"));
                            leads.extend(called.map(|called| (name.to_owned(), called.trim().to_owned())));
                        }
                    },
                    None if is_cold(body) => macros.cold.push(name.to_owned()),
                    None => {}
                }
            }
        }
        for _ in 0..MOST_STEPS {
            let known = |(name, to): (&String, &String)| Some((name.clone(), *macros.expecting.get(to)?));
            let more: Vec<(String, bool)> = leads.iter().filter_map(known).collect();
            macros.expecting.extend(more);
        }
        macros
    }

    /// The macro that this text uses for such a condition.
    pub(super) fn expecting(&self, text: &str, value: bool) -> Option<&str> {
        let names =
            self.expecting.iter().filter(|(_, expected)| **expected == value).map(|(name, _)| name.as_str());
        let uses = |name: &&str| {
            let found = text.match_indices(*name).filter(|(at, _)| {
                let after = &text[at + name.len()..];
                let line = text[..*at].rsplit('\n').next().unwrap_or_default();
                let begins = !line.ends_with(|c: char| c.is_alphanumeric() || c == '_');
                begins && after.starts_with('(') && !line.trim_start().starts_with('#')
            });
            found.count()
        };
        names.map(|name| (uses(&name), name)).filter(|(count, _)| *count > 0).max().map(|(_, name)| name)
    }

    /// The macro that this text uses for cold functions.
    pub(super) fn cold(&self, text: &str) -> Option<&str> {
        self.cold.iter().map(String::as_str).find(|name| has_word(text, name))
    }
}

/// Macros of none or one parameter, with their bodies.
fn defined(text: &str) -> impl Iterator<Item = (&str, Option<&str>, &str)> {
    text.lines().filter_map(|line| {
        let rest = line.trim_start().strip_prefix('#')?.trim_start().strip_prefix("define")?;
        let rest = rest.strip_prefix([' ', '\t'])?.trim_start();
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let (name, rest) = rest.split_at(end);
        match rest.strip_prefix('(') {
            Some(rest) => {
                let (parameter, body) = rest.split_once(')')?;
                let parameter = parameter.trim();
                let is_one = !parameter.is_empty() && !parameter.contains(',');
                is_one.then_some((name, Some(parameter), body.trim()))
            }
            None => Some((name, None, rest.trim())),
        }
    })
}

/// The value that a body expects by `__builtin_expect(…, VALUE)`.
fn expected(body: &str) -> Option<bool> {
    let (_, arguments) = body.split_once("__builtin_expect")?;
    let value = arguments.trim_end_matches([')', ' ']).rsplit(',').next()?.trim();
    match value {
        "1" | "true" => Some(true),
        "0" | "false" => Some(false),
        _ => None,
    }
}

fn is_cold(body: &str) -> bool {
    let plain: String = body.chars().filter(|c| !c.is_whitespace()).collect();
    matches!(plain.as_str(), "__attribute__((cold))" | "__attribute__((__cold__))")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(texts: &[(&str, &str)]) -> Sources {
        Sources::new(texts.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())))
    }

    #[test]
    fn macros_are_followed_to_what_they_expect_and_taken_where_a_text_uses_them() {
        let limits = "#define luai_likely(x)\t(__builtin_expect(((x) != 0), 1))\n\
                      #  define luai_unlikely(x) (__builtin_expect(((x) != 0), 0))\n#define l_unlikely(x)\tluai_unlikely(x)\n\
                      #define never(X) (X)\n#define rare __attribute__((cold))\n";
        let user = "int f(int x) { if (l_unlikely(x)) return 1; return never(x); }\nrare int g(void);\n";
        let macros = Macros::of(&sources(&[("limits.h", limits), ("user.c", user)]));
        assert_eq!(macros.expecting(user, false), Some("l_unlikely"));
        assert_eq!(macros.expecting(user, true), None, "nothing is used");
        assert_eq!(macros.expecting("if (xl_unlikely(x)) never(x);", false), None);
        assert_eq!((macros.cold(user), macros.cold("int g;")), (Some("rare"), None));
    }
}
