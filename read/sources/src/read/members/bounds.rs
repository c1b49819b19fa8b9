//! The values that an expression of C may have.

use crate::libclang::{Cursor, Type as ClangType};
use crate::member_facts::{Bound, Range, mask_of};
use crate::read::reader::Reader;
use clang_sys::*;

const TRUTH: Range = (0, 1);

/// The range of an integer type; `None` for other types.
pub(super) fn range_of(ty: ClangType<'_>) -> Option<Range> {
    let ty = ty.canonical();
    let is_signed = match ty.kind() {
        CXType_Bool => return Some(TRUTH),
        CXType_Char_U | CXType_UChar | CXType_UShort | CXType_UInt | CXType_ULong | CXType_ULongLong => false,
        CXType_Char_S | CXType_SChar | CXType_Short | CXType_Int | CXType_Long | CXType_LongLong => true,
        CXType_Enum => {
            // A compiler chooses whether it has a sign.
            let bits = 8 * ty.size_bytes().filter(|bytes| *bytes <= 8)?;
            return Some((-(1 << (bits - 1)), (1 << bits) - 1));
        }
        _ => return None,
    };
    let bits = 8 * ty.size_bytes().filter(|bytes| *bytes <= 8)?;
    Some(if is_signed { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) })
}

fn is_within(inner: Range, outer: Range) -> bool {
    outer.0 <= inner.0 && inner.1 <= outer.1
}

impl<'u> Reader<'u, '_> {
    /// The values of an expression, as those of its type.
    pub(super) fn bound(&mut self, expression: Cursor<'u>) -> Bound {
        let Some(range) = range_of(expression.ty()) else { return Bound::within((0, i128::MAX)) };
        let found = self.bound_of(expression, range);
        if is_within(found.widest(), range) { found } else { Bound::within(range) }
    }

    fn bound_of(&mut self, expression: Cursor<'u>, range: Range) -> Bound {
        let children = expression.children();
        match (expression.kind(), &children[..]) {
            (CXCursor_ParenExpr | CXCursor_UnexposedExpr, [inner]) => self.converted(*inner, range),
            (CXCursor_CStyleCastExpr, [.., inner]) => self.converted(*inner, range),
            (CXCursor_ConditionalOperator, [_, yes, no]) => self.bound(*yes).or(self.bound(*no)),
            (CXCursor_BinaryOperator, [left, right]) => self.joined(expression, [*left, *right], range),
            (CXCursor_UnaryOperator, _) => self.changed(expression, range),
            (CXCursor_MemberRefExpr | CXCursor_DeclRefExpr | CXCursor_CallExpr, _) => {
                match self.source(expression) {
                    Some(source) => Bound::copy_of(source, range),
                    None => constant(expression).unwrap_or(Bound::within(range)),
                }
            }
            (CXCursor_IntegerLiteral | CXCursor_CharacterLiteral | CXCursor_UnaryExpr, _) => {
                constant(expression).unwrap_or(Bound::within(range))
            }
            _ => Bound::within(range),
        }
    }

    /// The values of an expression that is converted to a type with this range.
    fn converted(&mut self, inner: Cursor<'u>, range: Range) -> Bound {
        if range_of(inner.ty()).is_none() {
            return Bound::within(range);
        }
        let bound = self.bound(inner);
        if is_within(bound.widest(), range) { bound } else { Bound::within(range) }
    }

    fn changed(&mut self, expression: Cursor<'u>, range: Range) -> Bound {
        if let Some(known) = constant(expression) {
            return known;
        }
        let site = self.site(expression);
        if self.is_written(site, "!") { Bound::within(TRUTH) } else { Bound::within(range) }
    }

    /// The values of two operands and the operator between them.
    fn joined(&mut self, expression: Cursor<'u>, [left, right]: [Cursor<'u>; 2], range: Range) -> Bound {
        if let Some(known) = constant(expression) {
            return known;
        }
        let Some(operator) = self.operator_text(expression) else { return Bound::within(range) };
        match &*operator {
            "=" | "," => return self.converted(right, range),
            "==" | "!=" | "<" | ">" | "<=" | ">=" | "&&" | "||" => return Bound::within(TRUTH),
            _ => {}
        }
        let (one, other) = (self.bound(left).widest(), self.bound(right).widest());
        let all = |of: fn(i128, i128) -> Option<i128>| -> Option<Range> {
            let ends = [(one.0, other.0), (one.0, other.1), (one.1, other.0), (one.1, other.1)];
            let ends: Option<Vec<i128>> = ends.into_iter().map(|(a, b)| of(a, b)).collect();
            let ends = ends?;
            Some((ends.iter().copied().min()?, ends.iter().copied().max()?))
        };
        let are_natural = one.0 >= 0 && other.0 >= 0;
        let found = match &*operator {
            "+" => all(i128::checked_add),
            "-" => all(i128::checked_sub),
            "*" => all(i128::checked_mul),
            "&" if one.0 >= 0 && other.0 >= 0 => Some((0, one.1.min(other.1))),
            "&" if one.0 >= 0 => Some((0, one.1)),
            "&" if other.0 >= 0 => Some((0, other.1)),
            "|" | "^" if are_natural => Some((0, mask_of(one.1.max(other.1)))),
            "%" if other.0 > 0 => {
                let most = other.1 - 1;
                Some((if one.0 < 0 { -most } else { 0 }, most))
            }
            "/" if other.0 > 0 => all(i128::checked_div),
            ">>" if are_natural && other.1 < 64 => Some((one.0 >> other.1, one.1 >> other.0)),
            "<<" if are_natural && other.1 < 64 => Some((one.0 << other.0, one.1 << other.1)),
            _ => None,
        };
        Bound::within(found.filter(|found| is_within(*found, range)).unwrap_or(range))
    }
}

/// The value of a constant expression.
fn constant(expression: Cursor<'_>) -> Option<Bound> {
    let is_constant = match expression.kind() {
        CXCursor_DeclRefExpr => {
            expression.referenced().is_some_and(|decl| decl.kind() == CXCursor_EnumConstantDecl)
        }
        CXCursor_UnaryExpr => true,
        CXCursor_CallExpr | CXCursor_MemberRefExpr => false,
        _ => names_constants(expression),
    };
    let value = i128::from(expression.evaluate().filter(|_| is_constant)?);
    // Numbers above the greatest with a sign show as negative ones.
    let is_natural = range_of(expression.ty()).is_some_and(|range| range.0 == 0);
    (value >= 0 || !is_natural).then(|| Bound::within((value, value)))
}

/// True when every name in an expression is that of an enumerator, and nothing is called.
fn names_constants(expression: Cursor<'_>) -> bool {
    expression.children().into_iter().all(|child| match child.kind() {
        CXCursor_DeclRefExpr => {
            child.referenced().is_some_and(|decl| decl.kind() == CXCursor_EnumConstantDecl)
        }
        CXCursor_CallExpr | CXCursor_MemberRefExpr | CXCursor_StmtExpr => false,
        CXCursor_UnaryExpr => true,
        _ => names_constants(child),
    })
}
