//! The objections of a reviewer to an order: rules for patches of few moves.
//!
//! A lock stays where it is, and its data near it. A pointer that every call reads first stays first. Members stay
//! under their comment. What calls only read does not come beside counts, locks and lists. No member that calls use
//! comes behind one that a configuration may leave out.

mod configuration;
mod declared_types;
mod groups;
mod locks;
mod read_apart;
mod rules;

pub(crate) use rules::Review;
