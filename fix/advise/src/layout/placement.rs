//! Places of an aggregate's fields when they are declared in a given order, by the System V rules that GCC and Clang
//! share on x86 and Arm.

/// A member to be placed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Field {
    /// Size of the member's type in bytes.
    pub(crate) size_bytes: u64,
    /// Alignment in bytes.
    pub(crate) align_bytes: u64,
    /// Width of a bit-field; 0 closes the storage unit.
    pub(crate) bit_width: Option<u32>,
    /// Unnamed bit-fields before it.
    pub(crate) lead: Lead,
}

/// Room that unnamed bit-fields take before a field; debug info does not describe them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lead {
    /// None.
    None,
    /// This number of bits.
    Bits(u64),
    /// `:0`: the field starts a storage unit of its type.
    Unit,
}

/// Fields in their places.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Placed {
    /// Offset of each field in bits, by the field's index, in any order.
    pub(crate) offsets_bits: Vec<u64>,
    /// Size of the whole, rounded up to its alignment.
    pub(crate) size_bytes: u64,
}

/// Places `fields` in `order`; `align_bytes` is the alignment of the whole. `None` when an alignment is
/// no power of two, a bit-field is wider than its type, or sizes overflow.
pub(crate) fn place(fields: &[Field], order: &[usize], align_bytes: u64) -> Option<Placed> {
    place_after(fields, order, align_bytes, 0)
}

/// The same, with the first `head_bits` bits taken already.
pub(crate) fn place_after(
    fields: &[Field],
    order: &[usize],
    align_bytes: u64,
    head_bits: u64,
) -> Option<Placed> {
    let mut offsets_bits = vec![0; fields.len()];
    let mut end_bits = head_bits;
    for &index in order {
        let field = fields.get(index)?;
        let start = start_bits(field, end_bits)?;
        *offsets_bits.get_mut(index)? = start;
        end_bits = end_after(field, start)?;
    }
    let size_bytes = end_bits.div_ceil(8).checked_next_multiple_of(align_bytes)?;
    Some(Placed { offsets_bits, size_bytes })
}

/// The start of a field after `end_bits` bits are taken. A bit-field shares the storage unit of its type with the field
/// before it when it fits there whole.
pub(crate) fn start_bits(field: &Field, end_bits: u64) -> Option<u64> {
    let end_bits = match field.lead {
        Lead::None => end_bits,
        Lead::Bits(bits) => end_bits.checked_add(bits)?,
        Lead::Unit => {
            end_bits.checked_next_multiple_of(field.size_bytes.checked_mul(8).filter(|bits| *bits > 0)?)?
        }
    };
    let align_bits = field.align_bytes.checked_mul(8).filter(|_| field.align_bytes.is_power_of_two())?;
    let Some(width) = field.bit_width else {
        return end_bits.div_ceil(8).checked_mul(8)?.checked_next_multiple_of(align_bits);
    };
    let unit_bits = field.size_bytes.checked_mul(8)?;
    if u64::from(width) > unit_bits || unit_bits == 0 {
        return None;
    }
    let in_unit = end_bits % align_bits.min(unit_bits);
    let fits = width > 0 && in_unit + u64::from(width) <= unit_bits;
    if fits { Some(end_bits) } else { end_bits.checked_next_multiple_of(align_bits) }
}

pub(crate) fn end_after(field: &Field, start_bits: u64) -> Option<u64> {
    let bits = match field.bit_width {
        Some(width) => u64::from(width),
        None => field.size_bytes.checked_mul(8)?,
    };
    start_bits.checked_add(bits)
}

/// The alignment, in bytes, of a member that was put on lines of its own.
pub(crate) const APART_BYTES: u64 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(size: u64) -> Field {
        Field { size_bytes: size, align_bytes: size, bit_width: None, lead: Lead::None }
    }

    fn bits(size: u64, width: u32) -> Field {
        Field { size_bytes: size, align_bytes: size, bit_width: Some(width), lead: Lead::None }
    }

    #[test]
    fn padding_appears_where_alignment_asks_for_it_and_at_the_end() {
        let fields = [plain(1), plain(8), plain(2)];
        let placed = place(&fields, &[0, 1, 2], 8).expect("places");
        assert_eq!((placed.offsets_bits, placed.size_bytes), (vec![0, 64, 128], 24));
        let placed = place(&fields, &[1, 2, 0], 8).expect("places");
        assert_eq!((placed.offsets_bits, placed.size_bytes), (vec![80, 0, 64], 16));
    }

    #[test]
    fn a_bit_field_enters_the_padding_before_it_but_never_straddles_its_unit() {
        let fields = [plain(1), bits(4, 8), bits(4, 24), bits(4, 0), bits(4, 3)];
        let placed = place(&fields, &[0, 1, 2, 3, 4], 4).expect("places");
        assert_eq!((placed.offsets_bits, placed.size_bytes), (vec![0, 8, 32, 64, 64], 12));
    }

    #[test]
    fn impossible_fields_have_no_place() {
        assert_eq!(place(&[bits(4, 33)], &[0], 4), None);
        assert_eq!(
            place(
                &[Field { size_bytes: u64::MAX, align_bytes: 1, bit_width: None, lead: Lead::None }; 2],
                &[0, 1],
                1
            ),
            None
        );
        assert_eq!(
            place(&[Field { size_bytes: 4, align_bytes: 3, bit_width: None, lead: Lead::None }], &[0], 4),
            None
        );
    }
}
