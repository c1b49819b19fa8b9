//! A run: 64 KiB of objects of one size, with bitmaps of those that are free.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, AtomicUsize};

/// Bytes of a run.
pub(crate) const RUN: usize = 1 << RUN_SHIFT;

/// The same as a power of two.
pub(crate) const RUN_SHIFT: u32 = 16;

/// Words of a bitmap: the smallest stride is 16.
const WORDS: usize = RUN / 16 / 64;

/// Where a run is, by its lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(crate) enum Standing {
    /// Objects are taken from it.
    Current = 0,
    /// In its lane's list of runs with free objects.
    Partial = 1,
    /// In no list: no object was free.
    Full = 2,
}

/// The notes of a run. Their memory begins as zeros. Fields without a remark belong to the run's lane; they are atomic because other threads may look at them for faults.
#[repr(C, align(64))]
pub(crate) struct Run {
    /// The address of its lane; 0 while no lane has it.
    pub(crate) lane: AtomicUsize,
    base: AtomicUsize,
    /// Bytes from object to object; 0 while no lane has it.
    stride: AtomicU32,
    /// 2^32 ÷ stride, rounded up.
    reciprocal: AtomicU32,
    capacity: AtomicU16,
    pool: AtomicU16,
    used: AtomicU32,
    /// Freeing one has more to do when no more than these are left in use.
    awake_at: AtomicU32,
    standing: AtomicU32,
    /// A bit for each word of `free` that is not zero.
    summary: AtomicU64,
    pub(crate) next: AtomicU32,
    pub(crate) previous: AtomicU32,
    /// The next run in the inbox.
    pub(crate) next_in_inbox: AtomicU32,
    /// Bit 0: it is in the inbox, or about to be. The rest: twice the number of threads that are freeing in it. A run
    /// leaves its lane only while this is zero.
    pub(crate) freeing: AtomicU32,
    free: [AtomicU64; WORDS],
    /// Objects that other threads freed.
    remote: [AtomicU64; WORDS],
}

/// A full run is listed again when one object of so many is free: listing it for each of them would cost more than
/// the objects.
const SHARE: u32 = 16;

/// An object's bit in the bitmaps.
#[derive(Clone, Copy)]
pub(crate) struct Bit {
    word: usize,
    mask: u64,
}

/// A pointer that names no object of the run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    NoObject,
    IsFree,
}

impl Run {
    /// Makes it a run of the lane at this address, with all objects free.
    pub(crate) fn begin(&self, lane: usize, pool: u32, base: usize, stride: usize) {
        let capacity = RUN / stride;
        self.base.store(base, Relaxed);
        self.reciprocal.store((1_u64 << 32).div_ceil(stride as u64) as u32, Relaxed);
        self.capacity.store(capacity as u16, Relaxed);
        self.pool.store(pool as u16, Relaxed);
        self.used.store(0, Relaxed);
        self.stand(Standing::Current);
        let words = capacity.div_ceil(64);
        for (at, word) in self.free[..words].iter().enumerate() {
            let left = capacity - at * 64;
            word.store(if left >= 64 { u64::MAX } else { (1 << left) - 1 }, Relaxed);
        }
        self.summary.store(if words == 64 { u64::MAX } else { (1 << words) - 1 }, Relaxed);
        self.stride.store(stride as u32, Relaxed);
        self.lane.store(lane, Release);
    }

    /// Takes it from its lane; all objects are free.
    pub(crate) fn end(&self) {
        self.stride.store(0, Relaxed);
        self.lane.store(0, Relaxed);
    }

    /// Takes the free object with the lowest address.
    #[inline(always)]
    pub(crate) fn take(&self) -> Option<usize> {
        let summary = self.summary.load(Relaxed);
        if summary == 0 {
            return None;
        }
        let at = summary.trailing_zeros() as usize;
        // A summary has no bits beyond the words.
        let word = &self.free[at & (WORDS - 1)];
        let free = word.load(Relaxed);
        let left = free & (free - 1);
        word.store(left, Relaxed);
        if left == 0 {
            self.summary.store(summary & (summary - 1), Relaxed);
        }
        self.used.store(self.used.load(Relaxed) + 1, Relaxed);
        let object = at * 64 + free.trailing_zeros() as usize;
        Some(self.base.load(Relaxed) + object * self.stride.load(Relaxed) as usize)
    }

    /// The object at an offset in the run.
    #[inline(always)]
    pub(crate) fn object(&self, offset: usize) -> Result<Bit, Fault> {
        let (stride, reciprocal) =
            (self.stride.load(Relaxed) as usize, self.reciprocal.load(Relaxed) as usize);
        // Exact: the offset has 16 bits, and the reciprocal is less than stride ÷ 2^32 too large.
        let object = (offset * reciprocal) >> 32;
        if object * stride != offset || object >= usize::from(self.capacity.load(Relaxed)) || stride == 0 {
            return Err(Fault::NoObject);
        }
        Ok(Bit { word: (object / 64) & (WORDS - 1), mask: 1 << (object % 64) })
    }

    /// Fails for an object that is free.
    #[inline(always)]
    pub(crate) fn check_live(&self, bit: Bit) -> Result<(), Fault> {
        let is_free = self.free[bit.word].load(Relaxed) & bit.mask != 0;
        let may_be_remote = self.freeing.load(Relaxed) != 0;
        match is_free || may_be_remote && self.remote[bit.word].load(Relaxed) & bit.mask != 0 {
            true => Err(Fault::IsFree),
            false => Ok(()),
        }
    }

    /// Frees a live object, for the thread of its lane. True where the lane has more to do.
    #[inline(always)]
    pub(crate) fn give(&self, bit: Bit) -> bool {
        let word = &self.free[bit.word];
        word.store(word.load(Relaxed) | bit.mask, Relaxed);
        self.summary.store(self.summary.load(Relaxed) | 1 << bit.word, Relaxed);
        let used = self.used.load(Relaxed) - 1;
        self.used.store(used, Relaxed);
        used <= self.awake_at.load(Relaxed)
    }

    /// Announces that this thread, which does not have its lane, frees an object in it.
    pub(crate) fn begin_freeing(&self) {
        self.freeing.fetch_add(2, SeqCst);
    }

    /// Takes that back.
    pub(crate) fn end_freeing(&self) {
        self.freeing.fetch_sub(2, SeqCst);
    }

    /// True while another thread frees an object in it.
    pub(crate) fn is_freeing(&self) -> bool {
        self.freeing.load(SeqCst) & !1 != 0
    }

    /// Frees an object after `begin_freeing`. True where the caller has to put the run into its lane's inbox, and to
    /// call `end_freeing` afterwards.
    pub(crate) fn give_from_elsewhere(&self, bit: Bit) -> Result<bool, Fault> {
        // The caller looked into `free`; from here on the lane may collect the bit at any time.
        if self.remote[bit.word].fetch_or(bit.mask, AcqRel) & bit.mask != 0 {
            return Err(Fault::IsFree);
        }
        let mut seen = self.freeing.load(Relaxed);
        loop {
            let is_first = seen & 1 == 0;
            let then = if is_first { seen | 1 } else { seen - 2 };
            match self.freeing.compare_exchange_weak(seen, then, AcqRel, Relaxed) {
                Ok(_) => return Ok(is_first),
                Err(now) => seen = now,
            }
        }
    }

    /// Frees what other threads freed, for the thread of its lane, once it is out of the inbox.
    pub(crate) fn collect(&self) -> Result<(), (Fault, usize)> {
        self.freeing.fetch_and(!1, AcqRel);
        let words = (usize::from(self.capacity.load(Relaxed))).div_ceil(64);
        for at in 0..words {
            if self.remote[at].load(Relaxed) == 0 {
                continue;
            }
            let given = self.remote[at].swap(0, AcqRel);
            let free = self.free[at].load(Relaxed);
            if free & given != 0 {
                let object = at * 64 + (free & given).trailing_zeros() as usize;
                let address = self.base.load(Relaxed) + object * self.stride.load(Relaxed) as usize;
                return Err((Fault::IsFree, address));
            }
            self.free[at].store(free | given, Relaxed);
            self.summary.store(self.summary.load(Relaxed) | 1 << at, Relaxed);
            self.used.store(self.used.load(Relaxed) - given.count_ones(), Relaxed);
        }
        Ok(())
    }

    pub(crate) fn used(&self) -> u32 {
        self.used.load(Relaxed)
    }

    pub(crate) fn stride(&self) -> usize {
        self.stride.load(Relaxed) as usize
    }

    pub(crate) fn pool(&self) -> u32 {
        u32::from(self.pool.load(Relaxed))
    }

    pub(crate) fn stand(&self, standing: Standing) {
        let capacity = u32::from(self.capacity.load(Relaxed));
        let awake_at = match standing {
            Standing::Full => capacity - (capacity / SHARE).max(1),
            Standing::Current | Standing::Partial => 0,
        };
        self.awake_at.store(awake_at, Relaxed);
        self.standing.store(standing as u32, Relaxed);
    }

    /// True where it is worth to list a full run again.
    pub(crate) fn is_awake(&self) -> bool {
        self.used() <= self.awake_at.load(Relaxed)
    }

    pub(crate) fn stands(&self, standing: Standing) -> bool {
        self.standing.load(Relaxed) == standing as u32
    }

    /// True where its lane may part with it: no object is live, and no other thread is in the middle of freeing one.
    pub(crate) fn can_leave(&self) -> bool {
        self.used() == 0 && self.freeing.load(Acquire) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zeroed() -> Box<Run> {
        // SAFETY: all fields are numbers and pointers that may be zero.
        unsafe { Box::new(std::mem::zeroed()) }
    }

    #[test]
    fn every_offset_is_an_object_exactly_at_multiples_of_the_stride() {
        for stride in [16, 24, 32, 40, 48, 1008, 1024, 1152, 3584, 16384] {
            let run = zeroed();
            run.begin(0, 1, 0, stride);
            for offset in 0..RUN {
                let is_object = offset % stride == 0 && offset / stride < RUN / stride;
                assert_eq!(run.object(offset).is_ok(), is_object, "{offset} of {stride}");
            }
        }
    }

    #[test]
    fn objects_are_taken_by_address_until_none_is_left_and_lowest_first_again() {
        for stride in [16, 40, 16384] {
            let run = zeroed();
            run.begin(0, 1, 1 << 20, stride);
            let all: Vec<usize> = std::iter::from_fn(|| run.take()).collect();
            let expected: Vec<usize> = (0..RUN / stride).map(|at| (1 << 20) + at * stride).collect();
            assert_eq!(all, expected);
            assert_eq!(run.used() as usize, all.len());
            for at in [3, 1] {
                let bit = run.object(at * stride).expect("an object");
                assert_eq!(run.check_live(bit), Ok(()));
                run.give(bit);
                assert_eq!(run.check_live(bit), Err(Fault::IsFree));
            }
            assert_eq!(run.take(), Some((1 << 20) + stride));
        }
    }

    #[test]
    fn what_others_free_waits_until_it_is_collected() {
        let run = zeroed();
        run.begin(0, 1, 0, 4096);
        while run.take().is_some() {}
        let bits = [0, 5].map(|at| run.object(at * 4096).expect("an object"));
        run.begin_freeing();
        assert_eq!(run.give_from_elsewhere(bits[0]), Ok(true), "the first one puts it into the inbox");
        run.end_freeing();
        run.begin_freeing();
        assert_eq!(run.give_from_elsewhere(bits[1]), Ok(false));
        assert_eq!(run.check_live(bits[1]), Err(Fault::IsFree));
        assert_eq!(run.take(), None);
        assert!(!run.is_freeing());
        run.collect().expect("no fault");
        assert_eq!(run.used(), 14);
        assert_eq!(run.check_live(bits[1]), Err(Fault::IsFree));
    }
}
