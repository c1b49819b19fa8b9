//! The discriminants that distinguish the variants of a Rust enum.

use crate::layout::{Layout, Row};
use crate::types::{Aggregate, Member, MemberRole, ScalarKind, Selector, TypeKind, Types};
use std::ops::Range;

impl Aggregate {
    /// The discriminant of a Rust enum; `None` when there is only one variant.
    pub fn discriminant(&self) -> Option<&Member> {
        self.members.iter().find(|member| member.role == MemberRole::Discriminant)
    }
}

impl Types {
    /// The value of a discriminant from the bits in debug info: signed when its type is.
    pub fn discriminant_value(&self, aggregate: &Aggregate, bits: u64, width_bits: u8) -> i128 {
        let discriminant = aggregate.discriminant();
        let ty = discriminant.and_then(|member| self.get(self.strip(member.ty)?));
        let signed = ty.is_some_and(|ty| ty.kind == TypeKind::Scalar(ScalarKind::Integer { signed: true }));
        let unused = 64 - u32::from(width_bits.clamp(1, 64));
        if signed { i128::from((bits << unused).cast_signed() >> unused) } else { i128::from(bits) }
    }

    /// The bytes of an enum that hold its discriminant.
    pub fn discriminant_bytes(&self, aggregate: &Aggregate) -> Option<Range<u64>> {
        let discriminant = aggregate.discriminant()?;
        let start = discriminant.offset_bytes()?;
        Some(start..start.checked_add(self.size_bytes(discriminant.ty)?)?)
    }

    /// The member in whose unused values the discriminant lies, `Some.__0`: the one of the variant that every other
    /// value means which covers it. `None` where the discriminant has room of its own.
    pub fn niche(&self, aggregate: &Aggregate) -> Option<String> {
        let wanted = self.discriminant_bytes(aggregate)?;
        let rest =
            aggregate.members.iter().find(|member| member.role == MemberRole::Variant(Selector::Rest))?;
        let start = rest.offset_bytes()?;
        let (_, variant) = self.aggregate(rest.ty)?;
        let covering = variant.members.iter().find(|member| {
            let from = member.offset_bytes().and_then(|offset| offset.checked_add(start));
            let to = from.and_then(|from| from.checked_add(self.size_bytes(member.ty)?));
            from.is_some_and(|from| from <= wanted.start) && to.is_some_and(|to| to >= wanted.end)
        })?;
        let name = |member: &Member| member.name.as_deref().unwrap_or("(unnamed)").to_owned();
        Some(format!("{}.{}", name(rest), name(covering)))
    }
}

impl Layout {
    /// The layout of one variant of the enum that `self` lays out. The discriminant's bytes are neither hole nor
    /// padding.
    pub fn variant(&self, types: &Types, row: &Row) -> Option<Layout> {
        let mut variant = Layout::of(types, row.ty, self.line_size)?;
        let (_, aggregate) = types.aggregate(self.id)?;
        let (Some(taken), Some(start)) = (types.discriminant_bytes(aggregate), row.offset_bits) else {
            return Some(variant);
        };
        let within = |from: u64, to: u64| {
            let (from, to) = (from.max(taken.start), to.min(taken.end));
            to.saturating_sub(from)
        };
        for row in &mut variant.rows {
            let Some(end) = row.offset_bits.and_then(|bits| bits.checked_add(start)) else { continue };
            let end = end / 8;
            row.gap_before.bytes -=
                within(end.saturating_sub(row.gap_before.bytes), end).min(row.gap_before.bytes);
        }
        let end = (start / 8).saturating_add(variant.size_bytes);
        let padding = &mut variant.padding.bytes;
        *padding -= within(end.saturating_sub(*padding), end).min(*padding);
        Some(variant)
    }
}
