//! Marks in the lowest bits of addresses, as unions lay them there.

use super::Collector;
use crate::facts::{Act, Origin, PointerPlace, Source, Value, Where};
use crate::tree::{Field, Name, Record, TypeKind};

/// Wider bit-fields are no marks: the address itself is in them.
const MOST_MARK_BITS: u64 = 12;

impl Collector<'_> {
    /// `union { struct t *p; struct { unsigned long mark : 4; … }; }`: the mark's bits are free where the address is
    /// aligned to them.
    pub(super) fn note_tags(&mut self, union: &Name, record: &Record, at: &Where) {
        let tree = self.tree;
        if !record.is_union || self.is_kernel {
            return;
        }
        let marks = record.fields.iter().filter_map(|field| self.mark_bits(field));
        let Some(bits) = marks.filter(|&bits| bits <= MOST_MARK_BITS).max() else { return };
        let act = Act::Aligned(1 << bits, "a mark in its address's lowest bits".into());
        for field in record.fields.iter().filter(|field| field.bits.is_none()) {
            let place = PointerPlace::Member(union.clone(), field.name.clone());
            let target = match tree.ty(field.ty).kind {
                TypeKind::Pointer(to) => tree.record_of(to).and_then(|record| self.usr(record)),
                _ if self.holds_pointer(field.ty) => None,
                _ => continue,
            };
            let values = [Some(Value::place(place)), target.map(|usr| Value::origin(Origin::Object(usr)))];
            let acts = values.into_iter().flatten().map(|value| (value, act.clone(), at.clone()));
            self.facts.acts.extend(acts);
        }
    }

    /// `union { struct t *p; unsigned long number; }`: a test of the number is one of the address.
    pub(super) fn addresses_in_union(&self, values: &[Value]) -> Vec<Value> {
        let tree = self.tree;
        let mut found = Vec::new();
        for value in values {
            let Source::Place(PointerPlace::Member(union, _)) = &value.source else { continue };
            let record =
                tree.record_called(union).map(|id| &tree.records[id]).filter(|record| record.is_union);
            let fields = record.into_iter().flat_map(|record| &record.fields);
            let addresses = fields.filter(|field| tree.pointee(field.ty).is_some());
            found.extend(addresses.map(|field| Value {
                source: Source::Place(PointerPlace::Member(union.clone(), field.name.clone())),
                ..value.clone()
            }));
        }
        found
    }

    /// The width of the bit-field with which a union's alternative begins.
    fn mark_bits(&self, field: &Field) -> Option<u64> {
        let record = self.tree.record_of(field.ty);
        let first = record.and_then(|record| self.tree.records[record].fields.first());
        field.bits.or(first.and_then(|first| first.bits))
    }
}
