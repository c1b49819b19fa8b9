//! The common case of most callbacks: nothing is kept, and the line is the most recently used one of its set. Callbacks
//! try this first.

use super::super::sites::Run;
use super::Cpu;

impl Cpu {
    /// Fetches a run if that changes nothing but the number of instructions; false when nothing was done.
    #[inline(always)]
    pub(crate) fn fetch_again(&mut self, run: &Run) -> bool {
        if self.keeps | run.repeats | run.spins | self.lane.is_some() {
            return false;
        }
        let address = self.modelled(run.pc, run.is_user);
        if !self.processor.fetch_again(address, run.size_bytes.into(), run.instructions.into()) {
            return false;
        }
        self.last_repeated = 0;
        true
    }

    /// True when an access changes nothing. It does not look at the access's site, which is rarely in the host's cache.
    #[inline(always)]
    pub(crate) fn passes_over(&self, is_user: bool, address: u64, info: u32) -> bool {
        if self.keeps | self.awaits_push {
            return false;
        }
        if !self.processor.models() {
            return true;
        }
        let what = self.descriptions.kept(info);
        let address = self.modelled(address, is_user);
        !self.shows_accesses
            && what.is_of(info)
            && self.processor.passes_over(address, u64::from(what.size_bytes()))
    }

    /// Whether an access is a store.
    #[inline(always)]
    pub(crate) fn is_store(&mut self, info: u32) -> bool {
        self.descriptions.of(info).is_store
    }

    /// True when a program's block begins after another of its blocks.
    #[inline(always)]
    pub(crate) fn stays_in_program(&self) -> bool {
        !(self.in_kernel | self.is_returning)
    }

    /// The address by which the caches know the program's, or the kernel's, memory at `address`.
    #[inline(always)]
    pub(super) fn modelled(&self, address: u64, is_user: bool) -> u64 {
        address ^ (self.salt & u64::from(is_user).wrapping_neg())
    }
}
