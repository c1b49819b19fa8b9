//! Runs that failed, in words.

use lineup_prove::run::Ending;

/// `B failed in 6 of 6 runs: exit status 1`; `None` when no run failed.
pub(crate) fn failed_in_words(
    subject: &str,
    failed: impl Iterator<Item = Ending>,
    runs: usize,
) -> Option<String> {
    let mut count = 0;
    let mut kinds: Vec<String> = Vec::new();
    for ending in failed {
        count += 1;
        let ending = ending.to_string();
        if !kinds.contains(&ending) {
            kinds.push(ending);
        }
    }
    (count > 0).then(|| format!("{subject} failed in {count} of {runs} runs: {}", kinds.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_ending_is_named_once() {
        let all = [Ending::Exited(1), Ending::Killed(11), Ending::Exited(1)];
        let said = failed_in_words("B", all.into_iter(), 6);
        assert_eq!(said.as_deref(), Some("B failed in 3 of 6 runs: exit status 1, SIGSEGV"));
        assert_eq!(failed_in_words("B", [].into_iter(), 6), None);
    }
}
