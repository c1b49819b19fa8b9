//! One source file and the results of parsing it: each is computed once, when it is first needed, as long as there is
//! room.

use crate::text::declaration;
use crate::text::language::SourceLanguage;
use crate::text::lex::{Lexed, Token};
use crate::text::syntax::{self, MacroOfValues};
use crate::text::word_set::{self, Words};
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use tree_sitter::Tree;

/// Tokens and trees that are kept, in bytes: for most programs all, for a kernel's sources, whose trees take a
/// gigabyte, those that are needed first. Others are made anew each time.
const MOST_KEPT_BYTES: usize = 96 << 20;

/// The approximate size of a syntax tree for each byte of its text.
const TREE_BYTES: usize = 24;

/// Room that all files of a folder share.
#[derive(Default, Debug)]
pub(crate) struct Room(AtomicUsize);

impl Room {
    /// Takes this number of bytes, if they are left.
    fn take(&self, bytes: usize) -> bool {
        let after = self.0.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if after > MOST_KEPT_BYTES {
            self.0.fetch_sub(bytes, Ordering::Relaxed);
        }
        after <= MOST_KEPT_BYTES
    }
}

/// A text with its cached results.
#[derive(Default)]
pub(crate) struct Parsed {
    text: String,
    room: Arc<Room>,
    words: OnceLock<Words>,
    tokens: OnceLock<Arc<[Token]>>,
    tree: OnceLock<Option<Tree>>,
    declared: OnceLock<Words>,
    macros: OnceLock<Vec<MacroOfValues>>,
    parts_measured: OnceLock<bool>,
}

impl Parsed {
    pub(crate) fn new(text: String, room: Arc<Room>) -> Self {
        Parsed { text, room, ..Parsed::default() }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn words(&self) -> &Words {
        self.words.get_or_init(|| Words::of(&self.text))
    }

    /// False when the text does not have this name for certain.
    pub(crate) fn may_name(&self, name: &str) -> bool {
        match word_set::is_word(name) {
            true => self.words().may_have(name),
            false => self.text.contains(name),
        }
    }

    pub(crate) fn lexed(&self) -> Lexed<'_> {
        if let Some(tokens) = self.tokens.get() {
            return Lexed { text: &self.text, tokens: tokens.clone() };
        }
        let lexed = Lexed::new(&self.text);
        if self.room.take(size_of_val(&*lexed.tokens)) {
            // Another thread may have been first: its tokens are the same.
            let _ = self.tokens.set(lexed.tokens.clone());
        }
        lexed
    }

    /// Asks the syntax tree; `None` for assembly. A file has one language for as long as it lives.
    pub(crate) fn with_tree<R>(&self, language: SourceLanguage, ask: impl FnOnce(&Tree) -> R) -> Option<R> {
        if self.tree.get().is_none() && !self.room.take(self.text.len() * TREE_BYTES) {
            return syntax::parse(&self.text, language).as_ref().map(ask);
        }
        self.tree.get_or_init(|| syntax::parse(&self.text, language)).as_ref().map(ask)
    }

    /// False when the text declares no struct, class or union of this tag or typedef name for certain.
    pub(crate) fn may_declare(&self, name: &str) -> bool {
        let declared = || {
            let lexed = match self.tokens.get() {
                Some(tokens) => Lexed { text: &self.text, tokens: tokens.clone() },
                None => Lexed::new(&self.text),
            };
            let names = declaration::declarations(&lexed).into_iter();
            let names: Vec<String> = names.flat_map(|one| one.tag.into_iter().chain(one.typedefs)).collect();
            Words::of(&names.join(" "))
        };
        match word_set::is_word(name) {
            true => self.words().may_have(name) && self.declared.get_or_init(declared).may_have(name),
            false => self.text.contains(name),
        }
    }

    /// The macros whose body gives values by position.
    pub(crate) fn macros(&self) -> &[MacroOfValues] {
        self.macros.get_or_init(|| syntax::macros_of_values(&self.text))
    }

    /// Whether the distance of members' addresses may be computed somewhere.
    pub(crate) fn may_measure_parts(&self) -> bool {
        *self.parts_measured.get_or_init(|| may_measure_parts(&self.text))
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

/// False when no address of a member is taken from another for certain: `- (char *)&x`.
fn may_measure_parts(text: &str) -> bool {
    text.match_indices('-').any(|(at, _)| {
        let mut after = text[at + 1..].bytes().skip_while(u8::is_ascii_whitespace);
        after.next() == Some(b'(')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_there_is_no_room_for_is_made_anew_and_is_the_same() {
        let room = Arc::new(Room::default());
        let [kept, other] = [0, 1].map(|_| Parsed::new("struct a { int b; };".into(), room.clone()));
        assert_eq!(kept.lexed().tokens.len(), 8);
        assert!(kept.tokens.get().is_some());
        assert!(room.take(MOST_KEPT_BYTES - 1000) && !room.take(MOST_KEPT_BYTES));
        room.take(1000 - 8 * 12);
        assert_eq!(other.lexed().tokens, kept.lexed().tokens);
        assert!(other.tokens.get().is_none() && other.tree.get().is_none());
        assert_eq!(other.with_tree(SourceLanguage::C, |tree| tree.root_node().child_count()), Some(2));
        assert!(other.may_declare("a") && !other.may_declare("b"));
    }
}
