//! The order of addresses: which of two is lower, containers that sort by them, and numbers worked out from them.

use crate::collect::Collector;
use crate::facts::{Act, Value};
use crate::tree::{Decl, NodeId, Operator};

/// Containers of the C++ library that sort their keys.
const SORT_KEYS: [&str; 4] = ["map", "multimap", "set", "multiset"];

impl Collector<'_> {
    /// `one < other` of pointers, or of addresses in numbers.
    pub(in crate::collect) fn note_addresses_ordered(
        &mut self,
        id: NodeId,
        lower: Vec<Value>,
        higher: Vec<Value>,
    ) {
        let node = self.tree.node(id);
        let are_addresses = node.children.iter().all(|&child| self.is_address(child));
        let is_asked = node.operator == Some(Operator::Less) && are_addresses;
        if is_asked && !self.is_kernel && !lower.is_empty() && !higher.is_empty() {
            let at = self.at(id);
            self.facts.compared.insert((lower, higher, at));
        }
    }

    /// `(char *)end - (char *)start`.
    pub(in crate::collect) fn note_addresses_subtracted(
        &mut self,
        id: NodeId,
        left: &[Value],
        right: &[Value],
    ) {
        let is_known = !left.is_empty() && !right.is_empty() && !self.is_kernel;
        if is_known && self.tree.node(id).operator == Some(Operator::Minus) {
            let at = self.at(id);
            self.facts.subtracted.insert((left.to_vec(), right.to_vec(), at));
        }
    }

    /// `(uintptr_t)p * 2654435761`, `(uintptr_t)p >> 4`.
    pub(in crate::collect) fn note_hashed(&mut self, values: &[Value], id: NodeId) {
        let node = self.tree.node(id);
        let is_hash =
            matches!(node.operator, Some(Operator::Times | Operator::ShiftRight | Operator::Remainder));
        let is_of_address = node.children.first().is_some_and(|&left| self.is_address(left));
        if is_hash && is_of_address && !self.is_kernel {
            self.act(&Self::objects(values), &Act::Hashed, id);
        }
    }

    /// True for a pointer, and for a number that one is cast to.
    fn is_address(&self, id: NodeId) -> bool {
        self.tree.pointee(self.tree.node(self.initial(id)).ty).is_some()
    }

    /// `names[&x->m]` of a `std::map` whose keys are pointers.
    pub(in crate::collect) fn note_sorted_keys(&mut self, decl: &Decl, given: &[Vec<Value>], id: NodeId) {
        let class = decl.class.map(|class| &self.tree.records[class]).filter(|class| class.is_foreign);
        let Some(usr) = class.and_then(|class| class.usr.as_deref()) else { return };
        // In libclang's names a pointer begins with a star.
        let sorts_pointers = |(class, arguments): (&str, &str)| {
            arguments.starts_with("#*")
                && class.rsplit('@').next().is_some_and(|name| SORT_KEYS.contains(&name))
        };
        if usr.split_once('>').is_some_and(sorts_pointers) {
            for values in given {
                self.act(&Self::objects(values), &Act::Sorted, id);
            }
        }
    }
}
