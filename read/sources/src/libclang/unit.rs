//! Translation units: parsing, and the errors of it.

use super::library::text;
use clang_sys::*;
use std::ffi::{CString, c_char, c_int, c_uint};
use std::ptr;

/// One parsed translation unit, with the index that owns it.
#[derive(Debug)]
pub(crate) struct Unit {
    index: CXIndex,
    pub(super) unit: CXTranslationUnit,
}

impl Drop for Unit {
    fn drop(&mut self) {
        // SAFETY: both came from libclang, are not null, and nothing that borrows them lives any more.
        unsafe {
            clang_disposeTranslationUnit(self.unit);
            clang_disposeIndex(self.index);
        }
    }
}

/// Errors of libclang on code that other compilers accept. They remove from the tree only a call whose effect is known,
/// or the name of the function that frees another one's result.
const TOLERATED: [&str; 3] = [
    "address argument to atomic operation must be a pointer",
    "'malloc' attribute takes no arguments",
    "'__malloc__' attribute takes no arguments",
];

impl Unit {
    /// Parses with the arguments of a compiler call, the source file among them.
    pub(crate) fn parse(arguments: &[String]) -> Result<Unit, String> {
        let arguments: Vec<CString> =
            arguments.iter().filter_map(|argument| CString::new(argument.as_str()).ok()).collect();
        let pointers: Vec<*const c_char> = arguments.iter().map(|argument| argument.as_ptr()).collect();
        let count = c_int::try_from(pointers.len()).map_err(|_| "too many arguments".to_string())?;
        // SAFETY: takes two flags and gives a new index or null.
        let index = unsafe { clang_createIndex(0, 0) };
        let mut unit = ptr::null_mut();
        // SAFETY: `index` is live; `pointers` holds `count` strings that end in zero and outlive the call; no unsaved
        // files are given; `unit` is written before the call returns.
        let failed = unsafe {
            clang_parseTranslationUnit2(
                index,
                ptr::null(),
                pointers.as_ptr(),
                count,
                ptr::null_mut(),
                0,
                CXTranslationUnit_KeepGoing,
                &mut unit,
            )
        };
        if failed != 0 || unit.is_null() {
            // SAFETY: the index is live and nothing was made from it.
            unsafe { clang_disposeIndex(index) };
            // libclang recovers from its own crashes, on a thread that it then gives up.
            return Err(match failed {
                CXError_Crashed => "clang crashed: conservative rules".to_owned(),
                code => format!("libclang gave up on it (code {code})"),
            });
        }
        Ok(Unit { index, unit })
    }

    /// The first error of the parse that may hide something.
    pub(crate) fn first_error(&self) -> Option<String> {
        // SAFETY: the unit is live, indices are below the count, and each diagnostic is disposed of once.
        unsafe {
            for at in 0..clang_getNumDiagnostics(self.unit) {
                let diagnostic = clang_getDiagnostic(self.unit, at);
                let severity = clang_getDiagnosticSeverity(diagnostic);
                let words = text(clang_formatDiagnostic(diagnostic, CXDiagnostic_DisplaySourceLocation));
                clang_disposeDiagnostic(diagnostic);
                if severity >= CXDiagnostic_Error && !TOLERATED.iter().any(|known| words.contains(known)) {
                    return Some(words);
                }
            }
        }
        None
    }

    /// The names of the files that it was read from.
    pub(crate) fn files(&self) -> Vec<String> {
        extern "C" fn visit(
            file: CXFile,
            _stack: *mut CXSourceLocation,
            _depth: c_uint,
            found: CXClientData,
        ) {
            // SAFETY: `found` is the vector below, which outlives the call and is used by nothing else meanwhile; the
            // file is one of the live unit.
            unsafe { (*found.cast::<Vec<String>>()).push(text(clang_getFileName(file))) };
        }
        let mut found: Vec<String> = Vec::new();
        // SAFETY: the unit is live, and `visit` is called only before this returns.
        unsafe { clang_getInclusions(self.unit, visit, ptr::from_mut(&mut found).cast()) };
        found
    }
}
