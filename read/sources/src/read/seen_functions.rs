//! Functions of headers that were read with another unit.

use crate::libclang::Cursor;
use clang_sys::*;
use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

/// Functions of headers whose bodies were read: a kernel's are thousands, the same in every unit.
#[derive(Default, Debug)]
pub(crate) struct SeenFunctions(Mutex<HashSet<(String, u32, u32, String)>>);

impl SeenFunctions {
    /// True for the definition of a header's function that was asked for before.
    pub(super) fn has(&self, cursor: Cursor<'_>) -> bool {
        if cursor.kind() != CXCursor_FunctionDecl || !cursor.is_definition() {
            return false;
        }
        let at = cursor.location();
        if !at.file.ends_with(".h") {
            return false;
        }
        let place = (at.file, at.line, at.column, cursor.spelling());
        !self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(place)
    }
}
