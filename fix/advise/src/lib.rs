//! Derives a source patch from a program's use of its data, so that the program needs fewer cache lines, and the guard
//! that keeps it so.
//!
//! Design constraints:
//!
//! * Text and values in, text and values out: no file is read, nothing is spawned, nothing is printed.
//!   The caller compiles candidates through [`judge::Judge`].
//! * *The compiler judges.* Layouts are predicted to search quickly; a proposal whose offsets the
//!   compiler does not confirm is discarded.
//! * *A refusal is an answer.* A [`constraint::Constraint`] that forbids an edit has a name, the members it holds and
//!   the place it comes from. Text that is not understood is never edited.
//! * An edit is minimal: members that keep their relative order stay untouched, comments and attributes move with their
//!   member, and every other byte of a file is unchanged.
//! * Deterministic: equal inputs give equal advice, to the byte.
//! * Two data models at once: the recorded one decides, the other one must not get worse, and it breaks ties.
//!
//! [`advise()`] does all; [`rewrite`], [`guard`] and [`patch`] are its parts that are useful alone.

pub mod asserted;
pub mod assertions;
pub mod constraint;
pub mod data_model;
pub mod error;
pub mod guard;
pub mod held_file;
pub mod hints;
pub mod judge;
pub mod kind;
pub mod meaning;
pub mod options;
pub mod order_file;
pub mod outline;
pub mod patch;
pub mod prefetch;
pub mod proposal;
pub mod randomisation;
pub mod rewrite;
pub mod shuffle;
pub mod sources;
pub mod usage;

mod advise;
mod alignment;
mod array_part_text;
mod asked_alignment;
mod background_lines;
mod body;
mod body_parts;
mod built;
mod c_part_text;
mod cold_part;
mod cold_part_text;
mod comments_below;
mod constructor_list;
mod constructors;
mod contracts;
mod copies;
mod current_demand;
mod declaration;
mod declarator;
mod defines;
mod definitions;
mod doc_comment;
mod exchange;
mod figures;
mod fixing;
mod from_explain;
mod further;
mod gather;
mod gather_figures;
mod gather_text;
mod groundwork;
mod group_text;
mod guarding;
mod headings;
mod heap_calls;
mod heap_part_text;
mod holders;
mod immediate;
mod initialisers;
mod language;
mod lex;
mod member_object;
mod member_order;
mod members;
mod neighbour;
mod occurrences;
mod one_declaration;
mod opposites;
mod orders;
mod own_lines;
mod parsed;
mod parting;
mod parting_choice;
mod parting_layout;
mod parting_text;
mod placement;
mod plan_orders;
mod problem;
mod reasons;
mod review;
mod rust_parting;
mod rust_text;
mod score;
mod search;
mod shape_rules;
mod sketch;
mod small;
mod source_scan;
mod spelling;
mod split;
mod syntax;
mod thread_groups;
mod together;
mod user_orders;
mod value_lines;
mod variables_apart;
mod variables_text;
mod verify;
mod words;
mod worth;

pub use advise::{advise, advise_with, kinds};
pub use current_demand::current_lines;
pub use user_orders::type_named;
