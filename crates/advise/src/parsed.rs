//! One source file and what is worked out from its text: each once, when it is first asked for.

use crate::language::SourceLanguage;
use crate::lex::{Lexed, Token};
use crate::syntax::{self, Site};
use std::fmt;
use std::sync::{Arc, OnceLock};
use tree_sitter::Tree;

/// A text with its tokens, its syntax tree and the places where values are given in braces.
#[derive(Default)]
pub(crate) struct Parsed {
    text: String,
    tokens: OnceLock<Arc<[Token]>>,
    tree: OnceLock<Option<Tree>>,
    sites: OnceLock<Vec<Site>>,
}

impl Parsed {
    pub(crate) fn new(text: String) -> Self {
        Parsed { text, ..Parsed::default() }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn lexed(&self) -> Lexed<'_> {
        let tokens = self.tokens.get_or_init(|| Lexed::new(&self.text).tokens);
        Lexed { text: &self.text, tokens: tokens.clone() }
    }

    /// The syntax tree; `None` for assembly. A file has one language for as long as it lives.
    pub(crate) fn tree(&self, language: SourceLanguage) -> Option<&Tree> {
        self.tree.get_or_init(|| syntax::parse(&self.text, language)).as_ref()
    }

    /// Where values are given in braces, or taken apart by position. The tree that they are found in is not kept: those of
    /// a kernel's sources take a gigabyte, and few are asked for again.
    pub(crate) fn sites(&self, language: SourceLanguage) -> &[Site] {
        let find = || match self.tree.get() {
            Some(tree) => tree.as_ref().map(|tree| syntax::sites(tree, &self.text)),
            None => syntax::parse(&self.text, language).map(|tree| syntax::sites(&tree, &self.text)),
        };
        self.sites.get_or_init(|| find().unwrap_or_default())
    }
}

impl PartialEq for Parsed {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Parsed {}

impl fmt::Debug for Parsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}
