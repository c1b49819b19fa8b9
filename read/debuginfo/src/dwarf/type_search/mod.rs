//! The search for the few units that describe every type of some names.

pub(crate) mod searched_names;
pub(crate) mod signature;
pub(crate) mod skim;
pub(crate) mod units;
