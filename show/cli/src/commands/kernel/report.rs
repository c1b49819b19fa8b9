//! The values that `lineup kernel` shows.

use serde::Serialize;

/// The printed report.
#[derive(Serialize)]
pub(crate) struct Report {
    pub(crate) schema: &'static str,
    pub(crate) machine: String,
    pub(crate) form: String,
    pub(crate) compression: Option<String>,
    pub(crate) release: String,
    pub(crate) banner: String,
    pub(crate) build_id: Option<String>,
    pub(crate) unpacked_bytes: usize,
    pub(crate) symbols: usize,
    pub(crate) functions: usize,
    pub(crate) symbol_source: String,
    pub(crate) btf_bytes: Option<usize>,
    pub(crate) types: Option<usize>,
    pub(crate) type_source: Option<&'static str>,
    pub(crate) boot: Option<Boot>,
}

/// The guest's boot.
#[derive(Serialize)]
pub(crate) struct Boot {
    pub(crate) emulator: String,
    pub(crate) cmdline: String,
    pub(crate) release: Option<String>,
    pub(crate) clocksource: Option<String>,
    pub(crate) boot_seconds: Option<f64>,
    pub(crate) workload_seconds: Option<f64>,
    pub(crate) total_seconds: f64,
    pub(crate) status: Option<i32>,
    pub(crate) problem: Option<String>,
    pub(crate) troubles: Vec<String>,
    pub(crate) symbols: Option<SymbolCheck>,
}

/// A comparison of the guest's list of symbols with the image's.
#[derive(Serialize)]
pub(crate) struct SymbolCheck {
    /// Symbols that the guest listed.
    pub(crate) listed: usize,
    /// Symbols that the image's table has with the same address, kind and name.
    pub(crate) equal: usize,
    /// Symbols that only one of them has.
    pub(crate) different: usize,
}
