//! Runs `lineup sweep`.

use super::args::Options;
use super::report::{Measured, Sweep};
use super::vary::Variant;
use super::{vary, view};
use crate::kernels::guest::{self, GuestSettings};
use crate::terminal::outcome::Outcome;
use crate::terminal::output;
use crate::terminal::progress::Stages;
use anyhow::{Context, Result, bail};
use lineup_recording::Selection;
use lineup_study::interrupt::Interrupts;

/// Variants at most: each is a boot.
const MAX_VARIANTS: usize = 64;

/// Runs `lineup sweep`.
pub(crate) fn run(options: &Options) -> Result<Outcome> {
    if options.kernel.kernel.is_none() {
        bail!("give the kernel's image with --kernel");
    }
    let base = match options.caches.as_slice() {
        [] => guest::usual_caches()?,
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
        false => view::text(&sweep),
    };
    output::print(&printed)?;
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
        what: guest::GuestRecordKind::Calls,
    };
    let prepared = guest::prepare(&options.kernel, &wanted, stages, interrupts)?;
    let recorded = guest::record(&prepared, stages, interrupts)?;
    if let Some(problem) = &recorded.problem {
        bail!("{}: {problem}", variant.name);
    }
    Ok(Measured { variant: variant.name.clone(), report: guest::report(&prepared, &recorded) })
}
