//! Arrays inside of objects that are read or written by whole vectors.

use super::Collector;
use crate::facts::{Act, Origin, Shape, Value};
use crate::known::vectors;
use crate::tree::{Decl, Kind, NodeId, TypeId, TypeKind};

impl Collector<'_> {
    /// `_mm_load_ps(x->array)`.
    pub(super) fn note_given_to_intrinsic(&mut self, decl: &Decl, argument: NodeId, at: NodeId) {
        if vectors::access(&decl.name).is_none() {
            return;
        }
        let arrays: Vec<Value> = self.array_member(argument).into_iter().collect();
        self.act(&arrays, &Act::Given(decl.usr.clone(), decl.name.clone()), at);
    }

    /// `*(__m128 *)x->array`.
    pub(super) fn note_array_as(&mut self, array: NodeId, ahead: TypeId, at: NodeId) {
        let tree = self.tree;
        if tree.ty(ahead).kind != TypeKind::Scalar {
            return;
        }
        if let (Some(value), shape @ Shape::Scalar(_)) = (self.array_member(array), self.shape(ahead)) {
            self.act(&[value], &Act::As(shape, tree.ty(ahead).spelling.clone()), at);
        }
    }

    /// The member that is an array of numbers and whose elements' address this is.
    pub(super) fn array_member(&self, id: NodeId) -> Option<Value> {
        let tree = self.tree;
        let mut inner = tree.uncast(id);
        while let (Kind::AddressOf | Kind::Subscript, [first, ..]) =
            (tree.node(inner).kind, &tree.node(inner).children[..])
        {
            inner = tree.bare(*first);
        }
        let TypeKind::Array(of, _) = tree.ty(tree.node(inner).ty).kind else { return None };
        let (record, name) = self.member_named(inner).filter(|_| tree.ty(of).kind == TypeKind::Scalar)?;
        Some(Value::origin(Origin::MemberOf(record, name)))
    }
}
