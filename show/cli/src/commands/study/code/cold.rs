//! An order for calls that find none of the program's code in the caches, and the orders it is compared with.

use super::counts::{FetchedPerCall, Training, fetched_per_call, own_image};
use super::ordering::{Order, Study, name};
use super::workload::Workload;
use crate::commands::study::variant::Variant;
use crate::commands::study::{call_times, variant};
use crate::timing::interventions;
use anyhow::{Context, Result, bail};
use lineup_codelayout::{Fetched, cold_order, cold_profile};
use lineup_prove::region_time::{RegionTotal, TimedCalls, compare_regions};
use lineup_prove::{ProofPlan, RegionCalls, Slot};
use lineup_recording::{Event, Mode, Reader, Selection};
use lineup_report::study::{ColdCall, ColdCalls, ColdTime, TimeReport};
use lineup_study::progress::Progress;
use lineup_study::recorder::{self, Engine, RecordRequest, RecordedCode, Subject};
use lineup_study::run::Run;
use lineup_study::source::scratch::{Role, Tree};
use lineup_study::timing::allowed_cpus;
use std::collections::BTreeMap;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// With fewer emptied calls in a run their typical time says little.
const LEAST_EMPTIED: u64 = 5;

/// The order, and the number of calls it was computed from.
pub(crate) struct Cold {
    pub(crate) order: Order,
    calls: u64,
}

impl Cold {
    /// Records calls of the training run, and writes the input from which `llvm-bolt` computes an order.
    pub(crate) fn of(study: &Study<'_>, run: &Workload, trained: &Training, built: &Tree) -> Result<Cold> {
        let plan = study.plan;
        let folder = study.interrupts.temporary_folder().context("making a temporary folder")?;
        let recording = folder.path().join("calls.rec");
        let run = run.run(plan, built)?;
        study.stages.stage("recording calls of the training run");
        let subject = Subject::load(&run, None)?;
        variant::record((plan, plan.engine), run, &subject, &recording, study.interrupts)?;
        let fetched = fetched(&recording, trained.program())?;
        if fetched.calls() == 0 {
            bail!(
                "the training run calls none of the regions, so the lines that their calls fetch are unknown"
            );
        }
        let code = trained.code()?;
        let program = name(&plan.started).display();
        let [profile, functions] =
            ["cold.fdata", "cold.order"].map(|end| plan.out.join(format!("{program}.{end}")));
        let write = |path: &Path, text: String| {
            std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
        };
        write(&profile, cold_profile(&code, &fetched))?;
        write(&functions, cold_order(&code, &fetched))?;
        Ok(Cold { order: Order { profile, functions: Some(functions) }, calls: fetched.calls() })
    }

    /// Holds the program in this order against the one as it was linked and against one in the order by counts.
    pub(crate) fn judge(
        &self,
        study: &Study<'_>,
        order_by_counts: &Order,
        [before, after]: [&Variant; 2],
    ) -> Result<ColdCalls> {
        let tree = study.ordered((before.tree(), &BTreeMap::new()), order_by_counts, Role::Candidate)?;
        let built = Variant::built(tree, COUNTS);
        let counts = Variant::record(
            (study.plan, Some(before)),
            study.scratch,
            built,
            study.stages,
            study.interrupts,
        )?;
        let fetched = ["before", COUNTS, "after"].map(|name| study.plan.out.join(name).join("calls.rec"));
        let [linked, counted, cold] = fetched.each_ref().map(|recording| fetched_per_call(recording));
        let (linked, counted, cold) = (linked?, counted?, cold?);
        let mut not_timed = Vec::new();
        let [by_links, by_counts, by_calls] = fetched.each_ref().map(PathBuf::as_path);
        let mut times = |other, against: &str| match emptied(study, [other, (after, by_calls)]) {
            Ok(times) => times,
            Err(error) => {
                not_timed.push(format!("against the program {against}: {error:#}"));
                Vec::new()
            }
        };
        let times =
            [times((before, by_links), "as linked"), times((&counts, by_counts), "in the order by counts")];
        study.interrupts.check()?;
        not_timed.extend(never_timed(&linked, &times));
        let one = |(position, ((region, linked), ((_, counted), (_, cold))))| {
            let figure = |index: usize| [&linked, &counted, &cold].map(|figures: &[f64; 2]| figures[index]);
            ColdCall {
                region,
                lines: figure(0),
                pages: figure(1),
                time: [0, 1].map(|other: usize| times[other].get(position).copied().flatten()),
            }
        };
        let regions = linked.into_iter().zip(counted.into_iter().zip(cold)).enumerate().map(one).collect();
        Ok(ColdCalls { recorded_calls: self.calls, regions, not_timed })
    }
}

/// Regions without a time where others have one: no call of a function returns that always ends with an error.
fn never_timed(regions: &[FetchedPerCall], times: &[Vec<Option<ColdTime>>]) -> Vec<String> {
    let lacks = |position: usize| times.iter().any(|times| times.get(position).is_some_and(Option::is_none));
    let regions = regions.iter().enumerate().filter(|(position, _)| lacks(*position));
    let why = |(_, (region, _)): (usize, &FetchedPerCall)| {
        format!("{region}: a run has fewer than {LEAST_EMPTIED} emptied calls of it that return")
    };
    regions.map(why).collect()
}

/// The folder of results that has the program in the order by counts.
pub(crate) const COUNTS: &str = "counts";

/// The code of a program that a recording's calls fetched.
fn fetched(recording: &Path, program: &Path) -> Result<Fetched> {
    let file = lineup_mapping::open(recording).with_context(|| recording.display().to_string())?;
    let events: Vec<Event> = Reader::new(BufReader::new(file))?.without_log().collect();
    let images: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::Image(image) => Some(image.clone()),
            _ => None,
        })
        .collect();
    let image = own_image(&images, program)?;
    let mut fetched = Fetched::default();
    for event in &events {
        if let Event::Call(call) = event {
            fetched.add(call, image);
        }
    }
    Ok(fetched)
}

/// A variant, and where its calls' recording lies.
type Emptied<'v> = (&'v Variant, &'v Path);

/// The typical times of emptied calls of two variants, by region; `None` where a run has too few.
fn emptied(study: &Study<'_>, variants: [Emptied<'_>; 2]) -> Result<Vec<Option<ColdTime>>> {
    study.stages.stage("timing calls after their code was flushed");
    let plan = study.plan;
    let [before, after] = variants.map(|(variant, recording)| {
        let flushed = RecordedCode::read(recording, &plan.regions)?;
        anyhow::Ok(Emptying { study, variant, flushed, most_calls: most_calls(variant) })
    });
    let emptyings = [before?, after?];
    let limits = ProofPlan { max_time_ns: plan.proof.max_time_ns / 2, ..plan.proof };
    let most = 2 + 4 * limits.max_blocks;
    let mut timer = |slot: &Slot| {
        study.stages.advance(slot.number, most);
        emptyings[slot.variant.0].timed(slot).map_err(Into::into)
    };
    let compared = compare_regions(&mut timer, &limits)?;
    let of = |id| {
        let time = compared.value().iter().find(|time| time.id == id)?;
        Some(ColdTime::from(&TimeReport::from(&time.change)))
    };
    Ok(plan.regions.ids().map(of).collect())
}

/// The number of calls of the most called region, in the recorded run.
fn most_calls(variant: &Variant) -> u64 {
    let calls = RegionCalls::of_explained(&variant.recorded).into_iter();
    calls.map(|calls| calls.made.unwrap_or(calls.recorded)).max().unwrap_or(0)
}

/// A variant, and the code to flush before its calls: the code that they execute in it.
struct Emptying<'e> {
    study: &'e Study<'e>,
    variant: &'e Variant,
    flushed: Vec<RecordedCode>,
    most_calls: u64,
}

impl Emptying<'_> {
    /// The typical time of an emptied call of each region in one run. Runs of a block empty the same calls.
    fn timed(&self, slot: &Slot) -> Result<TimedCalls> {
        let (plan, begun) = (self.study.plan, Instant::now());
        let run = plan.run(self.variant.tree())?;
        let placing = variant::placing(plan, self.variant);
        let run = Run { on: placing.on(&placing.clone().ordered(allowed_cpus()?), slot), ..run };
        let subject = Subject::load(&run, None)?;
        let seed = plan.proof.seed.0.wrapping_add(slot.block.unwrap_or(u64::MAX));
        let request = RecordRequest {
            regions: plan.regions.clone(),
            selection: Selection::First,
            stop_after: plan.stop_after,
            interventions: Some(interventions::emptied(self.flushed.clone(), self.most_calls, seed)),
            ..RecordRequest::new(run, Engine::Native, Mode::TwoPass)
        };
        let times = recorder::time(&request, &subject, self.study.interrupts)?;
        self.study.interrupts.check()?;
        let typical = interventions::typical(&times).into_iter().zip(plan.regions.ids());
        let enough = typical.filter(|((calls, _), _)| *calls >= LEAST_EMPTIED);
        let totals: Vec<RegionTotal> = enough
            .filter_map(|((_, ns), id)| Some(RegionTotal { id, calls: 1, total_ns: ns? as u64 }))
            .collect();
        if totals.is_empty() {
            bail!("a run has fewer than {LEAST_EMPTIED} emptied calls of each region whose time is known");
        }
        Ok(TimedCalls { totals, spent_ns: call_times::nanoseconds_since(begun) })
    }
}
