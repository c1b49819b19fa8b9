//! Runs that do not decide: the reasons, and the time that more of them would take.

use crate::disturbance::Disturbance;
use crate::timing::TimeChange;
use lineup_model::figure;

/// From this change on a factor says more than a share.
const LARGE: f64 = 0.5;

/// The smallest change that the runs would show, as a sentence.
///
/// ```
/// use lineup_prove::detectable_in_words;
/// assert_eq!(detectable_in_words(0.006), "a change of 0.60 % would have been seen");
/// assert_eq!(
///     detectable_in_words(1.748),
///     "the runs scatter too much: no change below a factor of 2.7 could be seen"
/// );
/// assert_eq!(detectable_in_words(f64::INFINITY), "the runs scatter too much: no change could be seen");
/// ```
pub fn detectable_in_words(smallest: f64) -> String {
    const MOST: f64 = 100.0;
    match smallest {
        small if small < LARGE => format!("a change of {} would have been seen", figure::share(small)),
        large if large < MOST => {
            format!("the runs scatter too much: no change below a factor of {:.1} could be seen", 1.0 + large)
        }
        _ => "the runs scatter too much: no change could be seen".to_owned(),
    }
}

/// Why runs did not decide, as far as they show it: the change that they would have shown, the time that more of them would
/// take, and other work.
pub fn noise_in_words(time: &TimeChange) -> String {
    let mut said = match time.judgement.is_contradicted {
        true => "the later blocks contradict the earlier ones".to_owned(),
        false => detectable_in_words(time.judgement.smallest_detectable),
    };
    if let Some(needed_ns) = time.needed_ns() {
        let margin = figure::level(time.margin);
        said += &format!("; one of {margin} takes about {} of runs", rounded(needed_ns));
    }
    if let Some(others) = time.disturbance.and_then(Disturbance::in_words) {
        said += "; ";
        said += &others;
    }
    said
}

/// A time of which the first digit is enough.
fn rounded(ns: f64) -> String {
    const MINUTE_NS: f64 = 60e9;
    const HOUR_NS: f64 = 60.0 * MINUTE_NS;
    match ns {
        short if short < 2.0 * MINUTE_NS => format!("{:.0} s", (short / 1e9).max(1.0)),
        short if short < 2.0 * HOUR_NS => format!("{:.0} minutes", short / MINUTE_NS),
        long if long < 100.0 * HOUR_NS => format!("{:.0} hours", long / HOUR_NS),
        _ => "more than 100 hours".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::links::LinkPlan;
    use crate::run::Variant;
    use crate::timing::{TimedRun, judge_runs};
    use lineup_stats::sequential::WidthStop;

    /// Ten blocks of a second each; the second variant takes this much longer in each of them.
    fn runs(longer: [f64; 10]) -> TimeChange {
        let variants = [Variant::BEFORE, Variant::AFTER, Variant::AFTER, Variant::BEFORE];
        let run = |block: usize, variant: Variant| TimedRun {
            variant,
            block: block as u64,
            wall_ns: (2.5e8 * (1.0 + variant.0 as f64 * longer[block])) as u64,
        };
        let runs = (0..10).flat_map(|block| variants.map(|variant| run(block, variant)));
        let stop = WidthStop { first_look: 10, target_width: 0.0, level: 0.95 };
        judge_runs(runs.collect(), &stop, 0.01, LinkPlan::ONE).expect("a judgement")
    }

    #[test]
    fn runs_that_scatter_say_how_long_a_verdict_would_take_and_which_other_work_there_was() {
        let scattered = runs([0.08, -0.07, 0.06, -0.08, 0.07, -0.05, 0.04, -0.06, 0.08, -0.07]);
        let said = noise_in_words(&scattered);
        assert!(said.starts_with("a change of ") && said.contains("; one of 1 % takes about "), "{said}");
        assert!(said.ends_with(" minutes of runs") || said.ends_with(" s of runs"), "{said}");
        let busy = Disturbance { cpus_ns: 100, others_ns: 25, stolen_ns: 4, waited_ns: 0 };
        let said = noise_in_words(&TimeChange { disturbance: Some(busy), ..scattered });
        assert!(
            said.ends_with(
                "; other programs had 25.0 % of its CPUs, the host of this machine had 4.00 % of its CPUs"
            ),
            "{said}"
        );
    }

    #[test]
    fn a_machine_that_changes_meanwhile_gives_no_sign() {
        let drifting = runs([-0.2, -0.21, -0.22, -0.2, -0.21, 0.01, 0.02, 0.01, 0.02, 0.01]);
        assert!(drifting.judgement.is_contradicted, "{:?}", drifting.judgement);
        assert!(noise_in_words(&drifting).starts_with("the later blocks contradict the earlier ones"));
    }

    #[test]
    fn times_are_as_exact_as_they_are_known() {
        let said = [0.2e9, 42e9, 600e9, 3.5 * 3600e9, 1e18].map(rounded);
        assert_eq!(said, ["1 s", "42 s", "10 minutes", "4 hours", "more than 100 hours"]);
    }
}
