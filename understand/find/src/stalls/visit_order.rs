//! The order in which the objects of an allocation site are visited, against that in which they were allocated.

use foldhash::HashMap;
use lineup_recording::{HeapObject, WindowObjects};

/// Successive visits of different objects of one site, and those of them whose objects were allocated one after the
/// other.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Visits {
    pub(crate) steps: u64,
    pub(crate) in_order: u64,
}

impl Visits {
    /// The share of successive visits whose objects were allocated next to each other.
    pub(crate) fn share(self) -> Option<f64> {
        (self.steps > 0).then(|| self.in_order as f64 / self.steps as f64)
    }
}

/// The visits of each site, by its number; a chain of calls is passed through `number_of` for it.
pub(crate) fn visits(windows: &[WindowObjects], number_of: impl Fn(u32) -> u32) -> HashMap<u32, Visits> {
    let mut all: HashMap<u32, Visits> = HashMap::default();
    for window in windows {
        let mut last: HashMap<u32, HeapObject> = HashMap::default();
        let used = window.uses.iter().filter_map(|used| (*used as usize).checked_sub(1));
        for object in used.filter_map(|number| window.objects.get(number)) {
            let Some(before) = last.insert(object.site, *object).filter(|before| before != object) else {
                continue;
            };
            let sum = all.entry(number_of(object.site)).or_default();
            sum.steps += 1;
            sum.in_order += u64::from(before.serial.abs_diff(object.serial) == 1);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(serials: &[u32]) -> WindowObjects {
        let object = |serial: &u32| HeapObject { serial: *serial, site: 7, ..HeapObject::default() };
        let uses = (1..=serials.len() as u32).flat_map(|number| [number, number, 0]);
        WindowObjects { window: 0, objects: serials.iter().map(object).collect(), uses: uses.collect() }
    }

    #[test]
    fn a_list_visited_in_the_order_of_its_allocation_or_backwards_is_in_order_and_a_shuffled_one_is_not() {
        let share = |serials: &[u32]| visits(&[window(serials)], |site| site)[&7].share();
        let forwards: Vec<u32> = (0..100).collect();
        let backwards: Vec<u32> = (0..100).rev().collect();
        // 37 has no common factor with 101: each place once, none next to the one before.
        let shuffled: Vec<u32> = (0..101).map(|at| at * 37 % 101).collect();
        assert_eq!(
            [share(&forwards), share(&backwards), share(&shuffled)],
            [Some(1.0), Some(1.0), Some(0.0)]
        );
    }

    #[test]
    fn one_object_is_no_order() {
        assert!(visits(&[window(&[3]), window(&[4])], |site| site).is_empty());
    }
}
