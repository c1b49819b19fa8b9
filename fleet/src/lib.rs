//! What was found on many machines, in one store of Parquet files, and questions about all of it.
//!
//! Design constraints:
//!
//! * The store is files that other engines read: documented [`tables`] with a version, and [`views`] as files of SQL.
//! * Adding is safe against crashes and against others who add ([`store`]). A file counts once, by its content.
//! * What was not observed is empty, never 0.
//! * Accesses are named by `lineup`; here come documents of which a version is known ([`input`]).
//! * Nothing is printed here but by the program on top.

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
