//! Addresses: one 32-bit offset per symbol and a base (since 4.6, unless the kernel is configured otherwise), or one
//! pointer per symbol. They stand before the names, and since 6.4 behind the tokens. Since 7.0 there is no base: an offset
//! counts from its own place.

use super::place::place_of;
use super::table::{COUNT_BYTES, Names, Tokens};
use crate::scan::{align, u32_at, u64_at, word_at};
use memchr::memmem;

/// `R_AARCH64_RELATIVE`: the place holds the addend once the kernel has relocated itself.
const AARCH64_RELATIVE: u64 = 0x403;

/// 64-bit Arm images are linked at multiples of 2 MiB.
const IMAGE_ALIGNMENT: u64 = 2 << 20;

/// The addresses of all names, in their order.
pub(super) fn find(bytes: &[u8], tokens: &Tokens<'_>, names: &Names, word_bytes: usize) -> Option<Vec<u64>> {
    let count = names.texts.len();
    if word_bytes == 8 && names.count_bytes == COUNT_BYTES {
        return place_relative(bytes, tokens.end, count, word_bytes);
    }
    let behind = behind_tokens(bytes, tokens, count, word_bytes);
    behind.or_else(|| before_names(bytes, names.count_at, count, word_bytes))
}

/// Since 6.4: index, offsets, base.
fn behind_tokens(bytes: &[u8], tokens: &Tokens<'_>, count: usize, word_bytes: usize) -> Option<Vec<u64>> {
    let start = align(tokens.end, word_bytes);
    let base_at = align(start.checked_add(count.checked_mul(4)?)?, word_bytes);
    let relative = || relative(bytes, start, base_at, count, word_bytes);
    let absolute = || absolute(bytes, start, count, word_bytes);
    match word_bytes {
        // Offsets are no addresses of a 32-bit kernel; the bytes behind its addresses may look like a base.
        4 => absolute().or_else(relative).or_else(|| place_relative(bytes, start, count, word_bytes)),
        _ => relative().or_else(absolute),
    }
}

/// Since 7.0, in kernels that relocate themselves: signed offsets from the address of each offset.
fn place_relative(bytes: &[u8], start: usize, count: usize, word_bytes: usize) -> Option<Vec<u64>> {
    let distance = |number: usize| {
        let at = start + number * 4;
        let offset = i64::from(u32_at(bytes, at)? as i32);
        i64::try_from(at).ok()?.checked_add(offset)
    };
    // In bytes from the file's first.
    let distances: Vec<i64> = (0..count).map(distance).collect::<Option<_>>()?;
    if !distances.is_sorted() {
        return None;
    }
    let first = place_of(bytes, start, &distances)?;
    let address = |distance: &i64| first.wrapping_add_signed(*distance);
    let addresses: Vec<u64> = distances.iter().map(address).collect();
    (addresses.is_sorted() && is_kernel(addresses.last(), word_bytes)).then_some(addresses)
}

/// Until 6.3: offsets, base, count, names.
fn before_names(bytes: &[u8], count_at: usize, count: usize, word_bytes: usize) -> Option<Vec<u64>> {
    let base_at = count_at.checked_sub(word_bytes)?;
    let with_base = base_at
        .checked_sub(align(count.checked_mul(4)?, word_bytes))
        .and_then(|start| relative(bytes, start, base_at, count, word_bytes));
    with_base.or_else(|| {
        let start = count_at.checked_sub(count.checked_mul(word_bytes)?)?;
        absolute(bytes, start, count, word_bytes)
    })
}

/// One pointer per symbol.
fn absolute(bytes: &[u8], start: usize, count: usize, word_bytes: usize) -> Option<Vec<u64>> {
    let addresses: Option<Vec<u64>> =
        (0..count).map(|number| word_at(bytes, start + number * word_bytes, word_bytes)).collect();
    addresses.filter(|addresses| addresses.is_sorted() && is_kernel(addresses.last(), word_bytes))
}

/// Offsets from a base. With per-CPU symbols at absolute addresses (x86-64 until 6.14) an offset that is not negative
/// is itself the address, and the others count down from the base.
fn relative(bytes: &[u8], start: usize, base_at: usize, count: usize, word_bytes: usize) -> Option<Vec<u64>> {
    let offsets: Option<Vec<u32>> = (0..count).map(|number| u32_at(bytes, start + number * 4)).collect();
    let offsets = offsets?;
    let base = match word_at(bytes, base_at, word_bytes)? {
        0 => relocated(bytes, base_at)?,
        base => base,
    };
    let plain = |offset: &u32| base.wrapping_add(u64::from(*offset));
    let split = |offset: &u32| match *offset as i32 {
        offset if offset >= 0 => offset as u64,
        offset => base.wrapping_sub(1).wrapping_add(offset.unsigned_abs().into()),
    };
    let addresses: [Vec<u64>; 2] = [offsets.iter().map(plain).collect(), offsets.iter().map(split).collect()];
    addresses.into_iter().find(|addresses| addresses.is_sorted() && is_kernel(addresses.last(), word_bytes))
}

/// Kernels live in the upper part of the address space: the upper half, or on 32-bit machines at least above 1 GiB.
fn is_kernel(last: Option<&u64>, word_bytes: usize) -> bool {
    last.is_some_and(|last| match word_bytes {
        4 => (0x4000_0000..1 << 32).contains(last),
        _ => *last >= 1 << 63,
    })
}

/// The base of a kernel that relocates itself is zero in the image; its value is in the relocation of its place. The
/// image's load address is unknown, but it is aligned and leaves every relocated place inside the image.
fn relocated(bytes: &[u8], base_at: usize) -> Option<u64> {
    let kind = AARCH64_RELATIVE.to_le_bytes();
    let relocations = memmem::find_iter(bytes, &kind).filter_map(|kind_at| {
        let (place, addend) = (u64_at(bytes, kind_at.checked_sub(8)?)?, u64_at(bytes, kind_at + 8)?);
        (place >= 1 << 63 && addend >= 1 << 63).then_some((place, addend))
    });
    let relocations: Vec<(u64, u64)> = relocations.collect();
    let lowest = relocations.iter().map(|(place, _)| *place).min()?;
    let highest = relocations.iter().map(|(place, _)| *place).max()?;
    let fits = |(place, _): &&(u64, u64)| {
        place.checked_sub(base_at as u64).is_some_and(|image| {
            image % IMAGE_ALIGNMENT == 0 && image <= lowest && highest - image < bytes.len() as u64
        })
    };
    relocations.iter().find(fits).map(|(_, addend)| *addend)
}
