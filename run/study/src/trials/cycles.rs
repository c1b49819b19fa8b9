//! The frequency of the processor's clock, by a chain of operations of known length: neither the counter of time stamps nor
//! the kernel knows the frequency that a processor chose.
#![allow(unsafe_code)]

use std::time::Instant;

/// Each measurement is made so often, and the shortest time counts: other work only adds to it.
pub(super) const REPEATS: usize = 5;
const STEPS: usize = 1_000_000;

/// Cycles of the processor's clock in a nanosecond.
pub fn cycles_per_ns() -> f64 {
    CYCLES_PER_STEP / shortest_ns(STEPS, || chain(STEPS))
}

/// The shortest of some measurements, in nanoseconds for each of `count` steps.
pub(super) fn shortest_ns(count: usize, mut work: impl FnMut()) -> f64 {
    let each = (0..REPEATS).map(|_| {
        let begun = Instant::now();
        work();
        begun.elapsed().as_nanos() as f64 / count as f64
    });
    each.fold(f64::MAX, f64::min)
}

/// A multiplication takes three cycles on all processors of today, and the next operation one more.
const CYCLES_PER_STEP: f64 = 4.0;

/// Multiplies and changes a number in turn, each time the one before.
#[cfg(target_arch = "x86_64")]
fn chain(steps: usize) {
    // SAFETY: it changes two registers of its own, and the flags; no memory.
    unsafe {
        std::arch::asm!(
            "2:", "imul {value}, {value}", "or {value}, 1", "dec {steps}", "jnz 2b",
            value = inout(reg) 3_u64 => _, steps = inout(reg) steps => _, options(nomem, nostack),
        );
    }
}

/// Multiplies and changes a number in turn, each time the one before.
#[cfg(target_arch = "aarch64")]
fn chain(steps: usize) {
    // SAFETY: it changes two registers of its own, and the flags; no memory.
    unsafe {
        std::arch::asm!(
            "2:", "mul {value}, {value}, {value}", "orr {value}, {value}, #1", "subs {steps}, {steps}, #1", "b.ne 2b",
            value = inout(reg) 3_u64 => _, steps = inout(reg) steps => _, options(nomem, nostack),
        );
    }
}

/// The same where it is compiled with optimisation.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn chain(steps: usize) {
    let mut value = std::hint::black_box(3_u64);
    for _ in 0..steps {
        value = value.wrapping_mul(value) | 1;
    }
    std::hint::black_box(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Processors that Lineup runs on have between half a cycle and eight in a nanosecond, in whatever way this is compiled.
    #[test]
    fn a_nanosecond_has_a_few_cycles() {
        let cycles = cycles_per_ns();
        assert!((0.5..8.0).contains(&cycles), "{cycles}");
    }
}
