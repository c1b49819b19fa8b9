//! Interventions in a region's cache lines before a call of it.

use super::region::Region;
use lineup_trace::Arm;

const LINE_BYTES: usize = 64;

/// The arm for the next call: any of those allowed, with equal chance.
#[inline]
pub(super) fn assign(arms: u32, random: u64) -> u8 {
    if arms == 0 {
        return Arm::None as u8;
    }
    let mut left = (u64::from(arms.count_ones()) * (random >> 32)) >> 32;
    let mut mask = arms;
    while left > 0 {
        mask &= mask - 1;
        left -= 1;
    }
    mask.trailing_zeros() as u8
}

/// Applies the intervention `arm` to `region`'s lines, and waits until it is done: the call that follows is timed.
pub(super) fn apply(arm: u8, region: &Region) {
    let code = (region.code, region.code_bytes);
    let data = (region.data, region.data_bytes);
    match Arm::from_number(arm) {
        Some(Arm::FlushCode) => each_line(code, flush_line),
        Some(Arm::PrefetchCode) => each_line(code, fetch_line),
        Some(Arm::FlushData) => each_line(data, flush_line),
        Some(Arm::PrefetchData) => each_line(data, fetch_line),
        Some(Arm::RemoveAll) => {
            each_line(code, fetch_line);
            each_line(data, fetch_line);
        }
        _ => return,
    }
    wait();
}

fn each_line((start, bytes): (*const u8, usize), act: fn(usize)) {
    let first = start as usize & !(LINE_BYTES - 1);
    (first..start as usize + bytes).step_by(LINE_BYTES).for_each(act);
}

/// Loads a byte of the line: unlike a prefetch hint, a load is not dropped. Code arrives in the level that data and
/// instructions share, so a fetch of code removes the misses to memory, not those of the first level.
fn fetch_line(line: usize) {
    // SAFETY: lies in a range that the region's maker named as its own code or data: mapped and readable. A race
    // with a writer of the data cannot matter: the value is not used.
    unsafe { std::ptr::read_volatile(line as *const u8) };
}

#[cfg(target_arch = "x86_64")]
fn flush_line(line: usize) {
    // SAFETY: flushing changes no contents; the range is mapped, as for `fetch_line`.
    unsafe { std::arch::x86_64::_mm_clflush(line as *const u8) };
}

#[cfg(target_arch = "x86_64")]
fn wait() {
    // SAFETY: fences change no memory. Every x86-64 has them.
    unsafe {
        std::arch::x86_64::_mm_mfence();
        std::arch::x86_64::_mm_lfence();
    }
}

#[cfg(target_arch = "aarch64")]
fn flush_line(line: usize) {
    // SAFETY: cleaning and invalidating by address changes no contents; Linux lets user code execute both.
    unsafe {
        std::arch::asm!("dc civac, {0}", "ic ivau, {0}", in(reg) line, options(nostack, preserves_flags));
    }
}

#[cfg(target_arch = "aarch64")]
fn wait() {
    // SAFETY: barriers change no memory.
    unsafe { std::arch::asm!("dsb ish", "isb", options(nostack, preserves_flags)) };
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn flush_line(_line: usize) {}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn wait() {}

/// Splitmix64: one step of a small generator, good enough to assign arms.
#[inline]
pub(super) fn next_random(state: u64) -> (u64, u64) {
    let state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (state, z ^ (z >> 31))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "arithmetic alone, and much of it")]
    fn every_allowed_arm_comes_up_equally_often_and_no_other() {
        let arms = 0b10_1101;
        let mut counts = [0u32; Arm::ALL.len()];
        let mut state = 1;
        for _ in 0..40_000 {
            let (next, random) = next_random(state);
            state = next;
            counts[usize::from(assign(arms, random))] += 1;
        }
        for (arm, count) in counts.iter().enumerate() {
            let is_allowed = arms >> arm & 1 == 1;
            assert!(if is_allowed { (9_500..10_500).contains(count) } else { *count == 0 }, "{counts:?}");
        }
        assert_eq!(assign(0, u64::MAX), 0);
    }
}
