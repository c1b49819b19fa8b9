//! Values from, and names known to, other object files; and the types that functions take their parameters for.

use super::Collector;
use crate::facts::{Act, Origin, PointerPlace, SECTION_ENDS, Saying, Shape, Slot, Value};
use crate::tree::{Decl, DeclKind, FunctionType, Kind, Name, NodeId, Record, TypeKind};

impl Collector<'_> {
    /// Units find a variable of external linkage by its name alone: one unit's definition serves the others'
    /// declarations.
    pub(super) fn note_declared(&mut self, id: NodeId) {
        let tree = self.tree;
        let Some(decl) = tree.decl_of(id).filter(|decl| decl.is_seen_by_other_units()) else { return };
        let place = |role: &str| PointerPlace::Variable(format!("{} ({role})", decl.usr).into());
        let (own, others) = match decl.is_elsewhere {
            true => (place("declared"), place("defined")),
            false => (place("defined"), place("declared")),
        };
        let mut ty = decl.ty;
        while let TypeKind::Array(of, _) = tree.ty(ty).kind {
            ty = of;
        }
        if let Some(record) = tree.record_pointed_to(ty).and_then(|record| self.usr(record)) {
            self.flow(&[Value::origin(Origin::Object(record))], &place("behind"));
        }
        let (spelling, is_array) = (tree.ty(ty).spelling.clone(), ty != decl.ty);
        if let Some(record) = tree.record_of(ty).and_then(|record| self.usr(record)) {
            self.flow(&[Value::origin(Origin::Object(record))], &own);
        }
        if let Some(called) = tree.pointee(ty).and_then(|to| tree.function_types.get(&to)) {
            self.note_slots(&decl.usr, called, !decl.is_elsewhere, id);
        }
        let is_end = SECTION_ENDS.iter().any(|end| decl.name.starts_with(end));
        let is_plain = matches!(tree.ty(ty).kind, TypeKind::Byte | TypeKind::Scalar | TypeKind::Pointer(_));
        if decl.is_elsewhere && is_plain && (is_array || tree.ty(ty).kind == TypeKind::Byte) {
            self.facts.outer_arrays.insert(decl.usr.clone());
        }
        let act = match tree.ty(ty).kind {
            // Its use shows its type.
            TypeKind::Byte if is_end => return,
            TypeKind::Byte => Act::Bytes,
            TypeKind::Scalar | TypeKind::Pointer(_) if is_array => Act::Walk(spelling, true),
            _ => Act::Declared(self.shape(ty), spelling),
        };
        self.act(&[Value::place(others)], &act, id);
    }

    /// An object in a section of its own is a target of the linker's names for the section's ends.
    pub(super) fn note_section(&mut self, id: NodeId) {
        let tree = self.tree;
        let Some(decl) = tree.decl_of(id) else { return };
        let Some(section) = &decl.section else { return };
        let mut ty = decl.ty;
        while let TypeKind::Array(of, _) = tree.ty(ty).kind {
            ty = of;
        }
        let lies_there = match tree.ty(ty).kind {
            TypeKind::Record(record) => self.usr(record).map(|usr| Value::origin(Origin::Object(usr))),
            // The targets of the pointers in a section.
            TypeKind::Pointer(_) => Some(Value::place(PointerPlace::Variable(decl.usr.clone()))),
            _ => None,
        };
        let Some(value) = lies_there else { return };
        for end in SECTION_ENDS {
            let usr = format!("c:@{end}{section}");
            for place in [usr.clone(), format!("{usr} (defined)")] {
                self.flow(std::slice::from_ref(&value), &PointerPlace::Variable(place.into()));
            }
            self.facts.defined.insert(usr.into());
        }
        if matches!(tree.ty(ty).kind, TypeKind::Record(_)) {
            let variable = (decl.usr.clone(), section.clone(), value.clone(), self.at(id));
            self.facts.section_variables.insert(variable);
        }
        self.facts.in_sections.insert(value);
    }

    /// Units find a function by its name alone as well: one unit's parameters and result serve the others'
    /// declarations.
    pub(super) fn note_signatures(&mut self) {
        let tree = self.tree;
        for (id, node) in tree.nodes.iter().enumerate() {
            let decl = tree.decl_of(id).filter(|_| matches!(node.kind, Kind::Function | Kind::Other));
            let Some(decl) = decl.filter(|decl| decl.is_function_of_other_units()) else { continue };
            if let Some(name) = &decl.linked_as {
                self.facts.linked_as.insert(decl.usr.clone(), format!("c:@F@{name}").into());
            }
            // Its result has the declared type, from any source.
            let given = decl.signature.gives.and_then(|ty| tree.pointee(ty));
            if let Some((to, shape @ Shape::Record(_))) = given.map(|to| (to, self.shape(to))) {
                let given = Value::place(PointerPlace::Return(decl.usr.clone()));
                self.act(&[given], &Act::As(shape, tree.ty(to).spelling.clone()), id);
            }
            self.note_slots(&decl.usr, &decl.signature, node.kind == Kind::Function, id);
        }
    }

    /// The parameters and the result of a function, or of the functions that a variable points to: also through
    /// pointers to functions.
    fn note_slots(&mut self, name: &Name, function: &FunctionType, is_definition: bool, id: NodeId) {
        let tree = self.tree;
        for (parameter, ty) in function.slots() {
            // An object by value has its type there as well.
            let by_value = tree.record_of(ty).map(|_| ty);
            let Some(to) = tree.pointee(ty).or(by_value) else { continue };
            let (shape, spelling) = (self.shape(to), tree.ty(to).spelling.clone());
            if let Some(called) = tree.function_types.get(&to) {
                let slot = parameter.map_or("result".to_owned(), |at| at.to_string());
                self.note_slots(&format!("{name} ({slot})").into(), called, is_definition, id);
            }
            if matches!(shape, Shape::Record(_) | Shape::Scalar(2..) | Shape::Pointer) {
                let (function, at) = (name.clone(), self.at(id));
                let slot = Slot { function, parameter, shape, spelling, is_definition, at };
                self.facts.signatures.insert(slot);
            }
        }
    }

    /// Names with which other units can reach objects.
    pub(super) fn note_mentions(&mut self) {
        let is_common = |decl: &&Decl| decl.kind == DeclKind::Function || decl.is_seen_by_other_units();
        let mentions = self.tree.decls.iter().filter(is_common);
        let mentions = mentions.map(|decl| (decl.name.clone(), self.tree.ty(decl.ty).spelling.clone()));
        self.facts.mentions.extend(mentions);
    }

    /// A variable that this unit does not define, by its name. A kernel's are all its own.
    pub(super) fn note_elsewhere(&mut self, id: NodeId) {
        if self.is_kernel {
            return;
        }
        let tree = self.tree;
        let Some(decl) = tree.decl_of(id) else { return };
        let (usr, name) = (decl.usr.clone(), decl.name.clone());
        let mut ty = decl.ty;
        while let Some(to) = tree.pointee(ty) {
            ty = to;
        }
        if let Some(record) = tree.record_of(ty).and_then(|record| self.usr(record)) {
            let object = Value::origin(Origin::Object(record));
            self.act(&[object], &Act::Elsewhere(usr, name), id);
        }
    }

    /// A call of a function that gives an object by value.
    pub(super) fn note_given_by_value(&mut self, id: NodeId, decl: &Decl) {
        let record = self.tree.record_of(self.tree.node(id).ty).and_then(|record| self.usr(record));
        let is_templates = decl
            .class
            .is_some_and(|class| self.tree.records[class].names.iter().any(|name| name.contains('<')));
        if self.is_kernel || is_templates || decl.is_virtual || decl.name.starts_with("operator") {
            return;
        }
        if let Some(record) = record.filter(|_| decl.kind == DeclKind::Function && decl.template.is_none()) {
            let at = self.at(id);
            let saying = Saying::Given(decl.usr.clone(), decl.name.clone());
            self.facts.sayings.insert((record, saying, at));
        }
    }

    /// `std::bit_cast<long>(object)`, `std::as_bytes(objects)`.
    pub(super) fn note_library_bytes(&mut self, id: NodeId, decl: &Decl, arguments: &[NodeId]) {
        if !matches!(&*decl.name, "bit_cast" | "as_bytes" | "as_writable_bytes" | "start_lifetime_as") {
            return;
        }
        let at = self.at(id);
        for &node in arguments.iter().chain([&id]) {
            for usr in self.named_in(&self.tree.ty(self.tree.node(node).ty).spelling) {
                self.facts.sayings.insert((usr, Saying::LibraryBytes(decl.name.clone()), at.clone()));
            }
        }
    }

    /// The project's records that the spelling of a type names, such as its template arguments.
    pub(super) fn named_in(&self, spelling: &str) -> Vec<Name> {
        let words: Vec<&str> = spelling.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
        let is_named = |record: &&Record| {
            let bare = |name: &String| name.rsplit("::").next().unwrap_or(name).to_string();
            !record.is_foreign && record.names.iter().any(|name| words.contains(&&*bare(name)))
        };
        let named = self.tree.records.iter().filter(is_named);
        named.filter_map(|record| record.usr.clone()).collect()
    }

    /// A function takes an argument for its parameter's type, also when the caller's declaration differs.
    pub(super) fn note_parameters(&mut self, id: NodeId) {
        let tree = self.tree;
        for &child in &tree.node(id).children {
            let Some(decl) = tree.decl_of(child).filter(|_| tree.node(child).kind != Kind::Wrap) else {
                continue;
            };
            let DeclKind::Parameter(function, index) = &decl.kind else { continue };
            if !self.facts.named_parameters.contains(&(function.clone(), *index)) {
                continue;
            }
            let Some(to) = tree.pointee(decl.ty) else { continue };
            if let (TypeKind::Array(..), false) = (tree.ty(to).kind, self.is_kernel) {
                let value = Value::place(PointerPlace::Parameter(function.clone(), *index));
                self.note_use_as(&[value], to, child);
                continue;
            }
            let is_plain = matches!(tree.ty(to).kind, TypeKind::Record(_) | TypeKind::Scalar);
            let shape = self.shape(to);
            if is_plain && shape != Shape::Other {
                let value = Value::place(PointerPlace::Parameter(function.clone(), *index));
                self.act(&[value], &Act::As(shape, tree.ty(to).spelling.clone()), child);
            }
        }
    }
}
