//! The latch: two copies of the parameters and a sequence count on one line.

use super::cold::Cold;
use super::scale::Scale;
use super::source::{SYSTEM, Source, read_source};
use super::two_copies::{Bank as _, TwoCopies};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// One consistent set of parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Parameters {
    pub(super) epoch_cycles: u64,
    pub(super) epoch_ns: u64,
    pub(super) scale: Scale,
    /// How many bits of the counter count.
    pub(super) bits: u8,
    /// Which counter: an index for [`read_source`].
    pub(super) source: u8,
    /// True while suspended: time stands at `epoch_ns`.
    pub(super) is_frozen: bool,
}

/// What one read saw.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reading {
    /// The counter.
    pub cycles: u64,
    /// The time made of it.
    pub ns: u64,
}

impl Parameters {
    #[inline]
    pub(super) fn to_ns(self, cycles: u64) -> u64 {
        let unused = u32::from(64 - self.bits) & 63;
        let distance = (cycles.wrapping_sub(self.epoch_cycles) << unused) as i64 >> unused;
        self.epoch_ns.wrapping_add(self.scale.to_ns(distance) as u64)
    }
}

/// One copy of the parameters: 24 bytes.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Bank {
    epoch_cycles: AtomicU64,
    epoch_ns: AtomicU64,
    mult: AtomicU32,
    /// shift, bits, source, is_frozen: one byte each, low to high.
    packed: AtomicU32,
}

impl Bank {
    const fn new(parameters: &Parameters) -> Self {
        Self {
            epoch_cycles: AtomicU64::new(parameters.epoch_cycles),
            epoch_ns: AtomicU64::new(parameters.epoch_ns),
            mult: AtomicU32::new(parameters.scale.mult),
            packed: AtomicU32::new(pack(parameters)),
        }
    }
}

impl super::two_copies::Bank for Bank {
    type Value = Parameters;

    fn store(&self, parameters: &Parameters) {
        self.epoch_cycles.store(parameters.epoch_cycles, Relaxed);
        self.epoch_ns.store(parameters.epoch_ns, Relaxed);
        self.mult.store(parameters.scale.mult, Relaxed);
        self.packed.store(pack(parameters), Relaxed);
    }

    #[inline(always)]
    fn load(&self) -> Parameters {
        let [shift, bits, source, is_frozen] = self.packed.load(Relaxed).to_le_bytes();
        Parameters {
            epoch_cycles: self.epoch_cycles.load(Relaxed),
            epoch_ns: self.epoch_ns.load(Relaxed),
            scale: Scale { mult: self.mult.load(Relaxed), shift: shift & 63 },
            bits,
            source,
            is_frozen: is_frozen != 0,
        }
    }
}

const fn pack(parameters: &Parameters) -> u32 {
    let is_frozen = if parameters.is_frozen { 1 } else { 0 };
    u32::from_le_bytes([parameters.scale.shift, parameters.bits, parameters.source, is_frozen])
}

/// What a read touches.
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
                banks: [Bank::new(&parameters), Bank::new(&parameters)],
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

    /// The counter and the time made of it.
    #[inline]
    pub fn read(&self) -> Reading {
        self.hot.read(|parameters| {
            let cycles =
                if parameters.is_frozen { parameters.epoch_cycles } else { read_source(parameters.source) };
            Reading { cycles, ns: parameters.to_ns(cycles) }
        })
    }

    /// The address of the line that a read touches, for studies of it.
    pub fn hot_line(&self) -> *const u8 {
        (&raw const self.hot).cast()
    }

    pub(super) fn parameters(&self) -> Parameters {
        self.hot.banks[1].load()
    }

    /// Publishes what `make` returns. One writer at a time: callers hold the cold part's lock. `between` runs where
    /// a signal might strike and sees what its handler would.
    ///
    /// A new rate holds from the epoch that `make` chose, so a writer held up past that before the switch makes readers
    /// step by the difference of the rates over the delay. The parameters are therefore made anew while readers are on
    /// the other bank, until they are fresh; what remains is a window of one instruction.
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
                bank.store(&parameters);
                if is_fresh(&parameters) {
                    break;
                }
                parameters = make();
            }
            bank.store(&parameters);
            parameters
        };
        self.hot.publish(fill, between);
    }
}
