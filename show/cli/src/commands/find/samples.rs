//! `lineup find PERF_DATA`: findings from samples.

use crate::samples::findings::{Symbols, is_samples, read};
use crate::samples::text;
use crate::terminal::outcome::Outcome;
use crate::terminal::output;
use crate::terminal::progress::Stages;
use anyhow::{Result, bail};
use lineup_find::SampledOptions;
use std::path::Path;

/// Reads samples, and prints functions and data with at least a share of all latency, or of all time.
pub(crate) fn run(
    path: &Path,
    symbols: &Symbols,
    (least_share, top): (f64, usize),
    json: bool,
    stages: &Stages,
) -> Result<Outcome> {
    if path.is_file() && !is_samples(path) {
        let path = path.display();
        bail!("{path} is no perf.data; a program goes behind two dashes: lineup find -- {path}");
    }
    let wanted = SampledOptions { least_share, ..SampledOptions::default() };
    let found = read(path, symbols, &wanted, stages)?;
    stages.end();
    let out = match json {
        true => serde_json::to_string_pretty(&found)? + "\n",
        false => text::findings(&found, top, output::text_style()),
    };
    output::print(&out)?;
    Ok(Outcome::Done)
}
