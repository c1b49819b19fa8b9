//! Variables of which every value is a number that the text shows.

use crate::tree::{DeclId, DeclKind, Kind, NodeId, Operator, Tree, TypeKind};
use std::collections::{HashMap, HashSet};

/// The value of an expression.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct KnownNumber {
    /// The largest of its values.
    pub(super) most: u64,
    /// It has no other value.
    pub(super) is_only: bool,
    /// No size is in it.
    pub(super) is_plain: bool,
}

/// The variables of a unit that have known numbers alone.
#[derive(Default, Debug)]
pub(super) struct KnownNumbers(HashMap<DeclId, KnownNumber>);

impl KnownNumbers {
    /// Reads the unit until no further variable turns out to have other values.
    pub(super) fn of(tree: &Tree) -> KnownNumbers {
        let mut unknown = used_as_places(tree);
        loop {
            let before = unknown.len();
            let numbers = assigned(tree, &mut unknown);
            if unknown.len() == before {
                return numbers;
            }
        }
    }

    /// The value of an expression of constants and such variables.
    pub(super) fn value(&self, tree: &Tree, id: NodeId) -> Option<KnownNumber> {
        let node = tree.node(tree.bare(id));
        if let Some(value) = node.value {
            let has = |kinds: &[Kind]| tree.has_below(id, kinds);
            let most = u64::try_from(value).ok().filter(|_| !has(&[Kind::OffsetOf]))?;
            return Some(KnownNumber { most, is_only: true, is_plain: !has(&[Kind::SizeOf]) });
        }
        match (node.kind, &node.children[..]) {
            (Kind::Cast, [.., inner]) => self.value(tree, *inner),
            (Kind::DeclRef, _) => self.0.get(&node.decl?).copied(),
            (Kind::Conditional, [_, one, other]) => {
                let (one, other) = (self.value(tree, *one)?, self.value(tree, *other)?);
                Some(joined(one, other))
            }
            (Kind::Binary, [left, right]) => {
                let (left, right) = (self.value(tree, *left)?, self.value(tree, *right)?);
                let most = match node.operator? {
                    Operator::Plus => left.most.checked_add(right.most)?,
                    Operator::Minus => left.most.checked_sub(right.most)?,
                    Operator::Times => left.most.checked_mul(right.most)?,
                    _ => return None,
                };
                let is_only = left.is_only && right.is_only;
                Some(KnownNumber { most, is_only, is_plain: left.is_plain && right.is_plain })
            }
            _ => None,
        }
    }
}

/// Either value.
fn joined(one: KnownNumber, other: KnownNumber) -> KnownNumber {
    KnownNumber {
        most: one.most.max(other.most),
        is_only: one.is_only && one == other,
        is_plain: one.is_plain && other.is_plain,
    }
}

/// The variable that stands there as a place, perhaps in parentheses, and not as its value.
fn place_of(tree: &Tree, mut id: NodeId) -> Option<DeclId> {
    loop {
        let node = tree.node(id);
        match (node.kind, &node.children[..]) {
            (Kind::DeclRef, _) => return node.decl,
            // A mere conversion begins where the value does.
            (Kind::Wrap, &[inner]) if tree.node(inner).site != node.site => id = inner,
            _ => return None,
        }
    }
}

/// Variables that other code may change: their address is taken, a reference leads to them, they are counted.
fn used_as_places(tree: &Tree) -> HashSet<DeclId> {
    let mut found = HashSet::new();
    // A place in parentheses belongs to the node around these.
    for node in tree.nodes.iter().filter(|node| node.kind != Kind::Wrap) {
        let is_assignment = matches!(node.kind, Kind::Binary | Kind::CompoundAssign);
        let children = node.children.iter().skip(usize::from(is_assignment));
        found.extend(children.filter_map(|&child| place_of(tree, child)));
    }
    found
}

/// The values of all variables that are not among the unknown, to which it adds those with other values.
fn assigned(tree: &Tree, unknown: &mut HashSet<DeclId>) -> KnownNumbers {
    let mut numbers = KnownNumbers::default();
    for node in &tree.nodes {
        let (decl, value) = match (node.kind, &node.children[..]) {
            (Kind::Variable, [.., last]) if tree.node(*last).kind != Kind::TypeRef => (node.decl, *last),
            (Kind::Binary | Kind::CompoundAssign, [left, right]) => (place_of(tree, *left), *right),
            _ => continue,
        };
        let Some(decl) = decl.filter(|decl| !unknown.contains(decl)) else { continue };
        let is_added = node.kind == Kind::CompoundAssign;
        let before = numbers.0.get(&decl).copied();
        let new = numbers.value(tree, value).filter(|_| is_own_number(tree, decl));
        let new = match (before, new) {
            (None, Some(new)) if !is_added => Some(new),
            (Some(before), Some(new)) if is_added && node.operator == Some(Operator::Plus) => {
                let most = before.most.saturating_add(new.most);
                Some(KnownNumber { most, is_only: false, is_plain: before.is_plain && new.is_plain })
            }
            (Some(before), Some(new)) if !is_added => Some(joined(before, new)),
            _ => None,
        };
        match new {
            Some(new) => _ = numbers.0.insert(decl, new),
            None => {
                numbers.0.remove(&decl);
                unknown.insert(decl);
            }
        }
    }
    numbers
}

/// A number that no other unit changes.
fn is_own_number(tree: &Tree, decl: DeclId) -> bool {
    let decl = &tree.decls[decl];
    let is_number = matches!(tree.ty(decl.ty).kind, TypeKind::Scalar | TypeKind::Byte);
    decl.kind == DeclKind::Variable && is_number && !decl.is_elsewhere && !decl.is_seen_by_other_units()
}
