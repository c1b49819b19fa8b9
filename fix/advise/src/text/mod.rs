//! Reading of C, C++ and Rust: tokens, syntax trees, declarations and the units of text that can move.

pub mod outline;
pub mod sources;

pub(crate) mod attributes;
pub(crate) mod body;
pub(crate) mod body_parts;
pub(crate) mod comment_words;
pub(crate) mod comments_below;
pub(crate) mod declaration;
pub(crate) mod declarator;
pub(crate) mod definitions;
pub(crate) mod language;
pub(crate) mod lex;
pub(crate) mod lines;
pub(crate) mod located_declaration;
pub(crate) mod marker_names;
pub(crate) mod member_object;
pub(crate) mod member_units;
pub(crate) mod occurrences;
pub(crate) mod one_declaration;
pub(crate) mod pack_pragma;
pub(crate) mod parsed_file;
pub(crate) mod rust_file;
pub(crate) mod source_place;
pub(crate) mod syntax;
pub(crate) mod word_set;
