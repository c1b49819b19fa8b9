//! Finding where a struct or class is declared.

use crate::constraints::constraint::{Binding, Constraint};
use crate::text::body_parts::directive_word;
use crate::text::language::SourceLanguage;
use crate::text::lex::{Kind, Lexed};
use crate::text::sources::Sources;
use lineup_model::types::SourceLocation;
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
    fn is_named(&self, name: &str) -> bool {
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
fn split_scopes(name: &str) -> Vec<&str> {
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

/// A declaration and the file it is in.
#[derive(Clone, Debug)]
pub(crate) struct LocatedDeclaration<'a> {
    pub(crate) path: String,
    pub(crate) language: SourceLanguage,
    pub(crate) lexed: Lexed<'a>,
    pub(crate) declaration: Declaration,
}

impl LocatedDeclaration<'_> {
    pub(crate) fn line(&self) -> u32 {
        self.lexed.line_at(self.lexed.tokens[self.declaration.keyword].start())
    }
}

/// Finds the declaration of `name`. Debug info's own idea of the place decides between several.
pub(crate) fn find<'a>(
    sources: &'a Sources,
    name: &str,
    declared_at: Option<&SourceLocation>,
) -> Result<LocatedDeclaration<'a>, Binding> {
    let declared_at = declared_at.filter(|_| !sources.are_written_out());
    let path = match declared_at {
        Some(at) => Some(sources.matching_path(&at.file).ok_or_else(|| {
            Binding::new(Constraint::OutsideSource).because(format!("{}:{}", at.file, at.line))
        })?),
        None => None,
    };
    let last = split_scopes(name).pop().unwrap_or(name);
    let last = last.split('<').next().unwrap_or(last);
    let mut found: Vec<LocatedDeclaration<'a>> = Vec::new();
    for (file, _) in sources.iter().filter(|(file, _)| path.is_none_or(|path| path == *file)) {
        if sources.language(file) == SourceLanguage::Assembly {
            continue;
        }
        let Some(parsed) = sources.parsed(file).filter(|parsed| parsed.may_declare(last)) else { continue };
        let lexed = parsed.lexed();
        for declaration in declarations(&lexed).into_iter().filter(|declaration| declaration.is_named(name)) {
            let (path, language) = (file.to_string(), sources.language(file));
            found.push(LocatedDeclaration { path, language, lexed: lexed.clone(), declaration });
        }
    }
    if let (Some(at), true) = (declared_at, found.len() > 1) {
        found.retain(|found| {
            let end = found.lexed.line_at(found.lexed.tokens[found.declaration.open].start());
            (found.line()..=end).contains(&at.line)
        });
    }
    let places: Vec<String> = found.iter().map(|found| format!("{}:{}", found.path, found.line())).collect();
    match (found.pop(), found.is_empty()) {
        (Some(only), true) => Ok(only),
        (None, _) => {
            Err(Binding::new(Constraint::OutsideSource).because(format!("no declaration of {name} found")))
        }
        _ => Err(Binding::new(Constraint::UnclearSource)
            .because(format!("{name} is declared at {}", places.join(" and ")))),
    }
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
            "final" | "alignas" | "__attribute__" => {}
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
            "__attribute__" | "alignas" => {}
            word if lexed.tokens[index].kind == Kind::Word => names.push(word.to_string()),
            _ => {}
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, name: &str) -> Result<(u32, Option<String>), String> {
        let sources = Sources::new([("a.cc".to_string(), text.to_string())]);
        find(&sources, name, None)
            .map(|found| (found.line(), found.declaration.tag.clone()))
            .map_err(|binding| binding.to_string())
    }

    #[test]
    fn tags_typedef_names_and_namespaces_lead_to_the_declaration() {
        let text = "struct a; struct a *f(struct a *x) { return x; }\n\
                    struct __attribute__((aligned(8))) a { int x; } ____cacheline_aligned;\n\
                    typedef struct { int y; } b_t;\n\
                    namespace n { class EXPORT c final : public std::vector<a> { struct in { int z; }; }; }\n";
        assert_eq!(found(text, "a"), Ok((2, Some("a".into()))));
        assert_eq!(found(text, "b_t"), Ok((3, None)));
        assert_eq!(found(text, "n::c"), Ok((4, Some("c".into()))));
        assert_eq!(found(text, "n::c::in"), Ok((4, Some("in".into()))));
        assert!(found(text, "c").is_err());
    }

    #[test]
    fn namespaces_for_cpp_alone_are_no_scopes_of_a_type_of_c() {
        let text = "#ifdef __cplusplus\nextern \"C\" {\nnamespace lib { namespace api {\n#endif\n\
                    struct t { int x; long y; };\n\
                    #if defined(__cplusplus)\nstruct only { int x; long y; };\n} } }\n#endif\n\
                    namespace n { struct u { int x; long y; }; }\n\
                    #ifndef __cplusplus\nnamespace m {\n#endif\nstruct v { int x; long y; };\n}\n";
        assert_eq!(found(text, "t"), Ok((5, Some("t".into()))));
        assert_eq!(found(text, "lib::api::t"), Ok((5, Some("t".into()))));
        assert_eq!(found(text, "lib::api::only"), Ok((7, Some("only".into()))));
        for name in ["lib::t", "api::t", "only", "u", "v"] {
            assert!(found(text, name).is_err(), "{name}");
        }
    }

    #[test]
    fn two_declarations_are_told_apart_by_the_line_in_debug_info_or_refused() {
        let text = "#if A\nstruct s { int x; };\n#else\nstruct s { long x; };\n#endif\n";
        let refusal = found(text, "s").expect_err("ambiguous");
        assert!(refusal.contains("a.cc:2 and a.cc:4"), "{refusal}");
        let sources = Sources::new([("a.c".to_string(), text.to_string())]);
        let at = SourceLocation { file: "/src/a.c".into(), line: 4 };
        assert_eq!(find(&sources, "s", Some(&at)).expect("one").line(), 4);
    }

    #[test]
    fn a_declaration_outside_the_folder_is_refused_with_its_place() {
        let sources = Sources::new([("a.c".to_string(), String::new())]);
        let at = SourceLocation { file: "/usr/include/zlib.h".into(), line: 86 };
        let refusal = find(&sources, "z_stream", Some(&at)).expect_err("outside");
        assert_eq!(refusal.constraint, Constraint::OutsideSource);
        assert!(refusal.to_string().contains("/usr/include/zlib.h:86"));
    }
}
