//! Every integration test of this crate, in one program.

mod advise;
#[cfg(feature = "cluster")]
mod ballista;
#[cfg(feature = "cluster")]
mod cluster;
#[cfg(not(feature = "cluster"))]
mod cluster_missing;
#[cfg(feature = "cluster")]
mod growth;
mod manual;
mod objects;
mod planted;
mod served;
mod store;
mod views;
