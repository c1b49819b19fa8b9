//! Recording whole programs: modelled first-level caches, the sieves that pass repeated uses over, and
//! allocations.

pub(crate) mod allocations;
pub(crate) mod level;
pub(crate) mod sieve;
