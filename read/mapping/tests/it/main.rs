//! Every integration test of this crate, in one program.

mod files;
