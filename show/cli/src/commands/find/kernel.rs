//! `lineup find --kernel`: findings in a kernel, from a guest's whole work.

use super::args::Options;
use crate::kernels::guest::{GuestRecordKind, GuestSettings, boot_recorded, prepare};
use crate::recordings::{debug_info, module_types};
use crate::terminal::progress::Stages;
use crate::whole_program::counts::read;
use anyhow::{Context, Result, bail};
use lineup_find::{Findings, NextWords};
use lineup_kernel::region_sets::KERNEL;
use lineup_model::figure;
use lineup_model::region::Regions;
use lineup_recording::Selection;
use lineup_study::interrupt::Interrupts;
use lineup_study::progress::Progress;
use std::path::{Path, PathBuf};

/// Boots the guest, records it, and works out the findings in its kernel.
pub(crate) fn find(options: &Options, stages: &Stages, interrupts: &Interrupts) -> Result<Findings> {
    if !options.command.is_empty() {
        bail!("a guest runs its workload: give the command with --workload instead of after --");
    }
    let scratch = interrupts.temporary_folder().context("making a temporary folder")?;
    let recording: PathBuf = options.out.clone().unwrap_or_else(|| scratch.path().join("find.rec"));
    let wanted = GuestSettings {
        regions: Regions::default(),
        calls: None,
        selection: Selection::First,
        warmup: 0,
        caches: &options.caches,
        out: &recording,
        what: GuestRecordKind::Whole { window_bytes: options.windows << 20 },
    };
    let prepared = prepare(&options.kernel, &wanted, stages, interrupts)?;
    let (_, problem) = boot_recorded(&prepared, stages, interrupts)?;
    if let Some(problem) = problem {
        bail!("{problem}");
    }
    let mut recorded = read(&recording, stages)?;
    let of_programs = recorded.leave_out_below(prepared.kernel_start());
    let debug = module_types::debug_infos(
        &recorded.images,
        &recorded.modules,
        Path::to_owned,
        |_, file| debug_info::debug_info(file, stages),
        stages,
    );
    stages.stage("naming accesses and trying layouts");
    let usual = lineup_find::Options::default();
    let without_functions = ["--region", KERNEL].map(str::to_owned).to_vec();
    let next = Some(NextWords { first: options.kernel.next_words(), without_functions });
    let wanted = lineup_find::Options { least_gain: options.least, next, ..usual };
    let mut findings = lineup_find::work_out(&recorded, &debug, prepared.described(), None, &wanted)?;
    findings.notes.push(format!(
        "programs executed {} of the guest's instructions: their stalls are not reported, their effect on the caches \
         is modelled",
        figure::share(of_programs)
    ));
    Ok(findings)
}
