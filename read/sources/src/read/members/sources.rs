//! Variables, parameters and results of functions whose values are copied into members.

use super::bounds::range_of;
use super::uses::Access;
use crate::libclang::Cursor;
use crate::member_facts::{Bound, Change, WrittenValue};
use crate::read::reader::{self, Reader};
use crate::read::splitting::nodes::{bare, is_attribute};
use clang_sys::*;

/// Stands between a function's name and the number of a parameter; alone it means all parameters.
const PARAMETER: &str = "#";
const RESULT: &str = "()";

/// Functions that find the program's own functions by name, or load code that may call them.
const LOOKUPS: [&str; 4] = ["dlsym", "dlvsym", "dlopen", "dlmopen"];

impl<'u> Reader<'u, '_> {
    /// The name of the source that an expression copies.
    pub(super) fn source(&mut self, expression: Cursor<'u>) -> Option<String> {
        let decl = expression.referenced()?;
        match (expression.kind(), decl.kind()) {
            (CXCursor_MemberRefExpr, CXCursor_FieldDecl) => {
                let is_followed = !decl.is_bit_field() && self.class_of(decl).is_some();
                is_followed.then(|| decl.usr())
            }
            (CXCursor_DeclRefExpr, CXCursor_VarDecl) => Some(decl.usr()),
            (CXCursor_DeclRefExpr, CXCursor_ParmDecl) => parameter(decl),
            // Of `pick()(x)` libclang names `pick`, which is not the function that gives the result.
            (CXCursor_CallExpr, CXCursor_FunctionDecl) => {
                let callee = expression.children().first().copied().map(bare);
                let is_it = callee.is_some_and(|callee| callee.kind() == CXCursor_DeclRefExpr);
                is_it.then(|| decl.usr() + RESULT)
            }
            _ => None,
        }
        .filter(|name| !name.is_empty())
    }

    /// A variable, with its first value.
    pub(super) fn note_source(&mut self, cursor: Cursor<'u>, children: &[Cursor<'u>]) {
        let is_local = cursor.parent().is_some_and(|parent| reader::is_function(parent.kind()));
        let is_seen = cursor.is_static() || is_local && !cursor.is_extern();
        let name = cursor.usr();
        if !is_seen || name.is_empty() || range_of(cursor.ty()).is_none() || cursor.ty().is_volatile() {
            return;
        }
        let is_expression =
            |child: &&Cursor<'u>| (CXCursor_UnexposedExpr..CXCursor_UnexposedStmt).contains(&child.kind());
        if let Some(value) = children.iter().rev().find(is_expression) {
            let bound = self.bound(*value);
            self.note_written(name.clone(), bound, Change::Replaced, *value);
        }
        self.members.followed.insert(name);
    }

    pub(super) fn note_written(&mut self, source: String, bound: Bound, change: Change, at: Cursor<'u>) {
        let site = self.site(at);
        let path = self.tree.files[site.file].clone();
        let written = WrittenValue { bound, change, path, line: site.line };
        self.members.written.entry(source).or_default().insert(written);
    }

    pub(super) fn note_unbounded(&mut self, source: String, at: Cursor<'u>) {
        let site = self.site(at);
        let path = self.tree.files[site.file].clone();
        self.members.unbounded.entry(source).or_insert((path, site.line));
    }

    /// A use of a variable or parameter, or of a function that is not called there.
    pub(super) fn note_source_use(&mut self, cursor: Cursor<'u>) {
        let Some(decl) = cursor.referenced() else { return };
        if decl.kind() == CXCursor_FunctionDecl {
            if !self.is_called(cursor) {
                self.note_unbounded(decl.usr() + PARAMETER, cursor);
            }
            self.members.looks_up |= LOOKUPS.contains(&&*decl.spelling());
            return;
        }
        if range_of(decl.ty()).is_none() {
            return;
        }
        let Some(source) = self.source(cursor) else { return };
        match self.access(cursor) {
            Access::Read { .. } => {}
            access => self.note_access(source, access, cursor),
        }
    }

    /// Notes the value that a write leaves in a source.
    pub(super) fn note_access(&mut self, source: String, access: Access<'u>, at: Cursor<'u>) {
        match access {
            Access::Write { value: Some((value, change)), .. } => {
                let range = range_of(at.ty()).unwrap_or((0, i128::MAX));
                let bound = match change {
                    Change::Masked => Bound::within(range),
                    Change::Replaced | Change::Joined => self.bound(value),
                };
                let widest = bound.widest();
                let fits = range.0 <= widest.0 && widest.1 <= range.1;
                self.note_written(source, if fits { bound } else { Bound::within(range) }, change, at);
            }
            Access::Write { value: None, .. } | Access::Other => self.note_unbounded(source, at),
            Access::Read { .. } => {}
        }
    }

    pub(super) fn note_function(&mut self, function: Cursor<'u>) {
        let name = function.usr();
        if function.is_exported() {
            self.members.exported.insert(name.clone());
        }
        let is_plain = function.ty().canonical().kind() == CXType_FunctionProto
            && function.spelling() != "main"
            && !function.children().iter().any(|child| is_attribute(child.kind()));
        if !is_plain {
            self.note_unbounded(name.clone() + PARAMETER, function);
            self.note_unbounded(name.clone() + RESULT, function);
        }
        if function.is_definition() {
            self.members.followed.insert(name + RESULT);
            self.members.followed.extend(function.arguments().into_iter().filter_map(parameter));
        }
    }

    pub(super) fn note_result(&mut self, children: &[Cursor<'u>]) {
        let above = self.splitting.above.iter().rev();
        let function = above.copied().find(|outer| reader::is_function(outer.kind()));
        let (Some(function), [value]) = (function, children) else { return };
        if range_of(value.ty()).is_some() {
            let bound = self.bound(*value);
            self.note_written(function.usr() + RESULT, bound, Change::Replaced, *value);
        }
    }

    pub(super) fn note_arguments(&mut self, call: Cursor<'u>) {
        let called = call.referenced().filter(|called| called.kind() == CXCursor_FunctionDecl);
        let Some(function) = called else { return };
        let name = function.usr();
        let arguments = call.arguments();
        let parameters = function.ty().canonical().parameters();
        if function.ty().canonical().kind() != CXType_FunctionProto || arguments.len() < parameters.len() {
            return self.note_unbounded(name + PARAMETER, call);
        }
        for (number, (argument, parameter)) in arguments.into_iter().zip(parameters).enumerate() {
            if range_of(parameter).is_some() {
                let bound = self.bound(argument);
                let source = format!("{name}{PARAMETER}{number}");
                self.note_written(source, bound, Change::Replaced, bare(argument));
            }
        }
    }
}

/// The name of a parameter of a function.
fn parameter(decl: Cursor<'_>) -> Option<String> {
    let function = decl.parent().filter(|parent| parent.kind() == CXCursor_FunctionDecl)?;
    let is_it = |one: &Cursor<'_>| one.identity() == decl.identity();
    let number = function.arguments().iter().position(is_it)?;
    let is_followed = range_of(decl.ty()).is_some() && !decl.ty().is_volatile();
    is_followed.then(|| format!("{}{PARAMETER}{number}", function.usr()))
}
