//! Findings by time: where a clock gives a function another share than the model does, the clock counts.

use crate::findings::{ClockContradiction, Evidence, Finding, FunctionStalls, OwnerStalls};

/// Shares that differ by less are not worth a word.
const LEAST_DIFFERENCE: f64 = 0.02;
/// A function with less of a subject's stalls says little of it.
const LEAST_OF_SUBJECT: f64 = 0.1;
/// The model's share of a function is taken for no smaller: of next to nothing any multiple is as wrong.
const LEAST_OF_CYCLES: f64 = 0.001;

impl Finding {
    /// The gain as a share of the time: the model's, but for the function of which a clock contradicts it, where it is
    /// taken to grow and shrink with the function's time.
    pub fn gain_by_time(&self) -> f64 {
        let factor = self.clock.as_ref().map_or(1.0, |clock| {
            let of_function = clock.share / clock.of_cycles.max(LEAST_OF_CYCLES);
            1.0 - clock.of_subject + clock.of_subject * of_function
        });
        self.gain * factor
    }
}

/// The clock's contradiction of the model in a function in which a finding's subject stalls; of several, the one that
/// matters most.
pub(crate) fn contradiction(
    finding: &Finding,
    owners: &[OwnerStalls],
    functions: &[FunctionStalls],
) -> Option<ClockContradiction> {
    let subject = finding.subject.as_ref()?;
    let own: Vec<(String, f64)> = match finding.evidence {
        Evidence::Type { .. } => {
            let is_own = |owner: &&OwnerStalls| owner.class == "member" && owner.name == *subject;
            owners.iter().find(is_own).map(|owner| owner.functions.clone()).unwrap_or_default()
        }
        Evidence::Code { .. } => vec![(subject.clone(), 1.0)],
        Evidence::Fight { .. } | Evidence::Shared { .. } => {
            let share = 1.0 / finding.functions.len().max(1) as f64;
            finding.functions.iter().map(|name| (name.clone(), share)).collect()
        }
    };
    let against = own.into_iter().filter_map(|(name, of_subject)| {
        let function = functions.iter().find(|function| function.name == name)?;
        let clock = function.clock.filter(|clock| !clock.is_explained)?;
        let distance = (clock.share - function.of_cycles).abs();
        let found = ClockContradiction {
            function: name,
            of_subject,
            of_cycles: function.of_cycles,
            share: clock.share,
            low: clock.low,
            high: clock.high,
        };
        (distance >= LEAST_DIFFERENCE && of_subject >= LEAST_OF_SUBJECT).then_some((distance, found))
    });
    let weight = |(distance, found): &(f64, ClockContradiction)| distance * found.of_subject;
    against.max_by(|one, other| weight(one).total_cmp(&weight(other))).map(|(_, found)| found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::{Kind, Sign, Stalls};
    use crate::stalls::clock;

    fn code_of(name: &str, gain: f64) -> Finding {
        Finding {
            subject: Some(name.to_owned()),
            kind: Kind::Code,
            stalls: gain,
            gain,
            gains: vec![gain],
            sign: Sign::Steady,
            evidence: Evidence::Code { executed_bytes: 64, lines: 2, lines_needed: 1 },
            trials: Vec::new(),
            functions: vec![name.to_owned()],
            next: String::new(),
            by_hand: None,
            is_written: false,
            instead: None,
            map: None,
            clock: None,
        }
    }

    /// A function that has a share of the model's cycles, and of a thousand samples.
    fn function(name: &str, of_cycles: f64, samples: u64) -> FunctionStalls {
        FunctionStalls {
            pages: None,
            name: name.to_owned(),
            image: String::new(),
            instructions: 0,
            code_lines: 0,
            code_l1_misses: 0,
            code_l2_misses: 0,
            accesses: 0,
            l1_misses: 0,
            l2_misses: 0,
            used_bytes_per_line: None,
            stalls: Stalls::default(),
            share: 0.0,
            of_cycles,
            clock: Some(clock::share(samples, 1000, of_cycles)),
        }
    }

    #[test]
    fn what_takes_more_time_than_the_model_says_comes_first() {
        let functions = [function("f", 0.22, 490), function("g", 0.40, 400), function("h", 0.011, 2)];
        let judged = |name: &str, gain| {
            let finding = code_of(name, gain);
            Finding { clock: contradiction(&finding, &[], &functions), ..finding }
        };
        let (f, g) = (judged("f", 0.10), judged("g", 0.15));
        let clock = f.clock.as_ref().expect("the interval excludes the model's share");
        assert!(clock.low > 0.22 && clock.function == "f", "{clock:?}");
        assert!((f.gain_by_time() - 0.10 * 0.49 / 0.22).abs() < 1e-9 && f.gain_by_time() > g.gain_by_time());
        assert_eq!((g.clock.clone(), g.gain_by_time()), (None, 0.15), "the clock agrees");
        assert_eq!(judged("h", 0.01).clock, None, "too little");
    }

    #[test]
    fn of_a_type_the_share_counts_that_it_stalls_for_in_the_function() {
        let functions = [function("f", 0.2, 400), function("g", 0.4, 400)];
        let evidence = Evidence::Fight {
            lines: 1,
            threads: 2,
            of_one_object: true,
            members: Vec::new(),
            waits: crate::findings::ThreadWaits::default(),
        };
        let functions_of = vec!["f".to_owned(), "g".to_owned()];
        let finding = Finding { evidence, functions: functions_of, ..code_of("pair", 0.1) };
        let finding = Finding { clock: contradiction(&finding, &[], &functions), ..finding };
        assert!((finding.gain_by_time() - 0.1 * 1.5).abs() < 1e-9, "half of it, twice the time: {finding:?}");
    }
}
