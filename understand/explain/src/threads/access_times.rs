//! When each access of a call happened.

use lineup_model::access::{Access, AccessKind, TimeMark};

/// Cycles from one access to the next if the call's times do not give them.
const USUAL_CYCLES: u64 = 4;

/// The time of each of a call's accesses, and the times of its beginning and end. Between two marks accesses are spread
/// evenly; behind the last they follow each other as they did on average before. An instruction's store to bytes that
/// it has just loaded has the time of the load: nothing comes between the two of an atomic instruction. `None` without
/// marks.
pub(super) fn times(marks: &[TimeMark], accesses: &[Access]) -> Option<(Vec<u64>, u64)> {
    let (first, last) = (marks.first()?, marks.last()?);
    let known = u64::from(last.access.saturating_sub(first.access));
    let average = last.cycles.saturating_sub(first.cycles).checked_div(known);
    let pace = average.unwrap_or(USUAL_CYCLES).max(1);
    let mut all = Vec::with_capacity(accesses.len());
    let mut marks = marks.iter().copied().peekable();
    let mut from = *first;
    for (number, access) in (0..).zip(accesses) {
        while let Some(next) = marks.next_if(|mark| u64::from(mark.access) <= number) {
            from = next;
        }
        let index = number as usize;
        if let Some(before) = index.checked_sub(1).filter(|before| is_store_of(&accesses[*before], access)) {
            all.push(all[before]);
            continue;
        }
        let since = number.saturating_sub(u64::from(from.access));
        all.push(match marks.peek() {
            Some(to) => {
                let (between, cycles) =
                    (u64::from(to.access - from.access), to.cycles.saturating_sub(from.cycles));
                let passed = u128::from(cycles) * u128::from(since) / u128::from(between.max(1));
                from.cycles.saturating_add(passed as u64)
            }
            None => from.cycles.saturating_add(since.saturating_mul(pace)),
        });
    }
    let end = all.last().copied().unwrap_or(first.cycles).max(last.cycles);
    Some((all, end))
}

/// Whether an access is the store of the instruction whose load was the access before.
pub(super) fn is_store_of(before: &Access, access: &Access) -> bool {
    let place = |one: &Access| (one.pc, one.address, one.size_bytes);
    before.kind == AccessKind::Load && access.kind == AccessKind::Store && place(before) == place(access)
}

/// For each of a call's accesses the last time that was read before it: it happened no earlier.
pub(super) fn no_earlier(marks: &[TimeMark], accesses: usize) -> impl Iterator<Item = u64> {
    let mut marks = marks.iter().copied().peekable();
    let mut last = marks.peek().map_or(0, |first| first.cycles);
    (0..accesses as u64).map(move |number| {
        while let Some(next) = marks.next_if(|mark| u64::from(mark.access) <= number) {
            last = next.cycles;
        }
        last
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(access: u32, cycles: u64) -> TimeMark {
        TimeMark { access, cycles }
    }

    /// Loads by one instruction after the other.
    fn loads(number: u64) -> Vec<Access> {
        let load =
            |place| Access { pc: place, address: 0x100, size_bytes: 8, kind: AccessKind::Load, value: None };
        (0..number).map(load).collect()
    }

    #[test]
    fn accesses_are_spread_between_marks_and_go_on_as_before_behind_the_last() {
        let marks = [mark(0, 100), mark(4, 140)];
        assert_eq!(times(&marks, &loads(6)), Some((vec![100, 110, 120, 130, 140, 150], 150)));
        assert_eq!(times(&marks[..1], &loads(3)), Some((vec![100, 104, 108], 108)));
        assert_eq!(times(&[], &loads(3)), None);
    }

    #[test]
    fn a_wait_between_two_accesses_is_not_spread_over_them() {
        let marks = [mark(0, 0), mark(2, 20), mark(2, 1020), mark(4, 1040)];
        assert_eq!(times(&marks, &loads(4)), Some((vec![0, 10, 1020, 1030], 1040)));
    }

    #[test]
    fn an_access_happened_no_earlier_than_the_last_time_before_it() {
        let marks = [mark(0, 0), mark(2, 20), mark(2, 1020), mark(4, 1040)];
        assert_eq!(no_earlier(&marks, 5).collect::<Vec<_>>(), [0, 0, 1020, 1020, 1040]);
        assert_eq!(no_earlier(&[], 1).collect::<Vec<_>>(), [0]);
    }

    #[test]
    fn an_instruction_stores_when_it_loads_however_long_the_thread_waits_afterwards() {
        let marks = [mark(0, 0), mark(3, 9000)];
        let mut accesses = loads(3);
        accesses[1] = Access { kind: AccessKind::Store, ..accesses[0] };
        assert_eq!(times(&marks, &accesses), Some((vec![0, 0, 6000], 9000)));
        accesses[1].address += 8;
        assert_eq!(times(&marks, &accesses), Some((vec![0, 3000, 6000], 9000)), "elsewhere");
    }
}
