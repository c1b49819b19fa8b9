//! Objects of C's structs that are variables, and the expressions for objects whose members are named.

use super::nodes::{bare, is_array_kind, is_attribute, is_null, uncast};
use crate::libclang::{Cursor, Location, Type as ClangType};
use crate::read::reader::Reader;
use crate::split_facts::{Dependence, ObjectVariable};
use crate::tree::{Kind, Operator, Site};
use clang_sys::*;
use lineup_model::object_uses::{HeapFunction, ObjectPlace, Storage};

impl<'u> Reader<'u, '_> {
    /// A variable that is or holds objects.
    pub(super) fn note_object_variable(&mut self, cursor: Cursor<'u>) {
        const REASON: &str = "a variable is or holds an object";
        let mut held = self.classes_in(cursor.ty());
        if held.is_empty() {
            return;
        }
        let ty = cursor.ty().canonical();
        let own = self.own_class(ty.element().unwrap_or(ty));
        if let Some(class) = own.into_iter().next() {
            held.remove(&class);
            match self.object_variable(cursor, refusal(cursor, ty)) {
                Some(variable) => {
                    let facts = self.splitting.facts.classes.entry(class).or_default();
                    *facts.variables.entry(variable).or_default() += 1;
                }
                None => {
                    let reason = "a macro declares a variable of it";
                    self.forbid_on(Dependence::Layout, [class].into(), reason, cursor);
                }
            }
        }
        self.forbid_on(Dependence::Layout, held, REASON, cursor);
    }

    /// A declaration of a variable; `None` where a macro names it.
    fn object_variable(&mut self, cursor: Cursor<'u>, refusal: Option<&str>) -> Option<ObjectVariable> {
        let (name, location) = (cursor.spelling(), cursor.name_location());
        if location.is_in_macro {
            return None;
        }
        let (path, line, column) = self.written_place(location, &name)?;
        let storage = match (cursor.is_extern(), cursor.is_static()) {
            (true, _) => Storage::Extern,
            (_, true) => Storage::Static,
            _ => Storage::Plain,
        };
        Some(ObjectVariable { path, line, column, name, storage, refusal: refusal.map(str::to_owned) })
    }

    /// A variable of a file that points to objects.
    pub(super) fn note_pointer_variable(&mut self, cursor: Cursor<'u>) {
        let ty = cursor.ty().canonical();
        let target = ty.pointee().map(ClangType::canonical);
        let Some(target) = target.filter(|_| is_of_file(cursor)) else { return };
        let Some(class) = self.own_class(target).into_iter().next() else { return };
        let has_attribute = cursor.children().iter().any(|child| is_attribute(child.kind()));
        let is_plain = !(ty.is_const() || ty.is_volatile() || target.is_const() || target.is_volatile());
        let reason = match () {
            () if cursor.is_thread_local() => Some("each thread has its own pointer"),
            () if has_attribute => Some("the declaration of a pointer has an attribute"),
            () => (!is_plain).then_some("a pointer is const or volatile"),
        };
        let variable = self.object_variable(cursor, reason);
        let facts = self.splitting.facts.classes.entry(class).or_default();
        match variable {
            Some(variable) => *facts.pointers.entry(variable).or_default() += 1,
            None => drop(facts.moved_pointers.insert(cursor.spelling())),
        }
    }

    /// A use of such a variable that is more than its value, but for one that makes it null or gives it new objects.
    pub(super) fn note_pointer_use(&mut self, cursor: Cursor<'u>) {
        let Some(variable) = pointer_variable(cursor) else { return };
        let above = self.splitting.above.iter().rev().copied();
        let outer = above.clone().find(|one| one.kind() != CXCursor_ParenExpr);
        let is_harmless = outer.is_some_and(|outer| match outer.kind() {
            CXCursor_UnexposedExpr | CXCursor_UnaryExpr | CXCursor_ArraySubscriptExpr => true,
            _ => {
                let value = self.assigned(outer).map(|[_, value]| value);
                value.is_some_and(|value| is_null(value) || self.makes_objects(value))
            }
        });
        if is_harmless {
            return;
        }
        let target = variable.ty().canonical().pointee();
        let classes = target.map(|target| self.own_class(target)).unwrap_or_default();
        for class in classes {
            let facts = self.splitting.facts.classes.entry(class).or_default();
            facts.moved_pointers.insert(variable.spelling());
        }
    }

    fn makes_objects(&mut self, value: Cursor<'u>) -> bool {
        let call = uncast(value);
        let function = (call.kind() == CXCursor_CallExpr).then(|| self.heap_function(call)).flatten();
        function.is_some_and(|function| function != HeapFunction::Free)
    }

    /// The pointer of a file that is set to the present value.
    pub(super) fn set_pointer(&mut self) -> Option<Cursor<'u>> {
        let is_around = |one: &Cursor<'u>| {
            matches!(one.kind(), CXCursor_ParenExpr | CXCursor_UnexposedExpr | CXCursor_CStyleCastExpr)
        };
        let setting = self.splitting.above.iter().rev().copied().find(|one| !is_around(one))?;
        self.assigned(setting).and_then(|[variable, _]| pointer_variable(variable))
    }

    /// Both sides of `variable = value`.
    pub(super) fn assigned(&mut self, expression: Cursor<'u>) -> Option<[Cursor<'u>; 2]> {
        let children = expression.children();
        let [variable, value] = children[..] else { return None };
        let is_it = expression.kind() == CXCursor_BinaryOperator
            && self.operator_text(expression).as_deref() == Some("=");
        is_it.then_some([variable, value])
    }

    /// The beginning of an expression for an object; `None` where it begins with a macro.
    pub(in crate::read) fn object_place(&mut self, object: Cursor<'u>) -> Option<ObjectPlace> {
        let location = object.location();
        let file = self.file(location.file.clone());
        let (line, column) = location.written;
        let site = Site { file, line, column, is_in_macro: false };
        let text = self.texts.line_from(&self.tree, site)?;
        let is_macro = self.macros.body(text).is_some();
        let first = first_part(object);
        let is_written = match first.kind() {
            CXCursor_DeclRefExpr => {
                let name = first.spelling();
                self.is_there(&Location { line, column, ..location }, &name)
            }
            _ => first.kind() == CXCursor_ParenExpr && self.is_written(site, "("),
        };
        let array = array(object).map(Cursor::spelling);
        (is_written && !is_macro).then_some(ObjectPlace { line, column, array })
    }

    /// True of `sizeof a / sizeof a[0]`: the number of elements.
    pub(in crate::read) fn is_count_of_elements(&mut self, size: Cursor<'u>) -> bool {
        let mut above = self.splitting.above.iter().rev();
        let is_around =
            |one: &&Cursor<'u>| !matches!(one.kind(), CXCursor_ParenExpr | CXCursor_UnexposedExpr);
        let Some(quotient) = above.find(is_around).copied() else { return false };
        let children = quotient.children();
        let [left, right] = children[..] else { return false };
        if quotient.kind() != CXCursor_BinaryOperator {
            return false;
        }
        let (whole, part) = (bare(left), bare(right));
        let are_sizes = [whole, part].iter().all(|one| one.kind() == CXCursor_UnaryExpr);
        let own = self.measured(size);
        if !are_sizes || own.is_empty() || self.measured(whole) != own || self.measured(part) != own {
            return false;
        }
        let (ty, site) = (self.type_of(quotient.ty()), self.site(quotient));
        let is_quotient = self.operator(Kind::Binary, ty, site, &children) == Some(Operator::Divide)
            || self.macro_divides(site, quotient, [whole, part]);
        let is_element =
            part.children().first().is_some_and(|one| !is_array_kind(one.ty().canonical().kind()));
        is_quotient && is_element
    }

    /// True when a macro gives the quotient of two sizes.
    fn macro_divides(&mut self, site: Site, quotient: Cursor<'u>, [whole, part]: [Cursor<'u>; 2]) -> bool {
        let body = self.texts.line_from(&self.tree, site).and_then(|text| self.macros.body(text));
        let may_divide = body.is_some_and(|body| body.contains(&b'/') && !body.contains(&b','));
        let of = whole.evaluate().zip(part.evaluate());
        let expected = of.and_then(|(whole, part)| whole.checked_div(part));
        may_divide && expected.is_some() && quotient.evaluate() == expected
    }
}

/// The array of an expression that is `array[…]`, where a variable of a file is the array or points to it.
fn array(object: Cursor<'_>) -> Option<Cursor<'_>> {
    let element = unconverted(object);
    let base =
        element.children().first().copied().filter(|_| element.kind() == CXCursor_ArraySubscriptExpr)?;
    let named = unconverted(base);
    let variable = named.referenced().filter(|_| named.kind() == CXCursor_DeclRefExpr)?;
    let ty = variable.ty().canonical().kind();
    (is_of_file(variable) && (is_array_kind(ty) || ty == CXType_Pointer)).then_some(variable)
}

/// The variable of a file, a pointer, that this expression names.
pub(super) fn pointer_variable(expression: Cursor<'_>) -> Option<Cursor<'_>> {
    let variable = expression.referenced().filter(|_| expression.kind() == CXCursor_DeclRefExpr)?;
    (is_of_file(variable) && variable.ty().canonical().kind() == CXType_Pointer).then_some(variable)
}

fn is_of_file(variable: Cursor<'_>) -> bool {
    variable.kind() == CXCursor_VarDecl && variable.parent().is_some_and(Cursor::is_translation_unit)
}

/// The part of an expression that its text begins with.
fn first_part(mut cursor: Cursor<'_>) -> Cursor<'_> {
    while !matches!(cursor.kind(), CXCursor_DeclRefExpr | CXCursor_ParenExpr) {
        let Some(first) = cursor.children().first().copied() else { break };
        cursor = first;
    }
    cursor
}

/// An expression without conversions that are not written.
fn unconverted(mut cursor: Cursor<'_>) -> Cursor<'_> {
    while cursor.kind() == CXCursor_UnexposedExpr {
        let [inner] = cursor.children()[..] else { break };
        cursor = inner;
    }
    cursor
}

/// The reason why no array of parts can be declared next to this variable.
fn refusal(variable: Cursor<'_>, ty: ClangType<'_>) -> Option<&'static str> {
    if !is_array_kind(ty.kind()) {
        return Some("a variable is an object outside of an array");
    }
    let element = ty.element()?.canonical();
    if !is_of_file(variable) {
        return Some("an array of a function holds objects");
    }
    if variable.is_thread_local() {
        return Some("each thread has its own array");
    }
    let children = variable.children();
    if children.iter().any(|child| is_attribute(child.kind())) {
        return Some("the declaration of an array has an attribute");
    }
    let written = variable.ty().element().unwrap_or(element);
    if [ty, element, written].iter().any(|ty| ty.is_const() || ty.is_volatile()) {
        return Some("an array is const or volatile");
    }
    let is_value = |child: &Cursor<'_>| child.kind() == CXCursor_InitListExpr;
    children.iter().any(is_value).then_some("an array has values in braces")
}
