//! Every integration test of this crate, in one program.

mod chains;
mod compressed;
mod peers;
mod peers_spe;
mod perf;
mod reading;
mod registers;
mod segments;
mod spe;
mod traced;
