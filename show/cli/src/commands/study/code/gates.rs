//! The gates that every change of code goes through: counted, recorded, compared and judged by another run.

use super::counts::{self, Counted, Training};
use super::workload::Workload;
use crate::commands::study::args;
use crate::commands::study::comparison::{Compared, MORE_LINES, compare, failure_of};
use crate::commands::study::links::Programs;
use crate::commands::study::plan::Plan;
use crate::commands::study::variant::{Built, Variant};
use crate::host::caches;
use crate::terminal::outcome::Outcome;
use crate::terminal::progress::Stages;
use anyhow::{Context, Result};
use lineup_prove::footprint::LineKind;
use lineup_prove::{Conclusion, Proof, ProofPlan, Proven};
use lineup_report::study::{CodePerCall, Fact};
use lineup_study::effects::Snapshot;
use lineup_study::interrupt::Interrupts;
use lineup_study::source::meaning::Units;
use lineup_study::source::scratch::{Scratch, Tree};

/// The settings of a study of code.
pub(crate) struct Gates<'s> {
    pub(crate) plan: &'s Plan,
    pub(crate) scratch: &'s Scratch,
    pub(crate) interrupts: &'s Interrupts,
    pub(crate) stages: &'s Stages,
    /// The changed program's name, such as `the program in the new order`.
    pub(crate) changed: &'static str,
}

/// The page next to a variant's recording that shows its executed code.
const MAP: &str = "code.html";

/// A variant with the result of its whole test run.
pub(crate) struct Measured {
    pub(crate) variant: Variant,
    pub(crate) counted: Counted,
}

/// The plan of a study of code, the counted run, and whether the judging run is another.
pub(crate) fn plan(
    options: args::Options,
    interrupts: &Interrupts,
    stages: &Stages,
) -> Result<(Plan, Workload, bool)> {
    let asked = options.code.clone();
    let mut plan = Plan::of(options, interrupts, stages)?;
    plan.units = Units::Unread;
    plan.proof = ProofPlan { lines_of: LineKind::Code, ..plan.proof };
    if plan.caches.is_empty() {
        plan.caches = caches::of_this_machine()?;
    }
    let training = Workload::of(&plan);
    let is_held_out = asked.judge_by_another((&mut plan.arguments, &mut plan.input), interrupts)?;
    Ok((plan, training, is_held_out))
}

/// Counts the training run, and finds regions when the user names none. The folder is then as it was built.
pub(crate) fn train(
    plan: &mut Plan,
    training: &Workload,
    built: &Tree,
    as_built: &Snapshot,
    (interrupts, stages): (&Interrupts, &Stages),
) -> Result<Training> {
    let trained = Training::record(plan, training, built, interrupts, stages)?;
    as_built.restore()?;
    if plan.regions.is_empty() {
        plan.regions = trained.regions(stages)?;
    }
    Ok(trained)
}

/// Has a copy's program run, and puts the copy back as it was built.
pub(crate) fn leaving_as_built<T>(tree: &Tree, run: impl FnOnce() -> Result<T>) -> Result<T> {
    let as_built = Snapshot::take(&tree.path).context("cannot copy the folder of the program")?;
    let came_to = run()?;
    as_built.restore()?;
    Ok(came_to)
}

impl Gates<'_> {
    /// Counts the test run in a copy, which is left unchanged.
    pub(crate) fn counted(&self, tree: &Tree) -> Result<(Counted, Training)> {
        leaving_as_built(tree, || Counted::of(self.plan, tree, self.interrupts, self.stages))
    }

    /// Counts the training run in a copy, which is left unchanged.
    pub(crate) fn trained(&self, run: &Workload, tree: &Tree) -> Result<Training> {
        leaving_as_built(tree, || Training::record(self.plan, run, tree, self.interrupts, self.stages))
    }

    /// Counts the whole test run, and records the regions' calls in it.
    pub(crate) fn measure(&self, built: Built, like: Option<&Variant>) -> Result<Measured> {
        let (counted, whole) = self.counted(&built.tree)?;
        let results = self.plan.out.join(built.name);
        let variant = Variant::record((self.plan, like), self.scratch, built, self.stages, self.interrupts)?;
        whole.write_map(&results.join("calls.rec"), &results.join(MAP), self.stages)?;
        Ok(Measured { variant, counted })
    }

    /// The comparison, or the reason why there is none.
    pub(crate) fn compare(&self, variants: [&Variant; 2], links: Option<Programs>) -> Result<Compared> {
        match compare((self.plan, self.plan.proof), variants, links, self.stages, self.interrupts) {
            Ok(proven) => Ok(Ok(proven)),
            Err(error) if error.is_other_work() => Ok(Err(error.to_string())),
            Err(error) => {
                self.interrupts.check()?;
                Ok(Err(failure_of(error.into())?.because))
            }
        }
    }

    /// The code that calls fetched, from both recordings.
    pub(crate) fn calls(&self) -> Result<Vec<CodePerCall>> {
        let [before, after] = ["before", "after"].map(|name| self.plan.out.join(name).join("calls.rec"));
        counts::per_call(&before, &after)
    }

    /// The build of both, and the modelled caches.
    pub(crate) fn setting(&self, linked: Option<&str>) -> Vec<Fact> {
        let fact = |name: &str, value: String| Fact { name: name.into(), value };
        let caches: Vec<String> = self.plan.caches.iter().map(ToString::to_string).collect();
        let mut facts = vec![fact("build", self.plan.build.clone())];
        facts.extend(linked.map(|linked| fact("linked", linked.into())));
        facts.push(fact("caches of the whole run", caches.join(" ")));
        facts.push(fact("first-level TLB of code", format!("{}, fully associative", counts::ITLB_IN_WORDS)));
        let maps = ["before", "after"].map(|name| format!("{name}/{MAP}"));
        facts.push(fact("maps of the executed code", maps.join(" and ")));
        facts.extend(self.scratch.remarks().into_iter().map(|value| fact("copies", value)));
        facts
    }

    /// The verdict on the changed program.
    pub(crate) fn conclude(&self, compared: &Result<Proven<Proof>, String>) -> Outcome {
        outcome(self.changed, worse(compared))
    }
}

/// The reason why a changed program is no gain; `None` where it may be used.
pub(crate) fn worse(compared: &Result<Proven<Proof>, String>) -> Option<&'static str> {
    let Ok(proven) = compared else { return Some("cannot be used: the report says why") };
    let proof = proven.value();
    let is_above = proof.time.as_ref().is_ok_and(|time| !time.judgement.within_margin);
    let has_more_lines = proof.has_more_lines(MORE_LINES);
    match proof.time_conclusion() {
        Conclusion::MoreTime if is_above => Some("takes more time"),
        Conclusion::LessTime => None,
        _ if has_more_lines => Some("needs more lines of code per call, and not less time"),
        _ => None,
    }
}

/// The end of a study; says why a changed program is no gain.
pub(crate) fn outcome(changed: &str, worse: Option<&str>) -> Outcome {
    match worse {
        None => Outcome::Done,
        Some(worse) => {
            eprintln!("lineup: {changed} {worse}");
            Outcome::Finding
        }
    }
}
