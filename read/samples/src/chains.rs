//! Call chains of samples, each stored once.
//!
//! Memory grows with distinct chains, of which a program that recurses deeply has many: their number and length in all
//! are bounded. For a sample beyond these limits only its function is counted, and the report gives the number of such
//! samples.

use crate::record::Mode;
use crate::spaces::{Code, Spaces};
use crate::sum::Sum;
use foldhash::HashMap;

/// Chains that are kept apart, and places in all of them together.
const MOST_CHAINS: usize = 1 << 17;
const MOST_PLACES: usize = 1 << 22;
/// Addresses whose place is remembered.
const MOST_KNOWN: usize = 1 << 17;

/// Values from here on are no addresses: they give the mode of the following ones. The numbers are those of
/// `perf_callchain_context` in the kernel's `perf_event.h`.
const FIRST_MARK: u64 = (-4095i64).cast_unsigned();
const KERNEL_MARK: u64 = (-128i64).cast_unsigned();
const USER_MARK: u64 = (-512i64).cast_unsigned();
const DEFERRED_USER_MARK: u64 = (-640i64).cast_unsigned();

/// The chains of all samples.
#[derive(Clone, Default, Debug)]
pub struct Chains {
    places: Vec<Code>,
    numbers: HashMap<Code, u32>,
    /// By the event and, innermost first, the numbers of the places.
    sums: HashMap<Box<[u32]>, Sum>,
    kept_places: usize,
    /// Samples whose callers are not counted, since there were too many chains.
    pub folded: u64,
    /// Numbers of the places of addresses, and the changes of the spaces before they were found.
    known: HashMap<(u32, bool, u64), u32>,
    known_at: u64,
    /// The chain at hand.
    chain: Vec<u32>,
}

impl Chains {
    /// Each chain's event, places, innermost first, and samples. A caller's place is in the instruction that calls.
    pub fn iter(&self) -> impl Iterator<Item = (u32, impl Iterator<Item = Code> + '_, Sum)> + '_ {
        self.sums.iter().filter_map(|(chain, sum)| {
            let (event, numbers) = chain.split_first()?;
            let places = numbers.iter().filter_map(|number| self.places.get(*number as usize).copied());
            Some((*event, places, *sum))
        })
    }

    /// The places in all chains, each once.
    pub fn places(&self) -> &[Code] {
        &self.places
    }

    /// Counts a sample of an event, taken at a place, with its addresses: the sampled one, then return addresses,
    /// innermost first. The list may be empty.
    pub(crate) fn see(
        &mut self,
        (event, process, sampled): (u32, u32, Code),
        addresses: &[u64],
        spaces: &Spaces,
        sum: Sum,
    ) {
        let mut chain = std::mem::take(&mut self.chain);
        chain.clear();
        chain.push(event);
        chain.push(self.number(sampled));
        for (mode, at) in callers(addresses) {
            chain.push(self.number_at(process, mode, at, spaces));
        }
        let has_room = self.sums.len() < MOST_CHAINS && self.kept_places + chain.len() <= MOST_PLACES;
        if !has_room && !self.sums.contains_key(chain.as_slice()) {
            self.folded += u64::from(chain.len() > 2);
            chain.truncate(2);
        }
        match self.sums.get_mut(chain.as_slice()) {
            Some(known) => known.add(sum),
            None => {
                self.kept_places += chain.len();
                self.sums.insert(chain.as_slice().into(), sum);
            }
        }
        self.chain = chain;
    }

    fn number_at(&mut self, process: u32, mode: Mode, at: u64, spaces: &Spaces) -> u32 {
        if self.known_at != spaces.changes() || self.known.len() >= MOST_KNOWN {
            self.known.clear();
            self.known_at = spaces.changes();
        }
        let key = (process, mode == Mode::Kernel, at);
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let number = self.number(spaces.code(process, mode, at));
        self.known.insert(key, number);
        number
    }

    /// The number of a place. Beyond the limit it is a number for unattributed places.
    fn number(&mut self, place: Code) -> u32 {
        let is_new = !self.numbers.contains_key(&place);
        let place = match place {
            Code::Anonymous { .. } | Code::File { .. } if is_new && self.places.len() >= MOST_PLACES => {
                Code::Unmapped { is_kernel: false }
            }
            place => place,
        };
        let next = self.places.len() as u32;
        let number = *self.numbers.entry(place).or_insert(next);
        if number == next {
            self.places.push(place);
        }
        number
    }
}

/// The calls in a chain, innermost first, with their mode. The sampled address itself comes first and is left out; the
/// address where the kernel was entered is no return address.
fn callers(addresses: &[u64]) -> impl Iterator<Item = (Mode, u64)> + '_ {
    let (mut mode, mut is_return, mut is_sampled) = (Mode::User, false, true);
    addresses.iter().filter_map(move |value| {
        if *value >= FIRST_MARK {
            mode = match *value {
                KERNEL_MARK => Mode::Kernel,
                USER_MARK | DEFERRED_USER_MARK => Mode::User,
                _ => Mode::Other,
            };
            is_return = false;
            return None;
        }
        // A call may be the last instruction of its function: the return address is another's then.
        let at = value.wrapping_sub(u64::from(is_return));
        let is_caller = !is_sampled;
        (is_return, is_sampled) = (true, false);
        is_caller.then_some((mode, at))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_are_those_behind_the_sampled_address_each_where_it_calls() {
        let found = |addresses: &[u64]| callers(addresses).collect::<Vec<_>>();
        assert_eq!(found(&[USER_MARK, 0x10, 0x20, 0x30]), [(Mode::User, 0x1f), (Mode::User, 0x2f)]);
        // From the kernel into the program that called it: that is where the program was, and no return address.
        let both = [KERNEL_MARK, 0xffff_8000, 0xffff_9000, USER_MARK, 0x10, 0x20];
        assert_eq!(found(&both), [(Mode::Kernel, 0xffff_8fff), (Mode::User, 0x10), (Mode::User, 0x1f)]);
        assert_eq!(found(&[0x10]), []);
        assert_eq!(found(&[]), []);
        assert_eq!(found(&[USER_MARK]), []);
    }
}
