//! The surroundings of an expression: whether the type of a value matters there, and whether a write is a statement of
//! its own.

use crate::libclang::Cursor;
use crate::read::reader::Reader;
use crate::read::splitting::nodes::{is_number, is_pointer};
use clang_sys::*;
use lineup_model::object_uses::WriteStatement;

/// A type that a compiler works out from a value: `__auto_type`.
const AUTO: CXTypeKind = CXType_Auto;

/// The part that the type of a value plays where it stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TypeRole {
    /// None: the value is converted to another type, or only compared with zero.
    None,
    /// It decides the type of the expression around.
    Operand,
    /// The program asks for it.
    Asked,
}

impl<'u> Reader<'u, '_> {
    /// The operator between the two operands of a node, as the file has it.
    pub(in crate::read) fn operator_text(&mut self, node: Cursor<'u>) -> Option<String> {
        let [left, right] = node.children()[..] else { return None };
        let ([_, end], [start, _]) = (left.extent(), right.extent());
        let site = self.site(node);
        let text = self.texts.between(&self.tree, site.file, end, start)?;
        Some(String::from_utf8(text).ok()?.trim().to_owned())
    }

    /// The role of the type of a node, which is this number of nodes around the present one.
    pub(super) fn type_role(&mut self, node: usize) -> TypeRole {
        let mut at = node;
        let mut inner = self.splitting.above[node];
        let outer = loop {
            let Some(next) = at.checked_sub(1) else { return TypeRole::None };
            at = next;
            let outer = self.splitting.above[at];
            // An enumeration is promoted to the integer that it is.
            let is_promotion = outer.kind() == CXCursor_UnexposedExpr
                && inner.ty().canonical().kind() == CXType_Enum
                && inner.ty().canonical().size_bytes() == outer.ty().canonical().size_bytes();
            if outer.kind() != CXCursor_ParenExpr && !is_promotion {
                break outer;
            }
            inner = outer;
        };
        let children = outer.children();
        let place =
            children.iter().position(|child| child.expression_identity() == inner.expression_identity());
        let role = |matters: bool| if matters { TypeRole::Operand } else { TypeRole::None };
        match outer.kind() {
            CXCursor_UnexposedExpr => {
                let is_designated = children.iter().any(|child| child.kind() == CXCursor_MemberRef);
                role(!is_designated && (children.len() != 1 || !is_number(outer.ty())))
            }
            CXCursor_CStyleCastExpr => role(!is_number(outer.ty())),
            CXCursor_VarDecl if outer.ty().kind() == AUTO => TypeRole::Asked,
            CXCursor_VarDecl
            | CXCursor_ReturnStmt
            | CXCursor_IfStmt
            | CXCursor_WhileStmt
            | CXCursor_DoStmt
            | CXCursor_ForStmt
            | CXCursor_SwitchStmt
            | CXCursor_CaseStmt
            | CXCursor_DefaultStmt
            | CXCursor_LabelStmt
            | CXCursor_ArraySubscriptExpr
            | CXCursor_InitListExpr => TypeRole::None,
            CXCursor_CompoundStmt if self.is_value_of_block(at) => TypeRole::Asked,
            CXCursor_CompoundStmt => TypeRole::None,
            CXCursor_GenericSelectionExpr | CXCursor_AsmStmt | CXCursor_UnaryExpr => TypeRole::Asked,
            CXCursor_UnaryOperator => {
                let site = self.site(outer);
                role(!self.is_written(site, "!"))
            }
            CXCursor_ConditionalOperator => role(place != Some(0)),
            CXCursor_BinaryOperator | CXCursor_CompoundAssignOperator => {
                let is_shift_count =
                    |operator: &str| operator.starts_with("<<") || operator.starts_with(">>");
                match self.operator_text(outer).as_deref() {
                    Some("=" | "&&" | "||") => TypeRole::None,
                    Some(",") => TypeRole::Asked,
                    Some(operator) if place == Some(1) && is_shift_count(operator) => TypeRole::None,
                    _ => role(!is_pointer(outer.ty())),
                }
            }
            CXCursor_CallExpr => {
                let parameters = callee_type(outer).map_or(0, |ty| ty.parameters().len());
                let is_it =
                    |argument: &Cursor<'u>| argument.expression_identity() == inner.expression_identity();
                let argument = outer.arguments().iter().position(is_it);
                role(argument.is_none_or(|argument| argument >= parameters))
            }
            _ => TypeRole::Operand,
        }
    }

    /// True of the braces of `({ … })`, whose last statement gives a value.
    fn is_value_of_block(&self, block: usize) -> bool {
        let outer = block.checked_sub(1).map(|at| self.splitting.above[at].kind());
        outer == Some(CXCursor_StmtExpr)
    }

    /// The statement that a node is, where it may be removed.
    pub(super) fn statement(&mut self, node: usize, has_effects: bool) -> Option<WriteStatement> {
        let write = self.splitting.above[node];
        let at = node.checked_sub(1)?;
        let outer = self.splitting.above[at];
        let children = outer.children();
        let is_at = |child: Option<&Cursor<'u>>| {
            child.is_some_and(|child| child.expression_identity() == write.expression_identity())
        };
        let is_body = match outer.kind() {
            CXCursor_CompoundStmt => !self.is_value_of_block(at),
            CXCursor_IfStmt => !is_at(children.first()),
            CXCursor_ForStmt | CXCursor_WhileStmt | CXCursor_CaseStmt | CXCursor_DefaultStmt
            | CXCursor_LabelStmt => is_at(children.last()),
            _ => false,
        };
        let start = write.location();
        let is_in_block = outer.kind() == CXCursor_CompoundStmt;
        (is_body && !start.is_in_macro).then_some(WriteStatement {
            line: start.line,
            column: start.column,
            has_effects,
            is_in_block,
        })
    }

    /// True of an expression that may do more than give a value.
    pub(super) fn has_effects(&mut self, expression: Cursor<'u>) -> bool {
        let children = expression.children();
        let own = match expression.kind() {
            CXCursor_CallExpr | CXCursor_CompoundAssignOperator | CXCursor_StmtExpr => true,
            // libclang has no kind for `va_arg` and atomic operations. A conversion has one operand.
            CXCursor_UnexposedExpr => match children[..] {
                [inner] => inner.ty().canonical().spelling().contains("__va_list"),
                _ => !children.is_empty(),
            },
            CXCursor_BinaryOperator => {
                !is_number(expression.ty()) && !is_pointer(expression.ty())
                    || self.operator_text(expression).is_none_or(|operator| operator == "=")
            }
            CXCursor_UnaryOperator => {
                // `++x` names a place; `-x` reads it first, below a conversion.
                let is_place = |child: &&Cursor<'u>| {
                    matches!(
                        child.kind(),
                        CXCursor_DeclRefExpr
                            | CXCursor_MemberRefExpr
                            | CXCursor_ArraySubscriptExpr
                            | CXCursor_UnaryOperator
                            | CXCursor_ParenExpr
                    )
                };
                let inner = children.first().filter(is_place);
                inner.is_some_and(|inner| {
                    let ty = inner.ty().canonical();
                    ty.is_atomic() || ty.identity() == expression.ty().canonical().identity()
                }) || expression.ty().canonical().is_volatile()
            }
            CXCursor_DeclRefExpr | CXCursor_MemberRefExpr | CXCursor_ArraySubscriptExpr => {
                expression.ty().canonical().is_volatile()
            }
            _ => false,
        };
        own || children.into_iter().any(|child| self.has_effects(child))
    }
}

/// The type of the function that is called.
fn callee_type(call: Cursor<'_>) -> Option<crate::libclang::Type<'_>> {
    let callee = call.children().first()?.ty().canonical();
    Some(callee.pointee().map_or(callee, |to| to.canonical()))
}
