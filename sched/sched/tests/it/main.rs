//! Every integration test of this crate, in one program.

mod experiment;
mod model;
mod no_std;
mod reference;
mod scenario;
mod weights;
