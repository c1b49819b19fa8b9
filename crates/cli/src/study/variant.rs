//! One variant of the program: copied, built, recorded, explained.

use crate::recorded::Recorded;
use crate::study::plan::Plan;
use anyhow::{Context, Result, bail};
use lineup_explain::Options;
use lineup_recording::{Mode, ProgramExit};
use lineup_study::companions;
use lineup_study::interrupt::Interrupts;
use lineup_study::process::Streams;
use lineup_study::recorder::{self, RecordRequest, in_words};
use lineup_study::run::Run;
use lineup_study::source::scratch::{Role, Scratch, Tree};
use lineup_study::timing::{ProcessRunner, RunnerOptions};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A variant with what its recording tells.
pub(crate) struct Variant {
    tree: Tree,
    /// What was recorded.
    pub(crate) recorded: Recorded,
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
        interrupts: &Interrupts,
    ) -> Result<Variant> {
        let name = if edits.is_some() { "after" } else { "before" };
        plan.progress(&format!("building and recording the program {name} the change"));
        let mut tree = scratch.copy(role)?;
        scratch.build(&mut tree, edits.unwrap_or(&BTreeMap::new()))?;
        let program = tree.path.join(&plan.program);
        if !program.is_file() {
            bail!("the build `{}` made no {} in the source folder", plan.build, plan.program.display());
        }
        companions::load(&program)?
            .require_debug_info()
            .with_context(|| plan.program.display().to_string())?;
        let recording = keep(&plan.out.join(name), &program)?;
        record(plan, &tree, &program, &recording, interrupts)?;
        let options = Options {
            line_size: plan.line(),
            caches: plan.caches.clone(),
            pressure_bytes: plan.pressures.clone(),
            ..Options::default()
        };
        let recorded = Recorded::explain(&recording, &program, options)?;
        Ok(Variant { tree, recorded })
    }

    /// The copy that this variant was built in.
    pub(crate) fn tree(&self) -> &Tree {
        &self.tree
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
fn record(plan: &Plan, tree: &Tree, program: &Path, output: &Path, interrupts: &Interrupts) -> Result<()> {
    let request = RecordRequest {
        run: plan.run(program, tree),
        regions: plan.regions.clone(),
        mode: if plan.one_pass { Mode::OnePass } else { Mode::TwoPass },
        max_calls: Some(plan.calls),
        warmup_calls: plan.warmup,
        caches: Vec::new(),
        output: output.to_owned(),
        streams: Streams::Captured,
    };
    let outcome = recorder::record(&request, interrupts)?;
    for note in &outcome.notes {
        plan.progress(note);
    }
    match outcome.ending.exit {
        ProgramExit::Exited(_) => Ok(()),
        exit @ ProgramExit::Signaled(_) => {
            Err(Crashed { ending: in_words(exit), recording: output.to_owned() }.into())
        }
    }
}

/// Runs both variants.
pub(crate) fn runner(
    plan: &Plan,
    before: &Variant,
    after: &Variant,
    interrupts: &Interrupts,
) -> Result<ProcessRunner> {
    let variants = vec![before.timed(plan), after.timed(plan)];
    ProcessRunner::new(variants, RunnerOptions::default(), interrupts)
}
