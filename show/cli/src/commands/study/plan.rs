//! Converts the command line of a study into its settings.

use super::args::Options;
use super::output_folder;
use crate::builds::default_command;
use crate::builds::program_path::inside;
use crate::options::advice::ReportOptions;
use crate::terminal::progress::Stages;
use anyhow::{Context, Result};
use lineup_cache::CacheSpec;
use lineup_model::line::LineSize;
use lineup_model::region::Regions;
use lineup_prove::ProofPlan;
use lineup_recording::Selection;
use lineup_study::input::Input;
use lineup_study::interrupt::Interrupts;
use lineup_study::recorder::{self, Engine, Subject, on_path};
use lineup_study::run::{Drive, Leftovers, On, Run};
use lineup_study::source::meaning::Units;
use lineup_study::source::scratch::Tree;
use lineup_study::timing::{Placing, allowed_cpus};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Calls of a region that are recorded at most, unless the user says another number.
pub(crate) const MAX_CALLS: u64 = 2000;

/// In an argument of the program: the number of threads that it is to make.
const THREADS: &str = "{threads}";

/// The plan of a study.
pub(crate) struct Plan {
    /// Functions and weights.
    pub(crate) regions: Regions,
    /// The user's source folder.
    pub(crate) source: PathBuf,
    /// Shell command that builds.
    pub(crate) build: String,
    /// The units that are read with clang.
    pub(crate) units: Units,
    /// The folder of results; exists.
    pub(crate) out: PathBuf,
    /// Calls recorded at most per region, where the user says so.
    pub(crate) calls: Option<u64>,
    /// The selection of these calls.
    pub(crate) selection: Selection,
    /// Calls left out at the start of each region.
    pub(crate) warmup: u64,
    /// Commands that are audited.
    pub(crate) audits: Vec<String>,
    /// The recorder.
    pub(crate) engine: Engine,
    /// True when recordings are made in one pass.
    pub(crate) one_pass: bool,
    /// Caches to model; empty for the host's.
    pub(crate) caches: Vec<CacheSpec>,
    /// Bytes of other data between calls.
    pub(crate) pressures: Vec<u64>,
    /// Options of advice.
    pub(crate) advice: lineup_advise::options::Options,
    /// The extent of the printed report.
    pub(crate) report: ReportOptions,
    /// The extent of the comparison.
    pub(crate) proof: ProofPlan,
    /// On which CPUs timed runs are.
    pub(crate) cpus: Placing,
    /// True when changes are judged by sanitizers.
    pub(crate) sanitize: bool,
    /// True when the guard is to be written.
    pub(crate) guard: bool,
    /// True when standard output gets JSON.
    pub(crate) json: bool,
    /// The program that is studied, relative to the source folder; `None` when it is the one that is started, or found
    /// among those that this starts.
    pub(crate) program: Option<PathBuf>,
    /// The started program, relative to the source folder unless it lies elsewhere.
    pub(crate) started: PathBuf,
    /// Its arguments.
    pub(crate) arguments: Vec<OsString>,
    /// Every run's standard input.
    pub(crate) input: Input,
    /// The longest run.
    pub(crate) max_time: Option<Duration>,
    /// Calls of each region after which the recorded program is ended.
    pub(crate) stop_after: Option<u64>,
    /// A client that drives the program.
    pub(crate) drive: Option<Drive>,
    /// The rule for processes that outlive the first one.
    pub(crate) leftovers: Leftovers,
}

impl Plan {
    /// Checks the options and prepares the output folder.
    pub(crate) fn of(options: Options, interrupts: &Interrupts, stages: &Stages) -> Result<Plan> {
        let engine = options.engine();
        let regions = Regions::from_iter(options.regions);
        let mut command = options.command.into_iter();
        let program = command.next().context("no program given")?;
        let started = match inside(Path::new(&program), &options.source) {
            Ok(inside) => inside,
            // A shell or another tool that starts the program.
            Err(_) if Path::new(&program).is_absolute() => PathBuf::from(&program),
            Err(error) => return Err(error),
        };
        let program = options.program.map(|program| inside(&program, &options.source)).transpose()?;
        let out = output_folder::prepare(&options.out, &options.source, options.overwrite)?;
        let built = options.source.join(program.as_ref().unwrap_or(&started));
        let build = default_command::of(options.build, &built, &options.source);
        Ok(Plan {
            regions,
            source: options.source,
            build,
            units: options.advice.units(),
            out,
            calls: options.calls,
            selection: match (options.first, options.advice.allow_growth) {
                (true, _) => Selection::First,
                // Effects of threads on each other show where their calls overlap.
                (false, true) => Selection::Runs,
                (false, false) => Selection::Spread,
            },
            warmup: options.warmup,
            audits: options.audits,
            engine,
            one_pass: options.one_pass,
            caches: options.caches,
            pressures: options.pressures,
            advice: options.advice.meant()?,
            report: options.report,
            proof: ProofPlan {
                line: options.advice.line_size,
                max_time_ns: options.max_time.saturating_mul(1_000_000_000),
                margin: options.margin.0,
                links: options.links.unwrap_or(1),
                // Each link at least twice: otherwise the links' share of the spread cannot be determined.
                max_blocks: ProofPlan::default().max_blocks.max(2 * options.links.unwrap_or(1)),
                ..ProofPlan::default()
            },
            cpus: options.cpus,
            sanitize: options.sanitize,
            guard: options.guard,
            json: options.json,
            program,
            started,
            arguments: command.collect(),
            input: options.surroundings.input(interrupts, stages)?,
            max_time: options.surroundings.max_time(),
            stop_after: options.surroundings.stop_after(),
            drive: options.surroundings.drive(),
            leftovers: options.surroundings.leftovers(),
        })
    }

    /// The line size that decides.
    pub(crate) fn line(&self) -> LineSize {
        self.advice.primary
    }

    /// Leaves out regions that the program, built in this copy, has inlined everywhere, and says which.
    pub(crate) fn leave_out_inlined(&mut self, tree: &Tree) -> Result<Vec<String>> {
        if self.regions.len() < 2 {
            return Ok(Vec::new());
        }
        let named = self.program.as_ref().map(|program| tree.path.join(program));
        let subject = Subject::load(&self.run(tree)?, named.as_deref())?;
        let (regions, left_out) = recorder::without_inlined(&self.regions, &subject);
        self.regions = regions;
        Ok(left_out)
    }

    /// The run of a variant in its own copy of the sources.
    pub(crate) fn run(&self, tree: &Tree) -> Result<Run> {
        self.run_with(tree, None)
    }

    /// True when the program's arguments set its number of threads by [`THREADS`].
    pub(crate) fn asks_for_threads(&self) -> bool {
        self.arguments.iter().any(|argument| argument.to_string_lossy().contains(THREADS))
    }

    /// The same, with this many threads where the arguments ask for a number; by default as many as there are CPUs.
    pub(crate) fn run_with(&self, tree: &Tree, threads: Option<usize>) -> Result<Run> {
        let started = self.started_in(tree)?.into_os_string();
        let threads = threads.map_or_else(|| allowed_cpus().map(|cpus| cpus.len()), Ok)?.to_string();
        let meant = |argument: &OsString| match argument.to_str() {
            Some(text) if text.contains(THREADS) => text.replace(THREADS, &threads).into(),
            _ => argument.clone(),
        };
        Ok(Run {
            fixed_addresses: false,
            command: [started].into_iter().chain(self.arguments.iter().map(meant)).collect(),
            called: None,
            directory: Some(tree.path.clone()),
            environment: Vec::new(),
            input: self.input.clone(),
            max_time: self.max_time,
            drive: self.drive.clone(),
            leftovers: self.leftovers,
            placed: None,
            on: On::Anywhere,
        })
    }

    /// The file that is started: in the variant's copy of the sources, else where a shell finds it.
    fn started_in(&self, tree: &Tree) -> Result<PathBuf> {
        let file = tree.path.join(&self.started);
        if file.is_file() {
            return Ok(file);
        }
        let on_path = (self.started.components().count() == 1).then(|| on_path(&self.started)).flatten();
        on_path.with_context(|| {
            format!("the build `{}` made no {} in the source folder", self.build, self.started.display())
        })
    }
}
