//! `lineup explain PERF_DATA`: the accesses of samples.

use crate::samples::findings::{Symbols, read};
use crate::samples::text;
use crate::terminal::outcome::Outcome;
use crate::terminal::output;
use crate::terminal::progress::Stages;
use anyhow::{Result, bail};
use lineup_find::SampledOptions;
use std::path::Path;

/// The output of `lineup explain` for samples: for the accesses by some functions, or for all.
pub(crate) fn explain(
    path: &Path,
    symbols: &Symbols,
    (functions, top): (&[String], usize),
    json: bool,
    stages: &Stages,
) -> Result<Outcome> {
    let wanted = SampledOptions { functions: functions.to_vec(), ..SampledOptions::default() };
    let found = read(path, symbols, &wanted, stages)?;
    stages.end();
    for name in functions {
        if !found.functions.iter().any(|function| function.name == *name && function.samples > 0) {
            let most: Vec<&str> = found.functions.iter().take(5).map(|one| one.name.as_str()).collect();
            bail!("{}: no sample is in {name}; most are in {}", path.display(), most.join(", "));
        }
    }
    let out = match json {
        true => serde_json::to_string_pretty(&found)? + "\n",
        false => text::explanation(&found, top, output::text_style()),
    };
    output::print(&out)?;
    Ok(Outcome::Done)
}
