//! The choice of samples, and further names for code.

use lineup_samples::code_names::CodeNames;
use std::collections::BTreeMap;

/// A choice of samples.
#[derive(Clone, Debug)]
pub struct SampledOptions {
    /// Accesses by these functions alone; accesses by all functions if empty.
    pub functions: Vec<String>,
    /// The share from which on something is a finding.
    pub least_share: f64,
}

impl Default for SampledOptions {
    fn default() -> Self {
        SampledOptions { functions: Vec::new(), least_share: 0.01 }
    }
}

impl SampledOptions {
    pub(super) fn has(&self, function: &str) -> bool {
        self.functions.is_empty() || self.functions.iter().any(|wanted| wanted == function)
    }
}

/// Names for code outside programs' files.
#[derive(Default, Debug)]
pub struct MoreNames {
    /// Names for code that was made at run time, by process.
    pub processes: BTreeMap<u32, CodeNames>,
    /// Names for the code of a file, such as the kernel's. The key is its position among the tally's files; the names
    /// go by the distance from its mapping's start.
    pub files: BTreeMap<u32, CodeNames>,
}
