//! Objects of C's structs: where they are made, where they end, and each use of one that an edit could not follow which
//! keeps some of its members in memory of their own.
//!
//! Every object has to come from a call of `malloc` or `calloc` that is seen here, or be an element of an array (see
//! `arrays.rs`). So each other way to get one holds: a member or a parameter of the type, a value of it, a pointer that
//! was one to something else.

use super::nodes::{
    IN_UNION, INSIDE, bare, decays, is_array_kind, is_function, is_null, uncast, unqualified,
};
use crate::libclang::{Cursor, Location, Type as ClangType};
use crate::read::reader::Reader;
use crate::split_facts::Dependence;
use crate::tree::Site;
use clang_sys::*;
use lineup_model::object_uses::{HeapCall, HeapFunction, MEMORY_ENDERS, NamedMember};
use std::collections::BTreeSet;

/// Functions whose place a program's own function takes when it has that name.
const ALLOCATORS: [&str; 4] = ["malloc", "calloc", "realloc", "free"];

/// The size of a pointer, in bytes.
const POINTER_SIZE: u64 = 8;

const AS_OTHER: &str = "a pointer to an object comes from one to something else, or becomes one";

impl<'u> Reader<'u, '_> {
    /// Notes what a node says. The nodes around it are known.
    pub(in super::super) fn note_heap_object(&mut self, cursor: Cursor<'u>, children: &[Cursor<'u>]) {
        self.note_thread_start(cursor);
        self.note_memory_end(cursor);
        self.note_code_place(cursor);
        match cursor.kind() {
            CXCursor_MemberRefExpr => self.note_member_of_struct(cursor, children),
            CXCursor_MemberRef => self.note_member_ref(cursor),
            CXCursor_VarDecl => {
                self.note_object_variable(cursor);
                self.note_pointer_variable(cursor);
            }
            CXCursor_DeclRefExpr => self.note_pointer_use(cursor),
            CXCursor_ParmDecl => {
                let held = self.classes_in(cursor.ty());
                self.forbid_on(Dependence::Layout, held, "a variable is or holds an object", cursor);
            }
            CXCursor_FieldDecl => {
                let held = self.classes_in(cursor.ty());
                // Calls that make the other type are calls that make objects, too.
                self.forbid(held, "another type holds an object by value", cursor);
            }
            CXCursor_CStyleCastExpr | CXCursor_UnexposedExpr => self.note_pointer_cast(cursor, children),
            CXCursor_UnaryExpr => self.note_size(cursor),
            CXCursor_CallExpr => self.note_end(cursor),
            CXCursor_StructDecl if cursor.is_definition() => self.note_struct(cursor),
            CXCursor_UnionDecl if cursor.is_definition() => {
                let held = self.pointed_to_in_union(cursor);
                self.forbid_on(Dependence::Address, held, IN_UNION, cursor);
                let numbered = self.shared_with_number(cursor);
                let reason = "a union holds a pointer to an object or a number";
                self.forbid_on(Dependence::Bits, numbered, reason, cursor);
            }
            CXCursor_FunctionDecl if cursor.is_definition() => {
                self.note_allocator(cursor);
                self.note_heap_wrapper(cursor);
            }
            _ => {}
        }
        if (CXCursor_UnexposedExpr..CXCursor_UnexposedStmt).contains(&cursor.kind()) {
            self.note_value(cursor);
        }
    }

    /// `p->m`, `a[i].m`.
    fn note_member_of_struct(&mut self, cursor: Cursor<'u>, children: &[Cursor<'u>]) {
        let Some(field) = cursor.referenced() else { return };
        let Some(class) = self.class_of(field) else { return };
        let member = field.spelling();
        let object = children.first().copied();
        if object.is_some_and(is_null) {
            return self.hold_on(Dependence::Layout, (class, None), "its offsets are measured", cursor);
        }
        // `&p->m` of no object is null, and programs ask for that.
        if field.offset_bits() == Some(0) && self.is_address(cursor) {
            let reason = "its address, which is that of the object, is taken";
            return self.hold_on(Dependence::Address, (class, Some(member)), reason, cursor);
        }
        let Some((path, line, column)) = self.written_place(cursor.name_location(), &member) else {
            return self.hold(class, Some(member), "a macro names it", cursor);
        };
        let object = object.and_then(|object| self.object_place(object));
        let named = NamedMember { path, line, column, member, object };
        self.splitting.facts.classes.entry(class).or_default().named.insert(named);
    }

    /// True of `&p->m`, and of an array.
    fn is_address(&self, member: Cursor<'u>) -> bool {
        let above = self.splitting.above.iter().rev();
        let operator = above.take(2).find(|above| above.kind() == CXCursor_UnaryOperator);
        let is_taken = operator.is_some_and(|one| one.ty().canonical().kind() == CXType_Pointer);
        is_taken || is_array_kind(member.ty().canonical().kind())
    }

    /// File, line and column where a file has this word for a node; `None` where a macro has it, or may write it out.
    pub(in crate::read) fn written_place(&mut self, at: Location, word: &str) -> Option<(String, u32, u32)> {
        let file = self.file(at.file.clone());
        let site = |(line, column)| Site { file, line, column, is_in_macro: false };
        if at.is_in_macro {
            let macro_name = self.texts.line_from(&self.tree, site((at.line, at.column)))?;
            if self.macros.spells_arguments(macro_name) {
                return None;
            }
        }
        let (line, column) = at.written;
        let is_there = self.is_there(&Location { line, column, ..at }, word);
        is_there.then(|| (self.tree.files[file].to_string(), line, column))
    }

    /// An object as a value: only its members may be asked for, and its address and size.
    fn note_value(&mut self, cursor: Cursor<'u>) {
        let held = self.classes_in(cursor.ty());
        if held.is_empty() {
            return;
        }
        let is_place = matches!(
            cursor.kind(),
            CXCursor_UnaryOperator
                | CXCursor_ArraySubscriptExpr
                | CXCursor_ParenExpr
                | CXCursor_DeclRefExpr
                | CXCursor_MemberRefExpr
        );
        let above = self.splitting.above.last().copied();
        let is_looked_into = above.is_some_and(|above| match above.kind() {
            CXCursor_MemberRefExpr | CXCursor_ParenExpr | CXCursor_UnaryExpr => true,
            CXCursor_UnaryOperator => above.ty().canonical().kind() == CXType_Pointer,
            CXCursor_UnexposedExpr | CXCursor_ArraySubscriptExpr => {
                is_array_kind(cursor.ty().canonical().kind())
            }
            _ => false,
        });
        if !is_place || !is_looked_into {
            let reason = "an object is copied or made as a value";
            self.forbid_on(Dependence::Layout, held, reason, cursor);
        }
    }

    /// Pointers to objects that become, or come from, pointers to something else.
    fn note_pointer_cast(&mut self, cursor: Cursor<'u>, children: &[Cursor<'u>]) {
        let Some(inner) = children.last().copied() else { return };
        let (to, from) = (cursor.ty().canonical(), inner.ty().canonical());
        let (target, source) = (self.pointed_to(to), self.pointed_to(from));
        if target != source {
            if !target.is_empty() {
                self.note_new_pointer(cursor, inner, (to, &target));
            }
            let is_dropped = matches!(to.kind(), CXType_Void | CXType_Bool);
            let is_freed = is_void_pointer(to) && self.is_given_to_free();
            if !(source.is_empty() || is_dropped || is_freed) {
                let by = self.called().filter(|_| is_void_pointer(to));
                let reason = by.map_or(AS_OTHER.to_owned(), |name| format!("{name}() is given an object"));
                let call = self.splitting.above.last().copied().filter(|_| is_void_pointer(to));
                match call.and_then(|call| self.call_by_wrapper(call, HeapFunction::Free)) {
                    Some(call) => self.note_wrapped_call(call, &source, &reason, cursor),
                    None => self.forbid_on(Dependence::Address, source, &reason, cursor),
                }
            }
            return;
        }
        if target.is_empty()
            && is_void_pointer(to)
            && !self.called().is_some_and(|name| keeps_pointers(&name))
        {
            // `put(list, &p)`: other code may read the pointer out of the bytes, and end the object.
            let inner = from.pointee().map(ClangType::canonical);
            let held = inner.map(|inner| self.pointed_to(inner)).unwrap_or_default();
            self.forbid_on(
                Dependence::Address,
                held,
                "the bytes of a pointer to an object are given away",
                cursor,
            );
            return;
        }
        // Functions and arrays become pointers to what they are.
        let is_same = unqualified(to) == unqualified(from)
            || decays(from, to)
            || matches!(from.kind(), CXType_FunctionProto | CXType_FunctionNoProto);
        if target.is_empty() && !is_same && !is_void_pointer(to) && !is_void_pointer(from) {
            let mut held = self.classes_behind(to);
            held.extend(self.classes_behind(from));
            if !is_null(inner) {
                let reason = "a pointer to pointers to objects changes its type";
                self.forbid_on(Dependence::Address, held, reason, cursor);
            }
        }
    }

    /// A pointer to an object that was none before: null, or memory for objects.
    fn note_new_pointer(
        &mut self,
        cursor: Cursor<'u>,
        inner: Cursor<'u>,
        (to, target): (ClangType<'u>, &BTreeSet<String>),
    ) {
        if is_null(inner) {
            return;
        }
        let call = bare(inner);
        let function = (call.kind() == CXCursor_CallExpr).then(|| self.heap_function(call)).flatten();
        let Some(function) = function.filter(|one| *one != HeapFunction::Free) else {
            let name = called_name(call).filter(|_| call.kind() == CXCursor_CallExpr);
            let reason = name.map_or(AS_OTHER.to_owned(), |name| format!("{name}() gives an object"));
            let form = if call.arguments().len() == 1 { HeapFunction::Malloc } else { HeapFunction::Calloc };
            let made = self.call_by_wrapper(call, form);
            let size = self.size_of_objects(call, form, (to, target));
            return match made.zip(size).filter(|_| to.pointee().is_some()) {
                Some((made, size)) => {
                    self.splitting.measured_to_make.insert(size.expression_identity());
                    self.note_wrapped_call(made, target, &reason, cursor);
                }
                None => self.forbid_on(Dependence::Memory, target.clone(), &reason, cursor),
            };
        };
        let own = self.size_of_objects(call, function, (to, target));
        let place = self.written_place(call.location(), function.name());
        match (own, place) {
            (Some(size), Some((path, line, column))) if to.pointee().is_some() => {
                self.splitting.measured_to_make.insert(size.expression_identity());
                let place = self.code_place(call);
                let variable = self.set_pointer().map(Cursor::spelling);
                let made = HeapCall { path, line, column, function, wrapper: None, variable };
                for class in target {
                    let facts = self.splitting.facts.classes.entry(class.clone()).or_default();
                    facts.heap_calls.insert(made.clone());
                }
                self.splitting.facts.runs.making.entry(made).or_default().insert(place);
            }
            (None, _) => {
                let reason = "memory is asked for by another size than that of its objects";
                self.forbid_on(Dependence::Memory, target.clone(), reason, cursor);
            }
            _ => {
                let reason = "a macro makes its objects";
                self.forbid_on(Dependence::Memory, target.clone(), reason, cursor);
            }
        }
    }

    /// The operand of a call's size that measures objects of this type.
    fn size_of_objects(
        &mut self,
        call: Cursor<'u>,
        function: HeapFunction,
        (to, target): (ClangType<'u>, &BTreeSet<String>),
    ) -> Option<Cursor<'u>> {
        let sizes: Vec<Cursor<'u>> = match function {
            HeapFunction::Malloc => call.arguments().into_iter().flat_map(factors).collect(),
            _ => call.arguments().into_iter().map(bare).collect(),
        };
        let bytes = to.pointee().and_then(|to| to.canonical().size_bytes());
        let bytes = bytes.and_then(|bytes| i64::try_from(bytes).ok());
        // `sizeof(struct t[4])` measures four.
        let measures = |size: &&Cursor<'u>| {
            size.kind() == CXCursor_UnaryExpr && bytes.is_some() && size.evaluate() == bytes
        };
        sizes.iter().filter(measures).find(|size| self.measured(**size) == *target).copied()
    }

    /// `free(p)`.
    fn note_end(&mut self, call: Cursor<'u>) {
        if self.heap_function(call) != Some(HeapFunction::Free) {
            return;
        }
        let Some(&pointer) = call.arguments().first() else { return };
        let ended = self.pointed_to(uncast(pointer).ty().canonical());
        if ended.is_empty() {
            return;
        }
        match self.written_place(call.location(), "free") {
            Some((path, line, column)) => {
                let function = HeapFunction::Free;
                let variable = super::arrays::pointer_variable(uncast(pointer)).map(Cursor::spelling);
                let ended_by = HeapCall { path, line, column, function, wrapper: None, variable };
                for class in ended {
                    let facts = self.splitting.facts.classes.entry(class).or_default();
                    facts.heap_calls.insert(ended_by.clone());
                }
            }
            None => self.forbid(ended, "a macro ends its objects", call),
        }
    }

    fn note_size(&mut self, cursor: Cursor<'u>) {
        let is_to_make = self.splitting.measured_to_make.contains(&cursor.expression_identity());
        if !is_to_make && !self.is_count_of_elements(cursor) {
            let held = self.measured(cursor);
            self.forbid_on(Dependence::Layout, held, "sizeof measures it", cursor);
        }
    }

    /// The structs of which `sizeof` measures objects. Of `sizeof(struct t *)` libclang shows the name of the struct
    /// alone.
    pub(in crate::read) fn measured(&mut self, size: Cursor<'u>) -> BTreeSet<String> {
        let value = size.evaluate().and_then(|value| u64::try_from(value).ok());
        let mut found = BTreeSet::new();
        for child in size.children() {
            let of_type = child.ty().canonical().size_bytes().filter(|_| child.kind() == CXCursor_TypeRef);
            let is_pointer = of_type.zip(value).is_some_and(|(own, value)| own > 0 && value % own != 0);
            if !is_pointer {
                found.extend(self.classes_in(child.ty()));
            }
        }
        found
    }

    fn note_struct(&mut self, cursor: Cursor<'u>) {
        let Some(class) = self.name_of_class(cursor) else { return };
        self.splitting.facts.classes.entry(class.clone()).or_default().seen_by.c = true;
        if self.is_inside_declaration() {
            self.hold(class.clone(), None, INSIDE, cursor);
        }
        for child in cursor.children() {
            self.note_member_or_attribute(&class, child);
        }
    }

    /// True where the present node stands in another type or in a function.
    pub(in crate::read) fn is_inside_declaration(&self) -> bool {
        let is_around = |above: &Cursor<'u>| {
            matches!(above.kind(), CXCursor_StructDecl | CXCursor_UnionDecl) || is_function(above.kind())
        };
        self.splitting.above.iter().any(is_around)
    }

    /// The structs that pointers in a union lead to which has several: one could be written as a pointer to something
    /// else.
    pub(in crate::read) fn pointed_to_in_union(&mut self, union: Cursor<'u>) -> BTreeSet<String> {
        let members = union.children().into_iter().filter(|member| member.kind() == CXCursor_FieldDecl);
        let pointers: Vec<ClangType<'u>> =
            members.map(|member| member.ty().canonical()).filter(|ty| ty.kind() == CXType_Pointer).collect();
        match pointers.len() {
            0 | 1 => BTreeSet::new(),
            _ => pointers.into_iter().flat_map(|pointer| self.pointed_to(pointer)).collect(),
        }
    }

    /// The structs that pointers in a union lead to which has a number as wide as a pointer: the program may read the bits
    /// of an address.
    fn shared_with_number(&mut self, union: Cursor<'u>) -> BTreeSet<String> {
        let members = union.children().into_iter().filter(|member| member.kind() == CXCursor_FieldDecl);
        let types: Vec<ClangType<'u>> = members.map(|member| member.ty().canonical()).collect();
        let is_number = |ty: &ClangType<'u>| {
            (CXType_Bool..=CXType_Int128).contains(&ty.kind()) && ty.size_bytes() == Some(POINTER_SIZE)
        };
        match types.iter().any(is_number) {
            true => types.into_iter().flat_map(|ty| self.pointed_to(ty)).collect(),
            false => BTreeSet::new(),
        }
    }

    fn note_allocator(&mut self, cursor: Cursor<'u>) {
        let name = cursor.spelling();
        if ALLOCATORS.contains(&&*name) {
            let site = self.site(cursor);
            let path = self.tree.files[site.file].to_string();
            self.splitting.facts.allocators.insert((name, path, site.line));
        }
    }

    /// A function that ends memory, called or not.
    fn note_memory_end(&mut self, cursor: Cursor<'u>) {
        let named = cursor
            .referenced()
            .filter(|named| cursor.kind() == CXCursor_DeclRefExpr && named.kind() == CXCursor_FunctionDecl);
        self.splitting.facts.ends_memory |=
            named.is_some_and(|named| MEMORY_ENDERS.contains(&&*named.spelling()));
    }

    /// The C library's function that a call names.
    pub(super) fn heap_function(&mut self, call: Cursor<'u>) -> Option<HeapFunction> {
        let function = call.referenced().filter(|called| called.kind() == CXCursor_FunctionDecl)?;
        let found = match &*function.spelling() {
            "malloc" => HeapFunction::Malloc,
            "calloc" => HeapFunction::Calloc,
            "free" => HeapFunction::Free,
            _ => return None,
        };
        (call.arguments().len() == if found == HeapFunction::Calloc { 2 } else { 1 }).then_some(found)
    }

    /// True when the present node is what `free` is given.
    fn is_given_to_free(&mut self) -> bool {
        let above = self.splitting.above.last().copied();
        let call = above.filter(|above| above.kind() == CXCursor_CallExpr);
        call.is_some_and(|call| self.heap_function(call) == Some(HeapFunction::Free))
    }

    /// The function that the present node is given to.
    fn called(&self) -> Option<String> {
        let above = self.splitting.above.iter().rev();
        let call = above
            .skip_while(|above| matches!(above.kind(), CXCursor_UnexposedExpr | CXCursor_ParenExpr))
            .take(1)
            .find(|above| above.kind() == CXCursor_CallExpr)?;
        called_name(*call)
    }

    /// The project's struct that a pointer leads to.
    pub(in crate::read) fn pointed_to(&mut self, ty: ClangType<'u>) -> BTreeSet<String> {
        match ty.kind() {
            CXType_Pointer => ty.pointee().map(|to| self.classes_in(to.canonical())).unwrap_or_default(),
            kind if is_array_kind(kind) => self.classes_in(ty),
            _ => BTreeSet::new(),
        }
    }

    /// The project's structs that pointers lead to which a pointer leads to, also as parameters and results.
    pub(in crate::read) fn classes_behind(&mut self, ty: ClangType<'u>) -> BTreeSet<String> {
        let ty = ty.canonical();
        let inner = match ty.kind() {
            CXType_Pointer => ty.pointee().into_iter().collect(),
            CXType_FunctionProto | CXType_FunctionNoProto => {
                ty.parameters().into_iter().chain(ty.result()).collect()
            }
            kind if is_array_kind(kind) => ty.element().into_iter().collect(),
            _ => Vec::new(),
        };
        let mut found = self.pointed_to(ty);
        for one in inner {
            found.extend(self.classes_behind(one));
        }
        found
    }
}

/// True of functions of the C library that read no pointer out of the memory that they are given.
fn keeps_pointers(function: &str) -> bool {
    ["free", "realloc", "reallocarray", "qsort", "bsearch", "memset", "bzero", "calloc", "malloc"]
        .contains(&function)
}

fn called_name(call: Cursor<'_>) -> Option<String> {
    call.referenced().map(Cursor::spelling).filter(|name| !name.is_empty())
}

/// A size, and the two operands where it is made of two.
fn factors(size: Cursor<'_>) -> Vec<Cursor<'_>> {
    let size = bare(size);
    match size.kind() {
        CXCursor_BinaryOperator => size.children().into_iter().map(bare).collect(),
        _ => vec![size],
    }
}

pub(super) fn is_void_pointer(ty: ClangType<'_>) -> bool {
    let to = ty.pointee().map(|to| to.canonical().kind());
    ty.kind() == CXType_Pointer && to == Some(CXType_Void)
}
