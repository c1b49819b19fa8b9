//! One variant of the program: copied, built, recorded, explained.

use super::plan::{MAX_CALLS, Plan};
use super::result_files::{RECORDING, VARIANTS};
use crate::builds::default_command;
use crate::recordings::survey::{self, Surveyed};
use crate::terminal::progress::Stages;
use anyhow::{Context, Result, bail};
use lineup_explain::threads::{BetweenThreads, LockPlaces, LockReport};
use lineup_explain::{Explained, Options, Survey};
use lineup_model::figure::{mean, whole};
use lineup_prove::footprint::{self, RegionFootprint};
use lineup_prove::{Conduct, ConductEffects, ProofPlan, RegionCalls};
use lineup_recording::{Mode, ProgramExit};
use lineup_report::study::NotObserved;
use lineup_stats::noise;
use lineup_study::companions::DebugInfos;
use lineup_study::counters;
use lineup_study::effects::observe_variants;
use lineup_study::interrupt::Interrupts;
use lineup_study::process::Finished;
use lineup_study::progress::Progress;
use lineup_study::recorder::{self, Engine, KeptCalls, RecordOutcome, RecordRequest, Subject, in_words};
use lineup_study::run::Run;
use lineup_study::source::judge::BuildJudge;
use lineup_study::source::meaning::{self, Reading};
use lineup_study::source::scratch::{Role, Scratch, Tree};
use lineup_study::timing::{Links, Placing, ProcessRunner, RunnerOptions};
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Accesses of all regions that are kept, unless the user says a number of calls: these are read in about a quarter of a minute.
const MAX_ACCESSES: u64 = 8 << 20;

/// Further recordings of a driven program whose calls depend on the time.
const REPEATED_RECORDINGS: usize = 4;

/// The largest spread of calls between runs of a program that no client drives, as a share of all.
const LARGEST_SPREAD: f64 = 0.01;

/// After so many with the same calls there are no more, unless a client drives the program.
const ENOUGH_OF_THE_SAME: usize = 2;

/// A variant with its recording.
pub(crate) struct Variant {
    tree: Tree,
    program: PathBuf,
    /// The recording.
    pub(crate) recorded: Explained,
    /// The compiler's view of its sources; read for the unchanged program only.
    pub(crate) reading: Option<Reading>,
    conduct: Conduct,
    /// The recorder.
    engine: Engine,
    /// The recorded calls that were kept.
    kept: KeptCalls,
    /// Further recordings, once these were made.
    repeated: OnceCell<Vec<Repeated>>,
    /// Regions whose functions are not the program's, with their files.
    regions_outside: Vec<(String, PathBuf)>,
}

/// A further recording of a variant.
struct Repeated {
    calls: Vec<RegionCalls>,
    footprints: Vec<RegionFootprint>,
}

/// Texts that change, and the judge that compiles them.
pub(crate) struct Change<'c, 's> {
    pub(crate) edited: &'c BTreeMap<String, String>,
    pub(crate) judge: &'c mut BuildJudge<'s>,
}

/// A program that a signal ended while it was recorded.
#[derive(Debug, thiserror::Error)]
#[error(
    "the program {} while it was recorded{}; what was recorded until then is in {}, for `lineup explain`",
    in_words(ProgramExit::Signaled(*signal)), sender(*signal), recording.display()
)]
pub(crate) struct Crashed {
    /// The signal's number.
    pub(crate) signal: i32,
    /// The recording until then.
    pub(crate) recording: PathBuf,
}

/// Signals that a program does not get because it runs wrongly: hang up, interrupt, quit, kill, terminate. Somebody
/// sends them, or the system does when memory runs out.
const SENT: [i32; 5] = [1, 2, 3, 9, 15];

/// True when such a signal says nothing about the program that it ended.
pub(crate) fn is_sent(signal: i32) -> bool {
    SENT.contains(&signal)
}

fn sender(signal: i32) -> &'static str {
    match is_sent(signal) {
        true => ", which somebody sent, or the system because memory ran out: nothing is concluded from it",
        false => "",
    }
}

/// A variant that was built.
pub(crate) struct Built {
    /// The copy that it was built in.
    pub(crate) tree: Tree,
    reading: Option<Reading>,
    /// Its folder among the results.
    pub(crate) name: &'static str,
}

impl Variant {
    /// Builds in a copy of the sources, records like another variant and explains. A change's texts are built where
    /// its judge builds.
    pub(crate) fn study(
        (plan, like): (&Plan, &Variant),
        scratch: &Scratch,
        change: Option<Change<'_, '_>>,
        stages: &Stages,
        interrupts: &Interrupts,
    ) -> Result<Variant> {
        let built = Variant::build(plan, scratch, change, stages)?;
        Variant::record((plan, Some(like)), scratch, built, stages, interrupts)
    }

    /// Builds in a copy of the sources.
    pub(crate) fn build(
        plan: &Plan,
        scratch: &Scratch,
        change: Option<Change<'_, '_>>,
        stages: &Stages,
    ) -> Result<Built> {
        let [before, after] = VARIANTS;
        let name = if change.is_some() { after } else { before };
        stages.stage(&format!("building the program {name} the change"));
        let (tree, reading) = match change {
            Some(change) => (change.judge.take_built(change.edited)?, None),
            None => {
                let mut tree = scratch.copy(Role::Before)?;
                let program = plan.program.as_ref().unwrap_or(&plan.started);
                let reading = meaning::build_and_read(scratch, &mut tree, &plan.units, Some(program));
                let reading = reading.map_err(|error| {
                    default_command::explain(error, &plan.build, &plan.source.join(program))
                })?;
                (tree, Some(reading))
            }
        };
        Ok(Built { tree, reading, name })
    }

    /// A program that was built otherwise in this copy.
    pub(crate) fn built(tree: Tree, name: &'static str) -> Built {
        Built { tree, reading: None, name }
    }

    /// Records the built program and explains the recording. With another variant, both have the same recorder and the
    /// same calls: else recordings differ by more than the change.
    pub(crate) fn record(
        (plan, like): (&Plan, Option<&Variant>),
        scratch: &Scratch,
        built: Built,
        stages: &Stages,
        interrupts: &Interrupts,
    ) -> Result<Variant> {
        let Built { tree, reading, name } = built;
        let named = plan.program.as_ref().map(|program| tree.path.join(program));
        let run = plan.run(&tree)?;
        let subject = Subject::load(&run, named.as_deref())?;
        let folder = plan.out.join(name);
        fs::create_dir_all(&folder)
            .with_context(|| format!("cannot make the folder {}", folder.display()))?;
        let recording = folder.join(RECORDING);
        let is_own = subject.program().starts_with(&tree.path);
        if is_own {
            // Before anything can end the run: its recording is read with it.
            keep(&folder, subject.program())?;
        }
        stages.stage(&format!("recording the program {name} the change"));
        let engine = like.map_or(plan.engine, Variant::engine);
        let outcome = record((plan, engine), run, &subject, &recording, interrupts);
        let outcome = match is_own {
            true => outcome?,
            false => outcome.context("the program that is started is not inside --source")?,
        };
        outcome.notes.iter().for_each(|note| stages.line(note));
        require_some_after_warmup(plan, &outcome)?;
        let kept = keep_calls(plan, like, &recording, stages)?;
        let surveyed = survey::survey(&recording, stages)?;
        require_libraries_of_copy(&surveyed.survey, scratch, &tree)?;
        let own = subject.program().to_owned();
        let mut infos = subject.into_debug_infos();
        keep_libraries(&surveyed.survey, &own, &tree, &folder)?;
        let program = studied(&surveyed, &own, &mut infos, &tree, &folder)?;
        let regions_outside = surveyed.regions_outside(&program, &mut infos);
        let recorded = survey::program(surveyed, &program, infos, options(plan), stages)?;
        let engine = outcome.engine;
        let conduct = conduct(plan, &recorded, outcome.finished);
        let program = program.strip_prefix(&tree.path).map_or_else(|_| program.clone(), Path::to_owned);
        let repeated = OnceCell::new();
        Ok(Variant { tree, program, recorded, reading, conduct, engine, kept, repeated, regions_outside })
    }

    /// The program that was studied, relative to the source folder.
    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    /// The recorder.
    pub(crate) fn engine(&self) -> Engine {
        self.engine
    }

    /// The copy that this variant was built in.
    pub(crate) fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The recording in the proof's form, with the processes' effects.
    pub(crate) fn as_recorded(&self, effects: ConductEffects) -> lineup_prove::Recorded {
        let repeated = self.repeated.get().map(Vec::as_slice).unwrap_or_default();
        let repeated_calls = repeated.iter().map(|one| one.calls.clone()).collect();
        let conduct = Conduct { effects, repeated_calls, ..self.conduct.clone() };
        lineup_prove::Recorded { footprints: footprints(&self.recorded), conduct }
    }

    /// The noise of a difference between this variant's lines and another's, as far as further recordings show it; `None`
    /// without these.
    pub(crate) fn lines_noise(&self, proof: &ProofPlan) -> Option<f64> {
        let own = footprints(&self.recorded);
        let of_repeated = |one: &Repeated| {
            let changes = footprint::compare(&own, &one.footprints).ok()?;
            footprint::weighted_difference(&changes, proof.lines_of, proof.line)
        };
        let repeated = self.repeated.get()?.iter().filter_map(of_repeated);
        let runs: Vec<f64> = std::iter::once(0.0).chain(repeated).collect();
        noise::of_single_runs(&runs, proof.stop.level).ok()
    }

    /// Records this variant again where a client drives it, or another variant's calls are not as many: calls and lines
    /// may depend on the time, on threads, or on a seed, and these recordings show by how much. A program whose own runs
    /// differ by more does other work each time, unless a client drives it: that has the answers compared.
    pub(crate) fn repeat(
        &self,
        plan: &Plan,
        after: &Variant,
        stages: &Stages,
        interrupts: &Interrupts,
    ) -> Result<()> {
        let differ = self.conduct.unlike_calls(&after.conduct).next().is_some();
        if !(differ || plan.drive.is_some()) || self.repeated.get().is_some() {
            return Ok(());
        }
        stages.stage("recording the unchanged program again, for what its own runs differ by");
        let folder = interrupts.temporary_folder().context("cannot make a folder for recordings")?;
        let named = plan.program.as_ref().map(|program| self.tree.path.join(program));
        let mut repeated: Vec<Repeated> = Vec::new();
        for number in 0..REPEATED_RECORDINGS {
            let run = plan.run(&self.tree)?;
            let subject = Subject::load(&run, named.as_deref())?;
            let recording = folder.path().join(format!("{number}.rec"));
            let outcome = record((plan, self.engine), run, &subject, &recording, interrupts)?;
            let of_region = |calls: &RegionCalls| {
                let counts = outcome.summary.regions.get(usize::from(calls.id.0))?;
                let is_reduced = self.kept.reduced.iter().any(|reduced| reduced.region == calls.id);
                let recorded = if is_reduced { calls.recorded } else { counts.recorded };
                Some(asked_for(plan, RegionCalls { made: Some(counts.seen), recorded, ..calls.clone() }))
            };
            let calls = self.conduct.calls.iter().filter_map(of_region).collect();
            recorder::keep_same(&recording, &self.kept)?;
            let (surveyed, program) =
                (survey::survey(&recording, stages)?, self.tree.path.join(&self.program));
            let explained =
                survey::program(surveyed, &program, subject.into_debug_infos(), options(plan), stages)?;
            repeated.push(Repeated { calls, footprints: footprints(&explained) });
            let is_same = repeated.iter().all(|one| one.calls == self.conduct.calls);
            // Its work repeats: more recordings would show nothing else.
            if plan.drive.is_none() && is_same && repeated.len() == ENOUGH_OF_THE_SAME {
                break;
            }
        }
        if plan.drive.is_some() || self.conduct.calls.iter().all(|calls| is_narrow(calls, &repeated)) {
            self.repeated.get_or_init(|| repeated);
        }
        Ok(())
    }

    /// The run of this variant for timing: with the input that was recorded.
    fn timed(&self, plan: &Plan) -> Result<Run> {
        Ok(recorder::native_or_emulated(self.recorded.abi().machine, plan.run(&self.tree)?))
    }
}

/// The lines of a recording's regions.
fn footprints(recorded: &Explained) -> Vec<RegionFootprint> {
    recorded.explanation.regions.iter().map(RegionFootprint::of_explained).collect()
}

/// The options by which a recording is explained.
fn options(plan: &Plan) -> Options {
    Options {
        line_size: plan.line(),
        caches: plan.caches.clone(),
        pressure_bytes: plan.pressures.clone(),
        ..Options::default()
    }
}

/// True where the calls that recordings made of a region are as many, but for a small share.
fn is_narrow(calls: &RegionCalls, repeated: &[Repeated]) -> bool {
    let others = repeated.iter().flat_map(|one| &one.calls).filter(|other| other.id == calls.id);
    let all: Vec<u64> = others.filter_map(|other| other.made).chain(calls.made).collect();
    let (least, most) = (all.iter().min().copied().unwrap_or(0), all.iter().max().copied().unwrap_or(0));
    (most - least) as f64 <= LARGEST_SPREAD * most as f64
}

/// Refuses a run that loaded a library from the user's folder instead of the copy. The library built for the study then
/// did not run, or met code that was compiled with another layout.
fn require_libraries_of_copy(survey: &Survey, scratch: &Scratch, tree: &Tree) -> Result<()> {
    let libraries = survey.images.iter().filter(|image| image.is_shared_library());
    let mut paths = libraries.map(|image| Path::new(&image.path));
    let is_original = |path: &Path| path.starts_with(scratch.source()) && !path.starts_with(&tree.path);
    match paths.find(|path| is_original(path)) {
        None => Ok(()),
        Some(library) => bail!(
            "the program loads {} from the source folder itself, not from the copy that is studied: a run path that was \
             linked in, LD_LIBRARY_PATH, or the path that the program gives to dlopen names that folder. Link with \
             -Wl,-rpath,'$ORIGIN' or name the libraries' folder relative to the program",
            library.display()
        ),
    }
}

/// The file under study: `own`, the program that was named or started, or one that was started in turn, or a library
/// that the build made. The second is kept in `folder`, as the named one was before.
fn studied(
    surveyed: &Surveyed,
    own: &Path,
    infos: &mut DebugInfos,
    tree: &Tree,
    folder: &Path,
) -> Result<PathBuf> {
    let is_mapped = surveyed.survey.images.iter().any(|image| Path::new(&image.path) == own);
    let is_studied = is_mapped && own.starts_with(&tree.path);
    if !(is_studied && surveyed.has_regions(own, infos)) {
        match surveyed.program_with_regions(&tree.path, infos) {
            Some(library) if is_library(&surveyed.survey, &library) => return Ok(library),
            Some(program) => {
                keep(folder, &program)?;
                return Ok(program);
            }
            // Regions may lie in a library that others built.
            None if is_studied => {}
            None => bail!(
                "no program that the build made has the functions; a study rebuilds the program, so it must be inside \
                 --source, and {} is not it",
                own.display()
            ),
        }
    }
    if let Some(debug) = infos.of(own) {
        debug.require_debug_info().with_context(|| own.display().to_string())?;
    }
    Ok(own.to_owned())
}

/// Keeps the program in a folder of the results, next to its recording: the scratch copy it was built in will be
/// removed.
fn keep(folder: &Path, program: &Path) -> Result<()> {
    let cannot = || format!("cannot keep the program in {}", folder.display());
    let name = program.file_name().unwrap_or_default();
    fs::copy(program, folder.join(name)).with_context(cannot)?;
    Ok(())
}

fn is_library(survey: &Survey, path: &Path) -> bool {
    survey.images.iter().any(|image| image.is_shared_library() && Path::new(&image.path) == path)
}

/// Keeps the libraries that the build made, in folders as they lie around the program: a program looks for its plugins
/// from where it runs.
fn keep_libraries(survey: &Survey, own: &Path, tree: &Tree, folder: &Path) -> Result<()> {
    let around = own.parent().filter(|around| around.starts_with(&tree.path)).unwrap_or(&tree.path);
    for image in survey.images.iter().filter(|image| image.is_shared_library()) {
        let path = Path::new(&image.path);
        let inside = path.strip_prefix(around).or_else(|_| path.strip_prefix(&tree.path));
        // A program may have removed a file that it loaded.
        let Some(inside) = inside.ok().filter(|_| path.is_file()) else { continue };
        let kept = folder.join(inside);
        let cannot = || format!("cannot keep the library {}", kept.display());
        fs::create_dir_all(kept.parent().unwrap_or(folder)).with_context(cannot)?;
        fs::copy(path, &kept).with_context(cannot)?;
    }
    Ok(())
}

/// Refuses a recording of which --warmup left all calls out.
fn require_some_after_warmup(plan: &Plan, outcome: &RecordOutcome) -> Result<()> {
    let counts = &outcome.summary.regions;
    let (made, recorded) = counts
        .iter()
        .fold((0, 0), |(made, recorded), region| (made + region.seen, recorded + region.recorded));
    if plan.warmup > 0 && made > 0 && recorded == 0 {
        bail!(
            "no call was recorded: the program made {}, and --warmup leaves the first {} of each region out; give \
             --warmup fewer",
            whole(made),
            whole(plan.warmup)
        );
    }
    Ok(())
}

/// Leaves out calls of a recording that is too long to be read, the same ones as of the other variant.
fn keep_calls(plan: &Plan, like: Option<&Variant>, recording: &Path, stages: &Stages) -> Result<KeptCalls> {
    if let Some(like) = like {
        recorder::keep_same(recording, &like.kept)?;
        return Ok(like.kept.clone());
    }
    let regions = plan.regions.len().max(1) as u64;
    let kept = match plan.calls {
        Some(_) => KeptCalls::default(),
        None => recorder::keep_accesses(recording, MAX_ACCESSES / regions)?,
    };
    for reduced in &kept.reduced {
        let name = plan.regions.name(reduced.region);
        stages.line(&format!(
            "note: {} of {} recorded calls of {name} are kept, since a call has {} accesses; \
             --calls {} keeps all",
            reduced.kept,
            reduced.recorded,
            mean(reduced.accesses as f64 / reduced.recorded.max(1) as f64),
            reduced.recorded,
        ));
    }
    Ok(kept)
}

/// Records calls of the plan's regions in a run.
pub(crate) fn record(
    (plan, engine): (&Plan, Engine),
    run: Run,
    subject: &Subject,
    output: &Path,
    interrupts: &Interrupts,
) -> Result<RecordOutcome> {
    // Data at other addresses in each run, such as the stack, would use other lines.
    let run = Run { fixed_addresses: true, ..run };
    let mode = if plan.one_pass { Mode::OnePass } else { Mode::TwoPass };
    let request = RecordRequest {
        regions: plan.regions.clone(),
        max_calls: Some(plan.calls.unwrap_or(MAX_CALLS)),
        selection: plan.selection,
        stop_after: plan.stop_after,
        warmup_calls: plan.warmup,
        keeps_windows: plan.advice.allow_growth,
        output: output.to_owned(),
        ..RecordRequest::new(run, engine, mode)
    };
    let outcome = recorder::record(&request, subject, interrupts)?;
    outcome.require_whole(&request)?;
    match outcome.ending.exit {
        ProgramExit::Exited(_) | ProgramExit::Left => Ok(outcome),
        ProgramExit::Signaled(_) if outcome.finished.stopped.is_some() => Ok(outcome),
        ProgramExit::Signaled(signal) => Err(Crashed { signal, recording: output.to_owned() }.into()),
    }
}

/// The conduct of the recorded run.
fn conduct(plan: &Plan, recorded: &Explained, finished: Finished) -> Conduct {
    Conduct {
        input: plan.input.content(),
        calls: RegionCalls::of_explained(recorded).into_iter().map(|calls| asked_for(plan, calls)).collect(),
        repeated_calls: Vec::new(),
        ending: finished.ending,
        stdout: finished.stdout,
        stderr: finished.stderr,
        client_stdout: finished.client.map(|client| client.stdout),
        effects: ConductEffects::NotObserved("the program was recorded only".into()),
    }
}

/// Without the calls that a program made between the last one that was asked for and its end: how many these are
/// differs from run to run.
fn asked_for(plan: &Plan, calls: RegionCalls) -> RegionCalls {
    let made = calls.made.map(|made| plan.stop_after.map_or(made, |most| made.min(most)));
    RegionCalls { made, ..calls }
}

/// The effects of both variants, in runs of their own.
pub(crate) fn effects(
    plan: &Plan,
    before: &Variant,
    after: &Variant,
    interrupts: &Interrupts,
) -> Result<[ConductEffects; 2]> {
    Ok(match observe_variants(&before.timed(plan)?, &after.timed(plan)?, interrupts)? {
        Ok(both) => both.map(ConductEffects::Observed),
        Err(error) => [(); 2].map(|()| ConductEffects::NotObserved(error.to_string())),
    })
}

/// Runs both variants, of which there may be several links: each block then has an environment of another size, too.
pub(crate) fn runner(
    plan: &Plan,
    [before, after]: [&Variant; 2],
    links: Option<Links>,
    interrupts: &Interrupts,
) -> Result<ProcessRunner> {
    let variants = vec![before.timed(plan)?, after.timed(plan)?];
    let vary_environment = links.as_ref().map(|links| links.seed);
    let options =
        RunnerOptions { placing: placing(plan, before), links, vary_environment, ..RunnerOptions::default() };
    Ok(ProcessRunner::new(variants, options, interrupts)?)
}

/// Runs both variants where timed runs are, with an event counted.
pub(crate) fn counting(
    plan: &Plan,
    [before, after]: [&Variant; 2],
    event: &str,
    interrupts: &Interrupts,
) -> Result<ProcessRunner> {
    let variants = vec![before.timed(plan)?, after.timed(plan)?];
    let options = RunnerOptions {
        placing: placing(plan, before),
        events: counters::parse(event)?,
        ..RunnerOptions::default()
    };
    Ok(ProcessRunner::new(variants, options, interrupts)?)
}

/// True when a patch of this study may part data that threads contend for.
pub(crate) fn parts_threads(plan: &Plan, before: &Variant) -> bool {
    let between = before.recorded.explanation.between.as_ref();
    let moves_lock = |lock: &LockReport| lock.places.as_ref().is_some_and(LockPlaces::are_better);
    let may_part =
        |between: &BetweenThreads| !between.false_sharing.is_empty() || between.locks.iter().any(moves_lock);
    plan.advice.allow_growth && between.is_some_and(may_part)
}

/// The CPUs of timed runs. Effects of threads on each other's caches show only where each has its own.
pub(crate) fn placing(plan: &Plan, before: &Variant) -> Placing {
    match &plan.cpus {
        Placing::Auto if parts_threads(plan, before) => Placing::ThreadsApart,
        given => given.clone(),
    }
}

/// A note that regions are functions of other files than the one whose types are studied.
pub(crate) fn types_outside(before: &Variant) -> Option<NotObserved> {
    let (name, file) = before.regions_outside.first()?;
    let file_name = file.file_name().unwrap_or_default().display();
    let program = before.program().display();
    let next = match file.starts_with(&before.tree.path) {
        true => format!("a study of {name} alone has advice on those"),
        false => "the build in --source does not make that file".to_owned(),
    };
    Some(NotObserved {
        what: format!("types that {file_name} describes and {program} does not"),
        consequence: format!(
            "{name} is a function of {file_name}, and advice is on types of {program}; {next}"
        ),
    })
}

/// A note that calls make more accesses than are kept of one, so that their last accesses are unknown.
pub(crate) fn cut_calls(before: &Variant) -> Option<NotObserved> {
    let summary = before.recorded.survey.summary.as_ref()?;
    let cut: u64 = summary.regions.iter().map(|counts| counts.truncated).sum();
    (cut > 0).then(|| NotObserved {
        what: if cut == 1 { "the end of a call".into() } else { format!("the ends of {cut} calls") },
        consequence:
            "these calls make more accesses than are kept of one, and a type that they use only then has no \
                      advice; --region names a function that they call"
                .into(),
    })
}

/// True when the recording lacks accesses of some calls.
pub(crate) fn has_cut_calls(before: &Variant) -> bool {
    let summary = before.recorded.survey.summary.as_ref();
    summary.is_some_and(|summary| summary.regions.iter().any(|counts| counts.truncated > 0))
}
