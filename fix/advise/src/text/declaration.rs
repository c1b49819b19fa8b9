//! Declarations of structs, classes and unions in one text.

use crate::text::attributes::{self, Meaning};
use crate::text::lex::{Kind, Lexed, directive_word};
use std::ops::Range;

/// A declaration with a body, in one text. Token indices belong to the [`Lexed`] it was found in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Declaration {
    /// Token of `struct`, `class` or `union`.
    pub(crate) keyword: usize,
    /// The tag, when there is one.
    pub(crate) tag: Option<String>,
    /// Names given by a typedef around it.
    pub(crate) typedefs: Vec<String>,
    /// Token of `{`.
    pub(crate) open: usize,
    /// Token of `}`.
    pub(crate) close: usize,
    /// Tokens after `}` up to `;`: attributes, typedef names, variables.
    pub(crate) tail: Range<usize>,
    /// The classes and namespaces around it, outermost first.
    pub(crate) scope: Vec<Scope>,
}

/// A class or a namespace around a declaration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Scope {
    name: String,
    /// Inside `#ifdef __cplusplus`, which does not reach to the declaration: C has no such scope.
    is_for_cpp_alone: bool,
}

impl Declaration {
    /// True when `name` (with namespaces) names this declaration.
    pub(crate) fn is_named(&self, name: &str) -> bool {
        let mut wanted: Vec<&str> = split_scopes(name);
        let Some(last) = wanted.pop() else { return false };
        let bare = last.split('<').next().unwrap_or(last);
        let named = self.tag.as_deref() == Some(bare) || self.typedefs.iter().any(|typedef| typedef == bare);
        let wanted: Vec<&str> = wanted.into_iter().filter(|part| !part.starts_with('(')).collect();
        let is_in = |with_cpp: bool| {
            let scope = self.scope.iter().filter(|scope| with_cpp || !scope.is_for_cpp_alone);
            scope.map(|scope| scope.name.as_str()).eq(wanted.iter().copied())
        };
        named && (is_in(true) || is_in(false))
    }
}

/// Cuts `a::b<c::d>::e` at the `::` outside angle brackets.
pub(crate) fn split_scopes(name: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0usize, 0);
    let bytes = name.as_bytes();
    for (index, &byte) in bytes.iter().enumerate() {
        match byte {
            b'<' => depth += 1,
            b'>' => depth = depth.saturating_sub(1),
            b':' if depth == 0 && bytes.get(index + 1) == Some(&b':') => {
                parts.push(&name[start..index]);
                start = index + 2;
            }
            _ => {}
        }
    }
    parts.push(&name[start.min(name.len())..]);
    parts
}

/// Every struct, class and union with a body.
pub(crate) fn declarations(lexed: &Lexed<'_>) -> Vec<Declaration> {
    let mut all = Vec::new();
    let mut scopes: Vec<(usize, Option<Scope>)> = Vec::new();
    let for_cpp = for_cpp_alone(lexed);
    for index in 0..lexed.tokens.len() {
        while scopes.last().is_some_and(|(close, _)| index > *close) {
            scopes.pop();
        }
        match lexed.str(index) {
            "struct" | "class" | "union" if lexed.is_word(index) => {
                let is_inside = |range: &&Range<usize>| range.contains(&index);
                let around: Vec<&Range<usize>> = for_cpp.iter().filter(is_inside).collect();
                let scope = scopes.iter().filter_map(|(_, scope)| scope.clone());
                // All of a group of lines for C++ has its scopes.
                let scope = scope.map(|scope| Scope {
                    is_for_cpp_alone: scope.is_for_cpp_alone && around.is_empty(),
                    ..scope
                });
                if let Some(declaration) = declaration_at(lexed, index, scope.collect()) {
                    scopes.push((declaration.close, declaration.tag.clone().map(Scope::plain)));
                    all.push(declaration);
                }
            }
            "namespace" if lexed.is_word(index) => {
                let is_for_cpp_alone = for_cpp.iter().any(|range| range.contains(&index));
                let opened = namespace_at(lexed, index).into_iter();
                scopes.extend(opened.map(|(close, name)| (close, Some(Scope { name, is_for_cpp_alone }))));
            }
            _ => {}
        }
    }
    all
}

/// The tokens between `#ifdef __cplusplus` and its `#else` or `#endif`.
fn for_cpp_alone(lexed: &Lexed<'_>) -> Vec<Range<usize>> {
    let (mut open, mut found): (Vec<Option<usize>>, Vec<Range<usize>>) = (Vec::new(), Vec::new());
    for (index, token) in lexed.tokens.iter().enumerate().filter(|(_, token)| token.kind == Kind::Directive) {
        let text = &lexed.text[token.range()];
        match directive_word(text) {
            word if word.starts_with("if") => open.push(asks_for_cpp(text).then_some(index)),
            word if word.starts_with("el") => {
                let begun = open.last_mut().and_then(Option::take);
                found.extend(begun.map(|begun| begun..index));
            }
            "endif" => found.extend(open.pop().flatten().map(|begun| begun..index)),
            _ => {}
        }
    }
    found
}

/// `#ifdef __cplusplus`, `#if defined(__cplusplus)`, and with more that must hold as well.
fn asks_for_cpp(directive: &str) -> bool {
    let condition: String = directive.chars().filter(|c| !c.is_whitespace()).collect();
    condition.contains("__cplusplus") && !["!", "||", "#ifndef"].iter().any(|other| condition.contains(other))
}

impl Scope {
    fn plain(name: String) -> Scope {
        Scope { name, is_for_cpp_alone: false }
    }
}

/// The scopes that `namespace a::b {` opens.
fn namespace_at(lexed: &Lexed<'_>, keyword: usize) -> Vec<(usize, String)> {
    let mut names = Vec::new();
    let mut at = keyword + 1;
    while let Some(index) = lexed.next_code(at, lexed.tokens.len()) {
        match lexed.str(index) {
            "{" => {
                let Some(close) = lexed.closing(index, lexed.tokens.len()) else { return Vec::new() };
                return names.into_iter().map(|name| (close, name)).collect();
            }
            "::" | "inline" => {}
            word if lexed.is_word(index) => names.push(word.to_string()),
            _ => return Vec::new(),
        }
        at = index + 1;
    }
    Vec::new()
}

fn declaration_at(lexed: &Lexed<'_>, keyword: usize, mut scope: Vec<Scope>) -> Option<Declaration> {
    let end = lexed.tokens.len();
    let mut tag: Option<String> = None;
    let mut tag_is_fixed = false;
    let mut at = keyword + 1;
    let open = loop {
        let index = lexed.next_code(at, end)?;
        at = index + 1;
        match lexed.str(index) {
            "{" => break index,
            "(" | "[" => at = lexed.closing(index, end)? + 1,
            ":" | "<" => tag_is_fixed = true,
            ">" | "," | "::" | "." if tag_is_fixed => {}
            // `struct A::B {`: declared outside the class that it belongs to.
            "::" => scope.extend(tag.take().map(Scope::plain)),
            "final" => {}
            word if attributes::is(word, Meaning::Arguments) => {}
            word if lexed.is_word(index) => {
                let is_attribute_macro = tag.is_some() && word.starts_with("__");
                if !tag_is_fixed && !is_attribute_macro {
                    tag = Some(word.to_string());
                }
            }
            _ => return None,
        }
    };
    let close = lexed.closing(open, end)?;
    let semicolon = statement_end(lexed, close + 1)?;
    let tail = close + 1..semicolon;
    let typedefs = if is_typedef(lexed, keyword) { tail_names(lexed, tail.clone()) } else { Vec::new() };
    Some(Declaration { keyword, tag, typedefs, open, close, tail, scope })
}

/// The `;` that ends the statement, outside brackets.
pub(crate) fn statement_end(lexed: &Lexed<'_>, from: usize) -> Option<usize> {
    let mut at = from;
    while let Some(index) = lexed.next_code(at, lexed.tokens.len()) {
        match lexed.str(index) {
            ";" => return Some(index),
            "(" | "[" | "{" => at = lexed.closing(index, lexed.tokens.len())? + 1,
            ")" | "]" | "}" => return None,
            _ => at = index + 1,
        }
    }
    None
}

fn is_typedef(lexed: &Lexed<'_>, keyword: usize) -> bool {
    let mut at = keyword;
    while let Some(index) = lexed.previous_code(at) {
        match lexed.str(index) {
            "typedef" => return true,
            "const" | "volatile" | "static" => at = index,
            _ => return false,
        }
    }
    false
}

/// Words of a declaration's tail that are not inside parentheses: names, and attribute macros.
fn tail_names(lexed: &Lexed<'_>, tail: Range<usize>) -> Vec<String> {
    let mut names = Vec::new();
    let mut at = tail.start;
    while let Some(index) = lexed.next_code(at, tail.end) {
        at = index + 1;
        match lexed.str(index) {
            "(" | "[" => at = lexed.closing(index, tail.end).map_or(tail.end, |close| close + 1),
            word if attributes::is(word, Meaning::Arguments) => {}
            word if lexed.tokens[index].kind == Kind::Word => names.push(word.to_string()),
            _ => {}
        }
    }
    names
}
