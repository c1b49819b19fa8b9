//! Processes: started, held at a gate, limited, watched and ended, with their input and the folders they work in.

pub mod alias;
pub(crate) mod child;
mod client_server;
pub mod closed_output;
mod completion;
pub(crate) mod cpus;
pub(crate) mod descendants;
pub mod folder;
mod forked;
pub mod guardian;
pub mod input;
pub mod interrupt;
pub mod keeper;
pub mod launch;
mod leftovers;
mod own_file;
pub mod own_programs;
pub mod placed;
pub mod run;
mod thread_placement;
pub mod tool;

pub use child::{Client, Finished, Streams, Waiting};
