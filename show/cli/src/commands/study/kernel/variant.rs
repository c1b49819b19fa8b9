//! One variant of a kernel: built, booted, recorded, explained.

use super::plan::KernelPlan;
use crate::kernels::guest::{self, GuestRecordKind, GuestSettings, KernelOptions, Prepared};
use crate::recordings::survey;
use crate::terminal::progress::Stages;
use anyhow::{Context, Result};
use lineup_explain::{Explained, Options};
use lineup_kernel::guest::{Printed, Varying};
use lineup_model::region::{Region, Regions};
use lineup_prove::footprint::RegionFootprint;
use lineup_prove::output::Output;
use lineup_prove::run::{Ending, RunResult, Runner, Slot};
use lineup_prove::{Conduct, ConductEffects, Recorded, RegionCalls, Variant as RunOf};
use lineup_recording::{MeasuredCall, Recording};
use lineup_study::guest::boot::BootOutcome;
use lineup_study::interrupt::Interrupts;
use lineup_study::progress::Progress;
use lineup_study::source::kernel_tree::{BuiltKernel, KernelTree};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The reason why only a guest's output is compared, and no other effects.
const NO_EFFECTS: &str = "a guest has no disk and no network; what it printed is compared";

/// The additional memory of a second run's guest: the kernel's allocations get other addresses, and take other time.
pub(crate) const MORE_MEMORY_MIB: u32 = 16;

/// A kernel that was built, and booted without the recorder.
pub(crate) struct Booted {
    prepared: Prepared,
    built: BuiltKernel,
    recording: PathBuf,
    /// Its guest's output.
    pub(crate) printed: Printed,
}

/// The same, recorded.
pub(crate) struct Variant {
    booted: Booted,
    /// Its guest's output while it was recorded.
    printed: Printed,
    status: i32,
    /// The recording.
    pub(crate) recorded: Explained,
    /// Every measured call.
    pub(crate) measured: Vec<MeasuredCall>,
}

/// A kernel with which the guest did not reach its end; without information about the host.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct DoesNotRun(String);

/// Builds, with these texts in place of the tree's, and keeps image and debug information in the folder of the results.
pub(crate) fn build(
    plan: &KernelPlan<'_>,
    tree: &mut KernelTree,
    edits: &BTreeMap<String, String>,
    stages: &Stages,
) -> Result<BuiltKernel> {
    let name = name(edits);
    let folder = plan.out.join(name);
    fs::create_dir_all(&folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    let log = folder.join("build.log");
    fs::write(&log, "").with_context(|| format!("cannot write {}", log.display()))?;
    stages.stage(&format!("building the kernel {name} the change; make's words are in {}", log.display()));
    let built = tree.build(edits, &log, stages)?;
    let keep = |from: &Path| {
        let to = folder.join(from.file_name().unwrap_or_default());
        fs::copy(from, &to)
            .with_context(|| format!("cannot keep {} in {}", from.display(), folder.display()))?;
        anyhow::Ok(to)
    };
    Ok(BuiltKernel { image: keep(&built.image)?, vmlinux: keep(&built.vmlinux)? })
}

fn name(edits: &BTreeMap<String, String>) -> &'static str {
    if edits.is_empty() { "before" } else { "after" }
}

impl Booted {
    /// Boots the built kernel. The console is in the folder of the results.
    pub(crate) fn boot(
        plan: &KernelPlan<'_>,
        built: &BuiltKernel,
        stages: &Stages,
        interrupts: &Interrupts,
    ) -> Result<Booted> {
        let folder = built.image.parent().unwrap_or(plan.out);
        let recording = folder.join("calls.rec");
        let prepared = prepared(plan, &plan.options.guest(built), &recording, stages, interrupts)?;
        let (outcome, problem) = guest::boot_bare(&prepared, 0, stages, interrupts)?;
        keep_console(folder, &outcome.printed)?;
        ended_well(problem)?;
        Ok(Booted { prepared, built: built.clone(), recording, printed: outcome.printed })
    }

    /// The differences when the same kernel boots with more memory.
    pub(crate) fn varying(&self, stages: &Stages, interrupts: &Interrupts) -> Result<Varying> {
        let (outcome, problem) = guest::boot_bare(&self.prepared, MORE_MEMORY_MIB, stages, interrupts)?;
        ended_well(problem)?;
        Ok(self.printed.varying(&outcome.printed))
    }

    /// Boots again with the recorder, and explains. Regions that the workload does not call are left out of the plan, and
    /// the others are recorded again; the remark on that comes with the recording.
    pub(crate) fn record_called(
        mut self,
        plan: &mut KernelPlan<'_>,
        stages: &Stages,
        interrupts: &Interrupts,
    ) -> Result<(Variant, Option<String>)> {
        let recorded = guest::record(&self.prepared, stages, interrupts)?;
        ended_well(recorded.problem.clone())?;
        let silent = silent(&recorded);
        if silent.is_empty() || silent.len() == recorded.recording.header.regions.len() {
            return Ok((self.explain(plan, recorded, stages)?, None));
        }
        let remark = format!(
            "the workload {} made no call of {}: left out",
            plan.options.workload(),
            silent.join(", ")
        );
        stages.line(&format!("lineup: {remark}; the study goes on with the other regions"));
        let called =
            recorded.recording.header.regions.iter().filter(|(_, region)| !silent.contains(&region.name));
        plan.regions = Regions::from_iter(
            called.map(|(_, region)| Region { weight: region.weight, ..Region::named(&region.name) }),
        );
        self.prepared =
            prepared(plan, &plan.options.guest(&self.built), &self.recording, stages, interrupts)?;
        let recorded = guest::record(&self.prepared, stages, interrupts)?;
        Ok((self.explain(plan, recorded, stages)?, Some(remark)))
    }

    /// Boots again with the recorder, and explains.
    pub(crate) fn record(
        self,
        plan: &KernelPlan<'_>,
        stages: &Stages,
        interrupts: &Interrupts,
    ) -> Result<Variant> {
        let recorded = guest::record(&self.prepared, stages, interrupts)?;
        self.explain(plan, recorded, stages)
    }

    fn explain(self, plan: &KernelPlan<'_>, recorded: guest::Recorded, stages: &Stages) -> Result<Variant> {
        let silent = silent(&recorded);
        ended_well(recorded.problem)?;
        if !silent.is_empty() {
            ended_well(Some(format!(
                "the workload {} made no call of {}; name functions that it leads to",
                plan.options.workload(),
                silent.join(", ")
            )))?;
        }
        let explained = explained(plan, &self.prepared, &self.recording, stages)?;
        Ok(Variant {
            status: recorded.outcome.status().unwrap_or(-1),
            printed: recorded.outcome.printed,
            measured: recorded.recording.measured,
            recorded: explained,
            booted: self,
        })
    }
}

impl Variant {
    /// Boots and records the same kernel again, with additional memory: its allocations get other addresses, and the timer
    /// another phase. Only the explained calls stay.
    pub(crate) fn again(
        &self,
        plan: &KernelPlan<'_>,
        more_memory_mib: u32,
        stages: &Stages,
        interrupts: &Interrupts,
    ) -> Result<Explained> {
        let recording = self.booted.recording.with_file_name("again.rec");
        let guest = KernelOptions {
            memory: plan.options.memory() + more_memory_mib,
            ..plan.options.guest(&self.booted.built)
        };
        let prepared = prepared(plan, &guest, &recording, stages, interrupts)?;
        let recorded = guest::record(&prepared, stages, interrupts)?;
        ended_well(recorded.problem)?;
        let explained = explained(plan, &prepared, &recording, stages);
        fs::remove_file(&recording).with_context(|| format!("cannot remove {}", recording.display()))?;
        explained
    }

    /// Its guest's output without the recorder.
    pub(crate) fn printed(&self) -> &Printed {
        &self.booted.printed
    }

    /// The recording in the proof's form.
    pub(crate) fn as_recorded(&self, varying: &Varying) -> Recorded {
        let none = Output::of(b"");
        let conduct = Conduct {
            input: none,
            calls: RegionCalls::of_explained(&self.recorded),
            repeated_calls: Vec::new(),
            ending: Ending::Exited(self.status),
            stdout: Output::of(self.printed.workload_printed(varying).as_bytes()),
            stderr: Output::of(self.printed.kernel_said(varying).as_bytes()),
            client_stdout: None,
            effects: ConductEffects::NotObserved(NO_EFFECTS.into()),
        };
        let regions = self.recorded.explanation.regions.iter();
        Recorded { footprints: regions.map(RegionFootprint::of_explained).collect(), conduct }
    }
}

/// Boots both variants in turn.
pub(crate) struct GuestRunner<'r> {
    /// The unchanged kernel, and the changed one.
    pub(crate) variants: [&'r Variant; 2],
    pub(crate) varying: &'r Varying,
    pub(crate) stages: &'r Stages,
    pub(crate) interrupts: &'r Interrupts,
}

impl Runner for GuestRunner<'_> {
    fn run(&mut self, slot: &Slot) -> Result<RunResult, Box<dyn std::error::Error + Send + Sync>> {
        let variant = self.variants[usize::from(slot.variant != RunOf::BEFORE)];
        let (outcome, problem) = guest::boot_bare(&variant.booted.prepared, 0, self.stages, self.interrupts)?;
        ended_well(problem)?;
        let BootOutcome { printed, work, .. } = &outcome;
        let (said, output) = (printed.kernel_said(self.varying), printed.workload_printed(self.varying));
        let wall_ns = work.unwrap_or(Duration::ZERO).as_nanos();
        let status = outcome.status().unwrap_or(-1);
        let wall_ns = u64::try_from(wall_ns).unwrap_or(u64::MAX);
        Ok(RunResult::finished(status, output.as_bytes(), said.as_bytes(), wall_ns))
    }
}

/// The kernel of a guest, ready to be booted and recorded.
fn prepared(
    plan: &KernelPlan<'_>,
    guest: &KernelOptions,
    recording: &Path,
    stages: &Stages,
    interrupts: &Interrupts,
) -> Result<Prepared> {
    let wanted = GuestSettings {
        regions: plan.regions.clone(),
        calls: Some(plan.calls),
        selection: plan.selection,
        warmup: plan.warmup,
        caches: plan.caches,
        out: recording,
        what: GuestRecordKind::Calls,
    };
    guest::prepare(guest, &wanted, stages, interrupts)
}

fn explained(
    plan: &KernelPlan<'_>,
    prepared: &Prepared,
    recording: &Path,
    stages: &Stages,
) -> Result<Explained> {
    let surveyed = survey::survey(recording, stages)?;
    let described = PathBuf::from(prepared.described());
    let options =
        Options { line_size: plan.advice.primary, caches: plan.caches.to_vec(), ..Options::default() };
    survey::program(surveyed, &described, Default::default(), options, stages)
}

/// The regions without a call.
fn silent(recorded: &guest::Recorded) -> Vec<String> {
    let Recording { header, measured, .. } = &recorded.recording;
    let regions = header.regions.iter().filter(|(id, _)| measured.iter().all(|call| call.region != *id));
    regions.map(|(_, region)| region.name.clone()).collect()
}

fn ended_well(problem: Option<String>) -> Result<()> {
    problem.map_or(Ok(()), |problem| Err(DoesNotRun(problem).into()))
}

fn keep_console(folder: &Path, printed: &Printed) -> Result<()> {
    let lines = |lines: &[String]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    let texts = [("boot.log", lines(&printed.kernel)), ("workload.log", lines(&printed.workload))];
    texts.into_iter().try_for_each(|(name, text)| {
        let path = folder.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    })
}
