//! The effect of a patch that parts data of threads on one CPU, on two, and so on to all: the threads' phase in both
//! variants.

use super::call_times::{CallTimes, Where};
use super::plan::Plan;
use super::variant::Variant;
use super::{call_times, variant};
use crate::terminal::progress::Stages;
use anyhow::Result;
use lineup_model::region::RegionId;
use lineup_prove::region_time::{RegionTime, RegionTotal, TimedCalls, compare_regions};
use lineup_prove::timing::TimeChange;
use lineup_prove::{ProofPlan, ProveError, Proven, Slot};
use lineup_report::study::{Contention, ContentionPoint, NotObserved};
use lineup_stats::verdict::Verdict;
use lineup_study::interrupt::Interrupts;
use lineup_study::process::{Streams, Waiting};
use lineup_study::progress::Progress;
use lineup_study::run::Run;
use lineup_study::timing::{Placing, allowed_cpus};

/// Compares the times of the regions' calls on 1 to all CPUs, each thread on one of its own; of whole runs where no
/// calls can be timed. `None` when the study parts nothing, or the user chose the CPUs. Each comparison may take a
/// quarter of the time that whole runs may.
///
/// # Errors
/// When it is interrupted.
pub(crate) fn compare(
    plan: &Plan,
    variants: [&Variant; 2],
    timed: &mut CallTimes,
    interrupts: &Interrupts,
    stages: &Stages,
) -> Result<Option<Contention>> {
    if !applies(plan, variants[0]) {
        return Ok(None);
    }
    let all = Placing::ThreadsApart.ordered(allowed_cpus()?);
    let limits = ProofPlan { max_time_ns: plan.proof.max_time_ns / 4, ..plan.proof };
    let of_whole_runs = timed.proven.is_none();
    let mut points = Vec::new();
    let mut are_short = false;
    for count in 1..=all.len() {
        if let Some(on_all) = timed.proven.as_ref().filter(|_| count == all.len()) {
            points.push(ContentionPoint::of(count, on_all.value()));
            break;
        }
        stages.stage(&format!("timing the threads on {count} of {} CPUs", all.len()));
        // The one CPU is another one in each block.
        let (placing, cpus) = match count {
            1 => (Placing::ThreadsTogether, all.as_slice()),
            _ => (Placing::ThreadsApart, &all[..count]),
        };
        let at = Where { placing, cpus, threads: Some(count) };
        let compared = match of_whole_runs {
            true => whole_runs(plan, variants, &at, &limits, (interrupts, stages)),
            false => call_times::on(plan, variants, (&at, &timed.ids), &limits, (interrupts, stages)),
        };
        interrupts.check()?;
        match compared {
            Ok(proven) => {
                are_short |= of_whole_runs && count > 1 && proven.value().iter().any(is_lost_in_starting);
                points.push(ContentionPoint::of(count, proven.value()));
            }
            Err(error) => timed.not_timed.push(NotObserved {
                what: format!("times on {count} of {} CPUs", all.len()),
                consequence: error.to_string(),
            }),
        }
    }
    timed.not_timed.extend(are_short.then(short_runs));
    Ok(Some(Contention { threads_follow_cpus: plan.asks_for_threads(), of_whole_runs, points }))
}

/// True when the study parts data of threads of a program of this machine, and may choose their CPUs.
pub(crate) fn applies(plan: &Plan, before: &Variant) -> bool {
    before.recorded.abi().machine.is_host() && variant::placing(plan, before) == Placing::ThreadsApart
}

/// A run that is shorter is mostly start and end, which scatter by more than threads lose to each other.
const SHORT_NS: f64 = 1e8;

/// True when whole runs did not show the effects of threads on each other, and may have been too short for it.
fn is_lost_in_starting(time: &RegionTime) -> bool {
    let TimeChange { before_ns, judgement, .. } = &time.change;
    judgement.verdict == Verdict::Inconclusive && before_ns.mean < SHORT_NS
}

fn short_runs() -> NotObserved {
    NotObserved {
        what: "small changes of whole runs".into(),
        consequence:
            "runs take less than 0.1 s, of which starting and ending is much: let the threads work longer"
                .into(),
    }
}

/// Whole runs, each as one call of the first region.
fn whole_runs(
    plan: &Plan,
    variants: [&Variant; 2],
    at: &Where<'_>,
    limits: &ProofPlan,
    (interrupts, stages): (&Interrupts, &Stages),
) -> Result<Proven<Vec<RegionTime>>, ProveError> {
    let most = 2 + 4 * limits.max_blocks;
    let id = plan.regions.ids().next().unwrap_or(RegionId(0));
    let mut timer = |slot: &Slot| {
        stages.advance(slot.number, most);
        let run = plan.run_with(variants[slot.variant.0].tree(), at.threads)?;
        let run = Run { on: at.placing.on(at.cpus, slot), ..run };
        let total_ns = Waiting::start(&run, Streams::Captured, interrupts)?.run()?.wall_ns;
        Ok(TimedCalls { totals: vec![RegionTotal { id, calls: 1, total_ns }], spent_ns: total_ns })
    };
    compare_regions(&mut timer, limits)
}
