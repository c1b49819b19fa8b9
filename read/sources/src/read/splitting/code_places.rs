//! The places that name functions, and how often their code runs.

use super::nodes::{bare, is_function};
use crate::libclang::Cursor;
use crate::read::reader::Reader;
use crate::runs::CodePlace;
use clang_sys::*;

/// Functions that jump to where other functions are.
const JUMPS: [&str; 10] = [
    "setjmp",
    "_setjmp",
    "__sigsetjmp",
    "sigsetjmp",
    "longjmp",
    "_longjmp",
    "siglongjmp",
    "setcontext",
    "swapcontext",
    "makecontext",
];

impl<'u> Reader<'u, '_> {
    /// Notes what a node says. The nodes around it are known.
    pub(super) fn note_code_place(&mut self, cursor: Cursor<'u>) {
        match cursor.kind() {
            CXCursor_DeclRefExpr => {
                let function = cursor.referenced().filter(|named| named.kind() == CXCursor_FunctionDecl);
                let Some(function) = function else { return };
                let runs = &mut self.splitting.facts.runs;
                runs.has_long_jumps |= JUMPS.contains(&&*function.spelling());
                if self.is_foreign(function) {
                    return;
                }
                let mut place = self.code_place(cursor);
                place.is_repeated |= !self.is_called(cursor);
                self.splitting.facts.runs.named.entry(function.usr()).or_default().insert(place);
            }
            CXCursor_LabelRef => {
                let place = |one: Cursor<'u>| {
                    let at = one.location();
                    (at.line, at.column)
                };
                let is_forward = cursor.referenced().is_some_and(|label| place(label) > place(cursor));
                if !is_forward {
                    self.note_uncertain();
                }
            }
            CXCursor_IndirectGotoStmt => self.note_uncertain(),
            CXCursor_FunctionDecl if cursor.written().contains("constructor") => {
                self.splitting.facts.runs.uncertain.insert(cursor.usr());
            }
            _ => {}
        }
    }

    fn note_uncertain(&mut self) {
        let function = self.function_around().map(Cursor::usr);
        self.splitting.facts.runs.uncertain.extend(function);
    }

    fn function_around(&self) -> Option<Cursor<'u>> {
        self.splitting.above.iter().rev().find(|above| is_function(above.kind())).copied()
    }

    /// The place of a node, and whether a loop is around it.
    pub(super) fn code_place(&mut self, cursor: Cursor<'u>) -> CodePlace {
        let site = self.site(cursor);
        let above = self.splitting.above.iter().rev().take_while(|above| !is_function(above.kind()));
        let is_loop = |above: &Cursor<'u>| {
            matches!(above.kind(), CXCursor_ForStmt | CXCursor_WhileStmt | CXCursor_DoStmt)
        };
        let is_repeated = above.copied().any(|above| is_loop(&above));
        let function = self.function_around().map(Cursor::usr);
        CodePlace {
            function,
            at: (self.tree.files[site.file].to_string(), site.line, site.column),
            is_repeated,
        }
    }

    /// True of the name of the function in a call.
    pub(in crate::read) fn is_called(&self, name: Cursor<'u>) -> bool {
        let above = self.splitting.above.iter().rev();
        let call = above.copied().find(|above| above.kind() != CXCursor_UnexposedExpr);
        call.filter(|call| call.kind() == CXCursor_CallExpr).is_some_and(|call| {
            let called = call.children().first().copied();
            called.is_some_and(|called| bare(called).expression_identity() == name.expression_identity())
        })
    }
}
