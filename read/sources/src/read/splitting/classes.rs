//! Notes on classes of C++ and on the expressions that name their members.

use super::nodes::{
    is_array, is_array_kind, is_attribute, is_function, is_number, is_pointer, is_reference, unqualified,
};
use crate::libclang::{Cursor, Location, Type as ClangType};
use crate::read::reader::{Reader, unexposed};
use crate::split_facts::{Dependence, SplitHold};
use crate::tree::Site;
use clang_sys::*;
use lineup_model::object_uses::NamedMember;
use std::collections::BTreeSet;

/// Templates of the C++ library that are values and hold their objects in memory of their own.
const ALLOCATING_VALUES: [&str; 14] = [
    "vector",
    "deque",
    "list",
    "map",
    "multimap",
    "set",
    "multiset",
    "unordered_map",
    "unordered_multimap",
    "unordered_set",
    "unordered_multiset",
    "shared_ptr",
    "weak_ptr",
    "basic_string",
];

/// Others that hold their objects in memory of their own.
const ALLOCATING: [&str; 8] = [
    "forward_list",
    "unique_ptr",
    "function",
    "stack",
    "queue",
    "priority_queue",
    "initializer_list",
    "allocator",
];

/// Other types that are values: copying, moving and destroying them does nothing but that.
const VALUES: [&str; 8] =
    ["basic_string_view", "array", "pair", "optional", "complex", "bitset", "duration", "time_point"];

impl<'u> Reader<'u, '_> {
    /// Notes what a node says. The nodes around it are known.
    pub(in crate::read) fn note_splitting(&mut self, cursor: Cursor<'u>, children: &[Cursor<'u>]) {
        match cursor.kind() {
            CXCursor_MemberRefExpr => self.note_member(cursor, children),
            CXCursor_DeclRefExpr => {
                self.hold_member(cursor, "it is named without an object");
            }
            CXCursor_MemberRef => self.note_member_ref(cursor),
            CXCursor_Constructor if cursor.is_definition() => self.note_initialisers(cursor, children),
            CXCursor_VarDecl => self.note_variable(cursor),
            CXCursor_UnexposedExpr
            | CXCursor_CStyleCastExpr
            | CXCursor_CXXStaticCastExpr
            | CXCursor_CXXReinterpretCastExpr
            | CXCursor_CXXConstCastExpr
            | CXCursor_CXXFunctionalCastExpr => self.note_cast(cursor, children),
            CXCursor_CXXNewExpr => self.note_new(cursor),
            CXCursor_UnaryExpr => {
                let held: BTreeSet<String> =
                    children.iter().flat_map(|child| self.classes_in(child.ty())).collect();
                self.forbid(held, "its size is measured", cursor);
            }
            CXCursor_InitListExpr if !children.is_empty() => {
                let is_designated = |child: &Cursor<'u>| {
                    child.kind() == CXCursor_UnexposedExpr
                        && child.children().iter().any(|inner| inner.kind() == CXCursor_MemberRef)
                };
                if !children.iter().all(is_designated) {
                    let own = self.own_class(cursor.ty());
                    self.forbid(own, "a list in braces gives its members values by position", cursor);
                }
            }
            CXCursor_CXXBaseSpecifier => {
                let base = self.own_class(cursor.ty());
                self.forbid(base, "another class is derived from it", cursor);
                let derived = cursor.parent().or_else(|| self.splitting.above.last().copied());
                let derived = derived.map(|class| self.own_class(class.ty())).unwrap_or_default();
                self.forbid(derived, "it has a base class", cursor);
            }
            CXCursor_StructDecl | CXCursor_ClassDecl if cursor.is_definition() => self.note_class(cursor),
            CXCursor_UnionDecl if cursor.is_definition() => {
                let members = cursor.children();
                let held = members.iter().filter(|member| member.kind() == CXCursor_FieldDecl);
                let held: BTreeSet<String> = held.flat_map(|member| self.classes_in(member.ty())).collect();
                self.forbid(held, "it shares a union", cursor);
            }
            _ => {}
        }
    }

    pub(super) fn forbid(&mut self, classes: BTreeSet<String>, reason: &str, at: Cursor<'u>) {
        for class in classes {
            self.hold(class, None, reason, at);
        }
    }

    pub(super) fn hold(&mut self, class: String, member: Option<String>, reason: &str, at: Cursor<'u>) {
        let on = if member.is_some() { Dependence::Layout } else { Dependence::Origin };
        self.hold_on(on, (class, member), reason, at);
    }

    /// The same where the use depends on this part of the objects.
    pub(super) fn forbid_on(
        &mut self,
        on: Dependence,
        classes: BTreeSet<String>,
        reason: &str,
        at: Cursor<'u>,
    ) {
        for class in classes {
            self.hold_on(on, (class, None), reason, at);
        }
    }

    pub(super) fn hold_on(
        &mut self,
        on: Dependence,
        (class, member): (String, Option<String>),
        reason: &str,
        at: Cursor<'u>,
    ) {
        let site = self.site(at);
        let hold = SplitHold {
            member,
            on,
            reason: reason.to_owned(),
            path: self.tree.files[site.file].to_string(),
            line: site.line,
        };
        self.splitting.facts.classes.entry(class).or_default().holds.insert(hold);
    }

    /// The project's class that has this member.
    pub(in crate::read) fn class_of(&mut self, field: Cursor<'u>) -> Option<String> {
        if field.kind() != CXCursor_FieldDecl {
            return None;
        }
        let class = field.parent()?;
        self.name_of_class(class)
    }

    pub(in crate::read) fn name_of_class(&mut self, class: Cursor<'u>) -> Option<String> {
        let is_class = matches!(class.kind(), CXCursor_StructDecl | CXCursor_ClassDecl);
        if !is_class || self.is_foreign(class) {
            return None;
        }
        let record = self.record(class);
        self.tree.records[record].usr.as_deref().map(str::to_owned)
    }

    /// The project's class that this type is, without typedefs.
    pub(in crate::read) fn own_class(&mut self, ty: ClangType<'u>) -> BTreeSet<String> {
        let class = ty.canonical().declaration();
        class.and_then(|class| self.name_of_class(class)).into_iter().collect()
    }

    /// The project's classes of which an object of this type has one in it.
    pub(in crate::read) fn classes_in(&mut self, ty: ClangType<'u>) -> BTreeSet<String> {
        let ty = ty.canonical();
        match ty.kind() {
            CXType_ConstantArray | CXType_IncompleteArray | CXType_VariableArray => {
                ty.element().map(|of| self.classes_in(of)).unwrap_or_default()
            }
            CXType_Record => self.classes_in_record(ty),
            _ => BTreeSet::new(),
        }
    }

    fn classes_in_record(&mut self, ty: ClangType<'u>) -> BTreeSet<String> {
        let Some(class) = ty.declaration() else { return BTreeSet::new() };
        let class = class.definition().unwrap_or(class);
        if let Some(known) = self.splitting.held.get(&class.identity()) {
            return known.clone();
        }
        self.splitting.held.insert(class.identity(), BTreeSet::new());
        let mut held: BTreeSet<String> = self.name_of_class(class).into_iter().collect();
        // Of instances of templates libclang shows no members: their arguments stand for them.
        if !(self.is_foreign(class) && is_one_of([&ALLOCATING_VALUES, &ALLOCATING], class)) {
            for argument in ty.template_arguments() {
                held.extend(self.classes_in(argument));
            }
            for child in class.children() {
                if matches!(child.kind(), CXCursor_FieldDecl | CXCursor_CXXBaseSpecifier) {
                    held.extend(self.classes_in(child.ty()));
                }
            }
        }
        self.splitting.held.insert(class.identity(), held.clone());
        held
    }

    fn hold_member(&mut self, cursor: Cursor<'u>, reason: &str) {
        let Some(field) = cursor.referenced() else { return };
        if let Some(class) = self.class_of(field) {
            self.hold(class, Some(field.spelling()), reason, cursor);
        }
    }

    pub(super) fn note_member_ref(&mut self, cursor: Cursor<'u>) {
        let above = self.splitting.above.last().copied();
        match above.map(Cursor::kind) {
            // See `initialised.rs`.
            Some(CXCursor_Constructor) => {}
            Some(CXCursor_UnexposedExpr) if self.is_offset_of(above) => {
                let class = cursor.referenced().and_then(|field| self.class_of(field));
                self.forbid(class.into_iter().collect(), "offsetof measures it", cursor);
            }
            _ => self.hold_member(cursor, "a value in braces names it"),
        }
    }

    fn is_offset_of(&self, expression: Option<Cursor<'u>>) -> bool {
        let children = expression.map(Cursor::children).unwrap_or_default();
        unexposed(&children) == crate::tree::Kind::OffsetOf
    }

    /// `x.m`, `p->m`, `m` in a method.
    fn note_member(&mut self, cursor: Cursor<'u>, children: &[Cursor<'u>]) {
        let Some(field) = cursor.referenced() else { return self.note_in_template(cursor) };
        let Some(class) = self.class_of(field) else { return };
        let member = field.spelling();
        let name = cursor.name_location();
        let reason = if name.is_in_macro || cursor.location().is_in_macro || !self.is_there(&name, &member) {
            Some("a macro names it")
        } else if self.is_in_list() {
            Some("a constructor's list reads it")
        } else if self.is_in_initial_value() {
            Some("the first value of a member reads it")
        } else if !children.first().is_none_or(|object| is_lasting(*object)) {
            Some("it is read from an object that no variable is known to hold")
        } else {
            self.kept_address(cursor)
        };
        if let Some(reason) = reason {
            return self.hold(class, Some(member), reason, cursor);
        }
        let file = self.file(name.file);
        let named = NamedMember {
            path: self.tree.files[file].to_string(),
            line: name.line,
            column: name.column,
            member,
            object: None,
        };
        self.splitting.facts.classes.entry(class).or_default().named.insert(named);
    }

    /// True when the file has the member's name there: a macro's name stands where its body came from.
    pub(in crate::read) fn is_there(&mut self, name: &Location, member: &str) -> bool {
        let file = self.file(name.file.clone());
        let site = Site { file, line: name.line, column: name.column, is_in_macro: false };
        let rest = self.texts.line_from(&self.tree, site).unwrap_or_default();
        let end = rest.strip_prefix(member.as_bytes()).map(|rest| rest.first().copied());
        end.is_some_and(|next| !next.is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_'))
    }

    /// The last word of an expression whose member only an instance of a template knows.
    fn note_in_template(&mut self, cursor: Cursor<'u>) {
        let site = self.site(cursor);
        let [from, to] = cursor.extent();
        let text = self.texts.between(&self.tree, site.file, from, to).unwrap_or_default();
        let text = String::from_utf8_lossy(&text).into_owned();
        let at = (self.tree.files[site.file].to_string(), site.line);
        // Of `x.template f<T>` all words count.
        for word in text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()) {
            self.splitting.facts.in_templates.entry(word.to_owned()).or_insert_with(|| at.clone());
        }
    }

    /// True in the list of a constructor, before its body.
    fn is_in_list(&self) -> bool {
        let above = self.splitting.above.iter().rev();
        let is_body =
            |cursor: &&Cursor<'u>| !matches!(cursor.kind(), CXCursor_CompoundStmt | CXCursor_LambdaExpr);
        above.take_while(is_body).any(|cursor| cursor.kind() == CXCursor_Constructor)
    }

    fn is_in_initial_value(&self) -> bool {
        let above = self.splitting.above.iter().rev();
        let is_function = |cursor: &&Cursor<'u>| !is_function(cursor.kind());
        above.take_while(is_function).any(|cursor| cursor.kind() == CXCursor_FieldDecl)
    }

    /// The reason why the address of a member may be kept: `&x.m`, `int &r = x.m`, `return x.m` by reference.
    fn kept_address(&self, cursor: Cursor<'u>) -> Option<&'static str> {
        let mut inner = cursor;
        for &outer in self.splitting.above.iter().rev() {
            match outer.kind() {
                CXCursor_ParenExpr
                | CXCursor_UnexposedExpr
                | CXCursor_ConditionalOperator
                | CXCursor_ArraySubscriptExpr
                | CXCursor_MemberRefExpr
                | CXCursor_CXXStaticCastExpr
                | CXCursor_CStyleCastExpr => inner = outer,
                CXCursor_BinaryOperator | CXCursor_InitListExpr
                    if is_array(cursor.ty()) && (is_pointer(inner.ty()) || is_array(inner.ty())) =>
                {
                    return Some("its address may be kept");
                }
                CXCursor_BinaryOperator if is_pointer(outer.ty()) => inner = outer,
                CXCursor_UnaryOperator => {
                    let to = outer.ty().canonical().pointee().map(|to| unqualified(to));
                    let is_address = to.is_some_and(|to| to == unqualified(inner.ty().canonical()));
                    return is_address.then_some("its address is taken");
                }
                CXCursor_VarDecl | CXCursor_ParmDecl if is_reference(outer.ty()) => {
                    return Some("a reference to it is kept");
                }
                CXCursor_VarDecl if is_array(cursor.ty()) && is_pointer(outer.ty()) => {
                    return Some("its address is kept");
                }
                CXCursor_ReturnStmt => {
                    let function = self.splitting.above.iter().rev().find(|one| is_function(one.kind()))?;
                    if function.kind() == CXCursor_LambdaExpr {
                        return Some("a lambda may give a reference to it");
                    }
                    let result = function.result();
                    let gives_it = result
                        .is_some_and(|ty| is_reference(ty) || (is_array(cursor.ty()) && is_pointer(ty)));
                    return gives_it.then_some("a function gives a reference to it");
                }
                CXCursor_AsmStmt | CXCursor_MSAsmStmt => return Some("assembly uses it"),
                CXCursor_CallExpr | CXCursor_InitListExpr => return None,
                kind if is_function(kind) => return None,
                _ => return None,
            }
        }
        None
    }

    /// Objects that exist for as long as the program, or a thread, does: their constructors would run code where
    /// nothing ran before.
    fn note_variable(&mut self, cursor: Cursor<'u>) {
        let is_local = cursor.parent().is_some_and(|parent| is_function(parent.kind()));
        if is_local && !cursor.is_static() && !cursor.is_thread_local() {
            return;
        }
        let held = self.classes_in(cursor.ty());
        self.forbid(held, "a variable of it exists before and after the program's own code runs", cursor);
    }

    /// Pointers to objects that become, or come from, pointers to something else.
    fn note_cast(&mut self, cursor: Cursor<'u>, children: &[Cursor<'u>]) {
        const REASON: &str = "its objects are reached as bytes, or as objects of another type";
        let Some(inner) = children.last().copied() else { return };
        let (to, from) = (cursor.ty().canonical(), inner.ty().canonical());
        let is_written = cursor.kind() != CXCursor_UnexposedExpr;
        let mut behind = |ty: ClangType<'u>| match ty.kind() {
            CXType_Pointer => ty.pointee().map(|to| self.classes_in(to)).unwrap_or_default(),
            kind if is_array_kind(kind) => self.classes_in(ty),
            _ => BTreeSet::new(),
        };
        let (of_target, of_source) = (behind(to), behind(from));
        let both_point = is_pointer(to) && (is_pointer(from) || is_array(from));
        let between_numbers = is_written && (is_number(to) != is_number(from));
        if of_target != of_source && (both_point || between_numbers) {
            let classes = of_target.union(&of_source).cloned().collect();
            return self.forbid(classes, REASON, cursor);
        }
        if cursor.kind() == CXCursor_CXXReinterpretCastExpr
            || (cursor.kind() == CXCursor_CStyleCastExpr && !matches!(to.kind(), CXType_Record | CXType_Void))
        {
            let mut classes = self.classes_in(from);
            classes.extend(of_source);
            if cursor.kind() == CXCursor_CXXReinterpretCastExpr {
                classes.extend(self.classes_in(to));
                classes.extend(of_target);
            }
            self.forbid(classes, REASON, cursor);
        }
    }

    /// `new (place) T`.
    fn note_new(&mut self, cursor: Cursor<'u>) {
        let site = self.site(cursor);
        let text = self.texts.line_from(&self.tree, site).map(<[u8]>::to_vec).unwrap_or_default();
        let text = String::from_utf8_lossy(&text).into_owned();
        let rest = text.strip_prefix("::").unwrap_or(&text).trim_start().strip_prefix("new");
        let is_plain = rest.is_some_and(|rest| {
            let rest = rest.trim_start();
            !rest.is_empty() && !rest.starts_with('(')
        });
        if !is_plain {
            let made = cursor.ty().canonical().pointee();
            let classes = made.map(|made| self.classes_in(made)).unwrap_or_default();
            self.forbid(classes, "objects are made in memory that is at hand", cursor);
        }
    }

    /// A part of a declaration that holds a member in the object, or all of them.
    pub(super) fn note_member_or_attribute(&mut self, class: &str, child: Cursor<'u>) {
        match child.kind() {
            CXCursor_FieldDecl => {
                if let Some(reason) = self.stays(child) {
                    self.hold(class.to_owned(), Some(child.spelling()), reason, child);
                }
            }
            kind if is_attribute(kind) => {
                self.hold(class.to_owned(), None, "its declaration has an attribute", child);
            }
            _ => {}
        }
    }

    fn note_class(&mut self, cursor: Cursor<'u>) {
        let Some(class) = self.name_of_class(cursor) else { return };
        self.splitting.facts.classes.entry(class.clone()).or_default().seen_by.cpp = true;
        if !cursor.is_of_namespace() || cursor.template().is_some() {
            self.hold(class.clone(), None, "it is declared inside a class, a function or a template", cursor);
        }
        for child in cursor.children() {
            self.note_member_or_attribute(&class, child);
            match child.kind() {
                _ if child.is_defaulted() && child.spelling() == "operator==" => {
                    self.splitting.facts.classes.entry(class.clone()).or_default().is_compared = true;
                }
                CXCursor_FriendDecl => {
                    let is_compared = child
                        .children()
                        .iter()
                        .any(|known| known.spelling() == "operator==" && known.is_defaulted());
                    self.splitting.facts.classes.entry(class.clone()).or_default().is_compared |= is_compared;
                }
                CXCursor_Destructor | CXCursor_CXXMethod | CXCursor_Constructor => {
                    if let Some(reason) = forbids(child) {
                        self.hold(class.clone(), None, reason, child);
                    }
                }
                _ => {}
            }
        }
    }

    /// The reason why a member cannot leave the object by its declaration.
    fn stays(&mut self, field: Cursor<'u>) -> Option<&'static str> {
        let children = field.children();
        if children.iter().any(|child| is_attribute(child.kind())) {
            return Some("its declaration has an attribute");
        }
        if field.is_bit_field() {
            return Some("it is a bit-field");
        }
        if field.is_mutable() {
            return Some("it is mutable");
        }
        if calls_or_refers(&children) {
            return Some("its first value is worked out");
        }
        let ty = field.ty();
        let mut inner = ty.canonical();
        while let Some(of) = inner.element() {
            inner = of.canonical();
        }
        if ty.is_const() || inner.is_const() || ty.is_volatile() || inner.is_volatile() || inner.is_atomic() {
            return Some("its type is const, volatile or atomic");
        }
        match inner.kind() {
            kind if (CXType_Bool..=CXType_LongDouble).contains(&kind) => None,
            CXType_Enum | CXType_Pointer | CXType_Complex | CXType_Float128 => None,
            CXType_Record => {
                let class = inner.declaration()?;
                let is_value = match inner.spelling().starts_with("std::") {
                    true => self.is_foreign(class) && is_one_of([&ALLOCATING_VALUES, &VALUES], class),
                    false => inner.is_plain_data(),
                };
                (!is_value).then_some("its type may do more than hold a value")
            }
            _ => Some("its type is a reference or another that cannot be copied"),
        }
    }
}

/// The reason why a method of a class keeps all members in its objects.
fn forbids(method: Cursor<'_>) -> Option<&'static str> {
    if method.is_virtual() {
        return Some("it has virtual methods");
    }
    if method.is_defaulted() {
        return None;
    }
    match method.kind() {
        CXCursor_Destructor => Some("it has a destructor of its own"),
        CXCursor_Constructor if method.is_copying_constructor() => {
            Some("it has a constructor of its own that copies or moves")
        }
        CXCursor_CXXMethod if method.spelling() == "operator=" => {
            Some("it has an assignment of its own that copies or moves")
        }
        CXCursor_CXXMethod if matches!(&*method.spelling(), "operator new" | "operator new[]") => {
            Some("it has an allocator of its own")
        }
        CXCursor_CXXMethod if method.spelling() == "operator&" => Some("it has an operator & of its own"),
        _ => None,
    }
}

/// True when a first value calls, constructs with arguments, or names a variable.
fn calls_or_refers(children: &[Cursor<'_>]) -> bool {
    children.iter().any(|child| {
        let refers = child.kind() == CXCursor_DeclRefExpr
            && child
                .referenced()
                .is_none_or(|decl| !(decl.kind() == CXCursor_EnumConstantDecl || child.ty().is_const()));
        let calls = match child.kind() {
            CXCursor_CallExpr => {
                !child.arguments().is_empty()
                    || child.referenced().is_none_or(|called| called.kind() != CXCursor_Constructor)
            }
            CXCursor_CXXNewExpr | CXCursor_LambdaExpr | CXCursor_CXXThisExpr | CXCursor_MemberRefExpr => true,
            CXCursor_UnaryOperator | CXCursor_CompoundAssignOperator => {
                child.children().first().is_none_or(|inner| is_reference_to_variable(*inner))
            }
            _ => false,
        };
        refers || calls || calls_or_refers(&child.children())
    })
}

fn is_reference_to_variable(cursor: Cursor<'_>) -> bool {
    cursor.kind() == CXCursor_DeclRefExpr
}

/// True when the object that a member is read from lasts: a variable, or what a pointer or reference leads to.
fn is_lasting(object: Cursor<'_>) -> bool {
    // `p->m`.
    if object.ty().canonical().pointee().is_some() {
        return true;
    }
    match object.kind() {
        CXCursor_DeclRefExpr | CXCursor_ArraySubscriptExpr | CXCursor_UnaryOperator => true,
        CXCursor_MemberRefExpr => object.children().first().is_none_or(|outer| is_lasting(*outer)),
        CXCursor_ParenExpr => object.children().last().is_some_and(|inner| is_lasting(*inner)),
        CXCursor_UnexposedExpr => {
            let children = object.children();
            children.len() == 1 && is_lasting(children[0])
        }
        CXCursor_CallExpr => {
            let called = object.referenced().and_then(Cursor::result);
            called.is_some_and(|ty| ty.canonical().kind() == CXType_LValueReference)
        }
        _ => false,
    }
}

/// True when one of these lists names the class.
fn is_one_of(lists: [&[&str]; 2], class: Cursor<'_>) -> bool {
    let name = class.spelling();
    lists.iter().any(|list| list.contains(&&*name))
}
