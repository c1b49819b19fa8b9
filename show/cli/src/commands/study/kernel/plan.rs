//! The plan of a kernel's study, and the commands that repeat it.

use super::args::KernelSourceOptions;
use crate::commands::study::{args, plan, result_files};
use crate::options::advice::ReportOptions;
use crate::terminal::typed_command;
use anyhow::{Result, bail};
use lineup_cache::CacheSpec;
use lineup_model::region::Regions;
use lineup_prove::footprint::LineKind;
use lineup_recording::Selection;
use lineup_report::study::CommandLine;
use lineup_study::source::meaning::Units;
use std::ffi::OsString;
use std::path::Path;

/// The plan of a kernel's study.
pub(crate) struct KernelPlan<'p> {
    /// Options that concern kernels alone.
    pub(crate) options: &'p KernelSourceOptions,
    /// Functions and weights.
    pub(crate) regions: Regions,
    /// Calls of each kept with their accesses.
    pub(crate) calls: u64,
    /// The selection of these calls.
    pub(crate) selection: Selection,
    /// Calls left out at first.
    pub(crate) warmup: u64,
    /// Caches to model; the usual ones when empty.
    pub(crate) caches: &'p [CacheSpec],
    /// Options of advice.
    pub(crate) advice: lineup_advise::options::Options,
    /// The units that are read with clang.
    pub(crate) units: Units,
    /// The extent of the printed report.
    pub(crate) report: &'p ReportOptions,
    /// The folder of results; exists.
    pub(crate) out: &'p Path,
    /// True when standard output gets JSON.
    pub(crate) json: bool,
    /// The kind of lines that decides: data, or code with `--code`.
    pub(crate) lines_of: LineKind,
}

impl<'p> KernelPlan<'p> {
    pub(crate) fn of(typed: &'p args::Options, out: &'p Path) -> Result<KernelPlan<'p>> {
        let regions = Regions::from_iter(typed.regions.iter().cloned());
        if regions.is_empty() {
            bail!(
                "name the regions of the study with --region: functions of the kernel or sets of them (`lineup record \
                 --help` lists these); `lineup find --kernel IMAGE` lists those that stall most"
            );
        }
        Ok(KernelPlan {
            options: &typed.kernel,
            regions,
            calls: typed.calls.unwrap_or(plan::MAX_CALLS),
            selection: if typed.first { Selection::First } else { Selection::Spread },
            warmup: typed.warmup,
            caches: &typed.caches,
            advice: typed.advice.meant_of_kernel()?,
            units: typed.advice.units(),
            report: &typed.report,
            out,
            json: typed.json,
            lines_of: if typed.code.code { LineKind::Code } else { LineKind::Data },
        })
    }
}

/// Commands that repeat a study, and commands for next steps.
pub(crate) fn commands(plan: &KernelPlan<'_>, tree: &Path, has_patch: bool) -> Vec<CommandLine> {
    let repeat =
        CommandLine { purpose: "repeat this study".into(), text: typed_command::line(std::env::args_os()) };
    let apply = has_patch.then(|| {
        let words: [OsString; 6] = [
            "patch".into(),
            "-d".into(),
            tree.into(),
            "-p1".into(),
            "-i".into(),
            plan.out.join(result_files::PATCH).into(),
        ];
        CommandLine { purpose: "apply the patch".into(), text: typed_command::line(words) }
    });
    std::iter::once(repeat).chain(apply).collect()
}
