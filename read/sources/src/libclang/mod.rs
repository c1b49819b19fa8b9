//! The C library libclang, loaded at run time: the one place with unsafe code.
//!
//! Every function here takes values that libclang itself gave for a unit that is still alive, which the lifetime `'u`
//! guarantees; that is all that libclang asks of its callers. Names of kinds are libclang's.

mod types;

pub(crate) use types::Type;

use crate::error::Error;
use crate::headers::missing_package;
use clang_sys::*;
use std::ffi::{CStr, CString, c_char, c_int, c_uint};
use std::marker::PhantomData;
use std::ptr;
use std::sync::Arc;

/// The loaded library, to be made current in every thread that uses it.
#[derive(Clone, Debug)]
pub(crate) struct Library(Arc<SharedLibrary>);

impl Library {
    /// Finds and loads libclang: `LIBCLANG_PATH`, then where distributions put it.
    pub(crate) fn load() -> Result<Self, Error> {
        if let Some(library) = get_library() {
            return Ok(Library(library));
        }
        load().map_err(|why| Error::NoLibclang(why.lines().next().unwrap_or("").to_string()))?;
        get_library().map(Library).ok_or_else(|| Error::NoLibclang("it was unloaded".into()))
    }

    /// Makes it the library of this thread.
    pub(crate) fn make_current(&self) {
        set_library(Some(Arc::clone(&self.0)));
    }

    /// The file it was loaded from.
    pub(crate) fn path(&self) -> &std::path::Path {
        self.0.path()
    }

    /// Its version text, such as `Debian clang version 14.0.6`.
    pub(crate) fn version(&self) -> String {
        self.make_current();
        // SAFETY: takes nothing; the string it gives is owned by the caller.
        text(unsafe { clang_getClangVersion() })
    }
}

/// The libclang that is installed.
#[derive(Clone, Debug)]
pub struct Libclang {
    /// Its version text, such as `Debian clang version 14.0.6`.
    pub version: String,
    /// The library.
    pub file: std::path::PathBuf,
    /// Debian's package with its own headers, when they are missing.
    pub missing_headers: Option<String>,
}

/// Finds the libclang that sources are read with.
///
/// # Errors
/// When libclang is not installed.
pub fn installed_libclang() -> Result<Libclang, Error> {
    let library = Library::load()?;
    Ok(Libclang {
        version: library.version(),
        file: library.path().to_owned(),
        missing_headers: missing_package(&library),
    })
}

/// Takes a string over from libclang.
fn text(string: CXString) -> String {
    // SAFETY: `string` was given by libclang and is disposed of once, below; its text is null or ends in a zero byte.
    unsafe {
        let chars = clang_getCString(string);
        let owned = match chars.is_null() {
            true => String::new(),
            false => CStr::from_ptr(chars).to_string_lossy().into_owned(),
        };
        clang_disposeString(string);
        owned
    }
}

/// One parsed translation unit, with the index that owns it.
#[derive(Debug)]
pub(crate) struct Unit {
    index: CXIndex,
    unit: CXTranslationUnit,
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

    /// The root of the syntax tree.
    pub(crate) fn root(&self) -> Cursor<'_> {
        // SAFETY: the unit is live.
        Cursor { raw: unsafe { clang_getTranslationUnitCursor(self.unit) }, unit: PhantomData }
    }
}

/// A node of the syntax tree.
#[derive(Clone, Copy)]
pub(crate) struct Cursor<'u> {
    raw: CXCursor,
    unit: PhantomData<&'u Unit>,
}

/// The position of a node in the source.
pub(crate) struct Location {
    /// The file, as libclang names it; empty for a node without a file.
    pub(crate) file: String,
    /// Line, from 1.
    pub(crate) line: u32,
    /// Column, from 1, in bytes.
    pub(crate) column: u32,
    /// True when it is an argument of a macro. libclang does not report nodes from a macro's body: see `read`.
    pub(crate) is_in_macro: bool,
    /// Line and column in which an argument of a macro is written; the same as above for others.
    pub(crate) written: (u32, u32),
}

impl<'u> Cursor<'u> {
    fn with(self, raw: CXCursor) -> Option<Cursor<'u>> {
        // SAFETY: takes any cursor.
        let is_null = unsafe { clang_Cursor_isNull(raw) } != 0;
        let cursor = Cursor { raw, unit: PhantomData };
        (!is_null && !(CXCursor_InvalidFile..=CXCursor_InvalidCode).contains(&raw.kind)).then_some(cursor)
    }

    pub(crate) fn is_thread_local(self) -> bool {
        // SAFETY: the cursor is of a live unit.
        unsafe { clang_getCursorTLSKind(self.raw) != CXTLS_None }
    }

    pub(crate) fn is_bit_field(self) -> bool {
        // SAFETY: the cursor is of a live unit.
        unsafe { clang_Cursor_isBitField(self.raw) != 0 }
    }

    pub(crate) fn is_mutable(self) -> bool {
        // SAFETY: the cursor is of a live unit.
        unsafe { clang_CXXField_isMutable(self.raw) != 0 }
    }

    /// True for a constructor that copies or moves.
    pub(crate) fn is_copying_constructor(self) -> bool {
        // SAFETY: the cursor is of a live unit.
        unsafe {
            clang_CXXConstructor_isCopyConstructor(self.raw) != 0
                || clang_CXXConstructor_isMoveConstructor(self.raw) != 0
        }
    }

    /// libclang's kind of node.
    pub(crate) fn kind(self) -> CXCursorKind {
        self.raw.kind
    }

    /// The address of the declaration inside libclang: equal for equal declarations of one unit.
    pub(crate) fn identity(self) -> usize {
        self.raw.data[0].addr()
    }

    /// The address of the expression inside libclang.
    pub(crate) fn expression_identity(self) -> usize {
        self.raw.data[1].addr()
    }

    /// True for code that the compiler generates because of `= default`.
    pub(crate) fn is_defaulted(self) -> bool {
        // SAFETY: the cursor is of a live unit.
        unsafe { clang_CXXMethod_isDefaulted(self.raw) != 0 }
    }

    /// True for a declaration that only the class itself, or a derived class, may name.
    pub(crate) fn is_hidden(self) -> bool {
        // SAFETY: the cursor is of a live unit.
        let access = unsafe { clang_getCXXAccessSpecifier(self.raw) };
        access == CX_CXXPrivate || access == CX_CXXProtected
    }

    pub(crate) fn is_virtual(self) -> bool {
        // SAFETY: the cursor is of a live unit.
        unsafe { clang_CXXMethod_isVirtual(self.raw) != 0 }
    }

    /// The methods of base classes that a method takes the place of.
    pub(crate) fn overridden(self) -> Vec<Cursor<'u>> {
        let (mut first, mut count) = (ptr::null_mut(), 0);
        // SAFETY: the cursor is of a live unit; both are written before the call returns, and `first` points to `count`
        // cursors until it is disposed of, once.
        unsafe {
            clang_getOverriddenCursors(self.raw, &mut first, &mut count);
            if first.is_null() {
                return Vec::new();
            }
            let found = std::slice::from_raw_parts(first, count as usize);
            let found = found.iter().filter_map(|&raw| self.with(raw)).collect();
            clang_disposeOverriddenCursors(first);
            found
        }
    }

    pub(crate) fn children(self) -> Vec<Cursor<'u>> {
        extern "C" fn visit(cursor: CXCursor, _: CXCursor, data: CXClientData) -> CXChildVisitResult {
            // SAFETY: `data` is the vector given below, which no other code uses during the call.
            unsafe { &mut *data.cast::<Vec<CXCursor>>() }.push(cursor);
            CXChildVisit_Continue
        }
        let mut found: Vec<CXCursor> = Vec::new();
        // SAFETY: the cursor is of a live unit, and `found` outlives the call, which runs `visit` only before it
        // returns.
        unsafe { clang_visitChildren(self.raw, visit, ptr::from_mut(&mut found).cast()) };
        found.into_iter().map(|raw| Cursor { raw, unit: PhantomData }).collect()
    }

    pub(crate) fn ty(self) -> Type<'u> {
        // SAFETY: the cursor is of a live unit.
        Type { raw: unsafe { clang_getCursorType(self.raw) }, unit: PhantomData }
    }

    /// The result type of a function.
    pub(crate) fn result(self) -> Option<Type<'u>> {
        // SAFETY: the cursor is of a live unit.
        let raw = unsafe { clang_getCursorResultType(self.raw) };
        Type { raw, unit: PhantomData }.with(raw)
    }

    pub(crate) fn referenced(self) -> Option<Cursor<'u>> {
        // SAFETY: the cursor is of a live unit.
        self.with(unsafe { clang_getCursorReferenced(self.raw) })
    }

    pub(crate) fn definition(self) -> Option<Cursor<'u>> {
        // SAFETY: the cursor is of a live unit.
        self.with(unsafe { clang_getCursorDefinition(self.raw) })
    }

    pub(crate) fn parent(self) -> Option<Cursor<'u>> {
        // SAFETY: the cursor is of a live unit.
        self.with(unsafe { clang_getCursorSemanticParent(self.raw) })
    }

    /// The template that this was instantiated from.
    pub(crate) fn template(self) -> Option<Cursor<'u>> {
        // SAFETY: the cursor is of a live unit.
        self.with(unsafe { clang_getSpecializedCursorTemplate(self.raw) })
    }

    pub(crate) fn is_definition(self) -> bool {
        // SAFETY: the cursor is of a live unit.
        unsafe { clang_isCursorDefinition(self.raw) != 0 }
    }

    /// True for functions and variables that the linker shows to other objects, unless they are hidden.
    pub(crate) fn is_exported(self) -> bool {
        // SAFETY: the cursor is of a live unit.
        unsafe {
            let linkage = clang_getCursorLinkage(self.raw);
            let is_default = clang_getCursorVisibility(self.raw) == CXVisibility_Default;
            linkage == CXLinkage_External && is_default
        }
    }

    /// True for variables that outlive the function they stand in.
    pub(crate) fn is_static(self) -> bool {
        // SAFETY: the cursor is of a live unit.
        unsafe { clang_Cursor_getStorageClass(self.raw) == CX_SC_Static }
    }

    /// True for a variable that another declaration defines: `extern`, without a value.
    pub(crate) fn is_extern(self) -> bool {
        // SAFETY: the cursor is of a live unit.
        let is_extern = unsafe { clang_Cursor_getStorageClass(self.raw) == CX_SC_Extern };
        is_extern && !self.is_definition()
    }

    /// The name that is the same in every unit that means the same thing.
    pub(crate) fn usr(self) -> String {
        // SAFETY: the cursor is of a live unit.
        text(unsafe { clang_getCursorUSR(self.raw) })
    }

    pub(crate) fn spelling(self) -> String {
        // SAFETY: the cursor is of a live unit.
        text(unsafe { clang_getCursorSpelling(self.raw) })
    }

    /// The declaration as the compiler would write it, attributes included, without values and bodies.
    pub(crate) fn written(self) -> String {
        // SAFETY: the cursor is of a live unit; the policy is disposed of once, after its last use.
        unsafe {
            let policy = clang_getCursorPrintingPolicy(self.raw);
            clang_PrintingPolicy_setProperty(policy, CXPrintingPolicy_TerseOutput, 1);
            clang_PrintingPolicy_setProperty(policy, CXPrintingPolicy_SuppressInitializers, 1);
            let written = text(clang_getCursorPrettyPrinted(self.raw, policy));
            clang_PrintingPolicy_dispose(policy);
            written
        }
    }

    /// The arguments of a call, the parameters of a function.
    pub(crate) fn arguments(self) -> Vec<Cursor<'u>> {
        // SAFETY: the cursor is of a live unit.
        let count = unsafe { clang_Cursor_getNumArguments(self.raw) };
        let count = c_uint::try_from(count).unwrap_or(0);
        // SAFETY: the index is below the count.
        let argument = |at| self.with(unsafe { clang_Cursor_getArgument(self.raw, at) });
        (0..count).filter_map(argument).collect()
    }

    /// Offset of a member in bits.
    pub(crate) fn offset_bits(self) -> Option<u64> {
        // SAFETY: the cursor is of a live unit.
        u64::try_from(unsafe { clang_Cursor_getOffsetOfField(self.raw) }).ok()
    }

    /// The beginning and end of the node's text: line and column of each, from 1.
    pub(crate) fn extent(self) -> [(u32, u32); 2] {
        // SAFETY: the cursor is of a live unit, and so is its range.
        let (start, end) = unsafe {
            let range = clang_getCursorExtent(self.raw);
            (clang_getRangeStart(range), clang_getRangeEnd(range))
        };
        [start, end].map(|location| {
            let (mut line, mut column) = (0, 0);
            // SAFETY: the location is of the live unit; the two numbers are written before the call returns, and the
            // others are not asked for.
            unsafe {
                clang_getExpansionLocation(
                    location,
                    ptr::null_mut(),
                    &mut line,
                    &mut column,
                    ptr::null_mut(),
                );
            }
            (line, column)
        })
    }

    /// The value of an expression that the compiler can work out as an integer.
    pub(crate) fn evaluate(self) -> Option<i64> {
        // SAFETY: the cursor is of a live unit; the result is null or disposed of once.
        unsafe {
            let result = clang_Cursor_Evaluate(self.raw);
            if result.is_null() {
                return None;
            }
            let is_integer = clang_EvalResult_getKind(result) == CXEval_Int;
            let value = is_integer.then(|| clang_EvalResult_getAsLongLong(result));
            clang_EvalResult_dispose(result);
            value
        }
    }

    pub(crate) fn location(self) -> Location {
        // SAFETY: the cursor is of a live unit.
        self.place_of(unsafe { clang_getRangeStart(clang_getCursorExtent(self.raw)) })
    }

    /// The position of the name in an expression that names a member.
    pub(crate) fn name_location(self) -> Location {
        // SAFETY: the cursor is of a live unit.
        self.place_of(unsafe { clang_getCursorLocation(self.raw) })
    }

    fn place_of(self, at: CXSourceLocation) -> Location {
        let place =
            |read: unsafe fn(CXSourceLocation, *mut CXFile, *mut c_uint, *mut c_uint, *mut c_uint)| {
                let (mut file, mut line, mut column) = (ptr::null_mut(), 0, 0);
                // SAFETY: the place is of a live unit, and the pointers' targets are written before the call returns.
                unsafe {
                    read(at, &mut file, &mut line, &mut column, ptr::null_mut());
                }
                (file, line, column)
            };
        let (file, line, column) = place(clang_getExpansionLocation);
        let (_, spelled_line, spelled_column) = place(clang_getSpellingLocation);
        let file = match file.is_null() {
            true => String::new(),
            // SAFETY: a file of the live unit.
            false => text(unsafe { clang_getFileName(file) }),
        };
        let written = (spelled_line, spelled_column);
        Location { file, line, column, is_in_macro: (line, column) != written, written }
    }
}
