//! The sample profile that Clang reads.

mod clang_profile;
mod discriminator;
mod samples;

pub use clang_profile::{SampleProfile, sample_profile};
