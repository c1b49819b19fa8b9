//! Functions that the compiler calls where a variable's scope ends.

use super::Collector;
use crate::facts::{Act, Origin, PointerPlace, Reach, Value};
use crate::tree::{DeclKind, Name, NodeId, TypeKind};

impl Collector<'_> {
    /// `__attribute__((cleanup(f))) struct t x`: a call `f(&x)` that no text shows.
    pub(super) fn note_cleanup(&mut self, variable: NodeId) {
        let tree = self.tree;
        let (Some(name), Some(decl)) = (tree.cleanups.get(&variable), tree.decl_of(variable)) else { return };
        let mut values = Vec::new();
        if let TypeKind::Pointer(_) = tree.ty(decl.ty).kind {
            let place = Value::place(PointerPlace::Variable(decl.usr.clone()));
            values.push(Value { reach: Reach::Address, ..place.at_level(1) });
        }
        let (is_pointer, record) = match tree.ty(decl.ty).kind {
            TypeKind::Record(record) => (false, Some(record)),
            kind => (matches!(kind, TypeKind::Pointer(_)), tree.record_pointed_to(decl.ty)),
        };
        let origin = if is_pointer { Origin::Handle } else { Origin::Object };
        values.extend(record.and_then(|record| self.usr(record)).map(|usr| Value::origin(origin(usr))));
        let is_called = |name: &Name| {
            tree.decls.iter().find(|decl| decl.kind == DeclKind::Function && decl.name == *name)
        };
        // A function that no unit defines is like any other that is not compiled here.
        let function = is_called(name).map_or_else(|| name.clone(), |called| called.usr.clone());
        self.act(&values, &Act::Given(function.clone(), name.clone()), variable);
        self.note_call(variable, (function, 1), &[], vec![values]);
    }
}
