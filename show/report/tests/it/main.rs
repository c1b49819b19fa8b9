//! Every integration test of this crate, in one program.

mod advised;
mod calls;
mod code_page;
mod explained;
mod find_page;
mod line_map;
mod measured;
mod page;
mod program;
mod sample;
mod text;
mod threads;
mod trace;
mod usage;
