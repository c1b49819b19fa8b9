//! Addresses, the values at them, and pointers that are moved.

use super::{Collector, FIRST};
use crate::facts::{Act, Origin, PointerPlace, Reach, Shape, Source, Value};
use crate::library_functions;
use crate::tree::{DeclKind, Kind, Name, NodeId, TypeId, TypeKind};

impl Collector<'_> {
    pub(super) fn address_of(&mut self, id: NodeId) -> Vec<Value> {
        let Some(&child) = self.tree.node(id).children.first() else { return Vec::new() };
        self.address_of_place(child)
    }

    /// The address of a place that this node names.
    pub(super) fn address_of_place(&mut self, child: NodeId) -> Vec<Value> {
        let tree = self.tree;
        let inner = tree.bare(child);
        let mut values = self.value(child);
        let kind = tree.node(inner).kind;
        // The address of a reference is that of its target.
        if kind == Kind::DeclRef && tree.decl_of(inner).is_some_and(|decl| self.refers_to_number(decl.ty)) {
            return values;
        }
        let is_number = tree.ty(tree.node(inner).ty).kind == TypeKind::Scalar;
        if matches!(kind, Kind::Member | Kind::DeclRef)
            && !matches!(tree.ty(tree.node(inner).ty).kind, TypeKind::Array(..))
        {
            for value in &mut values {
                if let (true, Source::Place(place)) = (is_number, &value.source) {
                    self.facts.numbers.insert(place.clone());
                }
                if !matches!(value.source, Source::Function(_)) {
                    value.reach = Reach::Address;
                    value.level = value.level.saturating_add(1);
                }
            }
        }
        // `&all[i]` reads no pointer.
        if matches!(kind, Kind::Subscript | Kind::Deref) && self.reads_pointer(inner) {
            values = values.into_iter().map(|value| value.at_level(1)).collect();
        }
        if let Some((record, name)) = self.member_named(inner) {
            let member = Value::origin(Origin::MemberOf(record, name));
            self.note_packed_member(inner, &member);
            values.push(member);
        }
        values.extend(self.members_pointed_to(inner));
        values.extend(self.dependent_member(inner));
        values
    }

    /// True for a reference to a number, or to what only a template's instances know.
    pub(super) fn refers_to_number(&self, ty: TypeId) -> bool {
        let tree = self.tree;
        let is_number =
            |to: TypeId| matches!(tree.ty(to).kind, TypeKind::Scalar | TypeKind::Byte | TypeKind::Dependent);
        tree.is_cpp && tree.ty(ty).spelling.ends_with('&') && tree.pointee(ty).is_some_and(is_number)
    }

    /// `x->*m`, whose address is taken: it names any member of that type.
    fn members_pointed_to(&self, place: NodeId) -> Vec<Value> {
        let tree = self.tree;
        let node = tree.node(place);
        // Of other operators only assignments and commas give a place, one of the type of their right side.
        let [object, _] = node.children[..] else { return Vec::new() };
        if node.kind != Kind::Binary || !tree.is_cpp {
            return Vec::new();
        }
        let ty = tree.node(object).ty;
        let Some(record) = tree.record_of(ty).or_else(|| tree.record_pointed_to(ty)) else {
            return Vec::new();
        };
        let mut records = vec![record];
        let mut at = 0;
        let mut values = Vec::new();
        while let Some(&record) = records.get(at) {
            at += 1;
            let Some(usr) = self.usr(record) else { continue };
            records.extend(&tree.records[record].bases);
            let is_of_type = |ty| tree.ty(ty).spelling == tree.ty(node.ty).spelling;
            let fields = tree.records[record].fields.iter().filter(|field| is_of_type(field.ty));
            let member = |name: &Name| Value::origin(Origin::MemberOf(usr.clone(), name.clone()));
            values.extend(fields.map(|field| member(&field.name)));
        }
        values
    }

    /// The record and name of a member expression.
    pub(super) fn member_named(&self, id: NodeId) -> Option<(Name, Name)> {
        let decl = self.tree.decl_of(id).filter(|_| self.tree.node(id).kind == Kind::Member)?;
        let DeclKind::Field(record) = decl.kind else { return None };
        Some((self.usr(record)?, decl.name.clone()))
    }

    pub(super) fn dereference(&mut self, id: NodeId) -> Vec<Value> {
        let Some(&child) = self.tree.node(id).children.first() else { return Vec::new() };
        let values = self.value(child);
        self.note_bytes(&values, child, id);
        self.note_wide_access(&values, id);
        self.note_aligned_target(&values, id);
        if let Some(bytes) = self.tree.ty(self.tree.node(id).ty).size_bytes {
            self.note_beyond_elements(child, bytes, id);
        }
        match self.first_pointer(child, id) {
            None if self.is_dependent_value(id) => Vec::new(),
            Some(first) => vec![first],
            None => self.read_pointer(values, id),
        }
    }

    /// `*(void **)object`: the value of the object's first member.
    pub(super) fn first_pointer(&self, pointer: NodeId, read: NodeId) -> Option<Value> {
        let record = self.record_behind(self.tree.uncast(pointer)).filter(|_| self.reads_pointer(read))?;
        let first = self.tree.records[record].fields.first();
        let is_known = self.tree.records[record].is_complete;
        if is_known && !first.is_some_and(|first| self.holds_pointer(first.ty)) {
            return None;
        }
        Some(Value::place(PointerPlace::Member(self.usr(record)?, FIRST.into())))
    }

    /// True when `*x` or `x[i]` reads a pointer.
    pub(super) fn reads_pointer(&self, id: NodeId) -> bool {
        let ty = self.tree.node(id).ty;
        let is_place =
            matches!(self.tree.ty(ty).kind, TypeKind::Array(..) | TypeKind::Function | TypeKind::Dependent);
        self.holds_pointer(ty) && !is_place
    }

    /// The value at `*pointer`: at a place's own address, the place's value. Kernels read each pointer that others may
    /// change in this form: `*(struct task *const volatile *)&x->next`.
    pub(super) fn read_pointer(&self, values: Vec<Value>, id: NodeId) -> Vec<Value> {
        if !self.reads_pointer(id) {
            return values;
        }
        let held = |value: Value| match (&value.source, value.reach) {
            (Source::Place(_), Reach::Address) => Some(Value { reach: Reach::Start, ..value }),
            (Source::Origin(Origin::MemberOf(..)), Reach::Start) => None,
            _ => Some(value.at_level(-1)),
        };
        values.into_iter().filter_map(held).collect()
    }

    /// A byte read or written through `pointer`.
    pub(super) fn note_bytes(&mut self, values: &[Value], pointer: NodeId, at: NodeId) {
        let to = self.tree.pointee(self.tree.node(pointer).ty);
        if to.is_some_and(|to| self.tree.ty(to).kind == TypeKind::Byte) {
            self.act(values, &Act::Bytes, at);
        }
    }

    pub(super) fn subscript(&mut self, id: NodeId) -> Vec<Value> {
        let tree = self.tree;
        let [base, index] = tree.node(id).children[..] else { return Vec::new() };
        let values = self.value(base);
        self.value(index);
        self.note_bytes(&values, base, id);
        self.note_wide_access(&values, id);
        self.note_aligned_target(&values, id);
        self.note_past_end(base, index, id);
        self.note_loop_past_end(base, index, id);
        self.note_beyond_subscript(base, index, id);
        self.note_offset_as_index(base, index, id);
        let moved = self.moved(values, base, index, id);
        if self.is_negative(index) {
            self.note_bytes(&moved, base, id);
        }
        let is_dependent = tree.ty(tree.node(id).ty).kind == TypeKind::Dependent;
        let holds = match is_dependent {
            true => !self.is_dependent_value(id),
            false => self.holds_pointer(tree.node(id).ty) || self.above_is_address(),
        };
        if holds { self.read_pointer(moved, id) } else { Vec::new() }
    }

    /// `*p` of what only a template's instances know, where its value is read: that is no member's address.
    fn is_dependent_value(&self, id: NodeId) -> bool {
        let is_dependent = self.tree.ty(self.tree.node(id).ty).kind == TypeKind::Dependent;
        let around = self.above.iter().rev().skip(1).map(|&above| self.tree.node(above).kind);
        let takes_place = |kind| matches!(kind, Kind::AddressOf | Kind::Call | Kind::Member | Kind::Return);
        let user = around.into_iter().find(|kind| *kind != Kind::Wrap);
        is_dependent && !user.is_some_and(takes_place)
    }

    pub(super) fn above_is_address(&self) -> bool {
        let above = self.above.iter().rev().skip(1);
        let first = above.map(|&id| self.tree.node(id).kind).find(|kind| *kind != Kind::Wrap);
        first == Some(Kind::AddressOf)
    }

    /// `pointer + index`, and its facts about the objects.
    pub(super) fn moved(
        &mut self,
        values: Vec<Value>,
        pointer: NodeId,
        index: NodeId,
        at: NodeId,
    ) -> Vec<Value> {
        let tree = self.tree;
        let Some(to) = tree.pointee(tree.node(pointer).ty) else {
            self.note_dependent_walk(&values, (pointer, index), at);
            return values;
        };
        let literal =
            tree.node(tree.bare(index)).value.filter(|_| tree.node(tree.bare(index)).kind == Kind::Integer);
        if literal == Some(0) {
            return values;
        }
        self.note_spans(&values, (pointer, index), at);
        if self.is_moved_back(index, at) {
            self.note_before_end(pointer, to, at);
            if tree.record_of(to).is_none() {
                self.note_moved_back(&values, at);
            }
        }
        let element_bytes = match tree.ty(to).kind {
            TypeKind::Byte | TypeKind::Void => Some(1),
            TypeKind::Scalar => tree.ty(to).size_bytes,
            _ => None,
        };
        if let Some(bytes) = element_bytes {
            let mut stepped = values.clone();
            stepped.extend(self.typed_object(tree.uncast(pointer)));
            self.note_steps(&stepped, index, bytes, at);
        }
        match tree.ty(to).kind {
            // `x + 1` is where a payload behind the object begins.
            TypeKind::Record(record) if literal == Some(1) && tree.node(at).kind == Kind::Binary => {
                if let Some(bytes) =
                    self.record_bytes(record).filter(|_| !self.is_kernel && !tree.node(at).is_minus)
                {
                    self.act(&Self::objects(&values), &Act::Past(bytes), at);
                }
                self.end_of_object(pointer, index, at).into_iter().collect()
            }
            kind @ (TypeKind::Scalar | TypeKind::Record(_)) => {
                let spelling = tree.ty(to).spelling.clone();
                // An array that is stepped through is no object that its elements lead to.
                let is_array = self.is_array(pointer);
                let stepped =
                    values.iter().filter(|value| !is_array || !matches!(value.source, Source::Place(_)));
                let is_bitmap = self.is_kernel && self.function.as_deref().is_some_and(is_of_one_bit);
                let stepped: Vec<Value> = stepped.filter(|_| !is_bitmap).cloned().collect();
                self.act(&stepped, &Act::Walk(spelling, kind == TypeKind::Scalar), at);
                if kind == TypeKind::Scalar && self.is_negative(index) {
                    let before = |value: &Value| Value { reach: Reach::Before, ..value.clone() };
                    let before: Vec<Value> = values.iter().map(before).collect();
                    self.act(&Self::objects(&before), &Act::Bytes, at);
                }
                values
            }
            // An object is walked where it is taken for an array of pointers, not where it is the target of the
            // pointers.
            TypeKind::Pointer(_) => {
                let is_pointers = tree.pointee(to).is_some_and(|behind| self.is_plain(behind));
                let is_object =
                    |value: &&Value| is_pointers || matches!(value.source, Source::Origin(Origin::Object(_)));
                let taken: Vec<Value> = values.iter().filter(is_object).cloned().collect();
                self.act(&taken, &Act::Walk(tree.ty(to).spelling.clone(), true), at);
                values
            }
            TypeKind::Dependent => {
                self.note_dependent_walk(&values, (pointer, index), at);
                values
            }
            TypeKind::Byte | TypeKind::Void => {
                let is_whole = |id: NodeId| {
                    let node = tree.node(id);
                    let measured = node.children.first().map(|&child| tree.node(child).ty);
                    node.kind == Kind::SizeOf && measured.is_some_and(|ty| tree.record_of(ty).is_some())
                };
                let elements = self.elements(&values, (pointer, index), at);
                if tree.below(index).into_iter().any(is_whole) {
                    let end = self.end_of_object(pointer, index, at);
                    return elements.into_iter().chain(end).collect();
                }
                if let Some(shifted) = self.shifted(&values, pointer, index, at) {
                    return vec![shifted];
                }
                let is_negative = self.is_negative(index);
                let is_constant = is_negative
                    || tree.node(tree.bare(index)).value.is_some()
                    || self.known_number(index).is_some_and(|known| known.is_plain && known.most > 0);
                if !is_constant {
                    self.note_indexed(&values, (pointer, index), at);
                    self.act(&Self::objects(&values), &Act::WalkBytes(tree.ty(to).spelling.clone()), at);
                }
                let reach = match is_constant {
                    true if is_negative || tree.node(at).is_minus => Reach::Before,
                    true => Reach::Fixed,
                    false => Reach::Inside,
                };
                let moved =
                    values.into_iter().map(|value| Value { reach: further(value.reach, reach), ..value });
                moved.chain(elements).collect()
            }
            _ => values,
        }
    }

    /// `((int *)(x + 1))[-1]`, `(char *)x + sizeof *x - 4`: the end of an object, from which its last members are reached.
    fn note_before_end(&mut self, pointer: NodeId, to: TypeId, at: NodeId) {
        let tree = self.tree;
        let shape = match tree.ty(to).kind {
            TypeKind::Byte | TypeKind::Void => Shape::Scalar(1),
            _ => self.shape(to),
        };
        let sum = tree.node(tree.uncast(pointer));
        let (Kind::Binary, [object, beyond]) = (sum.kind, &sum.children[..]) else { return };
        let Some(record) = self.record_behind(tree.uncast(*object)).filter(|_| !sum.is_minus) else { return };
        let elements = tree.pointee(sum.ty).and_then(|to| tree.record_of(to));
        let past = tree.node(tree.uncast(*beyond)).value.and_then(|past| u64::try_from(past).ok());
        let is_end = match elements {
            Some(_) => past == Some(1) && elements != tree.record_of(to),
            None => past.is_some() && past == self.record_bytes(record),
        };
        if let Some(usr) = self.usr(record).filter(|_| is_end && !self.is_kernel) {
            let value = Value { reach: Reach::Fixed, ..Value::origin(Origin::Object(usr)) };
            self.act(&[value], &Act::As(shape, tree.ty(to).spelling.clone()), at);
        }
    }

    /// True for an array, and not for a parameter that is written as one: that is a pointer.
    pub(super) fn is_array(&self, id: NodeId) -> bool {
        let inner = self.tree.bare(id);
        let is_parameter =
            self.tree.decl_of(inner).is_some_and(|decl| matches!(decl.kind, DeclKind::Parameter(..)));
        matches!(self.tree.ty(self.tree.node(inner).ty).kind, TypeKind::Array(..)) && !is_parameter
    }

    /// `p[12]`, `p + 12`: the bytes there are reached from the target of `p`.
    fn note_spans(&mut self, values: &[Value], (pointer, index): (NodeId, NodeId), at: NodeId) {
        let tree = self.tree;
        let element = tree.pointee(tree.node(pointer).ty).and_then(|to| tree.ty(to).size_bytes);
        let index = tree.node(tree.bare(index)).value.and_then(|index| u64::try_from(index).ok());
        let (Some(element), Some(index)) = (element, index.filter(|&index| index > 0)) else { return };
        // The targets of an array's elements are not the array.
        if self.is_array(pointer) || tree.node(at).is_minus {
            return;
        }
        let end = index.saturating_add(1).saturating_mul(element);
        self.act(&Self::objects(values), &Act::Spans(end), at);
    }

    /// `-1`.
    pub(super) fn is_negative(&self, index: NodeId) -> bool {
        let node = self.tree.node(self.tree.bare(index));
        let inner = node.children.first().map(|&child| self.tree.node(self.tree.bare(child)).kind);
        node.kind == Kind::Other && node.children.len() == 1 && inner == Some(Kind::Integer)
    }
}

/// True for a function of bitmaps that changes one bit.
fn is_of_one_bit(function: &str) -> bool {
    library_functions::kernel::is_of_one_bit(library_functions::plain_name(function))
}

/// The target of a pointer that pointed to `from` and is moved by `by`.
pub(crate) fn further(from: Reach, by: Reach) -> Reach {
    match (from, by) {
        (Reach::Address, _) | (_, Reach::Address) => Reach::Address,
        (from, Reach::Start) => from,
        (Reach::Inside, _) => Reach::Inside,
        (Reach::Start, by) => by,
        (_, Reach::Before) | (Reach::Before, _) => Reach::Fixed,
        (_, by) => by,
    }
}
