//! `lineup find LOG`: a logged run, counted in any caches.

use super::args::Options;
use crate::host::caches;
use crate::terminal::outcome::Outcome;
use crate::terminal::output;
use crate::terminal::progress::Stages;
use crate::whole_program::function_table::functions_text;
use crate::whole_program::functions::{self, FunctionProfile};
use anyhow::{Context, Result};
use lineup_model::figure::whole;
use lineup_study::progress::Progress;
use lineup_study::recording_file;
use lineup_study::replay::{Replayed, replay};
use serde::Serialize;
use std::fmt::Write;
use std::io::{BufReader, Cursor};
use std::path::Path;

/// The replay, as shown.
#[derive(Serialize)]
struct Report {
    schema: &'static str,
    file: String,
    instructions: u64,
    blocks: u64,
    parts: u64,
    /// The number of times a thread continued unrecorded.
    losses: u64,
    /// The reason why not all of the file was read: everything before is counted.
    damage: Option<String>,
    caches: Vec<String>,
    functions: Vec<FunctionProfile>,
}

/// Counts the log, and prints its functions.
pub(super) fn run(options: &Options, log: &Path) -> Result<Outcome> {
    let stages = Stages::new();
    let name = log.display().to_string();
    if let Some(out) = &options.out {
        recording_file::check(out, [log])?;
    }
    let caches = if options.caches.is_empty() { caches::of_this_machine()? } else { options.caches.clone() };
    let caches: Vec<String> = caches.iter().map(ToString::to_string).collect();
    stages.stage("replaying the log");
    let file = lineup_mapping::open(log).with_context(|| name.clone())?;
    let replayed = replay(BufReader::new(file), &caches).with_context(|| name.clone())?;
    let Replayed { recording, instructions, blocks, parts, damage, is_whole, losses } = replayed;
    if let Some(out) = &options.out {
        std::fs::write(out, &recording).with_context(|| format!("cannot write {}", out.display()))?;
    }
    let cut_off = "the recording ends before the program did".to_owned();
    let damage = match damage {
        Some(damage) => Some(damage.to_string()),
        None => (!is_whole).then_some(cut_off),
    };
    let functions = functions::profile_of(Cursor::new(recording.as_slice()), &stages)?;
    stages.end();
    let report = Report {
        schema: "lineup.replay/1",
        file: name,
        instructions,
        blocks,
        parts,
        losses,
        damage,
        caches,
        functions,
    };
    let out = match options.json {
        true => serde_json::to_string_pretty(&report)? + "\n",
        false => text(&report, options.top)?,
    };
    output::print(&out)?;
    Ok(Outcome::Done)
}

fn text(report: &Report, top: usize) -> Result<String> {
    let mut out = String::new();
    if !report.functions.is_empty() {
        functions_text(&mut out, &report.functions, top, output::text_style());
    }
    writeln!(out, "caches: {}", report.caches.join(" "))?;
    writeln!(out, "blocks: {}, in {} parts of the log", whole(report.blocks), whole(report.parts))?;
    if report.losses > 0 {
        writeln!(out, "threads went on unrecorded {} times", whole(report.losses))?;
    }
    if let Some(why) = &report.damage {
        writeln!(out, "note: not all of the log was there: {why}; what stands before is counted")?;
    }
    Ok(out)
}
