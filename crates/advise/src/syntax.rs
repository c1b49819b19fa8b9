//! Syntax trees of the sources, for questions of scope and structure.

use crate::sources::{SourceLanguage, Sources};
use std::collections::BTreeMap;
use tree_sitter::{Node, Parser, Tree};

/// The trees of all C and C++ files that were asked for.
pub(crate) struct Syntax<'a> {
    sources: &'a Sources,
    trees: BTreeMap<String, Option<Tree>>,
}

impl<'a> Syntax<'a> {
    pub(crate) fn new(sources: &'a Sources) -> Self {
        Syntax { sources, trees: BTreeMap::new() }
    }

    /// The text and tree of a file; parsed once. `None` for assembly and unknown paths.
    pub(crate) fn tree(&mut self, path: &str) -> Option<(&'a str, &Tree)> {
        let text = self.sources.get(path)?;
        let language = self.sources.language(path);
        let tree = self.trees.entry(path.to_string()).or_insert_with(|| parse(text, language));
        tree.as_ref().map(|tree| (text, tree))
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
