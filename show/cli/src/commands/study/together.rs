//! The levers that gain, taken together: one program with all of them, in new runs beside the unchanged program and the
//! best lever alone.

use super::args;
use super::confirm::{Confirmation, EQUAL, is_less};
use super::plan::Plan;
use super::result_files::TOGETHER_FOLDER;
use super::timed_edits::kept_edit::KeptEdit;
use super::variant::Variant;
use crate::terminal::progress::Stages;
use anyhow::Result;
use lineup_report::placement::{Action, ConfirmedInput};
use lineup_report::study::{CODE_ORDER, LAYOUT, LeverReport, PLACEMENT, TOGETHER};
use lineup_study::interrupt::Interrupts;
use lineup_study::placements::Candidate;
use lineup_study::progress::Progress;
use lineup_study::run::Run;
use lineup_study::source::scratch::{Scratch, Tree};
use std::fs;

/// The programs and settings of levers.
pub(crate) struct Together<'t> {
    pub(crate) options: &'t args::Options,
    pub(crate) plan: &'t Plan,
    /// The unchanged program.
    pub(crate) built: &'t Tree,
    /// The program with the layout's patch, where that gains.
    pub(crate) layout: Option<&'t Tree>,
    /// The program with all patches of the sources that gain.
    pub(crate) changed: Option<&'t Tree>,
    /// The results of the other levers.
    pub(crate) kept: &'t Kept,
    pub(crate) interrupts: &'t Interrupts,
    pub(crate) stages: &'t Stages,
}

impl Together<'_> {
    /// Compares them. `gains` are the levers that gain alone; `both` is the changed program in a new order, where a
    /// patch and the order gain.
    pub(crate) fn confirm(&self, gains: &[&LeverReport], both: Option<&Variant>) -> Result<LeverReport> {
        let ratio = |lever: &LeverReport| lever.elapsed.as_ref().map_or(1.0, |elapsed| elapsed.ratio);
        let best = gains.iter().min_by(|one, other| ratio(one).total_cmp(&ratio(other)));
        let Some(best) = best else { return Ok(LeverReport::without_time(TOGETHER, "no lever gains")) };
        let ordered = both.or(self.kept.ordered()).map(Variant::tree);
        let tree = ordered.or(self.changed).unwrap_or(self.built);
        let placement = self.placement(tree)?;
        let placed = |run: Run| placement.as_ref().map_or(run.clone(), |placement| placement.on(&run));
        let all = placed(self.plan.run(tree)?);
        let unchanged = self.plan.run(self.built)?;
        let best_run = self.alone(best)?;
        let seconds = self.second([&unchanged, &best_run, &all])?;
        let name = names(gains);
        let confirmation =
            Confirmation { options: self.options, interrupts: self.interrupts, stages: self.stages };
        let mut inputs: Vec<[ConfirmedInput; 2]> = Vec::new();
        let firsts = vec![unchanged.clone(), best_run, all.clone()];
        for (runs, is_second) in std::iter::once((firsts, false)).chain(seconds.map(|runs| (runs, true))) {
            self.stages.stage(&format!("confirming {name} in new runs"));
            let (confirmed, cut_short) = confirmation.on_input(runs, (is_second, false))?;
            if let Some(error) = cut_short {
                return Err(anyhow::Error::from_boxed(error));
            }
            inputs.extend(<[ConfirmedInput; 2]>::try_from(confirmed));
        }
        let effects = confirmation.effects([&unchanged, &all])?;
        let report = report((&name, best.lever), &inputs, &effects, self.options.margin.0);
        let starts = placement.filter(|_| report.is_gain).map(|placement| Action {
            purpose: "start the changed program with".into(),
            text: format!("{} {}", placement.in_front_of_a_command(), confirmation.in_words(&all)),
        });
        Ok(LeverReport { actions: starts.into_iter().collect(), ..report })
    }

    /// The placement for a program: pools are planned anew for another one's code.
    fn placement(&self, tree: &Tree) -> Result<Option<Candidate>> {
        let Some(better) = &self.kept.placement else { return Ok(None) };
        if tree.path == self.built.path {
            return Ok(Some(better.clone()));
        }
        let folder = self.plan.out.join(TOGETHER_FOLDER);
        fs::create_dir_all(&folder)?;
        Ok(Some(better.planned_for(&self.plan.run(tree)?, &folder, self.interrupts)?))
    }

    /// The run of one lever.
    fn alone(&self, lever: &LeverReport) -> Result<Run> {
        let tree = match lever.lever {
            LAYOUT => self.layout,
            CODE_ORDER => self.kept.ordered().map(Variant::tree),
            name => self.kept.edits.iter().find(|edit| edit.lever == name).map(|edit| &edit.tree),
        };
        let run = self.plan.run(tree.unwrap_or(self.built))?;
        Ok(match &self.kept.placement {
            Some(placement) if lever.lever == PLACEMENT => placement.on(&run),
            _ => run,
        })
    }

    /// The same runs on the second input, where there is one.
    fn second(&self, runs: [&Run; 3]) -> Result<Option<Vec<Run>>> {
        let seconds = runs.into_iter().map(|run| self.options.code.second_run(run, self.interrupts));
        seconds.collect()
    }
}

/// The levers in words: `placement and code order`.
fn names(gains: &[&LeverReport]) -> String {
    gains.iter().map(|lever| lever.lever).collect::<Vec<_>>().join(" and ")
}

/// The result from each input's figures of the best lever alone and of all together.
fn report(
    (name, best): (&str, &str),
    inputs: &[[ConfirmedInput; 2]],
    effects: &str,
    margin: f64,
) -> LeverReport {
    let Some([alone, all]) = inputs.first() else {
        return LeverReport::without_time(TOGETHER, "no comparison of the levers together was made");
    };
    let on_second = inputs.get(1).map(|[_, all]| format!(", on the second input {}", all.elapsed.in_words()));
    let figures = format!(
        "{name}: {}{}; {best} alone in the same {} blocks: {}",
        all.elapsed.in_words(),
        on_second.unwrap_or_default(),
        all.blocks,
        alone.elapsed.in_words()
    );
    let difference = inputs.iter().find_map(|[_, all]| all.difference.clone());
    let is_less = inputs.iter().all(|[_, all]| is_less(all, margin)) && effects.starts_with(EQUAL);
    let is_more_than_alone = inputs.iter().all(|[alone, all]| all.elapsed.ratio < alone.elapsed.ratio);
    let result = match (difference, is_less, is_more_than_alone) {
        (Some(difference), _, _) => format!("together they change what the program does: {difference}"),
        (None, true, true) => format!("less time with {figures}; effects {effects}"),
        (None, true, false) => format!("together they gain no more than {best} alone: {figures}"),
        (None, false, _) => format!("not confirmed: {figures}; effects {effects}"),
    };
    let is_gain = is_less && is_more_than_alone && inputs.iter().all(|[_, all]| all.difference.is_none());
    LeverReport { elapsed: Some(all.elapsed.clone()), is_gain, ..LeverReport::without_time(TOGETHER, result) }
}

/// The results of levers that gain, for a program with all of them.
#[derive(Default)]
pub(crate) struct Kept {
    /// The timed edits that gain.
    pub(crate) edits: Vec<KeptEdit>,
    /// The placement that gains.
    pub(crate) placement: Option<Candidate>,
    /// The program in a new order, and the copies that hold it.
    pub(crate) ordered: Option<(Variant, Scratch)>,
}

impl Kept {
    /// The program in a new order.
    pub(crate) fn ordered(&self) -> Option<&Variant> {
        self.ordered.as_ref().map(|(variant, _)| variant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lineup_report::placement::Change;

    fn input(ratio: f64, is_second: bool) -> ConfirmedInput {
        ConfirmedInput {
            command: "./program".into(),
            is_second,
            blocks: 12,
            verdict: "changed",
            elapsed: Change { ratio, interval: [ratio - 0.01, ratio + 0.01] },
            smallest_detectable: None,
            peak_memory_ratio: None,
            page_faults_ratio: None,
            difference: None,
        }
    }

    fn of(inputs: &[[f64; 2]], effects: &str) -> LeverReport {
        let inputs = inputs.iter().zip(0..);
        let inputs: Vec<_> =
            inputs.map(|(ratios, number)| ratios.map(|ratio| input(ratio, number > 0))).collect();
        report(("placement and code order", PLACEMENT), &inputs, effects, 0.01)
    }

    #[test]
    fn levers_together_gain_where_they_take_less_time_than_the_best_alone_on_every_input() {
        let gain = of(&[[0.8, 0.7], [0.85, 0.75]], EQUAL);
        assert!(gain.is_gain, "{gain:?}");
        assert!(gain.result.starts_with("less time with placement and code order: −30.00 %"), "{gain:?}");
        assert!(gain.result.contains("placement alone in the same 12 blocks: −20.00 %"), "{gain:?}");
        assert!(gain.result.contains("on the second input −25.00 %"), "{gain:?}");
        for inputs in [[[0.8, 0.81], [0.8, 0.7]], [[0.8, 0.7], [0.8, 0.82]]] {
            let no_gain = of(&inputs, EQUAL);
            assert!(
                !no_gain.is_gain && no_gain.result.contains("no more than placement alone"),
                "{no_gain:?}"
            );
        }
    }

    #[test]
    fn levers_together_gain_nothing_where_effects_or_output_differ() {
        let other_effects = of(&[[0.8, 0.7]], "a file differs: f");
        assert!(!other_effects.is_gain && other_effects.result.starts_with("not confirmed"));
        let mut all = input(0.7, false);
        all.difference = Some("standard output differs".into());
        let other_output = report(("layout and placement", LAYOUT), &[[input(0.8, false), all]], EQUAL, 0.01);
        assert!(!other_output.is_gain && other_output.result.contains("change what the program does"));
    }
}
