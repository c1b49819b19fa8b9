//! Lineup in an editor: hover and diagnostics of a language server.
//!
//! No input and no output: [`Server::handle`] takes a message and returns the messages that answer it, and asks a
//! [`World`] about files. [`wire`] turns bytes into messages and back.
//!
//! * Statements about a type come from a program's debug information. They hold for the text in the editor only while
//!   that is the built text; else the answer begins with the reason why it may not be. See [`Freshness`].
//! * A parser finds places in the present text; the lines in the debug information are not used.
//! * Programs, recordings and promises are read when they are first needed, and again when their files change.

mod cached_file;
mod config;
mod constraints;
mod diagnose;
mod documents;
mod error;
mod evidence;
mod freshness;
mod hover;
mod position;
mod program;
mod server;
mod uri;
mod view;
pub mod wire;
mod world;

pub use config::Config;
pub use error::LspError;
pub use evidence::Evidence;
pub use freshness::Freshness;
pub use server::{Server, SessionEnd};
pub use world::{Stamp, World};
