//! The types of all images, their members and the offsets in them.

pub mod catalog;
pub mod congruence;
mod embedded;
pub mod fields;
