//! Functions that the compiler calls where a variable's scope ends.

use crate::libclang::Cursor;
use crate::tree::Name;
use clang_sys::*;

/// The function in a variable's `__attribute__((cleanup(f)))`.
pub(super) fn cleanup(variable: Cursor<'_>, children: &[Cursor<'_>]) -> Option<Name> {
    if !children.iter().any(|child| child.kind() == CXCursor_UnexposedAttr) {
        return None;
    }
    let written = variable.written();
    let (_, rest) = written.split_once("cleanup(")?;
    let (function, _) = rest.split_once(')')?;
    function.rsplit("::").next().map(Name::from)
}
