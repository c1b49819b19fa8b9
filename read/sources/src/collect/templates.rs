//! Templates that look at the bytes of objects whose type only their instances know.

use super::Collector;
use crate::facts::{Act, Origin, PointerPlace, Shape, Value};
use crate::library_functions::{self, Rule};
use crate::tree::{Decl, DeclKind, Kind, Name, NodeId, TypeId, TypeKind};

impl Collector<'_> {
    /// Notes a template whose body looks at bytes.
    pub(super) fn note_byte_template(&mut self, decl: &Decl, body: NodeId) {
        // A method of a class template has the template in its name.
        let is_method = decl.usr.contains("@ST>");
        if (decl.kind == DeclKind::Template || is_method) && self.looks_at_bytes(body) {
            self.facts.byte_templates.insert(decl.usr.clone());
            if is_method && self.reads_bytes(body) {
                self.facts.byte_methods.insert(decl.usr.clone());
            }
        }
    }

    /// True when a template's body casts, copies or measures bytes.
    fn looks_at_bytes(&self, id: NodeId) -> bool {
        self.tree.below(id).into_iter().any(|below| {
            let node = self.tree.node(below);
            let to_bytes = self
                .tree
                .pointee(node.ty)
                .is_some_and(|to| matches!(self.tree.ty(to).kind, TypeKind::Byte | TypeKind::Void));
            let called =
                self.tree.decl_of(below).is_some_and(|decl| library_functions::rule(&decl.name).is_some());
            (node.kind == Kind::Cast && (to_bytes || self.is_cast_of_dependent(below)))
                || node.kind == Kind::SizeOf
                || (node.kind == Kind::DeclRef && called)
        })
    }

    /// True when a template's body reads its objects as numbers, or copies them from bytes or to bytes; not where it only
    /// makes room for them or moves them.
    fn reads_bytes(&self, id: NodeId) -> bool {
        let tree = self.tree;
        let is_bytes = |node: NodeId| {
            let ty = tree.node(tree.uncast(node)).ty;
            tree.pointee(ty).is_some_and(|to| tree.ty(to).kind == TypeKind::Byte)
        };
        tree.below(id).into_iter().any(|below| {
            let called = tree.node(below).kind == Kind::Call && self.copies_bytes(below, &is_bytes);
            called || (tree.node(below).kind == Kind::Cast && self.is_cast_of_dependent(below))
        })
    }

    /// `memcpy(items, raw, n)` where either is a pointer to bytes.
    fn copies_bytes(&self, call: NodeId, is_bytes: &dyn Fn(NodeId) -> bool) -> bool {
        let tree = self.tree;
        let children = &tree.node(call).children;
        let named = |&child: &NodeId| tree.decl_of(tree.bare(child)).map(|decl| decl.name.clone());
        let name =
            tree.decl_of(call).map(|decl| decl.name.clone()).or_else(|| children.first().and_then(named));
        let is_copy =
            name.is_some_and(|name| matches!(library_functions::rule(&name), Some(Rule::Copies { .. })));
        is_copy && children.iter().skip(1).any(|&child| is_bytes(child))
    }

    /// `reinterpret_cast<const int *>(&object)` of an object whose type a template's parameter is.
    fn is_cast_of_dependent(&self, cast: NodeId) -> bool {
        let tree = self.tree;
        let node = tree.node(cast);
        let kind_behind = |ty: TypeId| tree.pointee(ty).map(|to| tree.ty(to).kind);
        let Some(&inner) = node.children.last() else { return false };
        let from = tree.node(inner).ty;
        let is_dependent =
            tree.ty(from).kind == TypeKind::Dependent || kind_behind(from) == Some(TypeKind::Dependent);
        is_dependent && matches!(kind_behind(node.ty), Some(TypeKind::Scalar | TypeKind::Pointer(_)))
    }

    /// `read<struct t>()`: a template that looks at bytes gives an object. A pointer to one that it gives is used as such:
    /// most ask for memory of its size.
    pub(super) fn note_made_by_template(
        &mut self,
        template: &Name,
        decl: &Decl,
        result: &PointerPlace,
        id: NodeId,
    ) {
        let ty = self.tree.node(id).ty;
        let made = self.tree.record_of(ty);
        let Some(usr) = made.or_else(|| self.tree.record_pointed_to(ty)).and_then(|record| self.usr(record))
        else {
            return;
        };
        if made.is_some() {
            let made = Act::Instantiated(template.clone(), decl.name.clone());
            self.act(&[Value::origin(Origin::Object(usr.clone()))], &made, id);
        }
        let used = Act::As(Shape::Record(usr), self.tree.ty(ty).spelling.clone());
        self.act(&[Value::place(result.clone())], &used, id);
    }

    /// `table.load(bytes)` of a class that a template makes for an object's type.
    pub(super) fn note_method_of_bytes(&mut self, decl: &Decl, id: NodeId) {
        let class = decl.class.and_then(|class| self.usr(class)).filter(|class| class.contains(">#"));
        if let (Some(class), Some(template)) = (class, &decl.template) {
            let at = self.at(id);
            self.facts.method_calls.insert((template.clone(), decl.name.clone(), class, at));
        }
    }
}
