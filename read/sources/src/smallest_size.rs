//! The smallest size that an order of members may give a type.

use crate::facts::RecordFact;

/// No order makes the type smaller than its members without the space between them. Those of some types of C++ lie in
/// each other's space, and a union is as large as its largest member.
pub(crate) fn least_bytes(record: &RecordFact) -> u64 {
    let members = record.members.iter().filter(|member| !member.is_bit_field && !record.is_union);
    members.map(|member| member.size_bytes).sum::<u64>().min(record.size_bytes)
}

/// True where another order may make the type smaller.
pub(crate) fn may_shrink(record: &RecordFact) -> bool {
    let align = record.members.iter().map(|member| member.align_bytes).max().unwrap_or(1);
    !record.is_union && least_bytes(record).next_multiple_of(align.max(1)) < record.size_bytes
}
