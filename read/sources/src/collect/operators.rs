//! Operators and assignments.

use super::Collector;
use super::cookies::is_cookie;
use super::places::further;
use crate::facts::{Act, PointerPlace, Reach, Source, Value};
use crate::tree::{Kind, Name, NodeId, Operator, Record, RecordId, TypeKind};

impl Collector<'_> {
    pub(super) fn step(&mut self, id: NodeId) -> Vec<Value> {
        let tree = self.tree;
        let children = &tree.node(id).children;
        let Some(&pointer) = children.first() else { return Vec::new() };
        let values = self.value(pointer);
        self.visit(&children[1..]);
        self.note_moved_on(&values, id);
        let moved = match tree.pointee(tree.node(id).ty) {
            None if tree.pointee(tree.node(pointer).ty).is_none() => {
                self.note_added(id);
                self.moved_number(&values, id)
            }
            _ => self.moved(values, pointer, *children.get(1).unwrap_or(&id), id),
        };
        self.note_moved_variable(pointer, &moved, id);
        moved
    }

    /// `address += 128`.
    fn moved_number(&mut self, values: &[Value], id: NodeId) -> Vec<Value> {
        let node = self.tree.node(id);
        let by = node.children.get(1).and_then(|&by| self.tree.node(self.tree.bare(by)).value);
        match node.operator {
            Some(Operator::Plus) if self.holds_pointer(node.ty) && by.is_some_and(|by| by != 0) => {
                Self::moved_by(values.to_vec(), Reach::Fixed)
            }
            Some(Operator::Minus) => {
                self.note_moved_back(values, id);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    /// After `p += 128` a function's own variable points that far into its former target. A place in a type is moved
    /// over many objects.
    fn note_moved_variable(&mut self, pointer: NodeId, moved: &[Value], id: NodeId) {
        let tree = self.tree;
        let is_own = |place: &PointerPlace| match place {
            PointerPlace::Variable(usr) => usr.contains("@F@"),
            PointerPlace::Parameter(..) => true,
            _ => false,
        };
        let is_added = tree.node(id).operator == Some(Operator::Plus) && !self.is_kernel;
        let is_bytes = tree
            .pointee(tree.node(id).ty)
            .is_none_or(|to| matches!(tree.ty(to).kind, TypeKind::Byte | TypeKind::Void));
        if !is_added || !is_bytes || tree.node(tree.bare(pointer)).kind != Kind::DeclRef {
            return;
        }
        for value in moved.iter().filter(|value| value.reach == Reach::Fixed) {
            if let Source::Place(place) = &value.source
                && is_own(place)
            {
                self.facts.flows.insert((value.clone(), place.clone()));
            }
        }
    }

    pub(super) fn binary(&mut self, id: NodeId) -> Vec<Value> {
        let tree = self.tree;
        let node = tree.node(id);
        let [left, right] = node.children[..] else {
            self.visit(&node.children);
            return Vec::new();
        };
        let is_pointer = |node: NodeId| tree.pointee(tree.node(node).ty).is_some();
        if node.operator == Some(Operator::Assign) {
            self.note_end_of_text(left);
            self.note_distance_assigned(left, right);
        }
        if matches!(node.operator, Some(Operator::Assign) | None) {
            self.note_sum_assigned(left, right, id);
        }
        self.note_divided_distance(id, left, right);
        if node.operator == Some(Operator::Minus) && !is_pointer(left) && !self.is_kernel {
            self.note_distance(left, right, id);
        }
        if let Some(compares @ (Operator::Equal | Operator::Less)) = node.operator {
            self.note_compared(compares, left, right, id);
            self.note_compared(compares, right, left, id);
        }
        match (is_pointer(id), is_pointer(left), is_pointer(right)) {
            (true, true, false) => {
                let values = self.value(left);
                self.value(right);
                self.moved(values, left, right, id)
            }
            (true, false, true) => {
                self.value(left);
                let values = self.value(right);
                self.moved(values, right, left, id)
            }
            // Nothing is assigned to a value: `a = b, c = d`.
            (true, ..) if matches!(tree.node(tree.bare(left)).kind, Kind::Binary | Kind::Step) => {
                self.value(left);
                self.value(right)
            }
            (true, ..) => self.assign(left, right),
            (false, true, true) => {
                self.note_distance(left, right, id);
                let (lower, higher) = (self.value(left), self.value(right));
                self.note_addresses_subtracted(id, &lower, &higher);
                self.note_addresses_ordered(id, lower, higher);
                Vec::new()
            }
            _ if tree.ty(node.ty).kind == TypeKind::Dependent
                && matches!(node.operator, Some(Operator::Plus | Operator::Minus)) =>
            {
                let values = self.value(left);
                self.value(right);
                self.moved(values, left, right, id)
            }
            _ if self.holds_pointer(node.ty) && self.is_assigned(id, left) && !self.is_sum(right) => {
                let values = self.assign(left, right);
                // In `a + b` the left side is a value, in `a = b` it is a place, though perhaps in parentheses.
                match tree.node(left).kind {
                    Kind::Wrap => Self::inside(values),
                    _ => values,
                }
            }
            _ if self.holds_pointer(node.ty) => {
                let mut values = self.value(left);
                self.note_alignment_asked(id, left, right, &values);
                if node.operator == Some(Operator::Minus) {
                    self.note_moved_back(&values, id);
                }
                values.extend(self.value(right));
                self.note_hashed(&values, id);
                let elements = match node.operator {
                    Some(Operator::Plus) if !values.is_empty() => self.elements(&values, (left, right), id),
                    _ => Vec::new(),
                };
                let is_number = |id: NodeId| tree.node(tree.bare(id)).kind == Kind::Integer;
                let reach = match node.operator.filter(|_| is_number(right) || is_number(left)) {
                    Some(Operator::Plus) => Reach::Fixed,
                    Some(Operator::Minus) => Reach::Before,
                    _ => Reach::Inside,
                };
                let moved = Self::moved_by(values, reach);
                moved.into_iter().chain(elements).collect()
            }
            _ => {
                let values = self.value(left);
                self.note_alignment_asked(id, left, right, &values);
                let others = self.value(right);
                self.note_addresses_ordered(id, values, others);
                Vec::new()
            }
        }
    }

    fn inside(values: Vec<Value>) -> Vec<Value> {
        Self::moved_by(values, Reach::Inside)
    }

    fn moved_by(values: Vec<Value>, by: Reach) -> Vec<Value> {
        let moved = |value: Value| Value { reach: further(value.reach, by), ..value };
        values.into_iter().map(moved).collect()
    }

    /// A variable or a member.
    pub(super) fn is_place(&self, id: NodeId) -> bool {
        matches!(self.tree.node(self.tree.bare(id)).kind, Kind::DeclRef | Kind::Member)
    }

    /// True for an expression that may be the left side of an assignment.
    fn is_assigned(&self, id: NodeId, left: NodeId) -> bool {
        // `address % 16` only looks like `address = 16` where the text does not show the operator.
        if self.tree.node(id).operator.is_some_and(|operator| operator != Operator::Assign) {
            return false;
        }
        let is_behind_pointer =
            matches!(self.tree.node(self.tree.bare(left)).kind, Kind::Subscript | Kind::Deref);
        self.is_place(left) || (is_behind_pointer && self.tree.node(id).operator == Some(Operator::Assign))
    }

    /// Computed integers are lengths and hashes; an address that is kept in an integer is stored there unchanged, or with
    /// a number added to it where it is cast (`(uintptr_t)x + 4 * n`).
    pub(super) fn is_sum(&self, id: NodeId) -> bool {
        let is_integer = |id: NodeId| self.tree.ty(self.tree.node(id).ty).kind == TypeKind::Scalar;
        let inner = self.tree.uncast(id);
        let node = self.tree.node(inner);
        let is_address = |&side: &NodeId| {
            let is_cast = self.tree.node(self.tree.bare(side)).kind == Kind::Cast;
            is_cast && self.tree.pointee(self.tree.node(self.tree.uncast(side)).ty).is_some()
        };
        let is_moved = node.operator == Some(Operator::Plus) && node.children.iter().any(is_address);
        is_integer(id) && is_integer(inner) && node.kind == Kind::Binary && !is_moved
    }

    /// The kept parts of a value that is stored or given.
    pub(super) fn kept(&mut self, id: NodeId) -> Vec<Value> {
        let values = self.value(id);
        if self.is_sum(id) { Vec::new() } else { values }
    }

    /// `left = right`. Similar expressions (`left, right`, sums of integers) are taken for it: that adds flows, and
    /// loses none.
    pub(super) fn assign(&mut self, left: NodeId, right: NodeId) -> Vec<Value> {
        let values = self.value(right);
        let targets = self.value(left);
        for target in &targets {
            if let Source::Place(place) = &target.source {
                self.flow_at(&values, place, target.level.saturating_neg());
                self.note_foreign_member(&values, right, place);
            }
        }
        values
            .into_iter()
            .chain(targets.into_iter().filter(|_| self.tree.pointee(self.tree.node(left).ty).is_none()))
            .collect()
    }

    /// A pointer without a type, in a member of a system's type, that the system gives back.
    fn holds_cookie(&self, record: &Record, member: &str) -> bool {
        let tree = self.tree;
        is_cookie(record, member, |ty| tree.pointee(ty).is_some_and(|to| tree.ty(to).kind == TypeKind::Void))
    }

    /// The place of such a member's value: libraries have several types for one thing, and give back one as another.
    pub(super) fn member_place(&self, record: RecordId, member: &Name) -> Option<PointerPlace> {
        let found = &self.tree.records[record];
        if found.is_foreign && self.holds_cookie(found, member) {
            return Some(PointerPlace::Variable(format!("{member} of libraries").into()));
        }
        Some(PointerPlace::Member(self.usr(record)?, member.clone()))
    }

    /// An address put into a member of a system's type leaves the program, but for cookies.
    pub(super) fn note_foreign_member(&mut self, values: &[Value], from: NodeId, place: &PointerPlace) {
        let PointerPlace::Member(record, member) = place else { return };
        let Some(found) = self.tree.record_called(record).map(|id| &self.tree.records[id]) else { return };
        if !found.is_foreign || self.holds_cookie(found, member) {
            return;
        }
        self.note_span_assigned(record, from);
        let name = found.names.first().map_or("a system's type", String::as_str);
        let mut values = values.to_vec();
        values.extend(self.typed_object(self.tree.uncast(from)));
        self.act(&values, &Act::Leaves(format!("{name}.{member}").into()), from);
    }
}
