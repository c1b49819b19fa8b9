//! Files of Rust with their syntax trees.

use crate::constraints::constraint::{Binding, Constraint};
use crate::text::sources::Sources;
use crate::text::syntax::visit;
use crate::text::word_set::has_word;
use tree_sitter::{Node, Parser, Tree};

/// Macros of the standard library that evaluate what they are given, and see no layout.
pub(crate) const EVALUATING_MACROS: [&str; 13] = [
    "vec",
    "println",
    "print",
    "eprintln",
    "eprint",
    "format",
    "write",
    "writeln",
    "panic",
    "assert",
    "assert_eq",
    "assert_ne",
    "matches",
];

/// A file of Rust with its tree.
pub(crate) struct RustFile<'s> {
    pub(crate) path: &'s str,
    pub(crate) text: &'s str,
    pub(crate) tree: Tree,
}

impl<'s> RustFile<'s> {
    pub(crate) fn parse(path: &'s str, text: &'s str) -> Option<Self> {
        let mut parser = Parser::new();
        parser.set_language(&tree_sitter_rust::LANGUAGE.into()).ok()?;
        let tree = parser.parse(text, None)?;
        Some(RustFile { path, text, tree })
    }

    /// The file, or the reason why nothing is known of it.
    pub(crate) fn read(path: &'s str, text: &'s str) -> Result<Self, Binding> {
        let refused = || Binding::new(Constraint::UnclearSource).because("a file of Rust cannot be parsed");
        Self::parse(path, text).ok_or_else(refused)
    }

    /// The files that name a type. C must not name it.
    pub(crate) fn all_that_name(sources: &'s Sources, name: &'s str) -> Result<Vec<Self>, Binding> {
        if sources.that_may_name(name).any(|(_, text)| has_word(text, name)) {
            return Err(Binding::new(Constraint::CrossesAbi).because("sources in C name it"));
        }
        sources.rust_that_names(name).map(|(path, text)| Self::read(path, text)).collect()
    }

    /// The text of a node.
    pub(crate) fn str(&self, node: Node<'_>) -> &'s str {
        self.text.get(node.byte_range()).unwrap_or_default()
    }

    /// A reason at a node.
    pub(crate) fn at(&self, node: Node<'_>, why: &str) -> Binding {
        let line = node.start_position().row as u32 + 1;
        Binding::new(Constraint::UnclearSource).at(self.path, line).because(why.to_owned())
    }
}

/// The one declaration of a type, with the place of its file.
pub(crate) fn declaration<'f>(files: &'f [RustFile<'_>], name: &str) -> Result<(usize, Node<'f>), Binding> {
    let mut found: Vec<(usize, Node<'_>)> = Vec::new();
    for (number, file) in files.iter().enumerate() {
        visit(file.tree.root_node(), |node| {
            let declares = matches!(node.kind(), "struct_item" | "enum_item" | "union_item" | "type_item");
            let own = node.child_by_field_name("name").is_some_and(|own| file.str(own) == name);
            if declares && own {
                found.push((number, node));
            }
        });
    }
    match found.as_slice() {
        [one] => Ok(*one),
        _ => Err(Binding::new(Constraint::UnclearSource)
            .because("not one declaration in the source folder has its name")),
    }
}

/// The attributes before an item, the last one first.
pub(crate) fn attributes<'t>(item: Node<'t>) -> Vec<Node<'t>> {
    let mut all = Vec::new();
    let mut before = item.prev_named_sibling();
    while let Some(node) = before {
        match node.kind() {
            "attribute_item" => all.push(node),
            "line_comment" | "block_comment" => {}
            _ => break,
        }
        before = node.prev_named_sibling();
    }
    all
}

/// The words of an attribute: its own, then those in its parentheses.
pub(crate) fn words(attribute: &str) -> Vec<&str> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    attribute.split(|c| !is_word(c)).filter(|word| !word.is_empty()).collect()
}
