//! A type that differs between two builds, in JSON.

use lineup_model::layout::{Change, Difference};
use lineup_model::line::LineSize;
use serde::Serialize;

/// One type.
#[derive(Serialize)]
pub(crate) struct ChangedType<'d> {
    name: &'d str,
    old_size_bytes: u64,
    new_size_bytes: u64,
    old_lines: u64,
    new_lines: u64,
    changes: Vec<ChangedMember<'d>>,
}

#[derive(Serialize)]
#[serde(tag = "change", rename_all = "lowercase")]
enum ChangedMember<'d> {
    Added {
        member: &'d str,
        offset_bytes: u64,
    },
    Removed {
        member: &'d str,
        offset_bytes: u64,
    },
    Moved {
        member: &'d str,
        old_offset_bytes: u64,
        new_offset_bytes: u64,
        old_line: u64,
        new_line: u64,
        /// First bit in these bytes, for bit-fields.
        #[serde(skip_serializing_if = "Option::is_none")]
        old_bit: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        new_bit: Option<u64>,
    },
    Resized {
        member: &'d str,
        old_size: u64,
        new_size: u64,
    },
}

impl<'d> ChangedType<'d> {
    /// The type of this name, on lines of this size.
    pub(crate) fn of(name: &'d str, difference: &'d Difference, line: LineSize) -> ChangedType<'d> {
        let change = |change: &'d Change| match change {
            Change::Added { name, offset } => ChangedMember::Added { member: name, offset_bytes: *offset },
            Change::Removed { name, offset } => {
                ChangedMember::Removed { member: name, offset_bytes: *offset }
            }
            Change::Moved { name, from, to, bits, .. } => ChangedMember::Moved {
                member: name,
                old_offset_bytes: *from,
                new_offset_bytes: *to,
                old_line: line.line_of(*from),
                new_line: line.line_of(*to),
                old_bit: bits.map(|(old, _)| old),
                new_bit: bits.map(|(_, new)| new),
            },
            Change::Resized { name, from, to, .. } => {
                ChangedMember::Resized { member: name, old_size: *from, new_size: *to }
            }
        };
        ChangedType {
            name,
            old_size_bytes: difference.size_bytes.0,
            new_size_bytes: difference.size_bytes.1,
            old_lines: difference.lines.0,
            new_lines: difference.lines.1,
            changes: difference.changes.iter().map(change).collect(),
        }
    }
}
