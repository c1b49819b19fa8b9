//! Counts of whole runs, and the code that calls fetch.

use super::workload::Workload;
use crate::commands::study::plan::Plan;
use crate::recordings::debug_info;
use crate::terminal::progress::Stages;
use crate::whole_program::{code_page, counts, functions};
use anyhow::{Context, Result, bail};
use lineup_cache::{CacheLevel, CacheSpec};
use lineup_codelayout::Code;
use lineup_debuginfo::DebugInfo;
use lineup_explain::region_summary;
use lineup_find::Recorded;
use lineup_model::image::LoadedImage;
use lineup_model::line::LineSize;
use lineup_model::region::{Region, Regions};
use lineup_recording::{Mode, ProgramExit, Reader};
use lineup_report::study::{CodeFigure, CodePerCall};
use lineup_study::folder::TempFolder;
use lineup_study::interrupt::Interrupts;
use lineup_study::progress::Progress;
use lineup_study::recorder::{self, RecordRequest, Subject, in_words};
use lineup_study::run::Run;
use lineup_study::source::scratch::Tree;
use std::collections::HashSet;
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// The first-level TLB that is modelled for code.
pub(crate) const ITLB_IN_WORDS: &str = "64 entries of 4,096 bytes";
const ITLB: &str = "l1i=256K,64,4096";

/// The number of regions when the user names none.
const MOST_REGIONS: usize = 3;

/// A recording of a whole run, and the program that it is of.
pub(crate) struct Training {
    folder: TempFolder,
    recorded: Recorded,
    debug: DebugInfo,
    program: PathBuf,
}

impl Training {
    /// Counts the execution of the run from which the order is computed.
    pub(crate) fn record(
        plan: &Plan,
        workload: &Workload,
        tree: &Tree,
        interrupts: &Interrupts,
        stages: &Stages,
    ) -> Result<Training> {
        Training::of(plan, workload.run(plan, tree)?, &plan.caches, interrupts, stages)
    }

    fn of(
        plan: &Plan,
        run: Run,
        caches: &[CacheSpec],
        interrupts: &Interrupts,
        stages: &Stages,
    ) -> Result<Training> {
        let folder = interrupts.temporary_folder().context("making a temporary folder")?;
        let output = recording_in(&folder);
        let program = run.command.first().map(PathBuf::from).context("no program given")?;
        stages.stage(&format!("counting executions in {}", program.display()));
        // The same misses whenever it runs.
        let run = Run { fixed_addresses: true, ..run };
        let subject = Subject::load(&run, None)?;
        let request = RecordRequest {
            caches: caches.to_vec(),
            output: output.clone(),
            output_stays: false,
            ..RecordRequest::new(run, plan.engine, Mode::WholeProgram)
        };
        let outcome = recorder::record(&request, &subject, interrupts)?;
        outcome.require_whole(&request)?;
        if let exit @ ProgramExit::Signaled(_) = outcome.ending.exit
            && outcome.finished.stopped.is_none()
        {
            bail!("the program {} while its instructions were counted", in_words(exit));
        }
        let recorded = counts::read(&output, stages)?;
        let debug = debug_info::debug_info(&program, stages)
            .with_context(|| format!("{}: cannot be read", program.display()))?;
        Ok(Training { folder, recorded, debug, program })
    }

    /// The program's code with its counts.
    pub(crate) fn code(&self) -> Result<Code<'_>> {
        let image = own_image(&self.recorded.images, &self.program)?;
        Ok(Code::new(&self.debug, image, &self.recorded.runs)?)
    }

    /// The program.
    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    /// The functions of the program whose instructions missed most, for a study that names none.
    pub(crate) fn regions(&self, stages: &Stages) -> Result<Regions> {
        let mut all = functions::profile(&recording_in(&self.folder), stages)?;
        all.sort_by_key(|one| std::cmp::Reverse(one.fetch_misses.l1));
        let program = self.program.to_string_lossy();
        let is_ours = |one: &&functions::FunctionProfile| one.image.as_deref() == Some(&*program);
        let names = all.iter().filter(is_ours).filter_map(|one| one.function.as_deref());
        // Functions that start and end a program are called once, and stubs are not functions.
        let names = names.filter(|name| *name != "main" && !name.starts_with('_') && !name.contains('@'));
        // Functions of several files may have one name.
        let mut known = HashSet::new();
        let names = names.filter(|name| known.insert(*name));
        let regions: Regions = names.take(MOST_REGIONS).map(Region::named).collect();
        if regions.is_empty() {
            bail!("no function of the program was seen to run besides main; name one with --region");
        }
        let names: Vec<&str> = regions.iter().map(|(_, region)| region.name.as_str()).collect();
        stages.line(&format!(
            "lineup: calls of {} are looked at: their instructions missed most; --region names others",
            names.join(", ")
        ));
        Ok(regions)
    }

    /// Writes the map of the executed code, with the recorded calls that fetched each line; without the calls, if they
    /// cannot be added.
    pub(crate) fn write_map(&self, calls: &Path, to: &Path, stages: &Stages) -> Result<()> {
        let code = self.code()?;
        let summary = code.summary(&self.program.to_string_lossy());
        let page = code_page::page(&code, &summary, Some(calls), stages).or_else(|why| {
            stages.line(&format!("lineup: the map of the code does not show the calls: {why:#}"));
            code_page::page(&code, &summary, None, stages)
        })?;
        std::fs::write(to, page).with_context(|| format!("cannot write {}", to.display()))
    }

    fn fetch_misses(&self) -> [u64; 2] {
        let misses = || self.recorded.runs.iter().map(|run| run.fetch_misses);
        [misses().map(|one| one.l1).sum(), misses().map(|one| one.l2).sum()]
    }
}

/// The program's image.
pub(crate) fn own_image<'i>(images: &'i [LoadedImage], program: &Path) -> Result<&'i LoadedImage> {
    let image = images.iter().find(|image| Path::new(&image.path) == program);
    image.with_context(|| format!("{} was not mapped", program.display()))
}

fn recording_in(folder: &TempFolder) -> PathBuf {
    folder.path().join("whole.rec")
}

/// The result of a whole run.
pub(crate) struct Counted {
    figures: Vec<(String, u64)>,
}

impl Counted {
    /// Counts the plan's run in this copy, with its recording.
    pub(crate) fn of(
        plan: &Plan,
        tree: &Tree,
        interrupts: &Interrupts,
        stages: &Stages,
    ) -> Result<(Counted, Training)> {
        let whole = Training::of(plan, plan.run(tree)?, &plan.caches, interrupts, stages)?;
        let pages = Training::of(plan, plan.run(tree)?, &[ITLB.parse()?], interrupts, stages)?;
        let code = whole.code()?.summary("").code;
        let instructions = whole.recorded.runs.iter().map(|run| run.instructions).sum();
        let [l1i, l2] = whole.fetch_misses();
        let [itlb, _] = pages.fetch_misses();
        let has = |level| plan.caches.iter().any(|cache| cache.level() == level);
        let figures = [
            (true, "instructions", instructions),
            (true, "the program's lines of 64 bytes", code.lines),
            (true, "the program's pages of 4,096 bytes", code.pages),
            (has(CacheLevel::L1i), "modelled L1I misses", l1i),
            (has(CacheLevel::L2), "modelled L2 misses of code", l2),
            (true, "modelled iTLB misses", itlb),
        ];
        let told = figures.into_iter().filter(|(is_known, ..)| *is_known);
        let figures = told.map(|(_, what, count)| (what.to_owned(), count)).collect();
        Ok((Counted { figures }, whole))
    }

    /// The counted figures, by name.
    pub(crate) fn figures(&self) -> &[(String, u64)] {
        &self.figures
    }

    /// Both programs side by side.
    pub(crate) fn beside(&self, after: &Counted) -> Vec<CodeFigure> {
        let pairs = self.figures.iter().zip(&after.figures);
        pairs
            .map(|((what, before), (_, after))| CodeFigure {
                what: what.clone(),
                before: *before,
                after: *after,
            })
            .collect()
    }
}

/// Lines and pages of code that a call of each region fetches, on average, from two recordings.
pub(crate) fn per_call(before: &Path, after: &Path) -> Result<Vec<CodePerCall>> {
    let calls = fetched_per_call(before)?.into_iter().zip(fetched_per_call(after)?);
    let one = |((region, before), (_, after)): (FetchedPerCall, FetchedPerCall)| CodePerCall {
        region,
        lines: [before[0], after[0]],
        pages: [before[1], after[1]],
    };
    Ok(calls.map(one).collect())
}

/// A region, and the lines of 64 bytes and the pages of code that a call fetches on average.
pub(crate) type FetchedPerCall = (String, [f64; 2]);

/// The same of the calls of a recording, by region.
pub(crate) fn fetched_per_call(recording: &Path) -> Result<Vec<FetchedPerCall>> {
    let mean = |size_bytes: u32| -> Result<Vec<(String, f64)>> {
        let file = lineup_mapping::open(recording).with_context(|| recording.display().to_string())?;
        let line = LineSize::new(size_bytes).context("a power of two")?;
        let regions = region_summary::summarise(Reader::new(BufReader::new(file))?.without_log(), line);
        let mean =
            |lines: Option<lineup_explain::quantiles::Quantiles>| lines.map_or(0.0, |lines| lines.mean);
        Ok(regions.into_iter().map(|region| (region.name, mean(region.code_lines))).collect())
    };
    let pairs = mean(64)?.into_iter().zip(mean(4096)?);
    Ok(pairs.map(|((region, lines), (_, pages))| (region, [lines, pages])).collect())
}
