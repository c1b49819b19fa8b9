//! Further recorded boots of a kernel, each with other allocations and another phase of the timer: how far lines per call of
//! one and the same kernel lie apart. A verdict on lines speaks only beyond that.

use super::figures::mean_lines;
use super::plan::KernelPlan;
use super::variant::{MORE_MEMORY_MIB, Variant};
use crate::terminal::progress::Stages;
use anyhow::Result;
use lineup_advise::current_lines;
use lineup_advise::proposal::{Advice, OrderProposal};
use lineup_advise::usage::Usage;
use lineup_explain::Explained;
use lineup_model::line::LineSize;
use lineup_model::types::Types;
use lineup_report::study::Fact;
use lineup_stats::noise::{Direction, NoiseFloor, NoisyDifference};
use lineup_study::interrupt::Interrupts;
use lineup_study::progress::Progress;

/// The confidence level of a difference.
const LEVEL: f64 = 0.95;

/// The least difference of a type's lines per call that counts.
const LEAST_OF_TYPE: f64 = 0.01;

/// Lines per call over all types move by as much with any change of code, as of its placement, which boots of one build do
/// not show.
const LEAST_OF_ALL: f64 = 0.9;

/// The lines of one recorded boot.
struct BootLines {
    usage: Usage,
    /// Over all regions, by their weights.
    in_all: f64,
}

impl BootLines {
    fn of(recorded: &Explained, line: LineSize) -> BootLines {
        BootLines { usage: Usage::of_explained(recorded), in_all: mean_lines(recorded, line) }
    }

    /// Lines of a type per call, summed over the regions.
    fn of_type(&self, types: &Types, order: &OrderProposal, line: LineSize) -> f64 {
        let recorded = order.sizes.first().map(|size| size.data_model);
        let rows = current_lines(&self.usage, types, &order.type_name);
        let rows =
            rows.iter().filter(|row| row.line_bytes == line.bytes() && Some(row.data_model) == recorded);
        rows.map(|row| row.after).sum()
    }
}

/// All recorded boots of a variant.
pub(crate) struct Boots {
    lines: Vec<BootLines>,
}

impl Boots {
    /// Boots and records a variant until there are as many recordings as the plan asks for; the first exists.
    pub(crate) fn of(
        variant: &Variant,
        plan: &KernelPlan<'_>,
        stages: &Stages,
        interrupts: &Interrupts,
    ) -> Result<Boots> {
        let line = plan.advice.primary;
        let mut lines = vec![BootLines::of(&variant.recorded, line)];
        for number in 1..plan.options.boots() {
            stages.stage(&format!("boot {} of {}, for the floor of noise", number + 1, plan.options.boots()));
            let recorded = variant.again(plan, number * MORE_MEMORY_MIB, stages, interrupts)?;
            lines.push(BootLines::of(&recorded, line));
        }
        Ok(Boots { lines })
    }
}

/// The comparison of the boots of both kernels: lines per call.
pub(crate) struct LinesVerdict {
    boots: usize,
    /// Each changed type, with its predicted difference.
    types: Vec<(String, f64, NoisyDifference)>,
    in_all: NoisyDifference,
}

impl LinesVerdict {
    /// Compares the boots of two kernels; `None` when there is one boot of each.
    pub(crate) fn of(
        advice: &Advice,
        [before, after]: [(&Boots, &Types); 2],
        line: LineSize,
    ) -> Result<Option<LinesVerdict>> {
        let boots = before.0.lines.len().min(after.0.lines.len());
        if boots < 2 {
            return Ok(None);
        }
        let floor = NoiseFloor { level: LEVEL, least: LEAST_OF_TYPE };
        let of_type = |(boots, types): (&Boots, &Types), order| -> Vec<f64> {
            boots.lines.iter().map(|boot| boot.of_type(types, order, line)).collect()
        };
        let mut types = Vec::new();
        for order in &advice.orders {
            let difference = floor.compare(&of_type(before, order), &of_type(after, order))?;
            let recorded = order.sizes.first().map(|size| size.data_model);
            let rows = order.lines.iter();
            let rows = rows.filter(|row| row.line_bytes == line.bytes() && Some(row.data_model) == recorded);
            let predicted = rows.filter_map(|row| Some(row.after - row.before?)).sum();
            types.push((order.type_name.clone(), predicted, difference));
        }
        let in_all = |boots: &Boots| boots.lines.iter().map(|boot| boot.in_all).collect::<Vec<f64>>();
        let floor = NoiseFloor { least: LEAST_OF_ALL, ..floor };
        let in_all = floor.compare(&in_all(before.0), &in_all(after.0))?;
        Ok(Some(LinesVerdict { boots, types, in_all }))
    }

    /// The noise of the lines in all.
    pub(crate) fn noise_in_all(&self) -> f64 {
        self.in_all.noise
    }

    /// The reason to refuse the change: a type, or all types together, need more lines; or a type needs no fewer although
    /// fewer were predicted. A user's order that promises nothing may change nothing.
    pub(crate) fn failure(&self) -> Option<String> {
        let in_all = std::iter::once(("lines in all", &0.0, &self.in_all));
        let types = self.types.iter().map(|(name, predicted, found)| (name.as_str(), predicted, found));
        types.chain(in_all).find_map(|(name, predicted, found)| {
            let says = |what: &str| {
                format!(
                    "{name}: {what} ({:+.2} per call over {} boots of each kernel, noise {:.2})",
                    found.difference, self.boots, found.noise
                )
            };
            match found.direction() {
                Direction::More => Some(says("the changed kernel needs more lines")),
                Direction::Within if *predicted < -LEAST_OF_TYPE => Some(says(&format!(
                    "no fewer lines beyond the noise, where {predicted:+.2} was predicted"
                ))),
                _ => None,
            }
        })
    }

    /// The comparison, for the report.
    pub(crate) fn fact(&self) -> Fact {
        let said = |name: &str, found: &NoisyDifference| {
            let verdict = match found.direction() {
                Direction::Less => "fewer lines",
                Direction::More => "more lines",
                Direction::Within => "no change beyond the noise",
            };
            format!("{name} {:+.2} lines, noise {:.2}: {verdict}", found.difference, found.noise)
        };
        let mut parts: Vec<String> = self.types.iter().map(|(name, _, found)| said(name, found)).collect();
        parts.push(said("all types together", &self.in_all));
        Fact {
            name: "noise".into(),
            value: format!("{} recorded boots of each kernel; {}", self.boots, parts.join("; ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(types: &[(f64, f64, f64)], in_all: (f64, f64)) -> LinesVerdict {
        let found = |difference, noise| NoisyDifference { difference, noise };
        LinesVerdict {
            boots: 3,
            types: types
                .iter()
                .map(|(predicted, difference, noise)| {
                    ("pipe".to_owned(), *predicted, found(*difference, *noise))
                })
                .collect(),
            in_all: found(in_all.0, in_all.1),
        }
    }

    #[test]
    fn an_order_that_promises_nothing_and_changes_nothing_passes_without_a_claim() {
        let placebo = verdict(&[(0.0, -0.05, 0.1)], (-0.47, 0.9));
        assert_eq!(placebo.failure(), None);
        assert!(placebo.fact().value.contains("pipe -0.05 lines, noise 0.10: no change beyond the noise"));
        assert!(
            placebo
                .fact()
                .value
                .ends_with("all types together -0.47 lines, noise 0.90: no change beyond the noise")
        );
    }

    #[test]
    fn a_type_that_needs_fewer_lines_is_not_refused_for_the_noise_of_all() {
        let good = verdict(&[(-0.53, -0.53, 0.05)], (0.34, 0.9));
        assert_eq!(good.failure(), None);
        assert!(good.fact().value.contains("pipe -0.53 lines, noise 0.05: fewer lines"));
    }

    #[test]
    fn a_worse_type_worse_lines_in_all_and_a_promise_that_fails_are_refused() {
        let worse = verdict(&[(-0.5, 0.3, 0.1)], (0.0, 0.9)).failure().expect("refused");
        assert!(worse.starts_with("pipe: the changed kernel needs more lines (+0.30"), "{worse}");
        let in_all = verdict(&[(-0.5, -0.5, 0.1)], (1.2, 0.9)).failure().expect("refused");
        assert!(in_all.starts_with("lines in all: the changed kernel needs more lines (+1.20"), "{in_all}");
        let promised = verdict(&[(-0.5, -0.05, 0.1)], (0.0, 0.9)).failure().expect("refused");
        assert!(
            promised.contains("no fewer lines beyond the noise, where -0.50 was predicted"),
            "{promised}"
        );
    }
}
