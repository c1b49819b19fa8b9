//! Declared and named things: functions, variables, members.

use super::Collector;
use crate::facts::{NumberPlace, Origin, PointerPlace, Reach, Source, Value};
use crate::library_functions;
use crate::tree::{Decl, DeclKind, Kind, Name, NodeId, RecordId, TypeId, TypeKind};

impl Collector<'_> {
    pub(super) fn function(&mut self, id: NodeId) -> Vec<Value> {
        let node = self.tree.node(id);
        let outer = self.function.take();
        if let Some(decl) = self.tree.decl_of(id) {
            let usr = decl.usr.clone();
            self.facts.defined.insert(usr.clone());
            self.function = Some(usr.clone());
            let taken = decl.overrides.iter().map(|base| (base.clone(), usr.clone()));
            self.facts.taken.extend(taken);
            self.note_byte_template(decl, id);
            if decl.is_exported {
                self.note_exported(id);
            }
            self.note_named_parameters(id);
            self.note_parameters(id);
        }
        self.initialise_members(&node.children);
        self.function = outer;
        Vec::new()
    }

    /// The body, and before it what a constructor gives to members: `view(char *x) : first(x) {}`.
    fn initialise_members(&mut self, children: &[NodeId]) {
        let mut before = None;
        for &child in children {
            let member =
                before.replace(child).filter(|&member| self.tree.node(member).kind == Kind::MemberRef);
            let decl = member.and_then(|member| self.tree.decl_of(member));
            let Some((record, decl)) = decl.and_then(|decl| match decl.kind {
                DeclKind::Field(record) => Some((record, decl)),
                _ => None,
            }) else {
                self.value(child);
                continue;
            };
            let place = self.member_place(record, &decl.name);
            self.initialise(child, decl.ty, place, 0);
        }
    }

    /// The parameters that a function's body does something with.
    fn note_named_parameters(&mut self, id: NodeId) {
        for below in self.tree.below(id) {
            let decl = self.tree.decl_of(below).filter(|_| self.tree.node(below).kind == Kind::DeclRef);
            if let Some(DeclKind::Parameter(function, index)) = decl.map(|decl| &decl.kind) {
                self.facts.named_parameters.insert((function.clone(), *index));
            }
        }
    }

    pub(super) fn variable(&mut self, id: NodeId) -> Vec<Value> {
        self.note_volatile(id);
        self.note_declared(id);
        self.note_section(id);
        self.note_cleanup(id);
        let node = self.tree.node(id);
        if let Some(decl) = self.tree.decl_of(id).filter(|decl| !decl.is_elsewhere) {
            self.facts.defined.insert(decl.usr.clone());
        }
        let Some((&last, rest)) = node.children.split_last() else { return Vec::new() };
        self.visit(rest);
        let place = self.tree.decl_of(id).map(|decl| PointerPlace::Variable(decl.usr.clone()));
        if self.tree.node(last).kind == Kind::InitList {
            let outer = match &place {
                Some(PointerPlace::Variable(usr)) => self.table.replace(usr.clone()),
                _ => self.table.take(),
            };
            self.initialise(last, node.ty, place, 0);
            self.note_given_by_offsets(id, last);
            self.table = outer;
            return Vec::new();
        }
        // `short &first = x->b`.
        let is_place = self.refers_to_number(node.ty) && self.tree.pointee(self.tree.node(last).ty).is_none();
        let mut values = self.kept(last);
        if is_place {
            let target = self.address_of_place(last);
            values.extend(Self::objects(&target));
        }
        self.note_initial(id, last);
        if let Some(place) = place {
            self.flow(&values, &place);
            self.note_distances(last, &NumberPlace { table: None, place });
        }
        Vec::new()
    }

    pub(super) fn named(&mut self, id: NodeId) -> Vec<Value> {
        let Some(decl) = self.tree.decl_of(id) else { return Vec::new() };
        let (usr, ty) = (decl.usr.clone(), decl.ty);
        if decl.section.is_some() || decl.is_seen_by_other_units() {
            self.facts.named_variables.insert(usr.clone());
        }
        if decl.is_elsewhere {
            self.note_elsewhere(id);
        }
        match &decl.kind {
            DeclKind::Function => {
                let signature = self.tree.ty(ty).spelling.clone();
                self.facts.taken.insert((signature, usr.clone()));
                self.note_function_value(decl);
                vec![Value { source: Source::Function(usr), reach: Reach::Start, level: 0 }]
            }
            _ if !self.holds_pointer(ty) => Vec::new(),
            DeclKind::Parameter(function, index) => {
                vec![Value::place(PointerPlace::Parameter(function.clone(), *index))]
            }
            DeclKind::Variable => {
                let mut values = vec![Value::place(PointerPlace::Variable(usr))];
                values.extend(self.bytes_of(ty, &decl.name));
                values
            }
            _ => Vec::new(),
        }
    }

    pub(super) fn member(&mut self, id: NodeId) -> Vec<Value> {
        let tree = self.tree;
        self.object_before(id);
        let Some(decl) = tree.decl_of(id) else { return Vec::new() };
        let DeclKind::Field(record) = decl.kind else { return Vec::new() };
        self.note_alternative(record, &decl.name);
        let Some(usr) = self.usr(record) else { return Vec::new() };
        if !self.function.as_deref().is_some_and(library_functions::keeps_memory) {
            self.facts.looked_into.insert(usr.clone());
        }
        if !self.holds_pointer(decl.ty) {
            return Vec::new();
        }
        let bytes = match self.is_behind(record, decl) {
            true => Some(Value::origin(Origin::behind(&usr, &decl.name))),
            false => self.bytes_of(decl.ty, &decl.name),
        };
        let place = self.member_place(record, &decl.name).map(Value::place);
        let mut values: Vec<Value> = place.into_iter().chain(bytes).collect();
        if self.is_of_numbers(decl.ty) && !self.is_behind(record, decl) {
            values.push(Value::origin(Origin::Numbers(usr, decl.name.clone())));
        }
        values
    }

    /// The object before `.` or `->`.
    pub(super) fn object_before(&mut self, member: NodeId) {
        for &child in &self.tree.node(member).children {
            let values = self.value(child);
            self.note_aligned_target(&values, member);
        }
    }

    /// An array, or an array of arrays, of numbers or bytes. A kernel uses no vectors.
    fn is_of_numbers(&self, mut ty: TypeId) -> bool {
        let is_array = matches!(self.tree.ty(ty).kind, TypeKind::Array(..));
        while let TypeKind::Array(of, _) = self.tree.ty(ty).kind {
            ty = of;
        }
        is_array && self.is_plain(ty) && !self.is_kernel
    }

    /// True when a member only names the memory behind its object: bytes without a length, at its end. Memory that an
    /// allocator puts behind a header is memory like any other.
    fn is_behind(&self, record: RecordId, member: &Decl) -> bool {
        let record = &self.tree.records[record];
        let is_last = record.fields.last().is_some_and(|last| last.name == member.name);
        let TypeKind::Array(of, count) = self.tree.ty(member.ty).kind else { return false };
        is_last && !record.is_union && count.unwrap_or(0) == 0 && self.tree.ty(of).kind == TypeKind::Byte
    }

    /// A member of a union that code names.
    pub(super) fn note_alternative(&mut self, record: RecordId, member: &Name) {
        if let Some(usr) = self.usr(record).filter(|_| self.tree.records[record].is_union) {
            self.facts.alternatives.insert((usr, member.clone()));
        }
    }
}
