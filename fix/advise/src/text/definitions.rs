//! File-scope definitions of variables: the parts that become a member and its initialiser.

use crate::constraints::constraint::{Binding, Constraint};
use crate::text::attributes::{self, Meaning};
use crate::text::lex::{Kind, Lexed, directive_word};
use std::ops::Range;

/// A statement at file scope.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Statement {
    /// Its tokens, `;` or `}` included.
    pub(crate) tokens: Range<usize>,
    /// The number of `#if` blocks it is inside.
    pub(crate) conditionals: usize,
    /// True for function definitions.
    pub(crate) is_function: bool,
}

/// A variable's definition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Definition {
    pub(crate) statement: Statement,
    /// The declaration as a struct member would be, without `;`.
    pub(crate) member: String,
    /// Bytes of the initialiser, without `=`.
    pub(crate) initialiser: Option<Range<usize>>,
    pub(crate) is_static: bool,
    /// Attributes that do not carry over.
    pub(crate) dropped: Vec<String>,
}

/// The statements at file scope, those inside `extern "C"` and namespaces included.
pub(crate) fn statements(lexed: &Lexed<'_>) -> Vec<Statement> {
    let mut all = Vec::new();
    let (mut at, mut conditionals) = (0, 0usize);
    while at < lexed.tokens.len() {
        match lexed.tokens[at].kind {
            Kind::Directive => {
                match directive_word(lexed.str(at)) {
                    word if word.starts_with("if") => conditionals += 1,
                    "endif" => conditionals = conditionals.saturating_sub(1),
                    _ => {}
                }
                at += 1;
            }
            Kind::BlockComment | Kind::LineComment => at += 1,
            _ => match statement(lexed, at) {
                Some((end, is_function)) => {
                    all.push(Statement { tokens: at..end, conditionals, is_function });
                    at = end;
                }
                None => at += 1,
            },
        }
    }
    all
}

/// The token after the statement that starts at `start`, and whether it defines a function. `None` for
/// braces that open or close a namespace or `extern "C"`.
fn statement(lexed: &Lexed<'_>, start: usize) -> Option<(usize, bool)> {
    if opens_scope(lexed, start) || lexed.str(start) == "}" {
        return None;
    }
    let (mut at, mut is_type_body, mut seen_parameters) = (start, false, false);
    while let Some(index) = lexed.next_code(at, lexed.tokens.len()) {
        at = index + 1;
        match lexed.str(index) {
            ";" => return Some((at, false)),
            "struct" | "union" | "enum" | "class" => is_type_body = true,
            "=" | "*" => is_type_body = false,
            "(" => {
                let before = lexed.previous_code(index).map_or("", |before| lexed.str(before));
                if !attributes::is(before, Meaning::Arguments) {
                    seen_parameters = true;
                    is_type_body = false;
                }
                at = lexed.closing(index, lexed.tokens.len())? + 1;
            }
            "[" => at = lexed.closing(index, lexed.tokens.len())? + 1,
            "{" => {
                let is_value = lexed.previous_code(index).is_some_and(|before| lexed.str(before) == "=");
                at = lexed.closing(index, lexed.tokens.len())? + 1;
                if seen_parameters && !is_type_body && !is_value {
                    return Some((at, true));
                }
            }
            "}" => return None,
            _ => {}
        }
    }
    None
}

/// `extern "C" {` or `namespace … {` starts at or around token `start`.
fn opens_scope(lexed: &Lexed<'_>, start: usize) -> bool {
    match lexed.str(start) {
        "{" => true,
        "namespace" => true,
        "extern" => {
            let next = lexed.next_code(start + 1, lexed.tokens.len());
            next.is_some_and(|next| {
                lexed.tokens[next].kind == Kind::Text
                    && lexed
                        .next_code(next + 1, lexed.tokens.len())
                        .is_some_and(|open| lexed.str(open) == "{")
            })
        }
        _ => {
            let before = lexed.previous_code(start).map(|before| lexed.str(before));
            before == Some("namespace")
                || (before == Some("extern") && lexed.tokens[start].kind == Kind::Text)
        }
    }
}

/// True when the statement declares `name` (and is no function).
pub(crate) fn declares(lexed: &Lexed<'_>, statement: &Statement, name: &str) -> bool {
    !statement.is_function && name_token(lexed, statement, name).is_some()
}

/// The token of `name` as a declarator: outside braces, before `=`, and before a token that may follow a declarator.
pub(crate) fn name_token(lexed: &Lexed<'_>, statement: &Statement, name: &str) -> Option<usize> {
    let mut at = statement.tokens.start;
    while let Some(index) = lexed.next_code(at, statement.tokens.end) {
        at = index + 1;
        match lexed.str(index) {
            "{" => at = lexed.closing(index, statement.tokens.end)? + 1,
            "=" => {
                let mut next = index + 1;
                while let Some(other) = lexed.next_code(next, statement.tokens.end) {
                    match lexed.str(other) {
                        "(" | "[" | "{" => next = lexed.closing(other, statement.tokens.end)? + 1,
                        "," => break,
                        _ => next = other + 1,
                    }
                }
                at = next;
            }
            word if word == name && index > statement.tokens.start => {
                let before = lexed.previous_code(index).map_or("", |before| lexed.str(before));
                let after =
                    lexed.next_code(index + 1, statement.tokens.end).map_or("", |next| lexed.str(next));
                let is_declarator = matches!(after, ";" | "=" | "[" | ")" | "," | "{")
                    || attributes::places(after)
                    || after == "__attribute__";
                let has_type = lexed.is_word(index.saturating_sub(1))
                    || matches!(before, "*" | "&" | ">" | "," | ")" | "}");
                if is_declarator && (has_type || lexed.is_word(index.saturating_sub(1))) && before != "(" {
                    return Some(index);
                }
            }
            _ => {}
        }
    }
    None
}

/// Reads the definition of `name`.
///
/// # Errors
/// The constraint that keeps it from becoming a member.
pub(crate) fn read(
    lexed: &Lexed<'_>,
    statement: &Statement,
    name: &str,
    path: &str,
) -> Result<Definition, Binding> {
    let line = lexed.line_at(lexed.tokens[statement.tokens.start].start());
    let refuse =
        |constraint: Constraint, why: &str| Binding::new(constraint).on([name]).at(path, line).because(why);
    let unfit = |why: &str| refuse(Constraint::VariableDeclaration, why);
    if statement.conditionals > 0 && path.ends_with(".c") {
        return Err(unfit("inside #if"));
    }
    let parts = Parts::read(lexed, statement).ok_or_else(|| unfit("brackets do not match"))?;
    if let Some(word) = parts.words.iter().find(|word| attributes::is(word, Meaning::NoObject)) {
        return Err(unfit(word));
    }
    if parts.has_body {
        return Err(unfit("it declares its type as well"));
    }
    if parts.has_comma {
        return Err(unfit("several variables in one declaration"));
    }
    if parts.has_open_array {
        return Err(unfit("an array without a length"));
    }
    if parts.is_constant() {
        return Err(refuse(Constraint::ConstantData, "const"));
    }
    Ok(Definition {
        statement: statement.clone(),
        member: parts.member,
        initialiser: parts.initialiser,
        is_static: parts.words.iter().any(|word| word == "static"),
        dropped: parts.dropped,
    })
}

/// The parts of a definition.
#[derive(Default)]
struct Parts {
    /// Words and `*` outside brackets, before `=`.
    words: Vec<String>,
    member: String,
    initialiser: Option<Range<usize>>,
    dropped: Vec<String>,
    has_body: bool,
    has_comma: bool,
    has_open_array: bool,
}

impl Parts {
    fn read(lexed: &Lexed<'_>, statement: &Statement) -> Option<Parts> {
        let mut parts = Parts::default();
        let end = statement.tokens.end;
        let mut kept: Vec<Range<usize>> = Vec::new();
        let mut at = statement.tokens.start;
        while let Some(index) = lexed.next_code(at, end) {
            let word = lexed.str(index);
            let next = lexed.next_code(index + 1, end);
            at = index + 1;
            match word {
                ";" => break,
                "," => parts.has_comma = true,
                "=" => {
                    let last = end - 1;
                    let from = lexed.tokens[next?].start();
                    parts.initialiser = Some(from..lexed.tokens[lexed.previous_code(last)?].end());
                    parts.has_comma |= comma_outside(lexed, index + 1..last);
                    break;
                }
                "static" => parts.words.push(word.to_string()),
                _ if attributes::places(word) || is_placing_attribute(lexed, index, end) => {
                    let takes_arguments = attributes::is(word, Meaning::Arguments);
                    if let Some(open) = next.filter(|&open| takes_arguments && lexed.str(open) == "(") {
                        at = lexed.closing(open, end)? + 1;
                    }
                    let text = lexed.tokens[index].start()..lexed.tokens[at - 1].end();
                    parts.dropped.push(lexed.text[text].to_string());
                }
                "(" | "[" | "{" => {
                    let close = lexed.closing(index, end)?;
                    parts.has_body |= word == "{";
                    parts.has_open_array |= word == "[" && close == index + 1;
                    kept.push(lexed.tokens[index].start()..lexed.tokens[close].end());
                    at = close + 1;
                }
                _ => {
                    parts.words.push(word.to_string());
                    kept.push(lexed.tokens[index].range());
                }
            }
        }
        parts.member = joined(lexed.text, &kept);
        Some(parts)
    }

    /// `const` that applies to the object: after the last `*`, or with no `*` at all.
    fn is_constant(&self) -> bool {
        let star = self.words.iter().rposition(|word| word == "*");
        let applies = |index: usize| star.is_none_or(|star| index > star);
        let is_pointer_declarator = self.member.contains("(*");
        self.words.iter().enumerate().any(|(index, word)| word == "const" && applies(index))
            && !is_pointer_declarator
    }
}

/// `__attribute__((section(…)))` and `__attribute__((aligned(…)))`.
fn is_placing_attribute(lexed: &Lexed<'_>, index: usize, end: usize) -> bool {
    if lexed.str(index) != "__attribute__" {
        return false;
    }
    let Some(close) = lexed.next_code(index + 1, end).and_then(|open| lexed.closing(open, end)) else {
        return false;
    };
    let places =
        |word: &str| [Meaning::Section, Meaning::Aligns].iter().any(|one| attributes::is(word, *one));
    (index..close).any(|token| places(lexed.str(token)))
}

fn comma_outside(lexed: &Lexed<'_>, tokens: Range<usize>) -> bool {
    let mut at = tokens.start;
    while let Some(index) = lexed.next_code(at, tokens.end) {
        at = match lexed.str(index) {
            "(" | "[" | "{" => match lexed.closing(index, tokens.end) {
                Some(close) => close + 1,
                None => return false,
            },
            "," => return true,
            _ => index + 1,
        };
    }
    false
}

/// Ranges of text joined as they stood: with one blank where there was space between them.
fn joined(text: &str, ranges: &[Range<usize>]) -> String {
    let mut all = String::new();
    let mut before: Option<usize> = None;
    for range in ranges {
        if before.is_some_and(|before| before < range.start) {
            all.push(' ');
        }
        all.push_str(&text[range.clone()]);
        before = Some(range.end);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(text: &str, name: &str) -> Result<Definition, String> {
        let lexed = Lexed::new(text);
        let statements = statements(&lexed);
        let statement =
            statements.iter().find(|statement| declares(&lexed, statement, name)).ok_or("none")?;
        read(&lexed, statement, name, "a.c").map_err(|binding| binding.to_string())
    }

    #[test]
    fn a_definition_becomes_a_member_and_an_initialiser() {
        let text = "static u64 __read_mostly (*read)(void) = jiffies;";
        let read = definition(text, "read").expect("reads");
        assert_eq!(read.member, "u64 (*read)(void)");
        assert_eq!(&text[read.initialiser.expect("has one")], "jiffies");
        assert_eq!(read.dropped, ["__read_mostly"]);
        assert!(read.is_static);
        let read =
            definition("int f(int x) { return x; }\nvolatile int x[3] __attribute__((aligned(64)));", "x");
        let read = read.expect("reads");
        assert_eq!((read.member.as_str(), read.is_static), ("volatile int x[3]", false));
    }

    #[test]
    fn what_cannot_become_a_member_says_why() {
        for (text, why) in [
            ("static int x, y;", "several"),
            ("static struct s { int a; } x;", "type"),
            ("static int x[] = {1};", "without a length"),
            ("static const int x = 1;", "read-only"),
            ("static __thread int x;", "__thread"),
            ("#if A\nstatic int x;\n#endif", "#if"),
        ] {
            let refusal = definition(text, "x").expect_err(text);
            assert!(refusal.contains(why), "{text}: {refusal}");
        }
        assert!(definition("static const char *x;", "x").is_ok());
    }

    #[test]
    fn functions_types_and_initialisers_are_told_from_definitions() {
        let text =
            "struct s { int x; };\nint f(int x) { int y = x; return y; }\nint z = sizeof(x);\nstatic int x;";
        let lexed = Lexed::new(text);
        let statements = statements(&lexed);
        assert_eq!(
            statements.iter().map(|statement| statement.is_function).collect::<Vec<_>>(),
            [false, true, false, false]
        );
        let declaring: Vec<bool> =
            statements.iter().map(|statement| declares(&lexed, statement, "x")).collect();
        assert_eq!(declaring, [false, false, false, true]);
    }
}
