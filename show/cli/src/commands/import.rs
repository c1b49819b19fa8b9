//! `lineup import`: converts perf's samples.

use crate::samples::findings::{Symbols, read};
use crate::samples::text;
use crate::terminal::outcome::Outcome;
use crate::terminal::output;
use crate::terminal::progress::Stages;
use anyhow::{Context, Result, bail};
use clap::Args;
use lineup_find::{SampledOptions, against_model};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Arguments of `lineup import`.
#[derive(Args)]
pub(crate) struct Options {
    /// A file of `perf record`, `perf mem record` or `perf c2c record`; - for a pipe from `perf record -o -`
    #[arg(value_name = "PERF_DATA")]
    file: PathBuf,
    #[command(flatten)]
    symbols: Symbols,
    /// Compare the shares of functions in this file, which `lineup find --json` wrote, with those of the samples
    #[arg(long, value_name = "FIND_JSON")]
    find: Option<PathBuf>,
    /// Rows shown of each table
    #[arg(long, value_name = "COUNT", default_value_t = 15)]
    top: usize,
    /// Print JSON (schema lineup.samples/1)
    #[arg(long)]
    json: bool,
    /// Write the report into this file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Runs `lineup import`.
pub(crate) fn run(options: &Options) -> Result<Outcome> {
    let model = options.find.as_deref().map(shares_of_model).transpose()?;
    let stages = Stages::new();
    let mut found = read(&options.file, &options.symbols, &SampledOptions::default(), &stages)?;
    if let Some(model) = &model {
        found.against_model = against_model(&found, model);
    }
    stages.end();
    let style = output::text_for(options.out.as_deref(), false).0;
    let text = match options.json {
        true => serde_json::to_string_pretty(&found)? + "\n",
        false => text::all(&found, options.top, style),
    };
    match &options.out {
        Some(path) => {
            std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?
        }
        None => output::print(&text)?,
    }
    Ok(Outcome::Done)
}

/// Shares of all modelled cycles by function, as `lineup find --json` wrote them.
fn shares_of_model(path: &Path) -> Result<BTreeMap<String, f64>> {
    let name = || path.display().to_string();
    let bytes = std::fs::read(path).with_context(name)?;
    let value: Value = serde_json::from_slice(&bytes).with_context(name)?;
    if value["schema"] != "lineup.find/1" {
        bail!("{}: these are no findings of `lineup find --json` (schema lineup.find/1)", path.display());
    }
    let mut shares = BTreeMap::new();
    for function in value["functions"].as_array().into_iter().flatten() {
        if let (Some(name), Some(share)) = (function["name"].as_str(), function["of_cycles"].as_f64()) {
            *shares.entry(name.to_owned()).or_default() += share;
        }
    }
    Ok(shares)
}
