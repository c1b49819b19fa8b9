//! `lineup sweep`: records a kernel under one cache after another.

mod text;
mod vary;

use crate::files;
use crate::outcome::Outcome;
use crate::progress::Stages;
use crate::record::kernel::{self, GuestSettings, KernelOptions, Report};
use anyhow::{Context, Result, bail};
use clap::Args;
use lineup_cache::CacheSpec;
use lineup_model::region::Region;
use lineup_recording::Selection;
use lineup_study::interrupt::Interrupts;
use serde::Serialize;
use std::path::PathBuf;
use vary::{Variant, Vary};

/// Variants at most: each is a boot.
const MAX_VARIANTS: usize = 64;

/// Arguments of `lineup sweep`.
#[derive(Args)]
pub(crate) struct Options {
    /// Kernel function to record, or a set of them (lineup record --help lists the sets)
    #[arg(long = "region", value_name = "F|SET", required = true)]
    regions: Vec<Region>,
    /// Property to vary: l1i=, l1d=, l2= or line= and values; several are combined
    #[arg(long = "vary", value_name = "l2=off,256K,1M", required = true)]
    varied: Vec<Vary>,
    /// Caches that are not varied, and the fixed properties of varied ones; usual ones when not given
    #[arg(long = "cache", value_name = "LEVEL=SIZE,WAYS,LINE")]
    caches: Vec<CacheSpec>,
    /// Record at most this many calls of each region with their accesses; every call is measured
    #[arg(long, value_name = "N", default_value_t = 0)]
    calls: u64,
    /// Folder for the recordings, one a variant
    #[arg(long, value_name = "DIR", default_value = "lineup-sweep")]
    out: PathBuf,
    /// Print JSON (schema lineup.sweep/1)
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    kernel: KernelOptions,
}

/// The printed report.
#[derive(Serialize)]
struct Sweep {
    schema: &'static str,
    variants: Vec<Measured>,
}

/// One variant and its measurements.
#[derive(Serialize)]
struct Measured {
    variant: String,
    #[serde(flatten)]
    report: Report,
}

/// Runs `lineup sweep`.
pub(crate) fn run(options: &Options) -> Result<Outcome> {
    if options.kernel.kernel.is_none() {
        bail!("give the kernel's image with --kernel");
    }
    let base = match options.caches.as_slice() {
        [] => kernel::usual_caches()?,
        caches => caches.to_vec(),
    };
    let variants = vary::variants(&base, &options.varied)?;
    if variants.len() > MAX_VARIANTS {
        bail!("{} combinations, each a boot: at most {MAX_VARIANTS} are run; vary less", variants.len());
    }
    std::fs::create_dir_all(&options.out)
        .with_context(|| format!("cannot make the folder {}", options.out.display()))?;
    let stages = Stages::new();
    let interrupts = stages.watch_signals()?;
    let measure =
        |(index, variant): (usize, &Variant)| measure(options, variant, index, &stages, &interrupts);
    let measured = variants.iter().enumerate().map(measure).collect::<Result<_>>()?;
    stages.end();
    let sweep = Sweep { schema: "lineup.sweep/1", variants: measured };
    let printed = match options.json {
        true => serde_json::to_string_pretty(&sweep)? + "\n",
        false => text::text(&sweep),
    };
    files::print(&printed)?;
    Ok(Outcome::Done)
}

fn measure(
    options: &Options,
    variant: &Variant,
    index: usize,
    stages: &Stages,
    interrupts: &Interrupts,
) -> Result<Measured> {
    let out = options.out.join(format!("{index}-{}.rec", variant.name.replace(' ', "-")));
    let wanted = GuestSettings {
        regions: options.regions.iter().cloned().collect(),
        calls: Some(options.calls),
        selection: Selection::Spread,
        warmup: 0,
        caches: &variant.caches,
        out: &out,
        what: kernel::GuestRecordKind::Calls,
    };
    let prepared = kernel::prepare(&options.kernel, &wanted, stages, interrupts)?;
    let recorded = kernel::record(&prepared, stages, interrupts)?;
    if let Some(problem) = &recorded.problem {
        bail!("{}: {problem}", variant.name);
    }
    Ok(Measured { variant: variant.name.clone(), report: kernel::report(&prepared, &recorded) })
}
