//! Lineup in an editor: hover and diagnostics of a language server.
//!
//! No input and no output: [`Server::handle`] takes a message and gives the messages that answer it, and whatever it
//! wants to know of files it asks a [`World`]. [`wire`] turns bytes into messages and back.
//!
//! * What is said of a type is what debug information of a program says. It is said of the text in the editor only while
//!   that is the text which was built; else the answer begins with why it may not be. See [`Freshness`].
//! * A place in a text is found in the text as it is now, by a parser, and not by the lines that debug information tells.
//! * Programs, recordings and promises are read when they are first needed, and again when their files change.

mod cached_file;
mod config;
mod diagnose;
mod documents;
mod error;
mod evidence;
mod freshness;
mod held;
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
pub use server::{Ended, Server};
pub use world::{Stamp, World};
