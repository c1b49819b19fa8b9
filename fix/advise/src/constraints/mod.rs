//! The constraints on the order of members: their kinds, their sources, and the members that they hold in place.

pub mod constraint;
pub mod held_file;
pub mod meaning;
pub mod randomisation;

pub(crate) mod comment_rules;
pub(crate) mod constructors;
pub(crate) mod declared_alignment;
pub(crate) mod defines;
pub(crate) mod groundwork;
pub(crate) mod headings;
pub(crate) mod holds;
pub(crate) mod initialisers;
pub(crate) mod opposite_names;
pub(crate) mod paragraphs;
pub(crate) mod randomised_layout;
pub(crate) mod required_alignment;
pub(crate) mod review;
pub(crate) mod rust_uses;
pub(crate) mod shape_rules;
pub(crate) mod source_scan;
