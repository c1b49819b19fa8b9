//! Values in braces.

use super::Collector;
use crate::facts::{Follows, NumberPlace, PointerPlace, Saying};
use crate::tree::{DeclKind, Kind, Name, NodeId, RecordId, TypeId, TypeKind};
use std::collections::BTreeSet;

impl Collector<'_> {
    /// Walks an initialiser of type `ty` for `place`, or for an element of it: `level` pointers behind it.
    pub(super) fn initialise(&mut self, id: NodeId, ty: TypeId, place: Option<PointerPlace>, level: i8) {
        let tree = self.tree;
        let node = tree.node(id);
        if node.kind != Kind::InitList {
            let values = self.kept(id);
            if let Some(place) = place {
                self.flow_at(&values, &place, level);
                self.note_foreign_member(&values, id, &place);
                self.note_distances(id, &NumberPlace { table: self.table.clone(), place });
            }
            return;
        }
        let own = if tree.ty(node.ty).kind == TypeKind::Other || tree.ty(node.ty).kind == TypeKind::Void {
            ty
        } else {
            node.ty
        };
        match tree.ty(own).kind {
            TypeKind::Record(record) => {
                self.note_instance_values(id, record);
                self.initialise_record(id, record);
            }
            TypeKind::Array(of, _) => {
                let mut children = node.children.iter().copied();
                while let Some(child) = children.next() {
                    let inner = self.designated_value(child).unwrap_or(child);
                    self.skip_unbraced(inner, of, &mut children);
                    self.initialise(inner, of, place.clone(), 1);
                }
            }
            _ => self.visit(&node.children),
        }
    }

    fn designated_value(&self, id: NodeId) -> Option<NodeId> {
        let node = self.tree.node(id);
        node.children.last().copied().filter(|_| node.kind == Kind::Designated)
    }

    fn initialise_record(&mut self, id: NodeId, record: RecordId) {
        let tree = self.tree;
        let node = tree.node(id);
        let fields = &tree.records[record].fields;
        let Some(usr) = self.usr(record) else { return };
        let (mut position, mut by_position, mut is_held) = (0, 0, false);
        let mut written = None;
        let mut values: Vec<(Name, NodeId)> = Vec::new();
        let mut converted: BTreeSet<Name> = BTreeSet::new();
        let mut children = node.children.iter().copied();
        while let Some(child) = children.next() {
            let designated = self.designated_value(child);
            if designated.is_some() {
                position = self.designated_position(child, record).unwrap_or(fields.len());
            } else {
                by_position += 1;
                let site = tree.node(child).site;
                // Two values at one place are one macro's.
                is_held |= node.site.is_in_macro || site.is_in_macro || written == Some(site);
                written = Some(site);
            }
            let value = designated.unwrap_or(child);
            let next = || node.children.iter().copied().skip_while(|&known| known != child).nth(1);
            if designated.is_some() && self.initialise_inside(child, next()) {
                position += 1;
                continue;
            }
            match fields.get(position) {
                Some(field) => {
                    self.note_alternative(record, &field.name);
                    values.push((field.name.clone(), value));
                    if self.is_converted(value, field.ty) {
                        converted.insert(field.name.clone());
                    }
                    is_held |= self.skip_unbraced(value, field.ty, &mut children);
                    self.note_full_text(record, &field.name, value);
                    let place = self.member_place(record, &field.name);
                    self.initialise(value, field.ty, place, 0);
                }
                None => drop(self.value(value)),
            }
            position += 1;
        }
        self.note_span_given(record, &values, id);
        self.note_worked_out(&usr, &values, converted, id);
        let is_zero = by_position == 1 && node.children.len() == 1 && self.is_zero(node.children[0]);
        // C++ takes designated values in the order of the members, too.
        let is_mixed = by_position < node.children.len();
        let needs_place = tree.forbids_designators || (tree.is_cpp && node.children.len() > 1);
        let is_full = !is_mixed && by_position == fields.len();
        let follows = match needs_place {
            _ if is_held || (tree.is_cpp && is_mixed) => Follows::Not,
            true if is_full => Follows::Exchanged,
            true => Follows::Not,
            false => Follows::Named,
        };
        let count = if tree.is_cpp && is_mixed { fields.len() } else { by_position };
        let says = by_position > 0 || (tree.is_cpp && is_mixed && node.children.len() > 1);
        if says && !is_zero && !tree.records[record].is_union {
            let at = self.at(id);
            self.facts.sayings.insert((usr, Saying::Positional(count, follows), at));
        }
    }

    /// The evaluation order of several values: in C++ they follow the list, and compilers of C take the order of
    /// members in memory. Calls may change the data that other values read.
    fn note_worked_out(
        &mut self,
        record: &Name,
        values: &[(Name, NodeId)],
        converted: BTreeSet<Name>,
        id: NodeId,
    ) {
        let tree = self.tree;
        let does = |kinds: &[Kind]| {
            let found = values.iter().filter(|(_, value)| tree.has_below(*value, kinds));
            found.map(|(name, _)| name.clone()).collect::<BTreeSet<Name>>()
        };
        let is_changing = !does(&[Kind::Count, Kind::Step, Kind::CompoundAssign]).is_empty()
            || values.iter().any(|(_, value)| self.assigns(*value));
        let mut found = does(if is_changing { &[Kind::DeclRef, Kind::Call] } else { &[Kind::Call] });
        found.extend(converted);
        if !found.is_empty() {
            let reading = values.iter().filter(|(_, value)| self.reads_what_calls_change(*value));
            found.extend(reading.map(|(name, _)| name.clone()));
        }
        let members: Vec<Name> =
            values.iter().map(|(name, _)| name).filter(|name| found.contains(*name)).cloned().collect();
        if members.len() > 1 && members.iter().all(|name| !name.is_empty()) {
            let at = self.at(id);
            self.facts.sayings.insert((record.clone(), Saying::WorkedOut(members), at));
        }
    }

    /// C++: an object that its class converts to a value of another type, without a call in the text.
    fn is_converted(&self, value: NodeId, to: TypeId) -> bool {
        let tree = self.tree;
        let from = tree.record_of(tree.node(tree.uncast(value)).ty);
        tree.is_cpp && from.is_some() && from != tree.record_of(to)
    }

    /// `a = b`, of which the left side is a place, perhaps in parentheses: of `a + b` it is a value.
    fn assigns(&self, value: NodeId) -> bool {
        let tree = self.tree;
        let is_to_place = |&binary: &NodeId| {
            let Some(&left) = tree.node(binary).children.first() else { return false };
            let mut left = tree.node(left);
            while let (Kind::Wrap, [inner]) = (left.kind, &left.children[..]) {
                let inner = tree.node(*inner);
                // A mere conversion begins where the value does.
                if inner.site == left.site {
                    return false;
                }
                left = inner;
            }
            matches!(left.kind, Kind::DeclRef | Kind::Member | Kind::Deref | Kind::Subscript)
        };
        let below = tree.below(value).into_iter();
        below.filter(|&node| tree.node(node).kind == Kind::Binary).any(|node| is_to_place(&node))
    }

    /// True when the value reads variables outside of functions, targets of pointers, or in C++ any variable.
    fn reads_what_calls_change(&self, value: NodeId) -> bool {
        let tree = self.tree;
        tree.below(value).into_iter().any(|below| match tree.node(below).kind {
            Kind::Member | Kind::Deref | Kind::Subscript => true,
            Kind::DeclRef => tree.decl_of(below).is_some_and(|decl| {
                decl.kind == DeclKind::Variable && (tree.is_cpp || !decl.usr.contains("@F@"))
            }),
            _ => false,
        })
    }

    /// A value that stands for the first of an object's or an array's own: the others follow it without braces. True
    /// when there are such.
    fn skip_unbraced(&mut self, value: NodeId, ty: TypeId, rest: &mut dyn Iterator<Item = NodeId>) -> bool {
        let tree = self.tree;
        let inner = tree.bare(value);
        let is_whole = tree.node(inner).kind == Kind::InitList
            || tree.ty(tree.node(value).ty).spelling == tree.ty(ty).spelling
            || tree.ty(tree.node(inner).ty).spelling == tree.ty(ty).spelling;
        let mut leaves = 0;
        let at = self.at(value);
        let is_text = matches!(tree.ty(tree.node(inner).ty).kind, TypeKind::Array(..));
        match tree.ty(ty).kind {
            TypeKind::Record(record) if !is_whole && !self.is_zero(value) && !self.is_made(record) => {
                self.unbraced(record, &mut leaves, &at, 0);
            }
            TypeKind::Array(of, count) if !is_whole && !is_text && !self.is_zero(value) => {
                let count = usize::try_from(count.unwrap_or(0)).unwrap_or(0);
                match tree.ty(of).kind {
                    TypeKind::Record(record) => {
                        self.unbraced(record, &mut leaves, &at, 0);
                        leaves = leaves.saturating_mul(count);
                    }
                    _ => leaves = count,
                }
            }
            _ => return false,
        }
        for child in rest.take(leaves.saturating_sub(1)) {
            self.value(child);
        }
        true
    }

    /// C++: a class whose constructor takes the value.
    fn is_made(&self, record: RecordId) -> bool {
        let record = &self.tree.records[record];
        record.is_foreign || record.is_closed || record.fields.is_empty()
    }

    /// Counts the values of an object and of the objects in it.
    fn unbraced(&mut self, record: RecordId, leaves: &mut usize, at: &crate::facts::Where, depth: u32) {
        let tree = self.tree;
        if let Some(usr) = self.usr(record) {
            self.facts.sayings.insert((usr, Saying::Unbraced, at.clone()));
        }
        let fields = &tree.records[record].fields;
        let counted = if tree.records[record].is_union { 1 } else { fields.len() };
        for field in fields.iter().take(counted) {
            match tree.ty(field.ty).kind {
                TypeKind::Record(inner) if depth < 16 => self.unbraced(inner, leaves, at, depth + 1),
                TypeKind::Array(_, Some(count)) => *leaves += usize::try_from(count).unwrap_or(1),
                _ => *leaves += 1,
            }
        }
    }

    fn designated_position(&self, id: NodeId, record: RecordId) -> Option<usize> {
        let mut members = self.tree.node(id).children.iter().filter_map(|&child| {
            let decl = self.tree.decl_of(child)?;
            matches!(decl.kind, DeclKind::Field(_)).then(|| decl.name.clone())
        });
        let name = members.next()?;
        self.tree.records[record].fields.iter().position(|field| field.name == name)
    }

    /// `{0}`, `{{0}}`, `{NULL}`, `{}`.
    fn is_zero(&self, id: NodeId) -> bool {
        let inner = self.tree.uncast(id);
        let node = self.tree.node(inner);
        match node.kind {
            Kind::Integer => node.value == Some(0),
            Kind::InitList => node.children.iter().all(|&child| self.is_zero(child)),
            _ => false,
        }
    }
}
