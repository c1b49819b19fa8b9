//! Pointers to what follows an object, and pointers that are moved on or back.

use crate::collect::Collector;
use crate::facts::{Act, Origin, Source, Value};
use crate::tree::{Kind, NodeId, Operator, TypeKind};

impl Collector<'_> {
    /// `x + 1`, `(char *)x + sizeof *x`: the end of an object.
    pub(in crate::collect) fn end_of_object(
        &self,
        pointer: NodeId,
        index: NodeId,
        at: NodeId,
    ) -> Option<Value> {
        let tree = self.tree;
        let node = tree.node(at);
        let record = self.record_behind(tree.uncast(pointer))?;
        let is_element = tree.record_pointed_to(tree.node(pointer).ty).is_some();
        let by = tree.node(tree.uncast(index)).value.and_then(|by| u64::try_from(by).ok());
        let size = if is_element { Some(1) } else { self.record_bytes(record) };
        let is_end = node.kind == Kind::Binary && !node.is_minus && by.is_some() && by == size;
        let usr = self.usr(record).filter(|_| is_end && !self.is_kernel)?;
        Some(Value::origin(Origin::End(usr)))
    }

    /// True where a pointer is moved back.
    pub(in crate::collect) fn is_moved_back(&self, index: NodeId, at: NodeId) -> bool {
        let node = self.tree.node(at);
        let is_subtracted = node.kind == Kind::CompoundAssign && node.operator == Some(Operator::Minus);
        self.is_negative(index) || node.is_minus || is_subtracted
    }

    /// `p - n`, `*--p`. What is cast to an object there is looked at as that.
    pub(in crate::collect) fn note_moved_back(&mut self, values: &[Value], at: NodeId) {
        let tree = self.tree;
        let around = self.above.iter().rev().filter(|&&above| above != at).map(|&above| tree.node(above));
        let mut casts = around.take_while(|node| matches!(node.kind, Kind::Wrap | Kind::Cast));
        if !self.is_kernel && !casts.any(|cast| tree.record_pointed_to(cast.ty).is_some()) {
            self.act(&Self::objects(values), &Act::Back, at);
        }
    }

    /// `p += n`, `p++`.
    pub(in crate::collect) fn note_moved_on(&mut self, values: &[Value], id: NodeId) {
        let tree = self.tree;
        let node = tree.node(id);
        let is_on = match node.kind {
            Kind::Step => !node.is_minus,
            _ => node.operator == Some(Operator::Plus),
        };
        if !is_on || self.is_kernel {
            return;
        }
        let by = node.children.get(1).copied();
        for value in values.iter().filter(|value| value.level == 0) {
            if let Source::Place(place) = &value.source {
                self.facts.moved_on.insert(place.clone());
            }
        }
        let is_bytes = tree
            .pointee(node.ty)
            .is_some_and(|to| matches!(tree.ty(to).kind, TypeKind::Byte | TypeKind::Void));
        if let Some(by) = by.filter(|_| is_bytes) {
            self.note_advanced(values, by, id);
        }
    }
}
