//! The latch: two copies of the parameters and a sequence count on one line.

use super::cold::Cold;
use super::scale::{FAST_BITS, Scale};
use super::source::{MACHINE, SYSTEM, Source, machine_counter_inline, read_source};
use super::two_copies::{Bank as _, TwoCopies};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// One consistent set of parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Parameters {
    pub(super) epoch_cycles: u64,
    pub(super) epoch_ns: u64,
    pub(super) scale: Scale,
    /// The number of bits of the counter that count.
    pub(super) bits: u8,
    /// The counter: an index for [`read_source`].
    pub(super) source: u8,
    /// True while suspended: time stands at `epoch_ns`.
    pub(super) is_frozen: bool,
}

/// The result of one read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reading {
    /// The counter.
    pub cycles: u64,
    /// The time computed from it.
    pub ns: u64,
}

impl Parameters {
    pub(super) fn to_ns(self, cycles: u64) -> u64 {
        let unused = u32::from(64 - self.bits) & 63;
        let distance = (cycles.wrapping_sub(self.epoch_cycles) << unused) as i64 >> unused;
        self.epoch_ns.wrapping_add(self.scale.to_ns(distance) as u64)
    }

    fn read(self) -> Reading {
        let cycles = if self.is_frozen { self.epoch_cycles } else { read_source(self.source) };
        Reading { cycles, ns: self.to_ns(cycles) }
    }

    const fn pack(&self) -> Packed {
        let is_frozen = if self.is_frozen { 1 } else { 0 };
        Packed {
            epoch_cycles: self.epoch_cycles,
            epoch_ns: self.epoch_ns,
            mult: self.scale.mult,
            rest: u32::from_le_bytes([self.scale.shift, self.bits, self.source, is_frozen]),
        }
    }
}

/// Parameters as they are loaded and stored: 24 bytes.
#[derive(Clone, Copy)]
pub(super) struct Packed {
    epoch_cycles: u64,
    epoch_ns: u64,
    mult: u32,
    /// shift, bits, source, is_frozen: one byte each, low to high.
    rest: u32,
}

impl Packed {
    /// All of `rest` but the shift where the machine's own counter runs.
    const USUAL: u32 = u32::from_le_bytes([0, 64, MACHINE, 0]);

    /// The machine's counter, when it is the source and its value is neither before the epoch nor long after it. Two
    /// comparisons decide that: each further instruction would show next to a counter that is read in 20 cycles.
    #[inline(always)]
    fn read_usual(self) -> Option<Reading> {
        if self.rest & !0xff != Self::USUAL {
            return None;
        }
        let cycles = machine_counter_inline();
        let distance = cycles.wrapping_sub(self.epoch_cycles);
        if distance >> FAST_BITS != 0 {
            return None;
        }
        let ns = distance.wrapping_mul(u64::from(self.mult)) >> (self.rest & 63);
        Some(Reading { cycles, ns: self.epoch_ns.wrapping_add(ns) })
    }

    fn unpack(self) -> Parameters {
        let [shift, bits, source, is_frozen] = self.rest.to_le_bytes();
        Parameters {
            epoch_cycles: self.epoch_cycles,
            epoch_ns: self.epoch_ns,
            scale: Scale { mult: self.mult, shift: shift & 63 },
            bits,
            source,
            is_frozen: is_frozen != 0,
        }
    }
}

/// One copy of the parameters.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Bank {
    epoch_cycles: AtomicU64,
    epoch_ns: AtomicU64,
    mult: AtomicU32,
    rest: AtomicU32,
}

impl Bank {
    const fn new(packed: Packed) -> Self {
        Self {
            epoch_cycles: AtomicU64::new(packed.epoch_cycles),
            epoch_ns: AtomicU64::new(packed.epoch_ns),
            mult: AtomicU32::new(packed.mult),
            rest: AtomicU32::new(packed.rest),
        }
    }
}

impl super::two_copies::Bank for Bank {
    type Value = Packed;

    fn store(&self, packed: &Packed) {
        self.epoch_cycles.store(packed.epoch_cycles, Relaxed);
        self.epoch_ns.store(packed.epoch_ns, Relaxed);
        self.mult.store(packed.mult, Relaxed);
        self.rest.store(packed.rest, Relaxed);
    }

    #[inline(always)]
    fn load(&self) -> Packed {
        Packed {
            epoch_cycles: self.epoch_cycles.load(Relaxed),
            epoch_ns: self.epoch_ns.load(Relaxed),
            mult: self.mult.load(Relaxed),
            rest: self.rest.load(Relaxed),
        }
    }
}

/// The cache line that a read touches.
type Hot = TwoCopies<Bank>;

const _: () = assert!(size_of::<Hot>() == 64 && std::mem::offset_of!(Hot, banks) + size_of::<Bank>() == 32);

/// A clock. The one of the process is [`CLOCK`](super::CLOCK); others serve tests and other time bases.
#[derive(Debug)]
#[repr(C)]
pub struct Clock {
    hot: Hot,
    pub(super) cold: Cold,
}

impl Clock {
    /// A clock that reads the system's `CLOCK_MONOTONIC` until a counter is registered.
    pub const fn system() -> Self {
        let parameters = Parameters {
            epoch_cycles: 0,
            epoch_ns: 0,
            scale: Scale::UNIT,
            bits: 64,
            source: SYSTEM,
            is_frozen: false,
        };
        Self {
            hot: TwoCopies {
                sequence: AtomicU64::new(0),
                banks: [Bank::new(parameters.pack()), Bank::new(parameters.pack())],
            },
            cold: Cold::new(),
        }
    }

    /// A clock on `source` that starts at the reference's present time.
    pub fn on(source: Source) -> Self {
        let clock = Self::system();
        clock.register(source);
        clock
    }

    /// Nanoseconds. May be called anywhere, in a signal handler that interrupts an update too.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        self.read().ns
    }

    /// The counter and the time computed from it.
    #[inline]
    pub fn read(&self) -> Reading {
        self.read_usual().unwrap_or_else(|| self.read_otherwise())
    }

    /// The same without a call: `None` when it takes one.
    #[inline(always)]
    pub(crate) fn read_usual(&self) -> Option<Reading> {
        self.hot.read(Packed::read_usual)
    }

    #[cold]
    #[inline(never)]
    fn read_otherwise(&self) -> Reading {
        self.hot.read(|packed| packed.unpack().read())
    }

    /// The address of the line that a read touches, for studies of it.
    pub fn hot_line(&self) -> *const u8 {
        (&raw const self.hot).cast()
    }

    pub(super) fn parameters(&self) -> Parameters {
        self.hot.banks[1].load().unpack()
    }

    /// Publishes the result of `make`. One writer at a time: callers hold the cold part's lock. `between` runs where a
    /// signal might strike, and sees the same state as its handler.
    ///
    /// A new rate holds from the epoch that `make` chose. A writer that is held up past the epoch before the switch
    /// makes readers step: by the difference of the rates over the delay. The parameters are therefore made anew while
    /// readers are on the other bank, until they are fresh; a window of one instruction remains.
    pub(super) fn publish(
        &self,
        make: &dyn Fn() -> Parameters,
        is_fresh: &dyn Fn(&Parameters) -> bool,
        between: &mut dyn FnMut(),
    ) {
        const TRIES: usize = 100;
        let fill = |bank: &Bank| {
            let mut parameters = make();
            for _ in 0..TRIES {
                bank.store(&parameters.pack());
                if is_fresh(&parameters) {
                    break;
                }
                parameters = make();
            }
            let packed = parameters.pack();
            bank.store(&packed);
            packed
        };
        self.hot.publish(fill, between);
    }
}
