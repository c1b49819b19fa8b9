//! Finding the first bad step in a line of steps when some steps cannot be judged.

/// The judgement of one step.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Judged {
    /// Behaves as the good end does.
    Good,
    /// Behaves as the bad end does.
    Bad,
    /// Not decided: it does not build, or the measurement is inconclusive.
    Skip,
}

/// The step where a line turns from good to bad.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Turn {
    /// At this step: the one before is good.
    At(usize),
    /// Somewhere in these steps: those before the last could not be judged.
    Among(Vec<usize>),
}

/// Finds where a line of `steps` turns bad. The step before the first is known to be good and the last
/// is known to be bad. A step that cannot be judged is passed over in favour of its nearest neighbour.
///
/// # Errors
/// Those of `judge`.
pub fn search<E>(steps: usize, mut judge: impl FnMut(usize) -> Result<Judged, E>) -> Result<Turn, E> {
    let mut skipped = vec![false; steps];
    // All steps below `good` are good, and `bad` is bad.
    let (mut good, mut bad) = (0, steps.saturating_sub(1));
    while let Some(at) = nearest_to_middle(good, bad, &skipped) {
        match judge(at)? {
            Judged::Good => good = at + 1,
            Judged::Bad => bad = at,
            Judged::Skip => {
                if let Some(mark) = skipped.get_mut(at) {
                    *mark = true;
                }
            }
        }
    }
    Ok(if good == bad { Turn::At(bad) } else { Turn::Among((good..=bad).collect()) })
}

/// The step in `good..bad` nearest to the middle that has not been skipped.
fn nearest_to_middle(good: usize, bad: usize, skipped: &[bool]) -> Option<usize> {
    let middle = good + bad.saturating_sub(good) / 2;
    let open = (good..bad).filter(|step| !skipped.get(*step).copied().unwrap_or(true));
    open.min_by_key(|step| step.abs_diff(middle))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    fn find(steps: usize, turn: usize, skip: &[usize]) -> (Turn, usize) {
        let mut asked = 0;
        let found: Result<Turn, Infallible> = search(steps, |step| {
            asked += 1;
            Ok(match step {
                step if skip.contains(&step) => Judged::Skip,
                step if step < turn => Judged::Good,
                _ => Judged::Bad,
            })
        });
        let Ok(found) = found;
        (found, asked)
    }

    #[test]
    fn every_turn_is_found_in_logarithmically_many_steps() {
        for steps in 1..40 {
            for turn in 0..steps {
                let (found, asked) = find(steps, turn, &[]);
                assert_eq!(found, Turn::At(turn));
                assert!(asked <= 6, "{steps} {turn}: {asked}");
            }
        }
    }

    #[test]
    fn skipped_steps_widen_the_answer_only_where_they_hide_the_turn() {
        assert_eq!(find(16, 3, &[7, 8]).0, Turn::At(3));
        assert_eq!(find(16, 8, &[7]).0, Turn::Among(vec![7, 8]));
        assert_eq!(find(4, 2, &[0, 1, 2]).0, Turn::Among(vec![0, 1, 2, 3]));
    }

    #[test]
    fn errors_end_the_search() {
        assert_eq!(search(8, |_| Err::<Judged, _>("stop")), Err("stop"));
    }
}
