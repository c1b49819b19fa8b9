//! A store of Parquet files with the findings of many machines, and questions about all of them.
//!
//! Design constraints:
//!
//! * The store is files that other engines read: documented [`tables`] with a version, and [`views`] as files of SQL.
//! * Adding is safe against crashes and against others who add ([`store`]). A file counts once, by its content.
//! * An unobserved value is empty, never 0.
//! * `lineup` assigns accesses to types and members. This crate takes its documents, of known versions ([`input`]).
//! * Only the program prints; the library does not.

pub mod advise;
pub mod cluster;
pub mod engine;
pub mod error;
mod folder;
pub mod input;
mod json;
mod place;
pub mod print;
pub mod report;
mod rows;
pub mod store;
pub mod table;
pub mod tables;
pub mod views;

pub use error::{FleetError, Result};
pub use place::without_secrets;
