//! The nodes of a unit's syntax tree, and their types.

use super::library::text;
use super::unit::Unit;
use clang_sys::*;
use std::ffi::c_uint;
use std::marker::PhantomData;
use std::ptr;

/// `_Atomic(T)`, which older versions of libclang have no kind for.
const ATOMIC: CXTypeKind = 177;

impl Unit {
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

    /// The width of a bit-field.
    pub(crate) fn bits(self) -> Option<u64> {
        // SAFETY: the cursor is of a live unit.
        u64::try_from(unsafe { clang_getFieldDeclBitWidth(self.raw) }).ok()
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

    /// True for the whole file: its number is another one from libclang 15 on.
    pub(crate) fn is_translation_unit(self) -> bool {
        // SAFETY: takes a number alone.
        unsafe { clang_isTranslationUnit(self.raw.kind) != 0 }
    }

    /// True for a directive of OpenMP: they are the last of the statements, and each release has more.
    pub(crate) fn is_openmp(self) -> bool {
        const OTHERS: [CXCursorKind; 2] = [CXCursor_SEHLeaveStmt, CXCursor_BuiltinBitCastExpr];
        // SAFETY: takes a number alone.
        let is_statement = unsafe { clang_isStatement(self.raw.kind) != 0 };
        is_statement && self.kind() >= CXCursor_OMPParallelDirective && !OTHERS.contains(&self.kind())
    }

    /// True for what is declared in a file itself or in a namespace, not in a class or a function.
    pub(crate) fn is_of_namespace(self) -> bool {
        self.parent().is_some_and(|parent| {
            parent.is_translation_unit() || matches!(parent.kind(), CXCursor_Namespace | CXCursor_LinkageSpec)
        })
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

    /// The function that an unresolved name in a template means, where there is one of that name.
    pub(crate) fn only_overload(self) -> Option<Cursor<'u>> {
        // SAFETY: the cursor is of a live unit, and the number is below the count.
        unsafe {
            let is_one = clang_getNumOverloadedDecls(self.raw) == 1;
            self.with(clang_getOverloadedDecl(self.raw, 0)).filter(|_| is_one)
        }
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
        // `clang_getSpellingLocation` is this one before libclang 19, and leads into bodies of macros since.
        let (_, spelled_line, spelled_column) = place(clang_getFileLocation);
        let file = match file.is_null() {
            true => String::new(),
            // SAFETY: a file of the live unit.
            false => text(unsafe { clang_getFileName(file) }),
        };
        let written = (spelled_line, spelled_column);
        Location { file, line, column, is_in_macro: (line, column) != written, written }
    }
}

/// A type.
#[derive(Clone, Copy)]
pub(crate) struct Type<'u> {
    raw: CXType,
    unit: PhantomData<&'u Unit>,
}

impl<'u> Type<'u> {
    /// The type, where there is one.
    fn with(self, raw: CXType) -> Option<Type<'u>> {
        (raw.kind != CXType_Invalid).then_some(Type { raw, unit: PhantomData })
    }

    pub(crate) fn kind(self) -> CXTypeKind {
        self.raw.kind
    }

    /// Equal for equal types of one unit, qualifiers included.
    pub(crate) fn identity(self) -> usize {
        self.raw.data[0].addr()
    }

    /// Without typedefs.
    pub(crate) fn canonical(self) -> Type<'u> {
        // SAFETY: the type is of a live unit.
        Type { raw: unsafe { clang_getCanonicalType(self.raw) }, unit: PhantomData }
    }

    pub(crate) fn spelling(self) -> String {
        // SAFETY: the type is of a live unit.
        text(unsafe { clang_getTypeSpelling(self.raw) })
    }

    pub(crate) fn pointee(self) -> Option<Type<'u>> {
        // SAFETY: the type is of a live unit.
        self.with(unsafe { clang_getPointeeType(self.raw) })
    }

    pub(crate) fn element(self) -> Option<Type<'u>> {
        // SAFETY: the type is of a live unit.
        self.with(unsafe { clang_getArrayElementType(self.raw) })
    }

    /// Elements of an array, where they are known.
    pub(crate) fn count(self) -> Option<u64> {
        // SAFETY: the type is of a live unit.
        u64::try_from(unsafe { clang_getArraySize(self.raw) }).ok()
    }

    /// The size of a type that has one. libclang must not be asked about placeholders, such as the type of a method's
    /// name.
    pub(crate) fn size_bytes(self) -> Option<u64> {
        let has_size = matches!(
            self.raw.kind,
            CXType_Bool
                ..=CXType_LongDouble
                    | CXType_Float128
                    | CXType_Half
                    | CXType_Float16
                    | CXType_Complex
                    | CXType_Pointer
                    | CXType_LValueReference
                    | CXType_RValueReference
                    | CXType_Record
                    | CXType_Enum
                    | CXType_ConstantArray
                    | ATOMIC
                    | CXType_Vector
                    | CXType_MemberPointer
        );
        if !has_size {
            return None;
        }
        // SAFETY: the type is of a live unit.
        u64::try_from(unsafe { clang_Type_getSizeOf(self.raw) }).ok()
    }

    /// The alignment of a type that has a size.
    pub(crate) fn align_bytes(self) -> Option<u64> {
        self.canonical().size_bytes()?;
        // SAFETY: the type is of a live unit.
        u64::try_from(unsafe { clang_Type_getAlignOf(self.raw) }).ok()
    }

    /// The types of a function type's parameters.
    pub(crate) fn parameters(self) -> Vec<Type<'u>> {
        // SAFETY: the type is of a live unit; a type that is no function has -1 parameters.
        let count = u32::try_from(unsafe { clang_getNumArgTypes(self.raw) }).unwrap_or(0);
        // SAFETY: as above, and the number is below the count.
        (0..count).filter_map(|at| self.with(unsafe { clang_getArgType(self.raw, at) })).collect()
    }

    /// The result type of a function of this type.
    pub(crate) fn result(self) -> Option<Type<'u>> {
        // SAFETY: the type is of a live unit.
        self.with(unsafe { clang_getResultType(self.raw) })
    }

    pub(crate) fn declaration(self) -> Option<Cursor<'u>> {
        // SAFETY: the type is of a live unit.
        let raw = unsafe { clang_getTypeDeclaration(self.raw) };
        let cursor = Cursor { raw, unit: PhantomData };
        cursor.with(raw)
    }

    pub(crate) fn is_const(self) -> bool {
        // SAFETY: the type is of a live unit.
        unsafe { clang_isConstQualifiedType(self.raw) != 0 }
    }

    /// The types that an instance of a template was made for.
    pub(crate) fn template_arguments(self) -> Vec<Type<'u>> {
        // SAFETY: the type is of a live unit; a type that is no instance has -1 arguments.
        let count = u32::try_from(unsafe { clang_Type_getNumTemplateArguments(self.raw) }).unwrap_or(0);
        // SAFETY: as above, and the number is below the count.
        (0..count)
            .filter_map(|at| self.with(unsafe { clang_Type_getTemplateArgumentAsType(self.raw, at) }))
            .collect()
    }

    /// A type whose objects are their bytes: the compiler copies them so, and nothing runs when they end.
    pub(crate) fn is_plain_data(self) -> bool {
        // SAFETY: the type is of a live unit.
        unsafe { clang_isPODType(self.raw) != 0 }
    }

    /// `_Atomic(T)`.
    pub(crate) fn is_atomic(self) -> bool {
        self.raw.kind == ATOMIC
    }

    pub(crate) fn is_volatile(self) -> bool {
        // SAFETY: the type is of a live unit.
        unsafe { clang_isVolatileQualifiedType(self.raw) != 0 }
    }
}
