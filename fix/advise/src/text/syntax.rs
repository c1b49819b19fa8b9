//! Syntax trees of the sources, for questions of scope and structure.

use crate::text::language::SourceLanguage;
use crate::text::lex::{Lexed, line_at};
use crate::text::word_set::has_word;
use std::borrow::Cow;
use std::ops::Range;
use tree_sitter::{Node, Parser, Tree};

/// Something that gives or takes an aggregate's values by braces.
pub(crate) struct Site {
    pub(crate) kind: SiteKind,
    pub(crate) bytes: Range<usize>,
    pub(crate) line: u32,
}

/// The kinds of such places.
pub(crate) enum SiteKind {
    /// A declaration with initialisers, or a compound literal, of the type with one of these names: where a macro
    /// stands among the words of a declaration, any of them may be the type.
    Typed(Vec<String>),
    /// C++: values that are returned or given to a function, or that a template gives to its arguments' types; their
    /// type stands elsewhere.
    Untyped(Untyped),
    /// C++: a structured binding with this number of names.
    Binding(usize),
}

/// Values in braces without a type.
pub(crate) struct Untyped {
    /// The number of values.
    pub(crate) count: usize,
    /// They stand in a template, which a compiler reads without the types that it is made for.
    pub(crate) is_in_template: bool,
}

/// A macro whose body gives values by position.
pub(crate) struct MacroOfValues {
    pub(crate) name: String,
    /// The line of its `#define`, from 1.
    pub(crate) line: u32,
}

/// Every such place of a file, in order.
pub(crate) fn sites(tree: &Tree, text: &str) -> Vec<Site> {
    let mut all = Vec::new();
    visit(tree.root_node(), |node| {
        let kind = match node.kind() {
            "declaration" | "field_declaration" if has_initialiser(node) => named_type(node, text),
            "compound_literal_expression" => named_type(node, text),
            "initializer_list" => untyped_values(node, text).map(SiteKind::Untyped),
            "structured_binding_declarator" => Some(SiteKind::Binding(parts(node).len())),
            _ => None,
        };
        all.extend(kind.map(|kind| Site { kind, bytes: node.byte_range(), line: line_of(node) }));
    });
    all
}

/// The node that a site was made from.
pub(crate) fn node_at<'t>(tree: &'t Tree, site: &Site) -> Option<Node<'t>> {
    tree.root_node().descendant_for_byte_range(site.bytes.start, site.bytes.end)
}

fn has_initialiser(declaration: Node<'_>) -> bool {
    let mut cursor = declaration.walk();
    declaration.children_by_field_name("declarator", &mut cursor).any(|node| node.kind() == "init_declarator")
}

/// The type that a declaration or compound literal names, without namespaces.
fn named_type(node: Node<'_>, text: &str) -> Option<SiteKind> {
    let specifier = node.child_by_field_name("type")?;
    let specifier = match specifier.kind() {
        "type_descriptor" => specifier.child_by_field_name("type")?,
        _ => specifier,
    };
    let name = match specifier.kind() {
        "struct_specifier" | "class_specifier" | "union_specifier" => specifier.child_by_field_name("name"),
        _ => Some(specifier),
    };
    let bare = |name: &str| name.rsplit("::").next().unwrap_or(name).to_string();
    let mut names: Vec<String> = name.map(|name| bare(text_of(name, text))).into_iter().collect();
    if node.has_error() {
        words_before_values(node, text, &mut names);
    }
    (!names.is_empty()).then_some(SiteKind::Typed(names))
}

/// `local const config table[10] = …`, where `local` is a macro: the grammar does not know which word is the type.
fn words_before_values(node: Node<'_>, text: &str, names: &mut Vec<String>) {
    let mut cursor = node.walk();
    for child in node.children(&mut cursor) {
        match child.kind() {
            "initializer_list" => {}
            "identifier" | "type_identifier" => names.push(text_of(child, text).to_string()),
            _ => words_before_values(child, text, names),
        }
    }
}

/// The number of values in a list that is returned or given to a function, or whose type a template names by its
/// parameters. A pack of values stands for any number: it counts as two at least, which any type with an order has room
/// for.
fn untyped_values(list: Node<'_>, text: &str) -> Option<Untyped> {
    let parent = list.parent()?;
    let holder = match parent.kind() {
        "return_statement" | "argument_list" => None,
        "compound_literal_expression" | "new_expression" => Some(parent),
        "init_declarator" => Some(parent.parent()?),
        _ => return None,
    };
    if holder.is_some_and(|holder| !is_dependent(holder, text)) {
        return None;
    }
    let values = parts(list);
    let has_pack = values.iter().any(|value| value.kind() == "parameter_pack_expansion");
    let count = if has_pack { values.len().max(2) } else { values.len() };
    Some(Untyped { count, is_in_template: is_in_template(list, text) })
}

/// Whether a template, or a function or lambda that takes `auto`, is around a node.
fn is_in_template(node: Node<'_>, text: &str) -> bool {
    let mut around = node.parent();
    while let Some(node) = around {
        let takes_any = || {
            let declarator = node.child_by_field_name("declarator");
            declarator.is_some_and(|declarator| has_word(text_of(declarator, text), "auto"))
        };
        match node.kind() {
            "template_declaration" => return true,
            "function_definition" | "lambda_expression" if takes_any() => return true,
            _ => around = node.parent(),
        }
    }
    false
}

/// True when the type that a declaration or a literal names has a parameter of a template around it among its words.
fn is_dependent(holder: Node<'_>, text: &str) -> bool {
    let Some(named) = holder.child_by_field_name("type").map(|ty| text_of(ty, text)) else { return false };
    let mut around = holder.parent();
    while let Some(node) = around {
        let parameters =
            node.child_by_field_name("parameters").filter(|_| node.kind() == "template_declaration");
        if parameters.is_some_and(|parameters| declares_part_of(parameters, named, text)) {
            return true;
        }
        around = node.parent();
    }
    false
}

/// True when a type that these parameters of a template declare is a word of `named`.
fn declares_part_of(parameters: Node<'_>, named: &str, text: &str) -> bool {
    let mut found = false;
    visit_below(parameters, &mut |node| {
        found |= node.kind() == "type_identifier" && has_word(named, text_of(node, text));
    });
    found
}

fn visit_below<'t>(node: Node<'t>, each: &mut dyn FnMut(Node<'t>)) {
    each(node);
    let mut cursor = node.walk();
    let children: Vec<Node<'t>> = node.children(&mut cursor).collect();
    children.into_iter().for_each(|child| visit_below(child, each));
}

/// The macros of a text whose body gives values by position: `#define X(a) { a, 0 }`.
pub(crate) fn macros_of_values(text: &str) -> Vec<MacroOfValues> {
    let found = directives(text).filter_map(|(at, rest)| {
        let name = macro_of_values(rest)?.to_string();
        Some(MacroOfValues { name, line: line_at(text, at) })
    });
    found.collect()
}

/// The lines that begin with `#`: the place, and the text after it.
fn directives(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.match_indices('#').filter_map(|(at, _)| {
        let before = text[..at].rsplit('\n').next().unwrap_or_default();
        before.trim().is_empty().then(|| (at, &text[at + 1..]))
    })
}

/// The macro's name, when the text after `#` defines one whose body gives values by position.
fn macro_of_values(directive: &str) -> Option<&str> {
    let is_blank = |c: char| c == ' ' || c == '\t';
    let rest = directive.trim_start_matches(is_blank).strip_prefix("define")?;
    let rest = rest.strip_prefix(is_blank)?.trim_start_matches(is_blank);
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    let (name, mut body) = rest.split_at(end);
    if let Some(parameters) = body.strip_prefix('(') {
        body = &parameters[parameters.find(')')? + 1..];
    }
    let inside = after_blanks(body).strip_prefix('{')?;
    let inside = after_blanks(inside);
    let is_positional = !inside.starts_with(['.', '}']) && !inside.starts_with("0}");
    (is_positional && !name.is_empty()).then_some(name)
}

/// The text after blanks, comments and continued lines.
fn after_blanks(mut text: &str) -> &str {
    loop {
        let rest = text.trim_start_matches([' ', '\t']);
        let rest = rest.strip_prefix("\\\r\n").or_else(|| rest.strip_prefix("\\\n")).unwrap_or(rest);
        let after_comment =
            rest.strip_prefix("/*").and_then(|comment| Some(&comment[comment.find("*/")? + 2..]));
        let rest = after_comment.unwrap_or(rest);
        if rest.len() == text.len() {
            return rest;
        }
        text = rest;
    }
}

/// Parses a text. `None` for assembly.
pub(crate) fn parse(text: &str, language: SourceLanguage) -> Option<Tree> {
    let grammar: tree_sitter::Language = match language {
        SourceLanguage::C => tree_sitter_c::LANGUAGE.into(),
        SourceLanguage::Cpp => tree_sitter_cpp::LANGUAGE.into(),
        SourceLanguage::Assembly => return None,
    };
    let mut parser = Parser::new();
    parser.set_language(&grammar).ok()?;
    match language {
        SourceLanguage::Cpp => parser.parse(without_class_macros(text).as_ref(), None),
        _ => parser.parse(text, None),
    }
}

/// `class API value {`: the grammar would take the macro for the class's name, and its body for code. Blanks stand in
/// its place, so that everything else stays where it is.
fn without_class_macros(text: &str) -> Cow<'_, str> {
    let lexed = Lexed::new(text);
    let code: Vec<usize> = (0..lexed.tokens.len()).filter(|&index| lexed.is_code(index)).collect();
    let macros = code.windows(4).filter(|words| {
        matches!(lexed.str(words[0]), "class" | "struct")
            && lexed.is_word(words[1])
            && lexed.is_word(words[2])
            && lexed.str(words[2]) != "final"
            && matches!(lexed.str(words[3]), "{" | ":" | "final")
    });
    let ranges: Vec<Range<usize>> = macros.map(|words| lexed.tokens[words[1]].range()).collect();
    if ranges.is_empty() {
        return text.into();
    }
    let mut masked = text.to_string();
    for range in ranges {
        masked.replace_range(range.clone(), &" ".repeat(range.len()));
    }
    masked.into()
}

/// The node's text.
pub(crate) fn text_of<'t>(node: Node<'_>, text: &'t str) -> &'t str {
    text.get(node.byte_range()).unwrap_or("")
}

/// Line of a node's start, from 1.
pub(crate) fn line_of(node: Node<'_>) -> u32 {
    u32::try_from(node.start_position().row).unwrap_or(u32::MAX).saturating_add(1)
}

/// Visits every node, parents first.
pub(crate) fn visit<'t>(root: Node<'t>, mut each: impl FnMut(Node<'t>)) {
    let mut cursor = root.walk();
    loop {
        each(cursor.node());
        if cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return;
            }
        }
    }
}

/// The named children that are no comments.
pub(crate) fn parts(node: Node<'_>) -> Vec<Node<'_>> {
    let mut cursor = node.walk();
    node.named_children(&mut cursor).filter(|child| child.kind() != "comment").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn macros_that_give_values_by_position_are_told_from_those_that_name_them() {
        let text = "#define A { 1, 2 }\n  # define B(x, y) \\\n\t{ \\\n\tx, y }\n#define C /* all */ { a }\n\
                    #define D { .a = 1 }\n#define E {}\n#define F { 0}\n#define G(x) do { x; } while (0)\n\
                    int a = 1; # define H { 1 }\n#defined { 1 }\n#define I \n{ 1 }\n";
        let found: Vec<(String, u32)> =
            macros_of_values(text).into_iter().map(|one| (one.name, one.line)).collect();
        assert_eq!(found, [("A".into(), 1), ("B".into(), 2), ("C".into(), 5)]);
    }
}
