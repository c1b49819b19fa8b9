//! The declarations that names refer to.

use super::reader::Reader;
use crate::libclang::{Cursor, Type};
use crate::tree::{Decl, DeclId, DeclKind, FunctionType, Name, OUTLIVES, TypeId};
use clang_sys::*;

impl<'u> Reader<'u, '_> {
    pub(super) fn decl(&mut self, cursor: Cursor<'u>) -> DeclId {
        if let Some(&known) = self.decls.get(&cursor.identity()) {
            return known;
        }
        let ty = self.type_of(cursor.ty());
        let kind = self.decl_kind(cursor);
        // A template in a class that is an instance was made from that in the class's template.
        let templates = std::iter::successors(cursor.template(), |template| template.template());
        let template = templates.last().map(|template| template.usr().into());
        let class = match cursor.kind() {
            CXCursor_CXXMethod => cursor.parent().map(|class| self.record(class)),
            _ => None,
        };
        let is_function = kind == DeclKind::Function;
        let takes: Vec<TypeId> = match is_function {
            true => cursor.arguments().into_iter().map(|argument| self.type_of(argument.ty())).collect(),
            false => Vec::new(),
        };
        let gives = cursor.result().filter(|_| is_function).map(|result| self.type_of(result));
        let kind_is_variable = kind == DeclKind::Variable;
        let is_virtual = cursor.is_virtual();
        let mut overrides = Vec::new();
        let mut work = if is_virtual { cursor.overridden() } else { Vec::new() };
        while let Some(base) = work.pop() {
            if !self.is_foreign(base) {
                overrides.push(base.usr().into());
            }
            work.extend(base.overridden());
        }
        let section = self.section(cursor).filter(|_| kind_is_variable);
        let is_exported = kind == DeclKind::Function && cursor.is_exported();
        let outlives = kind == DeclKind::Variable && cursor.is_static();
        let usr = self.usr_of(cursor) + if outlives { OUTLIVES } else { "" };
        let usr: Name = usr.into();
        let name = cursor.spelling().into();
        let id = self.tree.decls.len();
        self.tree.decls.push(Decl {
            usr,
            name,
            kind,
            parameters: takes.len(),
            signature: FunctionType { takes, gives },
            is_exported,
            is_virtual,
            overrides,
            ty,
            template,
            class,
            linked_as: linked_as(cursor).filter(|_| is_function),
            section,
            is_elsewhere: kind_is_variable && cursor.is_extern(),
        });
        self.decls.insert(cursor.identity(), id);
        id
    }

    /// The parameters and results of functions of a type.
    pub(super) fn note_function_type(&mut self, id: TypeId, ty: Type<'u>) {
        let takes = ty.parameters().into_iter().map(|parameter| self.type_of(parameter)).collect();
        let gives = ty.result().map(|result| self.type_of(result));
        self.tree.function_types.insert(id, FunctionType { takes, gives });
    }

    fn decl_kind(&mut self, cursor: Cursor<'u>) -> DeclKind {
        match cursor.kind() {
            CXCursor_FunctionDecl | CXCursor_CXXMethod | CXCursor_ConversionFunction => DeclKind::Function,
            CXCursor_Constructor | CXCursor_Destructor => DeclKind::Special,
            CXCursor_FunctionTemplate => DeclKind::Template,
            CXCursor_VarDecl | CXCursor_NonTypeTemplateParameter => DeclKind::Variable,
            CXCursor_ParmDecl => {
                let Some(function) = cursor.parent() else { return DeclKind::Variable };
                let same = |argument: &Cursor<'u>| argument.identity() == cursor.identity();
                let mut arguments = function.arguments();
                // For a template libclang lists none.
                if function.kind() == CXCursor_FunctionTemplate {
                    arguments = function.children();
                    arguments.retain(|child| child.kind() == CXCursor_ParmDecl);
                }
                match arguments.iter().position(same) {
                    Some(index) => DeclKind::Parameter(function.usr().into(), index),
                    None => DeclKind::Variable,
                }
            }
            CXCursor_EnumConstantDecl => DeclKind::Enumerator,
            CXCursor_FieldDecl => match cursor.parent() {
                Some(record) => DeclKind::Field(self.record(record)),
                None => DeclKind::Other,
            },
            _ => DeclKind::Other,
        }
    }

    /// `__attribute__((section("table")))` of a variable outside functions. A kernel's sections are its linker
    /// script's.
    fn section(&self, cursor: Cursor<'u>) -> Option<Name> {
        let is_attribute = |child: &Cursor<'u>| child.kind() == CXCursor_UnexposedAttr;
        let is_global = cursor.kind() == CXCursor_VarDecl
            && self.known.is_none()
            && cursor.parent().is_some_and(Cursor::is_translation_unit);
        if !is_global || !cursor.children().iter().any(is_attribute) {
            return None;
        }
        let written = cursor.written();
        let (_, rest) = written.split_once("section(\"")?;
        rest.split_once('"').map(|(name, _)| name.into())
    }

    /// libclang's name of a declaration. A macro's declarations inside functions have one name for all uses of the
    /// macro: there the place distinguishes them, and among the arguments of one macro the order in which they are met.
    fn usr_of(&mut self, cursor: Cursor<'u>) -> String {
        let function = cursor.parent().filter(|parent| {
            cursor.kind() == CXCursor_VarDecl
                && !cursor.is_extern()
                && matches!(parent.kind(), CXCursor_FunctionDecl | CXCursor_CXXMethod)
        });
        let Some(function) = function else { return cursor.usr() };
        let place = cursor.location();
        let usr = format!("{}@F@{}@{}:{}", function.usr(), cursor.usr(), place.line, place.column);
        let met = self.met.entry(usr.clone()).or_default();
        *met += 1;
        match *met {
            1 => usr,
            again => format!("{usr}#{again}"),
        }
    }
}

/// `int look(struct t *) __asm__("other")`, `__attribute__((alias("other")))`.
fn linked_as(cursor: Cursor<'_>) -> Option<Name> {
    let children = cursor.children();
    let label = children.iter().find(|child| child.kind() == CXCursor_AsmLabelAttr);
    if let Some(label) = label {
        return Some(label.spelling().into());
    }
    if !children.iter().any(|child| child.kind() == CXCursor_UnexposedAttr) {
        return None;
    }
    let written = cursor.written();
    let (_, rest) = written.split_once("alias(\"").or_else(|| written.split_once("alias__(\""))?;
    rest.split_once('"').map(|(name, _)| name.into())
}
