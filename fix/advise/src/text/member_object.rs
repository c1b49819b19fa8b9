//! The text of an expression for an object whose member is named: `a[i]` of `a[i].m`, `p` of `p->m`.

use crate::text::lex::Lexed;
use std::ops::Range;

/// Words before a bracket that call nothing.
const KEYWORDS: [&str; 19] = [
    "return",
    "sizeof",
    "if",
    "while",
    "for",
    "switch",
    "case",
    "else",
    "do",
    "goto",
    "typeof",
    "__typeof__",
    "_Alignof",
    "alignof",
    "__alignof__",
    "_Generic",
    "defined",
    "__extension__",
    "typeof_unqual",
];

/// An expression and the operator behind it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct MemberObject {
    /// Its first token.
    pub(crate) first: usize,
    /// Its bytes.
    pub(crate) bytes: Range<usize>,
    /// The bytes up to the member's name: `.` or `->`, with the spaces before it.
    pub(crate) operator: Range<usize>,
    /// The operator is `->`.
    pub(crate) is_arrow: bool,
    /// Brackets are around the whole expression.
    pub(crate) is_in_brackets: bool,
}

impl MemberObject {
    /// The expression before the member whose name is this token; `None` where the text does not show it for certain.
    pub(crate) fn read(lexed: &Lexed<'_>, member: usize) -> Option<MemberObject> {
        let operator = operator_before(lexed, member)?;
        let last = lexed.previous_code(operator.first)?;
        let first = first_of_postfix(lexed, last)?;
        let end = lexed.tokens[last].end();
        let operator_end = lexed.tokens[member].start();
        let between = &lexed.text[end..operator_end];
        if between.contains(['/', '\n', '#']) {
            return None;
        }
        let is_in_brackets =
            lexed.str(first) == "(" && lexed.closing(first, lexed.tokens.len()) == Some(last);
        Some(MemberObject {
            first,
            bytes: lexed.tokens[first].start()..end,
            operator: end..operator_end,
            is_arrow: operator.is_arrow,
            is_in_brackets,
        })
    }
}

struct Operator {
    first: usize,
    is_arrow: bool,
}

/// `.` or `->` before a token.
fn operator_before(lexed: &Lexed<'_>, token: usize) -> Option<Operator> {
    let before = lexed.previous_code(token)?;
    match lexed.str(before) {
        "." => Some(Operator { first: before, is_arrow: false }),
        ">" => {
            let first = lexed.previous_code(before)?;
            (lexed.str(first) == "-" && first + 1 == before).then_some(Operator { first, is_arrow: true })
        }
        _ => None,
    }
}

/// The first token of the expression that ends in this one.
fn first_of_postfix(lexed: &Lexed<'_>, mut last: usize) -> Option<usize> {
    loop {
        match lexed.str(last) {
            "]" => last = lexed.previous_code(opening(lexed, last)?)?,
            ")" => {
                let open = opening(lexed, last)?;
                let before = lexed.previous_code(open);
                match before {
                    Some(name) if is_name(lexed, name) => last = name,
                    Some(bracket) if matches!(lexed.str(bracket), ")" | "]") => return None,
                    _ => return Some(open),
                }
            }
            _ if is_name(lexed, last) => match operator_before(lexed, last) {
                Some(operator) => last = lexed.previous_code(operator.first)?,
                None => return Some(last),
            },
            _ => return None,
        }
    }
}

fn is_name(lexed: &Lexed<'_>, token: usize) -> bool {
    lexed.is_word(token) && !KEYWORDS.contains(&lexed.str(token))
}

/// The token that opens the bracket which this one closes.
fn opening(lexed: &Lexed<'_>, close: usize) -> Option<usize> {
    let mut depth = 0_u32;
    for index in (0..=close).rev() {
        match lexed.punctuation(index) {
            Some(b')' | b']' | b'}') => depth += 1,
            Some(b'(' | b'[' | b'{') => {
                depth -= 1;
                if depth == 0 {
                    return (lexed.closing(index, close + 1) == Some(close)).then_some(index);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expression before `.m` or `->m`.
    fn object(text: &str) -> Option<&str> {
        let lexed = Lexed::new(text);
        let member = (0..lexed.tokens.len()).find(|&at| lexed.str(at) == "m")?;
        MemberObject::read(&lexed, member).map(|object| &text[object.bytes])
    }

    #[test]
    fn the_whole_expression_belongs_to_the_member() {
        for (text, expected) in [
            ("x = a[i].m;", "a[i]"),
            ("x = -p->m;", "p"),
            ("x = *p -> m;", "p"),
            ("return (*p).m;", "(*p)"),
            ("x = a[b[i + 1].k].next->m + 1;", "a[b[i + 1].k].next"),
            ("x = f(p, q)->next[2]->m;", "f(p, q)->next[2]"),
            ("x = (T *)p->m;", "p"),
            ("x = sizeof (p)->m;", "(p)"),
            ("x = (c ? p : q)->m;", "(c ? p : q)"),
            ("g(p->m, p->n);", "p"),
            ("x = y ? p->m : 0;", "p"),
        ] {
            assert_eq!(object(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn texts_that_may_mean_something_else_are_not_read() {
        for text in
            ["if (x) (*p).m = 1;", "x = (T)(p)->m;", "x = p++->m;", "x = p /* */ ->m;", "G(a, m)", "{.m = 1}"]
        {
            assert_eq!(object(text), None, "{text}");
        }
    }
}
