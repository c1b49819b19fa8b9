//! Moving values from a constructor's list into its body, for members that are reached through another one.

use crate::text::lex::{Kind, Lexed};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// One member in a constructor's list.
struct Listed {
    /// The first token of its name.
    name: usize,
    /// The brackets around its value.
    brackets: [usize; 2],
}

/// The edits that give the members named by these tokens their values in the bodies, through the member `through`.
/// `None` when the text of a list is not understood.
pub(crate) fn moved(
    lexed: &Lexed<'_>,
    names: &[usize],
    through: &str,
) -> Option<Vec<(Range<usize>, String)>> {
    let mut lists: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for &name in names {
        lists.entry(colon_before(lexed, name)?).or_default().insert(name);
    }
    let edits: Option<Vec<_>> =
        lists.iter().map(|(&colon, names)| rewritten(lexed, colon, names, through)).collect();
    Some(edits?.into_iter().flatten().collect())
}

/// The colon that begins the list in which a name stands.
fn colon_before(lexed: &Lexed<'_>, name: usize) -> Option<usize> {
    let (mut at, mut depth) = (name, 0u32);
    loop {
        at = lexed.previous_code(at)?;
        match lexed.str(at) {
            ")" | "}" | "]" => depth += 1,
            "(" | "{" | "[" => depth = depth.checked_sub(1)?,
            ":" if depth == 0 => return Some(at),
            ";" if depth == 0 => return None,
            _ => {}
        }
    }
}

/// The members of a list, and the token that opens the body.
fn read(lexed: &Lexed<'_>, colon: usize) -> Option<(Vec<Listed>, usize)> {
    let end = lexed.tokens.len();
    let (mut listed, mut at) = (Vec::new(), lexed.next_code(colon + 1, end)?);
    loop {
        let name = at;
        while !matches!(lexed.str(at), "(" | "{") {
            let is_of_name = matches!(lexed.tokens[at].kind, Kind::Word | Kind::Number)
                || matches!(lexed.str(at), "::" | "<" | ">" | ",");
            at = lexed.next_code(at + 1, end).filter(|_| is_of_name)?;
        }
        let close = lexed.closing(at, end)?;
        listed.push(Listed { name, brackets: [at, close] });
        let next = lexed.next_code(close + 1, end)?;
        match lexed.str(next) {
            "," => at = lexed.next_code(next + 1, end)?,
            "{" => {
                let has_remarks = (colon..next).any(|index| !lexed.is_code(index));
                return (!has_remarks).then_some((listed, next));
            }
            _ => return None,
        }
    }
}

fn rewritten(
    lexed: &Lexed<'_>,
    colon: usize,
    names: &BTreeSet<usize>,
    through: &str,
) -> Option<Vec<(Range<usize>, String)>> {
    let (listed, open) = read(lexed, colon)?;
    if lexed.previous_code(colon).is_some_and(|before| lexed.str(before) == "try") {
        return None;
    }
    let (text, token) = (lexed.text, |index: usize| &lexed.tokens[index]);
    let is_moved = |one: &&Listed| names.contains(&one.name);
    if listed.iter().filter(is_moved).count() != names.len() {
        return None;
    }
    let whole = |one: &Listed| &text[token(one.name).start()..token(one.brackets[1]).end()];
    let kept: Vec<&str> = listed.iter().filter(|one| !is_moved(one)).map(whole).collect();
    let last = token(listed.last()?.brackets[1]).end();
    let list = match kept.is_empty() {
        true => {
            let before = token(lexed.previous_code(colon)?).end();
            (before..last, String::new())
        }
        false => {
            let first = listed.first()?;
            let between = listed
                .get(1)
                .map_or(", ", |second| &text[token(first.brackets[1]).end()..token(second.name).start()]);
            (token(first.name).start()..last, kept.join(between))
        }
    };
    let given = |one: &Listed| {
        let [open, close] = one.brackets;
        let value = text[token(open).end()..token(close).start()].trim();
        let value = if value.is_empty() { "{}" } else { value };
        format!("{through}->{} = {value};", lexed.str(one.name))
    };
    let given: Vec<String> = listed.iter().filter(is_moved).map(given).collect();
    let close = lexed.closing(open, lexed.tokens.len())?;
    let inside = &text[token(open).end()..token(close).start()];
    let at = token(open).end();
    let body = match inside.find('\n') {
        None if inside.trim().is_empty() => (at..token(close).start(), format!(" {} ", given.join(" "))),
        None => (at..at, format!(" {}", given.join(" "))),
        Some(first) => {
            let is_remark = (open + 1..close).find(|&index| token(index).start() > at + first);
            let starts = is_remark.map(|index| token(index).start()).unwrap_or(token(close).start());
            let line = text[..starts].rfind('\n').map_or(0, |at| at + 1);
            let indent = &text[line..starts];
            if !indent.trim().is_empty() || inside[..first].trim() != "" {
                return None;
            }
            (at..at, given.iter().map(|one| format!("\n{indent}{one}")).collect())
        }
    };
    Some(vec![list, body])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edited(text: &str, members: &[&str]) -> Option<String> {
        let lexed = Lexed::new(text);
        let is_named = |index: &usize| {
            members.contains(&lexed.str(*index))
                && lexed.previous_code(*index).is_some_and(|before| matches!(lexed.str(before), ":" | ","))
                && matches!(lexed.str(index + 1), "(" | "{")
        };
        let names: Vec<usize> = (0..lexed.tokens.len()).filter(is_named).collect();
        let mut edits = moved(&lexed, &names, "cold")?;
        edits.sort_by_key(|(range, _)| range.start);
        let mut new = text.to_owned();
        for (range, by) in edits.into_iter().rev() {
            new.replace_range(range, &by);
        }
        Some(new)
    }

    #[test]
    fn values_move_into_the_body_and_the_others_stay() {
        let one_line = "T::T(int n, int m) : a(n), b{m}, c(0) {}\n";
        assert_eq!(
            edited(one_line, &["b"]).as_deref(),
            Some("T::T(int n, int m) : a(n), c(0) { cold->b = m; }\n")
        );
        assert_eq!(
            edited(one_line, &["a", "b", "c"]).as_deref(),
            Some("T::T(int n, int m) { cold->a = n; cold->b = m; cold->c = 0; }\n")
        );
        let many = "T(int n)\n    : a(n)\n    , b(n + 1)\n    , c{} {\n    start();\n}\n";
        assert_eq!(
            edited(many, &["a", "c"]).as_deref(),
            Some("T(int n)\n    : b(n + 1) {\n    cold->a = n;\n    cold->c = {};\n    start();\n}\n")
        );
        let names = "struct T { T(int n) : base<int, 3>(n), a(n) { use(a); } };";
        assert_eq!(
            edited(names, &["a"]).as_deref(),
            Some("struct T { T(int n) : base<int, 3>(n) { cold->a = n; use(a); } };")
        );
    }

    #[test]
    fn lists_with_remarks_and_other_bodies_are_not_understood() {
        assert_eq!(edited("T(int n) : a(n) /* why */, b(n) {}", &["b"]), None);
        assert_eq!(edited("T(int n) try : a(n), b(n) {} catch (...) {}", &["b"]), None);
        assert_eq!(edited("T(int n) : a(n), b(n)...", &["b"]), None);
    }
}
