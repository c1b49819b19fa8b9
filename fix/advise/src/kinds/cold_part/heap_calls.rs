//! The texts of calls that make objects: `(struct t *)malloc(n * sizeof(struct t))`.

use crate::text::lex::{Kind, Lexed};
use std::ops::Range;

/// A call that makes objects, in bytes of its text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct MakingCall {
    /// The call, with a cast of its result.
    pub(crate) whole: Range<usize>,
    /// The number of objects; `None` for one.
    pub(crate) count: Option<Range<usize>>,
}

impl MakingCall {
    /// The call whose function's name is this token; the function may take the number of objects and their size as two
    /// arguments. `None` when its size is not a number of objects for certain.
    pub(crate) fn read(lexed: &Lexed<'_>, name: usize, takes_count: bool) -> Option<MakingCall> {
        let open = lexed.next_code(name + 1, lexed.tokens.len())?;
        if lexed.str(open) != "(" {
            return None;
        }
        let close = lexed.closing(open, lexed.tokens.len())?;
        let tokens: Vec<usize> = (open + 1..close).filter(|&token| lexed.is_code(token)).collect();
        let count = match takes_count {
            false => of_product(lexed, &tokens)?,
            true => of_arguments(lexed, &tokens)?,
        };
        let start = cast_before(lexed, name).unwrap_or(name);
        Some(MakingCall {
            whole: lexed.tokens[start].start()..lexed.tokens[close].end(),
            count: count.filter(|count| &lexed.text[count.clone()] != "1"),
        })
    }
}

/// The open bracket of `(struct t *)` before a token.
fn cast_before(lexed: &Lexed<'_>, token: usize) -> Option<usize> {
    let close = lexed.previous_code(token).filter(|&close| lexed.str(close) == ")")?;
    let mut at = lexed.previous_code(close).filter(|&star| lexed.str(star) == "*")?;
    loop {
        at = lexed.previous_code(at)?;
        match lexed.str(at) {
            "(" => return Some(at),
            "*" => {}
            _ if lexed.is_word(at) => {}
            _ => return None,
        }
    }
}

/// `sizeof x`, `n * sizeof x`, `sizeof x * n`: the number of objects.
fn of_product(lexed: &Lexed<'_>, tokens: &[usize]) -> Option<Option<Range<usize>>> {
    if is_size(lexed, tokens) {
        return Some(None);
    }
    let stars = (0..tokens.len()).filter(|&at| lexed.str(tokens[at]) == "*");
    for star in stars {
        let (left, right) = (&tokens[..star], &tokens[star + 1..]);
        if is_size(lexed, right) && is_made_of(lexed, left, &["*", "/", "%"]) {
            return Some(Some(bytes(lexed, left)?));
        }
        if is_size(lexed, left) && is_made_of(lexed, right, &[]) {
            return Some(Some(bytes(lexed, right)?));
        }
    }
    None
}

/// `n, sizeof x`, `sizeof x, n`: the number of objects.
fn of_arguments(lexed: &Lexed<'_>, tokens: &[usize]) -> Option<Option<Range<usize>>> {
    let mut at = 0;
    while let Some(&token) = tokens.get(at) {
        match lexed.str(token) {
            "," => {
                let (one, other) = (&tokens[..at], &tokens[at + 1..]);
                let count = match (is_size(lexed, one), is_size(lexed, other)) {
                    (false, true) => one,
                    (true, false) => other,
                    _ => return None,
                };
                return bytes(lexed, count).map(Some);
            }
            "(" | "[" | "{" => at = behind(lexed, tokens, at)?,
            _ => at += 1,
        }
    }
    None
}

/// True when these tokens are `sizeof` of one thing and nothing else, with or without brackets around it.
fn is_size(lexed: &Lexed<'_>, tokens: &[usize]) -> bool {
    let Some(&first) = tokens.first() else { return false };
    match lexed.str(first) {
        "(" => {
            let is_whole = behind(lexed, tokens, 0) == Some(tokens.len());
            is_whole && is_size(lexed, &tokens[1..tokens.len() - 1])
        }
        "sizeof" => operand_end(lexed, tokens, 1) == Some(tokens.len()),
        _ => false,
    }
}

/// The end of what `sizeof` measures: `(…)`, or `*p`, `p->a[1].b`.
fn operand_end(lexed: &Lexed<'_>, tokens: &[usize], mut at: usize) -> Option<usize> {
    if lexed.str(*tokens.get(at)?) == "(" {
        return behind(lexed, tokens, at);
    }
    while lexed.str(*tokens.get(at)?) == "*" {
        at += 1;
    }
    if !lexed.is_word(tokens[at]) {
        return None;
    }
    at += 1;
    while let Some(&token) = tokens.get(at) {
        match lexed.str(token) {
            "." => at += 2,
            "-" if is_arrow(lexed, tokens, at) => at += 3,
            "[" => at = behind(lexed, tokens, at)?,
            _ => break,
        }
    }
    (at <= tokens.len()).then_some(at)
}

/// True when these tokens are names, numbers, what is in brackets, and these operators.
fn is_made_of(lexed: &Lexed<'_>, tokens: &[usize], operators: &[&str]) -> bool {
    let mut at = 0;
    while let Some(&token) = tokens.get(at) {
        match lexed.str(token) {
            "(" | "[" => match behind(lexed, tokens, at) {
                Some(next) => at = next,
                None => return false,
            },
            "." => at += 1,
            "-" if is_arrow(lexed, tokens, at) => at += 2,
            "sizeof" => return false,
            text if operators.contains(&text) => at += 1,
            _ if lexed.tokens[token].kind != Kind::Punct => at += 1,
            _ => return false,
        }
    }
    !tokens.is_empty()
}

/// `->`, which the lexer gives as two tokens.
fn is_arrow(lexed: &Lexed<'_>, tokens: &[usize], at: usize) -> bool {
    tokens.get(at + 1).is_some_and(|&next| lexed.str(next) == ">" && next == tokens[at] + 1)
}

/// The position behind the bracket that closes the one at `at`.
fn behind(lexed: &Lexed<'_>, tokens: &[usize], at: usize) -> Option<usize> {
    let close = lexed.closing(*tokens.get(at)?, lexed.tokens.len())?;
    tokens.iter().position(|&token| token == close).map(|position| position + 1)
}

fn bytes(lexed: &Lexed<'_>, tokens: &[usize]) -> Option<Range<usize>> {
    let (first, last) = (*tokens.first()?, *tokens.last()?);
    Some(lexed.tokens[first].start()..lexed.tokens[last].end())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The call and the number of objects.
    fn read(text: &str) -> Option<(&str, Option<&str>)> {
        let lexed = Lexed::new(text);
        let name = (0..lexed.tokens.len()).find(|&at| matches!(lexed.str(at), "malloc" | "calloc"))?;
        let call = MakingCall::read(&lexed, name, lexed.str(name) == "calloc")?;
        Some((&text[call.whole], call.count.map(|count| &text[count])))
    }

    #[test]
    fn the_number_of_objects_is_read_from_sizes() {
        for one in
            ["malloc(sizeof(struct t))", "malloc( sizeof *p )", "malloc((sizeof(*p)))", "malloc(sizeof p[0])"]
        {
            assert_eq!(read(&format!("p = {one};")), Some((one, None)));
        }
        assert_eq!(read("p = malloc(1 * sizeof(t));"), Some(("malloc(1 * sizeof(t))", None)));
        assert_eq!(read("p = calloc(1, sizeof(t));"), Some(("calloc(1, sizeof(t))", None)));
        for (call, count) in [
            ("malloc(n * sizeof(struct t))", "n"),
            ("malloc(sizeof *p->q * (n + 1))", "(n + 1)"),
            ("malloc(a / 2 * b * sizeof(t))", "a / 2 * b"),
            ("malloc(n*(sizeof(*p)))", "n"),
            ("calloc(f(a, b) + 1, sizeof(t))", "f(a, b) + 1"),
            ("calloc(sizeof(t), n)", "n"),
        ] {
            assert_eq!(read(&format!("p = {call};")), Some((call, Some(count))));
        }
    }

    #[test]
    fn a_cast_of_the_result_belongs_to_the_call() {
        let call = "(struct t *) malloc(sizeof(struct t))";
        assert_eq!(read(&format!("p = {call};")), Some((call, None)));
        assert_eq!(read("if (p) malloc(sizeof *p);"), Some(("malloc(sizeof *p)", None)));
    }

    #[test]
    fn other_sizes_are_not_understood() {
        for text in [
            "p = malloc(80);",
            "p = malloc(sizeof(t) + n);",
            "p = malloc(n + sizeof(t));",
            "p = malloc(a + b * sizeof(t));",
            "p = malloc(sizeof(t) * a + b);",
            "p = malloc(sizeof(t) * sizeof(u));",
            "p = malloc(sizeof(t)[2]);",
            "p = malloc(n << sizeof(t));",
            "p = calloc(n, 80);",
            "p = calloc(sizeof(t), sizeof(t));",
            "f = malloc;",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
