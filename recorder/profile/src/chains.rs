//! Fewer callbacks: accesses of a block whose addresses follow from one seen before in the same block.
//!
//! A *chain* is a row of accesses, in their order and with no other between, of which only the first has a callback. It
//! takes in all of them at once, so that the cache model gets the same accesses as from one callback each. The loss is
//! a fault in between: accesses after it in the chain count though they did not happen.

use crate::unconditional_accesses::{Access, Accesses, Origin};

/// Origins whose places are kept during a block.
pub(crate) const SLOTS: usize = 16;
/// Accesses in one chain.
pub(crate) const MOST_LINKS: usize = 64;

/// An access of a chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// The instruction's number in its block.
    pub insn: usize,
    /// The slot with the address that this one is measured from.
    pub slot: usize,
    /// From there to its address.
    pub distance: i32,
    /// It stores.
    pub is_store: bool,
    /// The size is two to this power.
    pub size_shift: u8,
}

/// Accesses that one callback takes in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Chain {
    /// The first is the one with the callback, and its address is kept in its slot.
    pub links: Vec<Link>,
    /// The kind of the first, where its instruction accesses memory twice.
    pub only: Option<Side>,
}

/// The accesses of an instruction that a callback is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// The load.
    Load,
    /// The store.
    Store,
}

/// The callbacks for a block's accesses.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Chains {
    /// In their order.
    pub all: Vec<Chain>,
    /// Numbers of the instructions whose accesses are seen one by one.
    pub alone: Vec<usize>,
    /// True when the first access of every execution of the block begins the first chain.
    pub begin_block: bool,
}

/// An origin, and the distance at which its slot was filled.
struct SlotOrigin {
    origin: Origin,
    distance: i64,
}

/// Puts the accesses of a block into chains, from the accesses of each of its instructions.
pub fn chains(block: impl IntoIterator<Item = Accesses>) -> Chains {
    let mut builder = Builder { chains: Chains::default(), kept: Vec::new(), is_open: false };
    for (insn, accesses) in block.into_iter().enumerate() {
        let is_chained = match &accesses {
            Accesses::Nothing => continue,
            Accesses::Certain(accesses) => builder.add(insn, accesses),
            Accesses::Unknown => false,
        };
        if !is_chained {
            builder.chains.alone.push(insn);
            builder.is_open = false;
        }
    }
    let Builder { mut chains, .. } = builder;
    let first_alone = chains.alone.first().copied().unwrap_or(usize::MAX);
    chains.begin_block = chains.all.first().is_some_and(|chain| chain.links[0].insn < first_alone);
    chains
}

struct Builder {
    chains: Chains,
    /// By slot.
    kept: Vec<SlotOrigin>,
    /// True when the last chain may continue.
    is_open: bool,
}

impl Builder {
    /// Takes in an instruction's accesses; false when they cannot be chained.
    fn add(&mut self, insn: usize, accesses: &[Access]) -> bool {
        let goes_on = self.is_open
            && self.chains.all.last().is_some_and(|chain| chain.links.len() + accesses.len() <= MOST_LINKS);
        // The access that begins a chain. An instruction has one callback, so no other may.
        let first = accesses.iter().position(|access| !goes_on || self.find(access.origin).is_none());
        let fresh = first.and_then(|first| accesses.get(first));
        let is_in_reach = |access: &Access| match (self.find(access.origin), fresh) {
            (_, Some(fresh)) if fresh.origin == access.origin => {
                reach(fresh.distance, access.distance).is_some()
            }
            (Some(slot), _) => reach(self.kept[slot].distance, access.distance).is_some(),
            (None, _) => false,
        };
        if !accesses.iter().all(is_in_reach) || fresh.is_some_and(|fresh| !self.keep(fresh)) {
            return false;
        }
        for (number, access) in accesses.iter().enumerate() {
            if first == Some(number) {
                let kind = if access.is_store { Side::Store } else { Side::Load };
                let only = (accesses.len() > 1).then_some(kind);
                self.chains.all.push(Chain { links: Vec::new(), only });
            }
            let link = self.link(insn, access);
            self.chains.all.last_mut().into_iter().for_each(|chain| chain.links.extend(link));
        }
        self.is_open = true;
        true
    }

    fn find(&self, origin: Origin) -> Option<usize> {
        self.kept.iter().position(|kept| kept.origin == origin)
    }

    fn link(&self, insn: usize, access: &Access) -> Option<Link> {
        let slot = self.find(access.origin)?;
        let distance = reach(self.kept[slot].distance, access.distance)?;
        Some(Link { insn, slot, distance, is_store: access.is_store, size_shift: access.size_shift })
    }

    /// Fills the slot of an access that begins a chain; false when all are taken by others.
    fn keep(&mut self, access: &Access) -> bool {
        let kept = SlotOrigin { origin: access.origin, distance: access.distance };
        match self.find(access.origin) {
            Some(slot) => self.kept[slot] = kept,
            None if self.kept.len() < SLOTS => self.kept.push(kept),
            None => return false,
        }
        true
    }
}

/// The distance between two places, where it is short enough to be noted.
fn reach(from: i64, to: i64) -> Option<i32> {
    i32::try_from(to.wrapping_sub(from)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unconditional_accesses::Follower;
    use lineup_model::machine::CodeMachine;

    fn of(block: &[&[u8]]) -> Chains {
        let mut follower = Follower::new(CodeMachine::X86_64);
        chains(block.iter().map(|bytes| follower.step(0x40_0000, bytes)))
    }

    /// Chains as instructions, slots and distances.
    fn shape(chains: &Chains) -> Vec<Vec<(usize, usize, i32)>> {
        let links =
            |chain: &Chain| chain.links.iter().map(|link| (link.insn, link.slot, link.distance)).collect();
        chains.all.iter().map(links).collect()
    }

    const PUSH: &[u8] = &[0x53]; // push %rbx
    const LOAD: &[u8] = &[0x48, 0x8b, 0x07]; // mov (%rdi), %rax
    const STORE: &[u8] = &[0x48, 0x89, 0x46, 0x08]; // mov %rax, 8(%rsi)
    const UNKNOWN: &[u8] = &[0x0f, 0x10, 0x07]; // movups (%rdi), %xmm0

    #[test]
    fn what_follows_from_an_address_seen_before_needs_no_callback() {
        let chains = of(&[PUSH, PUSH, LOAD, PUSH, LOAD, STORE]);
        let first = vec![(0, 0, 0), (1, 0, -8)];
        let second = vec![(2, 1, 0), (3, 0, -16), (4, 1, 0)];
        assert_eq!(shape(&chains), [first, second, vec![(5, 2, 0)]]);
        assert!(chains.begin_block && chains.alone.is_empty());
    }

    #[test]
    fn an_unknown_access_ends_a_chain_and_the_next_address_is_seen_anew() {
        let chains = of(&[PUSH, UNKNOWN, PUSH, PUSH]);
        assert_eq!(shape(&chains), [vec![(0, 0, 0)], vec![(2, 0, 0), (3, 0, -8)]]);
        assert_eq!(chains.alone, [1]);
        assert!(chains.begin_block && !of(&[UNKNOWN, PUSH]).begin_block);
        assert!(!of(&[&[0x90]]).begin_block, "nothing is accessed");
    }

    #[test]
    fn an_instruction_with_two_addresses_begins_one_chain_at_most() {
        let both: &[u8] = &[0xff, 0x37]; // push (%rdi)
        assert_eq!(of(&[both]).alone, [0]);
        let chains = of(&[PUSH, both, both]);
        assert_eq!(shape(&chains), [vec![(0, 0, 0)], vec![(1, 1, 0), (1, 0, -8), (2, 1, 0), (2, 0, -16)]]);
        assert_eq!(chains.all[1].only, Some(Side::Load));
        let chains = of(&[LOAD, both]);
        assert_eq!(shape(&chains), [vec![(0, 0, 0), (1, 0, 0)], vec![(1, 1, 0)]]);
        assert_eq!(chains.all[1].only, Some(Side::Store));
    }

    #[test]
    fn chains_and_slots_have_bounds() {
        let chains = of(&[PUSH; 100]);
        assert_eq!(chains.all.iter().map(|chain| chain.links.len()).collect::<Vec<_>>(), [MOST_LINKS, 36]);
        // mov (%rdi), %rdi: each from another place.
        let follow: &[u8] = &[0x48, 0x8b, 0x3f];
        let chains = of(&[follow; 20]);
        assert_eq!((chains.all.len(), chains.alone.len()), (SLOTS, 20 - SLOTS));
    }
}
