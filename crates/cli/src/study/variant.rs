//! One variant of the program: copied, built, recorded, explained.

use crate::explain;
use crate::progress::Stages;
use crate::study::plan::Plan;
use anyhow::{Context, Result, bail};
use lineup_debuginfo::DebugInfo;
use lineup_explain::{Explained, Options};
use lineup_prove::footprint::RegionFootprint;
use lineup_prove::{Conduct, ConductEffects, RegionCalls};
use lineup_recording::{Mode, ProgramExit};
use lineup_study::effects::observe_variants;
use lineup_study::interrupt::Interrupts;
use lineup_study::process::{Finished, Streams};
use lineup_study::progress::Progress;
use lineup_study::recorder::{self, RecordOutcome, RecordRequest, in_words};
use lineup_study::run::Run;
use lineup_study::source::meaning::{self, Reading};
use lineup_study::source::scratch::{Role, Scratch, Tree};
use lineup_study::timing::{ProcessRunner, RunnerOptions};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A variant with what its recording tells.
pub(crate) struct Variant {
    tree: Tree,
    /// What was recorded.
    pub(crate) recorded: Explained,
    /// What its sources mean to a compiler; read for the program as it is.
    pub(crate) reading: Option<Reading>,
    conduct: Conduct,
}

/// A program that a signal ended while it was recorded.
#[derive(Debug, thiserror::Error)]
#[error(
    "the program {ending} while it was recorded; what was recorded until then is in {}, for `lineup explain`",
    recording.display()
)]
pub(crate) struct Crashed {
    ending: String,
    recording: PathBuf,
}

impl Variant {
    /// Copies the sources, applies the edits, builds, records and explains.
    pub(crate) fn study(
        plan: &Plan,
        scratch: &Scratch,
        role: Role,
        edits: Option<&BTreeMap<String, String>>,
        stages: &Stages,
        interrupts: &Interrupts,
    ) -> Result<Variant> {
        let name = if edits.is_some() { "after" } else { "before" };
        stages.stage(&format!("building the program {name} the change"));
        let mut tree = scratch.copy(role)?;
        let reading = match edits {
            None => Some(meaning::build_and_read(scratch, &mut tree, &plan.units)?),
            Some(edits) => scratch.build(&mut tree, edits).map(|()| None)?,
        };
        let program = tree.path.join(&plan.program);
        if !program.is_file() {
            bail!("the build `{}` made no {} in the source folder", plan.build, plan.program.display());
        }
        let debug = recorder::load(&program)?;
        debug.require_debug_info().with_context(|| plan.program.display().to_string())?;
        let recording = keep(&plan.out.join(name), &program)?;
        stages.stage(&format!("recording the program {name} the change"));
        let outcome = record(plan, &tree, &program, &debug, &recording, interrupts)?;
        outcome.notes.iter().for_each(|note| stages.line(note));
        stages.stage(&format!("explaining the recording {name} the change"));
        let options = Options {
            line_size: plan.line(),
            caches: plan.caches.clone(),
            pressure_bytes: plan.pressures.clone(),
            ..Options::default()
        };
        let survey = explain::survey(&recording, stages)?;
        let recorded = explain::program(&recording, survey, &program, Some(debug), options, stages)?;
        let conduct = conduct(plan, &recorded, outcome.finished);
        Ok(Variant { tree, recorded, reading, conduct })
    }

    /// The copy that this variant was built in.
    pub(crate) fn tree(&self) -> &Tree {
        &self.tree
    }

    /// As the proof takes it, with what left its processes.
    pub(crate) fn as_recorded(&self, effects: ConductEffects) -> lineup_prove::Recorded {
        let conduct = Conduct { effects, ..self.conduct.clone() };
        let regions = self.recorded.explanation.regions.iter();
        lineup_prove::Recorded { footprints: regions.map(RegionFootprint::of_explained).collect(), conduct }
    }

    /// The run of this variant for timing: with the input that was recorded.
    fn timed(&self, plan: &Plan) -> Run {
        let run = plan.run(&self.tree.path.join(&plan.program), &self.tree);
        recorder::native_or_emulated(self.recorded.abi().machine, run)
    }
}

/// Keeps the program in a folder of the results, for the recording that is put beside it: the scratch copy it was
/// built in goes away. Returns the place of the recording.
fn keep(folder: &Path, program: &Path) -> Result<PathBuf> {
    let cannot = || format!("cannot keep the program in {}", folder.display());
    fs::create_dir_all(folder).with_context(cannot)?;
    let name = program.file_name().unwrap_or_default();
    fs::copy(program, folder.join(name)).with_context(cannot)?;
    Ok(folder.join("calls.rec"))
}

/// Records the program of one variant, in its own copy of the sources.
fn record(
    plan: &Plan,
    tree: &Tree,
    program: &Path,
    debug: &DebugInfo,
    output: &Path,
    interrupts: &Interrupts,
) -> Result<RecordOutcome> {
    let request = RecordRequest {
        run: plan.run(program, tree),
        regions: plan.regions.clone(),
        mode: if plan.one_pass { Mode::OnePass } else { Mode::TwoPass },
        max_calls: Some(plan.calls),
        selection: plan.selection,
        stop_after: plan.stop_after,
        warmup_calls: plan.warmup,
        caches: Vec::new(),
        output: output.to_owned(),
        streams: Streams::Captured,
    };
    let outcome = recorder::record(&request, debug, interrupts)?;
    match outcome.ending.exit {
        ProgramExit::Exited(_) => Ok(outcome),
        ProgramExit::Signaled(_) if outcome.finished.stopped.is_some() => Ok(outcome),
        exit @ ProgramExit::Signaled(_) => {
            Err(Crashed { ending: in_words(exit), recording: output.to_owned() }.into())
        }
    }
}

/// What the recorded run did.
fn conduct(plan: &Plan, recorded: &Explained, finished: Finished) -> Conduct {
    Conduct {
        input: plan.input.content(),
        calls: RegionCalls::of_explained(recorded),
        ending: finished.ending,
        stdout: finished.stdout,
        stderr: finished.stderr,
        client_stdout: finished.client.map(|client| client.stdout),
        effects: ConductEffects::NotObserved("the program was recorded only".into()),
    }
}

/// What leaves the processes of both variants, in runs of their own.
pub(crate) fn effects(
    plan: &Plan,
    before: &Variant,
    after: &Variant,
    interrupts: &Interrupts,
) -> Result<[ConductEffects; 2]> {
    Ok(match observe_variants(&before.timed(plan), &after.timed(plan), interrupts)? {
        Ok(both) => both.map(ConductEffects::Observed),
        Err(error) => [(); 2].map(|()| ConductEffects::NotObserved(error.to_string())),
    })
}

/// Runs both variants.
pub(crate) fn runner(
    plan: &Plan,
    before: &Variant,
    after: &Variant,
    interrupts: &Interrupts,
) -> Result<ProcessRunner> {
    let variants = vec![before.timed(plan), after.timed(plan)];
    Ok(ProcessRunner::new(variants, RunnerOptions::default(), interrupts)?)
}
