//! Types, as libclang describes them.

use super::{Cursor, Unit, text};
use clang_sys::*;
use std::marker::PhantomData;

/// `_Atomic(T)`, which older versions of libclang have no kind for.
const ATOMIC: CXTypeKind = 177;

/// A type.
#[derive(Clone, Copy)]
pub(crate) struct Type<'u> {
    pub(super) raw: CXType,
    pub(super) unit: PhantomData<&'u Unit>,
}

impl<'u> Type<'u> {
    /// The type, where there is one.
    pub(super) fn with(self, raw: CXType) -> Option<Type<'u>> {
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
