//! `lineup shuffle`: random legal layouts as a test.

mod printed;

use crate::advice_options;
use crate::files;
use crate::named_members::check_pins;
use crate::outcome::Outcome;
use crate::progress::Stages;
use anyhow::{Context, Result, bail};
use clap::Args;
use lineup_advise::meaning::Meaning;
use lineup_advise::shuffle::Movable;
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
use printed::ShuffleResults;
use std::path::{Path, PathBuf};

/// Arguments of `lineup shuffle`.
#[derive(Args)]
pub(crate) struct Options {
    /// The program, a path inside the source folder; built with -g
    program: PathBuf,
    /// Folder with the program's sources; never written to
    #[arg(long, value_name = "DIR", default_value = ".")]
    source: PathBuf,
    /// Shell command that builds the program in a copy of the source folder
    #[arg(long, value_name = "COMMAND", default_value = "make")]
    build: String,
    /// Shell command that tests the program, run in the copy; it must succeed with the unchanged program
    #[arg(long, value_name = "COMMAND", required_unless_present = "list")]
    test: Option<String>,
    /// Say which types may move and which not, and shuffle nothing
    #[arg(long)]
    list: bool,
    /// Random layouts to test
    #[arg(long, value_name = "N", default_value_t = 5)]
    seeds: u64,
    /// The first seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    first_seed: u64,
    /// Shuffle this type only
    #[arg(long = "type", value_name = "TYPE")]
    types: Vec<String>,
    /// Obey the constraints in this file, and add those that the test shows
    #[arg(long, value_name = "FILE")]
    constraints: Option<PathBuf>,
    /// Leave this member where it is
    #[arg(long = "pin", value_name = "TYPE.MEMBER", value_parser = crate::advice_options::type_and_member)]
    pins: Vec<(String, String)>,
    /// Do not change this type
    #[arg(long = "keep", value_name = "TYPE")]
    keeps: Vec<String>,
    /// Read the units in this compile_commands.json with clang, instead of those that the build compiles
    #[arg(long, value_name = "FILE")]
    compile_commands: Option<PathBuf>,
    /// Print JSON (schema lineup.shuffle/1)
    #[arg(long)]
    json: bool,
}

/// Builds, surveys, and tests one random layout after another.
pub(crate) fn run(arguments: &Options) -> Result<Outcome> {
    let interrupts = Interrupts::watch()?;
    let scratch = Scratch::new(&arguments.source, &arguments.build, Path::new(""), &interrupts)?;
    let stages = Stages::new();
    stages.stage("building the unchanged program, and reading its sources with clang");
    let mut built = scratch.copy(Role::Before)?;
    let units = arguments.compile_commands.clone().map_or(Units::Built, Units::Listed);
    let program = crate::study::plan::inside(&arguments.program, scratch.source())?;
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
    advice_options::tell_unfounded_reviews(&wanted.meaning);
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
    files::print(&text)?;
    if let Some(error) = cut_short {
        return Ok(Outcome::CutShort(error));
    }
    match found.outcomes.iter().any(|outcome| !outcome.failures.is_empty()) {
        true => Ok(Outcome::Finding),
        false => Ok(Outcome::Done),
    }
}

impl Options {
    /// The reason why the seeds from this one on were not tested, and the place of the others' results.
    fn cut_short(&self, error: lineup_study::error::Error, seed: u64) -> anyhow::Error {
        let file = self.constraints.as_deref().filter(|file| file.exists());
        let learnt = file.map_or_else(String::new, |file| {
            format!("; the constraints found until then are kept in {}", file.display())
        });
        let done = match seed - self.first_seed {
            0 => "no seed was tested to its end".to_owned(),
            _ => format!("the results of seeds {} to {} stand above", self.first_seed, seed - 1),
        };
        anyhow::Error::new(error).context(format!(
            "seed {seed} was not tested to its end; {done}{learnt}; --first-seed {seed} continues"
        ))
    }

    /// The types asked for, or all.
    fn chosen(&self, movable: Vec<Movable>) -> Result<Vec<Movable>> {
        for name in &self.types {
            if !movable.iter().any(|ty| ty.type_name == *name) {
                bail!("{name} is not a type that may move; `--list` shows them, and why the others may not");
            }
        }
        let is_chosen = |ty: &Movable| self.types.is_empty() || self.types.contains(&ty.type_name);
        Ok(movable.into_iter().filter(is_chosen).collect())
    }
}

/// Constraints that are kept in a file; empty when the file does not exist yet.
fn read_constraints(file: Option<&Path>) -> Result<Meaning> {
    advice_options::read_constraints(file.filter(|file| file.exists()))
}

fn write_constraints(file: Option<&Path>, meaning: &Meaning) -> Result<()> {
    let learnt = learnt(meaning);
    let Some(file) = file.filter(|file| !learnt.types.is_empty() || file.exists()) else { return Ok(()) };
    std::fs::write(file, held_file::to_text(&learnt)?)
        .with_context(|| format!("cannot write {}", file.display()))
}
