//! Numbers that several threads add to. A copy for each thread changes the program, so it is suggested and never
//! written.

use crate::error::AdviseError;
use crate::kind::{Description, FixKind, KindName, Task};
use crate::proposal::{Advice, COPY_PER_THREAD, Suggestion};

/// A copy for each thread of a number that all add to.
pub(crate) struct Copies;

/// The largest number of suggestions, most waits first: `lineup threads` shows the others.
const TOLD: usize = 5;

impl FixKind for Copies {
    fn name(&self) -> KindName {
        COPY_PER_THREAD
    }

    fn propose(&self, task: &mut Task<'_>, advice: &mut Advice) -> Result<(), AdviseError> {
        let told = task.usage.counters.iter().take(TOLD).map(|counter| {
            Suggestion::new(COPY_PER_THREAD, &counter.name, counter.in_words(task.usage.counters_of))
        });
        advice.suggestions.extend(told);
        Ok(())
    }

    fn describe(&self, advice: &Advice) -> Vec<Description> {
        advice.suggestions_of(COPY_PER_THREAD)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::compiler::NoCompiler;
    use crate::options::Options;
    use crate::text::sources::Sources;
    use crate::usage::Usage;
    use lineup_explain::threads::SharedCounter;
    use lineup_model::abi::Abi;
    use lineup_model::types::Types;

    #[test]
    fn a_number_that_threads_add_to_is_told_and_not_edited() {
        let counters = (0..7).map(|n| SharedCounter { name: format!("total{n}"), threads: 2, waits: 9 - n });
        let usage = Usage { counters: counters.collect(), ..Usage::empty(Abi::X86_64) };
        let (types, sources, options) = (Types::default(), Sources::default(), Options::default());
        let judge = &mut NoCompiler;
        let task = Task { usage: &usage, types: &types, sources: &sources, options: &options, judge };
        let advice = crate::advise_with(&[&Copies], task).expect("advice");
        assert!(advice.edited.is_empty());
        assert_eq!(advice.descriptions.len(), TOLD);
        assert_eq!(advice.descriptions[0].target, "total0");
        assert_eq!(
            advice.descriptions[0].summary,
            "2 threads add to it and wait 9 times for its bytes; a copy for each, summed where it is read, would part \
             them. That changes what the program means, and is left to you."
        );
    }
}
