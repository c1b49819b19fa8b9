//! The records of a unit, and the facts in their mentions.

use super::Collector;
use crate::facts::{Member, RecordFact, Saying, Shape, Where};
use crate::tree::{Field, FunctionType, Kind, Name, NodeId, Record, RecordId, TypeId, TypeKind};
use std::collections::BTreeSet;

impl Collector<'_> {
    pub(super) fn records(&mut self) {
        for record in &self.tree.records {
            let Some(usr) = record.usr.clone() else { continue };
            let fact = self.record_fact(record);
            if record.is_ordered {
                self.facts.sayings.insert((usr.clone(), Saying::Ordered, fact.at.clone()));
            }
            self.note_tags(&usr, record, &fact.at);
            self.facts.records.insert(usr, fact);
        }
    }

    fn record_fact(&self, record: &Record) -> RecordFact {
        let at = Where { file: record.file.clone().unwrap_or_else(|| "".into()), line: record.line };
        RecordFact {
            names: record.names.clone(),
            is_union: record.is_union,
            is_foreign: record.is_foreign,
            at,
            copies: BTreeSet::new(),
            size_bytes: record.size_bytes,
            members: record.fields.iter().map(|field| self.member_fact(field)).collect(),
            bases: record.bases.iter().filter_map(|&base| self.usr(base)).collect(),
            runs_code: record.runs_code,
        }
    }

    fn member_fact(&self, field: &Field) -> Member {
        let ty = self.tree.ty(field.ty);
        let (mut inner, mut is_volatile, mut is_array, mut is_open_array) =
            (field.ty, ty.is_volatile, false, false);
        while let TypeKind::Array(of, count) = self.tree.ty(inner).kind {
            is_open_array |= !is_array && count.unwrap_or(0) <= 1;
            is_array = true;
            inner = of;
            is_volatile |= self.tree.ty(of).is_volatile;
        }
        let is_raw = matches!(self.tree.ty(inner).kind, TypeKind::Byte | TypeKind::Scalar);
        Member {
            name: field.name.clone(),
            ty: ty.spelling.clone(),
            shape: match is_array {
                true => Shape::Other,
                false => self.shape(field.ty),
            },
            record: self.tree.record_of(inner).and_then(|record| self.usr(record)),
            points_to: match self.tree.ty(inner).kind {
                TypeKind::Pointer(to) => self.tree.record_of(to).and_then(|record| self.usr(record)),
                _ => None,
            },
            points_to_number: match self.tree.ty(inner).kind {
                TypeKind::Pointer(to) if self.tree.ty(to).kind == TypeKind::Scalar => {
                    Some((self.shape(to), self.tree.ty(to).spelling.clone()))
                }
                _ => None,
            },
            called_with: self.called_with(inner),
            offset_bits: field.offset_bits,
            align_bytes: field.align_bytes,
            size_bytes: ty.size_bytes.unwrap_or(0),
            is_bit_field: field.bits.is_some(),
            is_volatile,
            is_array,
            is_open_array,
            is_raw,
        }
    }

    /// The records behind the parameters and results of functions that a pointer of this type leads to.
    fn called_with(&self, ty: TypeId) -> Vec<(Option<usize>, Name)> {
        let function = self.tree.pointee(ty).and_then(|to| self.tree.function_types.get(&to));
        let slots = function.into_iter().flat_map(FunctionType::slots);
        let record = |ty| self.tree.record_pointed_to(ty).and_then(|record| self.usr(record));
        slots.filter_map(|(slot, ty)| Some((slot, record(ty)?))).collect()
    }

    /// A declaration of `volatile T *`.
    pub(super) fn note_volatile(&mut self, id: NodeId) {
        let tree = self.tree;
        let is_declaration = tree.node(id).decl.is_some();
        let Some(to) = tree.pointee(tree.node(id).ty).filter(|_| is_declaration) else { return };
        if let (true, Some(record)) = (tree.ty(to).is_volatile, tree.record_of(to))
            && let Some(usr) = self.usr(record)
        {
            let at = self.at(id);
            self.facts.sayings.insert((usr, Saying::VolatilePointer, at));
        }
    }

    /// The records that an exported function takes and gives.
    pub(super) fn note_exported(&mut self, id: NodeId) {
        let tree = self.tree;
        let at = self.at(id);
        let Some(name) = tree.decl_of(id).map(|decl| decl.name.clone()) else { return };
        let mut records: BTreeSet<RecordId> = BTreeSet::new();
        for &child in &tree.node(id).children {
            let node = tree.node(child);
            if node.kind != Kind::Wrap && node.decl.is_some() {
                records.extend(self.mentioned(node.ty));
            }
            if node.kind == Kind::TypeRef {
                records.extend(self.mentioned(node.ty));
            }
        }
        let usrs: Vec<Name> = records.into_iter().filter_map(|record| self.usr(record)).collect();
        self.facts.exported.extend(usrs.into_iter().map(|usr| (name.clone(), usr, at.clone())));
    }

    fn mentioned(&self, mut ty: TypeId) -> Option<RecordId> {
        while let Some(to) = self.tree.pointee(ty) {
            ty = to;
        }
        self.tree.record_of(ty)
    }
}
