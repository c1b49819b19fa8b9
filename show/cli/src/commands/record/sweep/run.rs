//! Runs `lineup record --vary`.

use super::report::{Measured, Sweep};
use super::vary::Variant;
use super::{vary, view};
use crate::commands::record::args::Options;
use crate::kernels::guest::{self, GuestSettings};
use crate::terminal::outcome::Outcome;
use crate::terminal::output;
use crate::terminal::progress::Stages;
use anyhow::{Context, Result, bail};
use lineup_recording::Selection;
use lineup_study::interrupt::Interrupts;
use std::path::Path;

/// Folder for the recordings.
const FOLDER: &str = "lineup-sweep";

/// Variants at most: each is a boot.
const MAX_VARIANTS: usize = 64;

/// Runs `lineup record --vary`.
pub(crate) fn run(options: &Options) -> Result<Outcome> {
    let base = match options.caches.as_slice() {
        [] => guest::usual_caches()?,
        caches => caches.to_vec(),
    };
    let variants = vary::variants(&base, &options.varied)?;
    if variants.len() > MAX_VARIANTS {
        bail!("{} combinations, each a boot: at most {MAX_VARIANTS} are run; vary less", variants.len());
    }
    let folder = options.out.as_deref().unwrap_or(Path::new(FOLDER));
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot make the folder {}", folder.display()))?;
    let stages = Stages::new();
    let interrupts = stages.watch_signals()?;
    let out = |index: usize, variant: &Variant| {
        folder.join(format!("{index}-{}.rec", variant.name.replace(' ', "-")))
    };
    let measure = |(index, variant): (usize, &Variant)| {
        measure(options, variant, &out(index, variant), &stages, &interrupts)
    };
    let measured = variants.iter().enumerate().map(measure).collect::<Result<_>>()?;
    stages.end();
    let sweep = Sweep { schema: "lineup.sweep/1", variants: measured };
    let printed = match options.json {
        true => serde_json::to_string_pretty(&sweep)? + "\n",
        false => view::text(&sweep),
    };
    output::print(&printed)?;
    Ok(Outcome::Done)
}

fn measure(
    options: &Options,
    variant: &Variant,
    out: &Path,
    stages: &Stages,
    interrupts: &Interrupts,
) -> Result<Measured> {
    let wanted = GuestSettings {
        regions: options.regions.iter().cloned().collect(),
        calls: Some(options.calls.unwrap_or(0)),
        selection: Selection::Spread,
        warmup: 0,
        caches: &variant.caches,
        out,
        what: guest::GuestRecordKind::Calls,
    };
    let prepared = guest::prepare(&options.kernel, &wanted, stages, interrupts)?;
    let recorded = guest::record(&prepared, stages, interrupts)?;
    if let Some(problem) = &recorded.problem {
        bail!("{}: {problem}", variant.name);
    }
    Ok(Measured { variant: variant.name.clone(), report: guest::report(&prepared, &recorded) })
}
