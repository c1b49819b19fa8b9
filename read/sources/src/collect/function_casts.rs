//! Functions that are cast to other types: the objects that they take and give by value.

use super::Collector;
use crate::facts::{FunctionCast, Shape, ValueSlot};
use crate::tree::{Decl, FunctionType, Name, NodeId, TypeId, TypeKind};
use std::collections::BTreeSet;

/// Stands for the types of pointers that are no functions' pointers.
const PLAIN: &str = "(plain pointer)";

impl Collector<'_> {
    /// A function by its name: its own type.
    pub(super) fn note_function_value(&mut self, decl: &Decl) {
        if self.is_kernel {
            return;
        }
        let own = self.value_slots(&decl.signature);
        self.facts.value_slots.insert(decl.usr.clone(), own);
        let spelling = self.tree.ty(decl.ty).spelling.clone();
        self.facts.function_types.insert(decl.usr.clone(), spelling);
    }

    /// A pointer to a function becomes another pointer, or another pointer becomes one.
    pub(super) fn note_function_cast(&mut self, behind: TypeId, ahead: TypeId, at: NodeId) {
        if self.is_kernel {
            return;
        }
        let (from, to) = (self.function_type(behind), self.function_type(ahead));
        if from.is_none() && to.is_none() {
            return;
        }
        let name = |ty: Option<Name>| ty.unwrap_or_else(|| PLAIN.into());
        let cast = FunctionCast { from: name(from), to: name(to), at: self.at(at) };
        self.facts.function_casts.insert(cast);
    }

    /// `double (*f)() = …; f(x)`: the arguments show the parameters of a type that names none.
    pub(super) fn note_call_without_parameters(&mut self, callee: NodeId, arguments: &[NodeId], at: NodeId) {
        let tree = self.tree;
        let ty = tree.node(callee).ty;
        let function = tree.pointee(ty).unwrap_or(ty);
        let Some(called) = tree.function_types.get(&function) else { return };
        let takes: Vec<TypeId> = arguments.iter().map(|&argument| tree.node(argument).ty).collect();
        let has_object = takes.iter().any(|&ty| tree.record_of(ty).is_some());
        if self.is_kernel || tree.is_cpp || !called.takes.is_empty() || !has_object {
            return;
        }
        let slots = self.value_slots(&FunctionType { takes, gives: called.gives });
        let from = tree.ty(function).spelling.clone();
        let given: Vec<&str> = slots.iter().map(|slot| &*slot.spelling).collect();
        let to: Name = format!("{from} given {}", given.join(", ")).into();
        self.facts.value_slots.insert(to.clone(), slots);
        self.facts.function_casts.insert(FunctionCast { from, to, at: self.at(at) });
    }

    fn function_type(&mut self, ty: TypeId) -> Option<Name> {
        let tree = self.tree;
        let found = Some(tree.ty(ty)).filter(|found| found.kind == TypeKind::Function)?;
        let slots = tree.function_types.get(&ty).map(|called| self.value_slots(called)).unwrap_or_default();
        self.facts.value_slots.insert(found.spelling.clone(), slots);
        Some(found.spelling.clone())
    }

    fn value_slots(&self, function: &FunctionType) -> BTreeSet<ValueSlot> {
        let slots = function.slots().map(|(parameter, ty)| {
            let spelling = self.tree.ty(ty).spelling.clone();
            let mut target = self.tree.pointee(ty);
            while let Some(TypeKind::Array(of, _)) = target.map(|to| self.tree.ty(to).kind) {
                target = Some(of);
            }
            let target = target.map(|to| (self.shape(to), self.tree.ty(to).spelling.clone()));
            let target = target.filter(|(shape, _)| !matches!(shape, Shape::Scalar(..2) | Shape::Other));
            ValueSlot { parameter, shape: self.shape(ty), spelling, target }
        });
        slots.filter(|slot| slot.shape != Shape::Other).collect()
    }
}
