//! Runs `lineup shuffle`.

use super::args::Options;
use super::view::ShuffleResults;
use crate::builds::{default_command, program_path};
use crate::options::advice;
use crate::options::pins::check_pins;
use crate::terminal::outcome::Outcome;
use crate::terminal::output;
use crate::terminal::progress::Stages;
use anyhow::{Context, Result};
use lineup_advise::meaning::Meaning;
use lineup_advise::{held_file, options};
use lineup_model::line::LineSize;
use lineup_study::companions;
use lineup_study::interrupt::Interrupts;
use lineup_study::progress::Progress;
use lineup_study::shuffle::{Ground, learnt, run_seed};
use lineup_study::source::meaning::{self, Units};
use lineup_study::source::scratch::{Role, Scratch};
use lineup_study::source::texts;
use lineup_study::trial::Trials;
use std::path::Path;

/// Builds, surveys, and tests one random layout after another.
pub(crate) fn run(arguments: &Options) -> Result<Outcome> {
    let interrupts = Interrupts::watch()?;
    let program = arguments.source.join(&arguments.program);
    let build = default_command::of(arguments.build.clone(), &program, &arguments.source);
    let scratch = Scratch::new(&arguments.source, &build, Path::new(""), &interrupts)?;
    let stages = Stages::new();
    stages.stage("building the unchanged program, and reading its sources with clang");
    let mut built = scratch.copy(Role::Before)?;
    let units = arguments.compile_commands.clone().map_or(Units::Built, Units::Listed);
    let program = program_path::inside(&arguments.program, scratch.source())?;
    let reading = meaning::build_and_read(&scratch, &mut built, &units, Some(&program))?;
    stages.stage("looking at how far its types may move");
    let debug = companions::load(&built.path.join(&program))?;
    debug.require_debug_info().with_context(|| program.display().to_string())?;
    check_pins(&arguments.pins, debug.types())?;
    let sources = reading.in_their_languages(&texts::read(scratch.source(), scratch.leave_out())?);
    let mut wanted = options::Options {
        pins: arguments.pins.clone(),
        keeps: arguments.keeps.clone(),
        primary: LineSize::B64,
        meaning: reading.meaning().and(read_constraints(arguments.constraints.as_deref())?),
        ..Default::default()
    };
    advice::tell_unfounded_reviews(&wanted.meaning);
    let (movable, refused) = lineup_advise::shuffle::survey(debug.types(), debug.abi(), &sources, &wanted);
    let movable = arguments.chosen(movable)?;
    let mut found = ShuffleResults {
        sources: reading.in_words(),
        movable,
        refused,
        outcomes: Vec::new(),
        ended_in: None,
    };
    let mut cut_short = None;
    if let Some(test) = arguments.test.as_deref().filter(|_| !arguments.list) {
        stages.stage("testing the unchanged program");
        let trials = Trials::new(&scratch, test, &built.path)?;
        let ground = Ground { types: debug.types(), abi: debug.abi(), sources: &sources };
        for seed in arguments.first_seed..arguments.first_seed.saturating_add(arguments.seeds) {
            stages.stage(&format!(
                "seed {seed}: building and testing {} types in a random order",
                found.movable.len()
            ));
            match run_seed(&ground, &found.movable, &mut wanted, &trials, seed) {
                Ok(outcome) => found.outcomes.push(outcome),
                Err(error) => {
                    found.ended_in = Some(seed);
                    cut_short = Some(arguments.cut_short(error, seed));
                }
            }
            if cut_short.is_some() {
                break;
            }
        }
        // Also when a seed was ended early. Not before: the file may lie in the folder, which no build may change.
        write_constraints(arguments.constraints.as_deref(), &wanted.meaning)?;
    }
    stages.end();
    let text = if arguments.json { found.as_json()? } else { found.as_text(arguments.list) };
    output::print(&text)?;
    if let Some(error) = cut_short {
        return Ok(Outcome::CutShort(error));
    }
    match found.outcomes.iter().any(|outcome| !outcome.failures.is_empty()) {
        true => Ok(Outcome::Finding),
        false => Ok(Outcome::Done),
    }
}

/// Constraints that are kept in a file; empty when the file does not exist yet.
fn read_constraints(file: Option<&Path>) -> Result<Meaning> {
    advice::read_constraints(file.filter(|file| file.exists()))
}

fn write_constraints(file: Option<&Path>, meaning: &Meaning) -> Result<()> {
    let learnt = learnt(meaning);
    let Some(file) = file.filter(|file| !learnt.types.is_empty() || file.exists()) else { return Ok(()) };
    std::fs::write(file, held_file::to_text(&learnt)?)
        .with_context(|| format!("cannot write {}", file.display()))
}
