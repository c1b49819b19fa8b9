//! Relocations of 64-bit Arm: whole words, and fields of instructions. The formulas are those of "ELF for the Arm
//! 64-bit Architecture (AArch64)", section 5.7: S + A is the target, P the place.

use object::elf;

/// The destination that a relocation writes.
enum Written {
    /// This many bytes.
    Bytes(usize),
    /// A field of an instruction: its lowest bit and its width.
    Field(u32, u32),
    /// The page's distance of `adr` and `adrp`: two low bits far above the others.
    PageField,
}

/// The value that a relocation writes, before it is cut to the field's width, and its destination. `None` for a kind
/// that no module's code has, and for a target out of reach, where a kernel inserts a jump.
fn value(kind: elf::RelocationType, target: u64, place: u64) -> Option<(u64, Written)> {
    let distance = target.wrapping_sub(place);
    let page = |address: u64| address & !0xfff;
    let branch = |low: u32, width: u32| {
        reaches(distance, width + 2).then_some((distance >> 2, Written::Field(low, width)))
    };
    let low = |shift: u32| Some(((target & 0xfff) >> shift, Written::Field(10, 12)));
    let half = |number: u32| Some((target >> (16 * number), Written::Field(5, 16)));
    match kind {
        elf::R_AARCH64_ABS64 => Some((target, Written::Bytes(8))),
        elf::R_AARCH64_ABS32 => Some((target, Written::Bytes(4))),
        elf::R_AARCH64_PREL64 => Some((distance, Written::Bytes(8))),
        elf::R_AARCH64_PREL32 => Some((distance, Written::Bytes(4))),
        elf::R_AARCH64_CALL26 | elf::R_AARCH64_JUMP26 => branch(0, 26),
        elf::R_AARCH64_CONDBR19 | elf::R_AARCH64_LD_PREL_LO19 => branch(5, 19),
        elf::R_AARCH64_TSTBR14 => branch(5, 14),
        elf::R_AARCH64_ADR_PREL_LO21 => reaches(distance, 21).then_some((distance, Written::PageField)),
        elf::R_AARCH64_ADR_PREL_PG_HI21 | elf::R_AARCH64_ADR_PREL_PG_HI21_NC => {
            let pages = page(target).wrapping_sub(page(place));
            reaches(pages, 33).then_some((pages >> 12, Written::PageField))
        }
        elf::R_AARCH64_ADD_ABS_LO12_NC | elf::R_AARCH64_LDST8_ABS_LO12_NC => low(0),
        elf::R_AARCH64_LDST16_ABS_LO12_NC => low(1),
        elf::R_AARCH64_LDST32_ABS_LO12_NC => low(2),
        elf::R_AARCH64_LDST64_ABS_LO12_NC => low(3),
        elf::R_AARCH64_LDST128_ABS_LO12_NC => low(4),
        elf::R_AARCH64_MOVW_UABS_G0 | elf::R_AARCH64_MOVW_UABS_G0_NC => half(0),
        elf::R_AARCH64_MOVW_UABS_G1 | elf::R_AARCH64_MOVW_UABS_G1_NC => half(1),
        elf::R_AARCH64_MOVW_UABS_G2 | elf::R_AARCH64_MOVW_UABS_G2_NC => half(2),
        elf::R_AARCH64_MOVW_UABS_G3 => half(3),
        _ => None,
    }
}

/// True when a distance is a signed number of this many bits.
fn reaches(distance: u64, bits: u32) -> bool {
    let unused = 64 - bits;
    (distance.cast_signed() << unused) >> unused == distance.cast_signed()
}

/// Writes a relocation into the bytes that begin where it does; `None` when it changes nothing.
pub(super) fn write(bytes: &mut [u8], kind: elf::RelocationType, (target, place): (u64, u64)) -> Option<()> {
    let (value, written) = value(kind, target, place)?;
    let (mask, field) = match written {
        Written::Bytes(count) => {
            bytes.get_mut(..count)?.copy_from_slice(value.to_le_bytes().get(..count)?);
            return Some(());
        }
        Written::Field(low, width) => {
            let mask = (1u64 << width) - 1;
            (mask << low, (value & mask) << low)
        }
        Written::PageField => (0x3 << 29 | 0x7_ffff << 5, (value & 3) << 29 | (value >> 2 & 0x7_ffff) << 5),
    };
    let bytes = bytes.first_chunk_mut::<4>()?;
    let old = u64::from(u32::from_le_bytes(*bytes));
    let new = u32::try_from(old & !mask | field).ok()?;
    *bytes = new.to_le_bytes();
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_out_of_reach_is_left_alone() {
        let mut call = 0x9400_0000u32.to_le_bytes();
        let place = 0xffff_8000_0800_0000u64;
        for target in [place + (1 << 27), place - (1 << 27) - 4] {
            assert_eq!(write(&mut call, elf::R_AARCH64_CALL26, (target, place)), None);
        }
        assert_eq!(call, 0x9400_0000u32.to_le_bytes());
        write(&mut call, elf::R_AARCH64_CALL26, (place - (1 << 27), place)).unwrap();
        assert_eq!(u32::from_le_bytes(call), 0x9600_0000);
    }

    #[test]
    fn a_kind_that_is_not_known_and_bytes_that_are_missing_change_nothing() {
        let mut bytes = [0; 4];
        assert_eq!(write(&mut bytes, elf::R_AARCH64_TLSDESC, (8, 4)), None);
        assert_eq!(write(&mut bytes, elf::R_AARCH64_ABS64, (8, 4)), None);
        assert_eq!(write(&mut bytes[..3], elf::R_AARCH64_CALL26, (8, 4)), None);
        assert_eq!(bytes, [0; 4]);
    }
}
