//! The times of the regions' calls in both variants.

use super::plan::Plan;
use super::variant::{self, Variant};
use crate::terminal::progress::Stages;
use crate::timing::clock;
use anyhow::Result;
use lineup_model::region::RegionId;
use lineup_prove::region_time::{RegionTime, RegionTotal, TimedCalls, compare_regions};
use lineup_prove::{Proof, ProofPlan, ProveError, Proven, Slot};
use lineup_recording::{Mode, Selection};
use lineup_report::study::NotObserved;
use lineup_study::interrupt::Interrupts;
use lineup_study::progress::Progress;
use lineup_study::recorder::{self, Engine, RecordRequest, Subject};
use lineup_study::run::Run;
use lineup_study::timing::{Placing, allowed_cpus};
use std::time::Instant;

/// Calls with a shorter mean time, without the stamps, are not compared: the stamps scatter by this much.
const LEAST_MEAN_NS: u64 = 5;

/// The results.
#[derive(Default)]
pub(crate) struct CallTimes {
    /// The comparison, when one was made.
    pub(crate) proven: Option<Proven<Vec<RegionTime>>>,
    /// Regions whose calls were not timed, with the reasons.
    pub(crate) not_timed: Vec<NotObserved>,
    /// The regions whose calls can be timed.
    pub(crate) ids: Vec<RegionId>,
}

/// The placing of the runs.
pub(crate) struct Where<'w> {
    /// The threads' placing on the CPUs.
    pub(crate) placing: Placing,
    /// The CPUs.
    pub(crate) cpus: &'w [u32],
    /// The number of threads that a program is asked for, if its arguments set it; `None` for the number of CPUs.
    pub(crate) threads: Option<usize>,
}

impl CallTimes {
    fn none(why: impl Into<String>) -> CallTimes {
        let not_timed = vec![NotObserved { what: "time of calls".into(), consequence: why.into() }];
        CallTimes { not_timed, ..CallTimes::default() }
    }
}

/// Compares the times of calls, in half the time that whole runs may take. A failure here does not end a study: the
/// report says why the times were not observed.
///
/// # Errors
/// When it is interrupted.
pub(crate) fn compare(
    plan: &Plan,
    variants: [&Variant; 2],
    proof: &Proof,
    interrupts: &Interrupts,
    stages: &Stages,
) -> Result<CallTimes> {
    if proof.time.is_err() {
        return Ok(CallTimes::none("runs of the whole program are not timed either"));
    }
    if plan.program.is_some() {
        return Ok(CallTimes::none("the program is started by another"));
    }
    stages.stage("timing calls in both variants");
    let placing = variant::placing(plan, variants[0]);
    let cpus = placing.ordered(allowed_cpus()?);
    let at = Where { placing, cpus: &cpus, threads: None };
    let timeable = Timeable::of(plan, variants[0], &at, interrupts);
    interrupts.check()?;
    let Timeable { ids, not_timed } = timeable;
    if ids.is_empty() {
        return Ok(CallTimes { not_timed, ..CallTimes::default() });
    }
    let limits = ProofPlan { max_time_ns: plan.proof.max_time_ns / 2, ..plan.proof };
    let compared = on(plan, variants, (&at, &ids), &limits, (interrupts, stages));
    interrupts.check()?;
    Ok(match compared {
        Ok(proven) => CallTimes { proven: Some(proven), not_timed, ids },
        Err(error) => CallTimes::none(error.to_string()),
    })
}

/// Compares the times of these regions' calls there.
pub(crate) fn on(
    plan: &Plan,
    variants: [&Variant; 2],
    (at, ids): (&Where<'_>, &[RegionId]),
    limits: &ProofPlan,
    (interrupts, stages): (&Interrupts, &Stages),
) -> Result<Proven<Vec<RegionTime>>, ProveError> {
    let most = 2 + 4 * limits.max_blocks;
    let mut timer = |slot: &Slot| {
        stages.advance(slot.number, most);
        timed(plan, variants[slot.variant.0], ids, (at, slot), interrupts).map_err(Into::into)
    };
    compare_regions(&mut timer, limits)
}

/// The regions whose calls can be timed.
struct Timeable {
    ids: Vec<RegionId>,
    not_timed: Vec<NotObserved>,
}

impl Timeable {
    /// Found out by trying: all at once, and where that does not work one after the other.
    fn of(plan: &Plan, variant: &Variant, at: &Where<'_>, interrupts: &Interrupts) -> Timeable {
        let first = Slot { number: 0, variant: lineup_prove::Variant::BEFORE, block: None };
        let all: Vec<RegionId> = plan.regions.ids().collect();
        let mut tried = Timeable { ids: Vec::new(), not_timed: Vec::new() };
        match timed(plan, variant, &all, (at, &first), interrupts) {
            Ok(run) => all.iter().for_each(|id| tried.note(plan, *id, Ok(&run))),
            Err(_) => {
                for id in all {
                    let run = timed(plan, variant, &[id], (at, &first), interrupts);
                    tried.note(plan, id, run.as_ref().map_err(|why| format!("{why:#}")));
                }
            }
        }
        tried
    }

    fn note(&mut self, plan: &Plan, id: RegionId, run: Result<&TimedCalls, String>) {
        let total = run.map(|run| run.totals.iter().find(|total| total.id == id));
        let consequence = match total {
            Ok(Some(total)) if total.total_ns >= LEAST_MEAN_NS * total.calls => return self.ids.push(id),
            Ok(Some(_)) => "they are about as short as the timing itself".to_owned(),
            Ok(None) => "none was made".to_owned(),
            Err(why) => why,
        };
        let what = format!("time of calls of {}", plan.regions.name(id));
        self.not_timed.push(NotObserved { what, consequence });
    }
}

/// Times the calls of these regions in one run.
fn timed(
    plan: &Plan,
    variant: &Variant,
    ids: &[RegionId],
    (at, slot): (&Where<'_>, &Slot),
    interrupts: &Interrupts,
) -> Result<TimedCalls> {
    let begun = Instant::now();
    let run = plan.run_with(variant.tree(), at.threads)?;
    let run = Run { on: at.placing.on(at.cpus, slot), ..run };
    let subject = Subject::load(&run, None)?;
    let request = RecordRequest {
        regions: ids.iter().filter_map(|id| plan.regions.get(*id)).cloned().collect(),
        selection: Selection::First,
        stop_after: plan.stop_after,
        ..RecordRequest::new(run, Engine::Native, Mode::TwoPass)
    };
    let times = recorder::time(&request, &subject, interrupts)?;
    interrupts.check()?;
    let totals = clock::totals(&times).into_iter().zip(ids);
    let totals = totals.filter(|((calls, _), _)| *calls > 0);
    let totals = totals.map(|((calls, total_ns), id)| RegionTotal { id: *id, calls, total_ns }).collect();
    Ok(TimedCalls { totals, spent_ns: nanoseconds_since(begun) })
}

pub(crate) fn nanoseconds_since(begun: Instant) -> u64 {
    u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
