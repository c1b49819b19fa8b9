//! When each access of a call happened.

use lineup_model::access::TimeMark;

/// Cycles from one access to the next where the call's times do not tell.
const USUAL_CYCLES: u64 = 4;

/// The time of each of a call's accesses, and when the call began and ended. Between two marks accesses are spread evenly;
/// behind the last they follow each other as they did on average before. `None` without marks.
pub(super) fn times(marks: &[TimeMark], accesses: usize) -> Option<(Vec<u64>, u64)> {
    let (first, last) = (marks.first()?, marks.last()?);
    let known = u64::from(last.access.saturating_sub(first.access));
    let average = last.cycles.saturating_sub(first.cycles).checked_div(known);
    let pace = average.unwrap_or(USUAL_CYCLES).max(1);
    let mut all = Vec::with_capacity(accesses);
    let mut marks = marks.iter().copied().peekable();
    let mut from = *first;
    for number in 0..accesses as u64 {
        while let Some(next) = marks.next_if(|mark| u64::from(mark.access) <= number) {
            from = next;
        }
        let since = number.saturating_sub(u64::from(from.access));
        all.push(match marks.peek() {
            Some(to) => {
                let (accesses, cycles) =
                    (u64::from(to.access - from.access), to.cycles.saturating_sub(from.cycles));
                let passed = u128::from(cycles) * u128::from(since) / u128::from(accesses.max(1));
                from.cycles.saturating_add(passed as u64)
            }
            None => from.cycles.saturating_add(since.saturating_mul(pace)),
        });
    }
    let end = all.last().copied().unwrap_or(first.cycles).max(last.cycles);
    Some((all, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(access: u32, cycles: u64) -> TimeMark {
        TimeMark { access, cycles }
    }

    #[test]
    fn accesses_are_spread_between_marks_and_go_on_as_before_behind_the_last() {
        let marks = [mark(0, 100), mark(4, 140)];
        assert_eq!(times(&marks, 6), Some((vec![100, 110, 120, 130, 140, 150], 150)));
        assert_eq!(times(&marks[..1], 3), Some((vec![100, 104, 108], 108)));
        assert_eq!(times(&[], 3), None);
    }

    #[test]
    fn a_wait_between_two_accesses_is_not_spread_over_them() {
        let marks = [mark(0, 0), mark(2, 20), mark(2, 1020), mark(4, 1040)];
        assert_eq!(times(&marks, 4), Some((vec![0, 10, 1020, 1030], 1040)));
    }
}
