//! Syntax trees of the sources, for questions of scope and structure.

use crate::language::SourceLanguage;
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
    /// C++: so many values that are returned or given to a function; their type stands elsewhere.
    Untyped(usize),
    /// C++: a structured binding of so many names.
    Binding(usize),
    /// A macro of this name whose body gives values by position.
    Macro(String),
}

/// Every such place of a file, in order.
pub(crate) fn sites(tree: &Tree, text: &str) -> Vec<Site> {
    let mut all = Vec::new();
    visit(tree.root_node(), |node| {
        let kind = match node.kind() {
            "declaration" | "field_declaration" if has_initialiser(node) => named_type(node, text),
            "compound_literal_expression" => named_type(node, text),
            "initializer_list" => untyped_values(node).map(SiteKind::Untyped),
            "structured_binding_declarator" => Some(SiteKind::Binding(parts(node).len())),
            "preproc_def" | "preproc_function_def" => brace_macro(node, text),
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

/// How many values a list has that is returned or given to a function.
fn untyped_values(list: Node<'_>) -> Option<usize> {
    let is_value =
        list.parent().is_some_and(|parent| matches!(parent.kind(), "return_statement" | "argument_list"));
    is_value.then(|| parts(list).len())
}

/// The macro's name, when its body gives values by position.
fn brace_macro(node: Node<'_>, text: &str) -> Option<SiteKind> {
    let (name, value) = (node.child_by_field_name("name")?, node.child_by_field_name("value")?);
    let is_blank = |c: char| c.is_whitespace() || c == '\\';
    let inside =
        text_of(value, text).trim_start_matches(is_blank).strip_prefix('{')?.trim_start_matches(is_blank);
    let is_positional = !inside.starts_with(['.', '}']) && !inside.starts_with("0}");
    is_positional.then(|| SiteKind::Macro(text_of(name, text).to_string()))
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
    parser.parse(text, None)
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
