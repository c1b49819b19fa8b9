//! Samples that perf took: findings and their text.

pub(crate) mod findings;
pub(crate) mod text;
