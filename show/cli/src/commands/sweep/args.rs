//! Arguments of `lineup sweep`.

use super::vary::Vary;
use crate::kernels::guest::KernelOptions;
use clap::Args;
use lineup_cache::CacheSpec;
use lineup_model::region::Region;
use std::path::PathBuf;

/// Arguments of `lineup sweep`.
#[derive(Args)]
pub(crate) struct Options {
    /// Kernel function to record, or a set of them (lineup record --help lists the sets)
    #[arg(long = "region", value_name = "F|SET", required = true)]
    pub(crate) regions: Vec<Region>,
    /// Property to vary: l1i=, l1d=, l2= or line= and values; several are combined
    #[arg(long = "vary", value_name = "l2=off,256K,1M", required = true)]
    pub(crate) varied: Vec<Vary>,
    /// Caches that are not varied, and the fixed properties of varied ones; usual ones when not given
    #[arg(long = "cache", value_name = "LEVEL=SIZE,WAYS,LINE")]
    pub(crate) caches: Vec<CacheSpec>,
    /// Record at most this many calls of each region with their accesses; every call is measured
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) calls: u64,
    /// Folder for the recordings, one a variant
    #[arg(long, value_name = "DIR", default_value = "lineup-sweep")]
    pub(crate) out: PathBuf,
    /// Print JSON (schema lineup.sweep/1)
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) kernel: KernelOptions,
}
