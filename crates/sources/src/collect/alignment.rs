//! Uses that ask for more alignment than a type gives by itself.

use super::Collector;
use crate::facts::{Act, Origin, Saying, Value};
use crate::known;
use crate::tree::{Kind, NodeId, Operands, Operator, TypeId, TypeKind};

/// From this size on the processor's own instructions ask for alignment.
const VECTOR_BYTES: u64 = 16;

impl Collector<'_> {
    /// `*(__m128 *)x->v`, `((unsigned __int128 *)p)[0]`.
    pub(super) fn note_wide_access(&mut self, values: &[Value], pointer: NodeId, at: NodeId) {
        let ty = self.tree.ty(self.tree.node(at).ty);
        let bytes = ty.size_bytes.filter(|&bytes| ty.kind == TypeKind::Scalar && bytes >= VECTOR_BYTES);
        if let Some(bytes) = bytes {
            self.aligned(values, pointer, (bytes, "one vector"), at);
        }
    }

    /// `(__m128 *)x->v` leads to the array, wherever it is kept.
    pub(super) fn vector_behind(&self, array: NodeId, to: TypeId) -> Option<Value> {
        let ahead = self.tree.ty(self.tree.pointee(to)?);
        let is_wide = ahead.kind == TypeKind::Scalar && ahead.size_bytes >= Some(VECTOR_BYTES);
        self.array_member(array).filter(|_| is_wide)
    }

    /// An atomic operation on what is wider than the member; `__builtin_assume_aligned`.
    pub(super) fn note_aligned_call(
        &mut self,
        function: &str,
        arguments: &[NodeId],
        values: &[Vec<Value>],
        id: NodeId,
    ) {
        let (Some(&pointer), Some(given)) = (arguments.first(), values.first()) else { return };
        let tree = self.tree;
        if known::assumes_alignment(function) {
            let asked = arguments.get(1).and_then(|&bytes| tree.node(tree.bare(bytes)).value);
            let asked = asked.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(known::MOST_ALIGNMENT);
            self.aligned(given, pointer, (asked, function), id);
        } else if known::is_atomic(function) {
            self.note_atomic(function, pointer, given, id);
        }
    }

    /// The operation is atomic only at a multiple of what it changes.
    pub(super) fn note_atomic(&mut self, by: &str, pointer: NodeId, values: &[Value], id: NodeId) {
        let tree = self.tree;
        let operand = tree.pointee(tree.node(tree.bare(pointer)).ty).map(|to| tree.ty(to));
        let bytes = operand.filter(|to| to.kind == TypeKind::Scalar).and_then(|to| to.size_bytes);
        if let Some(bytes) = bytes {
            self.aligned(values, pointer, (bytes, by), id);
        }
    }

    /// `(uintptr_t)&x->v % 16`, `(uintptr_t)x->v & 15`.
    pub(super) fn note_alignment_asked(&mut self, id: NodeId, left: NodeId, right: NodeId, values: &[Value]) {
        let tree = self.tree;
        let pointer = tree.uncast(left);
        let number = tree.node(tree.bare(right)).value.and_then(|number| u64::try_from(number).ok());
        let bytes = match tree.node(id).operator {
            Some(Operator::And) => number.and_then(|mask| mask.checked_add(1)),
            Some(Operator::Remainder) => number,
            _ => None,
        };
        let is_address = tree.pointee(tree.node(pointer).ty).is_some();
        if let Some(bytes) = bytes.filter(|bytes| is_address && bytes.is_power_of_two()) {
            self.aligned(values, pointer, (bytes, "a test of its address"), id);
        }
    }

    /// `"m"(x->low)`: the member alone is used, but where a number is added to it or the instruction takes more.
    pub(super) fn note_operand(&mut self, id: NodeId, operand: NodeId, operands: Operands) {
        let tree = self.tree;
        let mut inner = tree.uncast(operand);
        while let (Kind::Subscript | Kind::Deref | Kind::AddressOf, [first, ..]) =
            (tree.node(inner).kind, &tree.node(inner).children[..])
        {
            inner = tree.uncast(*first);
        }
        let Some((record, member)) = self.member_named(inner) else { return };
        if operands.is_moved {
            self.act(&[Value::origin(Origin::Object(record.clone()))], &Act::Assembly, id);
        }
        if let Some(bytes) = operands.vector_bytes {
            let at = self.at(id);
            let value = Value::origin(Origin::MemberOf(record.clone(), member.clone()));
            self.act(&[value], &Act::Aligned(bytes, "an instruction".into()), id);
            self.facts.sayings.insert((record, Saying::Span(member, Some(bytes)), at));
        }
    }

    fn aligned(&mut self, values: &[Value], pointer: NodeId, (bytes, by): (u64, &str), at: NodeId) {
        let mut values = Self::objects(values);
        values.extend(self.array_member(pointer));
        self.act(&values, &Act::Aligned(bytes, by.into()), at);
    }

    /// `(struct header *)bytes` of a record that has bytes alone in it: what it describes is a format of bytes.
    pub(super) fn note_format(&mut self, behind: TypeId, ahead: TypeId, at: NodeId) {
        let tree = self.tree;
        let Some(record) = tree.record_of(ahead).filter(|_| tree.ty(behind).kind == TypeKind::Byte) else {
            return;
        };
        let is_of_bytes = |mut ty: TypeId| {
            while let TypeKind::Array(of, _) = tree.ty(ty).kind {
                ty = of;
            }
            tree.ty(ty).kind == TypeKind::Byte
        };
        let fields = &tree.records[record].fields;
        let is_format = fields.len() > 1 && fields.iter().all(|field| is_of_bytes(field.ty));
        if let Some(usr) = self.usr(record).filter(|_| is_format && !self.is_kernel) {
            let at = self.at(at);
            self.facts.sayings.insert((usr, Saying::Format, at));
        }
    }

    /// `(struct t *)(base + (i << 8))`: objects are found by a number that is their size.
    pub(super) fn note_stride(&mut self, child: NodeId, ahead: TypeId, at: NodeId) {
        let tree = self.tree;
        let Some(record) = tree.record_of(ahead) else { return };
        let (Some(size), Some(usr)) = (self.record_bytes(record), self.usr(record)) else { return };
        let sum = tree.uncast(child);
        if tree.node(sum).kind != Kind::Binary {
            return;
        }
        let is_stride = |&id: &NodeId| {
            let node = tree.node(id);
            let [_, right] = node.children[..] else { return false };
            let numbers = node.children.iter().filter_map(|&number| tree.node(tree.bare(number)).value);
            let mut numbers = numbers.filter_map(|number| u64::try_from(number).ok());
            match node.operator {
                Some(Operator::ShiftLeft) => {
                    let by = tree.node(tree.bare(right)).value.and_then(|by| u32::try_from(by).ok());
                    by.and_then(|by| 1_u64.checked_shl(by)) == Some(size)
                }
                Some(Operator::Times) => {
                    let is_measured = tree.has_below(id, &[Kind::SizeOf]);
                    !is_measured && numbers.any(|number| number == size)
                }
                _ => false,
            }
        };
        if tree.below(sum).iter().any(is_stride) {
            let at = self.at(at);
            self.facts.sayings.insert((usr, Saying::Stride(size), at));
        }
    }
}
