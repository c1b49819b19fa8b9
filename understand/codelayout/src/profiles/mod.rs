//! Profiles for BOLT and for Clang.

pub(crate) mod bolt;
pub(crate) mod bolt_names;
pub(crate) mod sample_profile;
