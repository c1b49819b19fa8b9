//! `lineup explain PERF_DATA`: functions, types, members, and the sources of their data.

use crate::samples::findings::{Symbols, read};
use crate::samples::text;
use crate::terminal::outcome::Outcome;
use crate::terminal::output;
use crate::terminal::progress::Stages;
use anyhow::{Context, Result, bail};
use lineup_find::{SampledOptions, against_model};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// The output of `lineup explain` for samples: for the accesses by some functions, or for all.
pub(crate) fn explain(
    path: &Path,
    (symbols, model): (&Symbols, Option<&Path>),
    (functions, top): (&[String], usize),
    json: bool,
    stages: &Stages,
) -> Result<Outcome> {
    let wanted = SampledOptions { functions: functions.to_vec(), ..SampledOptions::default() };
    let model = model.map(shares_of_model).transpose()?;
    let mut found = read(path, symbols, &wanted, stages)?;
    if let Some(model) = &model {
        found.against_model = against_model(&found, model);
    }
    stages.end();
    for name in functions {
        if !found.functions.iter().any(|function| function.name == *name && function.samples > 0) {
            let most: Vec<&str> = found.functions.iter().take(5).map(|one| one.name.as_str()).collect();
            bail!("{}: no sample is in {name}; most are in {}", path.display(), most.join(", "));
        }
    }
    let out = match json {
        true => serde_json::to_string_pretty(&found)? + "\n",
        false if functions.is_empty() => text::all(&found, top, output::text_style()),
        false => text::explanation(&found, top, output::text_style()),
    };
    output::print(&out)?;
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
