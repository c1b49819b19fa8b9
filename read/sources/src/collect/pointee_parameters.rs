//! Parameters of which a function uses nothing but the number or pointer that they lead to.

use super::Collector;
use crate::tree::{DeclKind, Kind, Name, NodeId};

/// The most functions that hand a parameter on to each other.
const MOST_FUNCTIONS: u32 = 4;

impl Collector<'_> {
    /// The bytes that the called function uses behind this argument, where its body in this unit uses the parameter as
    /// `*p` alone, or hands it on to such a function: whatever size it is given with is another object's.
    pub(super) fn bytes_used_by(&self, call: NodeId, index: usize) -> Option<u64> {
        self.bytes_used_in(&self.tree.decl_of(call)?.usr, index, MOST_FUNCTIONS)
    }

    fn bytes_used_in(&self, function: &Name, index: usize, functions: u32) -> Option<u64> {
        let tree = self.tree;
        let functions = functions.checked_sub(1)?;
        let is_body = |root: NodeId| {
            let decl = tree.decl_of(root).filter(|_| tree.node(root).kind == Kind::Function);
            decl.is_some_and(|decl| decl.usr == *function)
        };
        let body = tree.roots.iter().copied().find(|&root| is_body(root))?;
        let parameter = DeclKind::Parameter(function.clone(), index);
        let is_it = |id: NodeId| {
            tree.node(id).kind == Kind::DeclRef && tree.decl_of(id).is_some_and(|decl| decl.kind == parameter)
        };
        let pointee = |id: NodeId| match (tree.node(id).kind, &tree.node(id).children[..]) {
            (Kind::Deref, [of]) if is_it(tree.bare(*of)) => tree.ty(tree.node(id).ty).size_bytes,
            _ => None,
        };
        let below = tree.below(body);
        let uses = below.iter().filter(|&&id| is_it(id)).count();
        let (mut understood, mut most) = (0, 0);
        for &id in &below {
            let node = tree.node(id);
            if node.kind == Kind::AddressOf
                && node.children.iter().any(|&of| pointee(tree.bare(of)).is_some())
            {
                return None;
            }
            if let Some(bytes) = pointee(id) {
                (understood, most) = (understood + 1, most.max(bytes));
            }
            for (place, argument) in tree.arguments.get(&id).into_iter().flatten().enumerate() {
                if argument.is_some_and(|argument| is_it(tree.bare(argument))) {
                    let bytes = self.bytes_used_in(&tree.decl_of(id)?.usr, place, functions)?;
                    (understood, most) = (understood + 1, most.max(bytes));
                }
            }
        }
        (understood == uses).then_some(most)
    }
}
