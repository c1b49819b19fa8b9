//! `define_imv!`, `imv_read!`, `imv_cond!`: the counterparts of C's `lineup/imv.h`.

/// Defines an immediate value: a static read by [`imv_read!`](crate::imv_read), changed by `set`. At module level.
///
/// ```
/// lineup_runtime::define_imv! {
///     /// How many items a batch holds.
///     pub static BATCH_ITEMS: u32 = 32;
/// }
///
/// fn main() -> Result<(), lineup_runtime::imv::Error> {
///     assert_eq!(lineup_runtime::imv_read!(BATCH_ITEMS), 32);
///     BATCH_ITEMS.set(64)?;
///     assert_eq!(lineup_runtime::imv_read!(BATCH_ITEMS), 64);
///     Ok(())
/// }
/// ```
#[macro_export]
macro_rules! define_imv {
    ($($(#[$meta:meta])* $vis:vis static $name:ident : $ty:ty = $init:expr;)*) => {$(
        $(#[$meta])*
        $vis static $name: $crate::imv::Imv<$ty> = $crate::imv::Imv::new($init);
        $crate::__imv_register!($name, $ty);
    )*};
}

/// The record of a definition, in the sections that [`record`](crate::imv) reads.
#[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(lineup_generic)))]
#[doc(hidden)]
#[macro_export]
macro_rules! __imv_register {
    ($name:ident, $ty:ty) => {
        ::core::arch::global_asm!(
            ".pushsection lineup_imv_names,\"aR\",%progbits",
            ::core::concat!("770: .asciz \"", ::core::module_path!(), "::", ::core::stringify!($name), "\""),
            ".popsection",
            ".pushsection lineup_imv_records,\"awR\",%progbits",
            ".balign 8",
            "772: .quad {cell}",
            ".quad 770b",
            ".quad 0",
            ".byte {size}, {class}, {signed}, 0, 0, 0, 0, 0",
            ".popsection",
            ".pushsection lineup_imv_defs,\"awR\",%progbits",
            ".balign 8",
            ".quad 772b",
            ".popsection",
            cell = sym $name,
            size = const ::core::mem::size_of::<$ty>(),
            class = const <$ty as $crate::imv::Value>::CLASS,
            signed = const <$ty as $crate::imv::Value>::IS_SIGNED,
        );
    };
}

/// Nothing to register where nothing is patched.
#[cfg(any(not(any(target_arch = "x86_64", target_arch = "aarch64")), lineup_generic))]
#[doc(hidden)]
#[macro_export]
macro_rules! __imv_register {
    ($name:ident, $ty:ty) => {};
}

/// Reads an immediate value from the instruction stream.
#[cfg(all(target_arch = "x86_64", not(lineup_generic)))]
#[macro_export]
macro_rules! imv_read {
    ($name:path) => {{
        let bits: u64;
        // SAFETY: one instruction that loads `$name`'s own cell, or after patching its value, into a register.
        // It writes no memory and no flags. Registration checks the bytes before it patches them.
        unsafe {
            ::core::arch::asm!(
                ".if {size} == 8",
                ".balign 8",
                ".byte 0x66, 0x0f, 0x1f, 0x44, 0, 0",
                "772: .byte 0x3e, 0x3e, 0x3e",
                "movq {cell}(%rip), {bits}",
                ".else",
                ".balign 8",
                "772: .byte 0x3e",
                ".if {size} == 4",
                ".byte 0x3e",
                "movl {cell}(%rip), {bits:e}",
                ".elseif {size} == 2",
                "movzwl {cell}(%rip), {bits:e}",
                ".else",
                "movzbl {cell}(%rip), {bits:e}",
                ".endif",
                ".endif",
                ".pushsection lineup_imv_sites,\"aR?\",@progbits",
                ".balign 8",
                ".quad 772b - .",
                ".quad {cell} - .",
                ".quad 0",
                ".byte {size}, 0, 0, 0, 0, 0, 0, 0",
                ".popsection",
                cell = sym $name,
                size = const $crate::imv::size_of_value(&$name),
                bits = out(reg_abcd) bits,
                options(att_syntax, nostack, preserves_flags, readonly)
            );
        }
        $crate::imv::from_register(&$name, bits)
    }};
}

/// Reads an immediate value from the instruction stream.
#[cfg(all(target_arch = "aarch64", not(lineup_generic)))]
#[macro_export]
macro_rules! imv_read {
    ($name:path) => {{
        let bits: u64;
        // SAFETY: loads `$name`'s own cell, or after patching its value, into a register. It writes no memory and
        // no flags. Registration checks the bytes before it patches them.
        unsafe {
            ::core::arch::asm!(
                ".if {size} >= 4",
                ".balign 16",
                "772: b 773f",
                "b 774f",
                ".quad 0",
                ".else",
                "772: b 773f",
                ".endif",
                "774:",
                ".subsection 1",
                "773: adrp {bits}, {cell}",
                ".if {size} == 8",
                "ldr {bits}, [{bits}, :lo12:{cell}]",
                ".elseif {size} == 4",
                "ldr {bits:w}, [{bits}, :lo12:{cell}]",
                ".elseif {size} == 2",
                "ldrh {bits:w}, [{bits}, :lo12:{cell}]",
                ".else",
                "ldrb {bits:w}, [{bits}, :lo12:{cell}]",
                ".endif",
                "b 774b",
                ".previous",
                ".pushsection lineup_imv_sites,\"aR?\",%progbits",
                ".balign 8",
                ".quad 772b - .",
                ".quad {cell} - .",
                ".quad 773b - .",
                ".byte {size}, 0, 0, 0, 0, 0, 0, 0",
                ".popsection",
                cell = sym $name,
                size = const $crate::imv::size_of_value(&$name),
                bits = out(reg) bits,
                options(nostack, preserves_flags, readonly)
            );
        }
        $crate::imv::from_register(&$name, bits)
    }};
}

/// Reads an immediate value: here by a plain load, the fallback for machines without an encoding.
#[cfg(any(not(any(target_arch = "x86_64", target_arch = "aarch64")), lineup_generic))]
#[macro_export]
macro_rules! imv_read {
    ($name:path) => {
        $name.load()
    };
}

/// True when an immediate value is not zero, as a branch that is a `nop` while it is zero.
#[cfg(all(target_arch = "x86_64", not(lineup_generic)))]
#[macro_export]
macro_rules! imv_cond {
    ($name:path) => {
        'imv: {
            // SAFETY: jumps to the label when `$name` is not zero, falls through otherwise; writes no memory. The
            // dormant form compares, so flags are clobbered. Registration checks the bytes before it patches them.
            unsafe {
                ::core::arch::asm!(
                    ".balign 8",
                    "772: .byte 0xe9",
                    ".long 773f - . - 4",
                    "774:",
                    ".subsection 1",
                    ".if {size} == 8",
                    "773: cmpq $0, {cell}(%rip)",
                    ".elseif {size} == 4",
                    "773: cmpl $0, {cell}(%rip)",
                    ".elseif {size} == 2",
                    "773: cmpw $0, {cell}(%rip)",
                    ".else",
                    "773: cmpb $0, {cell}(%rip)",
                    ".endif",
                    "jne {yes}",
                    "jmp 774b",
                    ".previous",
                    ".pushsection lineup_imv_sites,\"aR?\",@progbits",
                    ".balign 8",
                    ".quad 772b - .",
                    ".quad {cell} - .",
                    ".quad {yes} - .",
                    ".byte {size}, 1, 0, 0, 0, 0, 0, 0",
                    ".popsection",
                    cell = sym $name,
                    size = const $crate::imv::size_of_value(&$name),
                    yes = label { break 'imv true },
                    options(att_syntax, nostack, readonly)
                );
            }
            false
        }
    };
}

/// True when an immediate value is not zero, as a branch that is a `nop` while it is zero.
#[cfg(all(target_arch = "aarch64", not(lineup_generic)))]
#[macro_export]
macro_rules! imv_cond {
    ($name:path) => {
        'imv: {
            // SAFETY: jumps to the label when `$name` is not zero, falls through otherwise; writes no memory and
            // no flags. Registration checks the bytes before it patches them.
            unsafe {
                ::core::arch::asm!(
                    "772: b 773f",
                    "774:",
                    ".subsection 1",
                    "773: adrp {scratch}, {cell}",
                    ".if {size} == 8",
                    "ldr {scratch}, [{scratch}, :lo12:{cell}]",
                    ".elseif {size} == 4",
                    "ldr {scratch:w}, [{scratch}, :lo12:{cell}]",
                    ".elseif {size} == 2",
                    "ldrh {scratch:w}, [{scratch}, :lo12:{cell}]",
                    ".else",
                    "ldrb {scratch:w}, [{scratch}, :lo12:{cell}]",
                    ".endif",
                    "cbnz {scratch}, {yes}",
                    "b 774b",
                    ".previous",
                    ".pushsection lineup_imv_sites,\"aR?\",%progbits",
                    ".balign 8",
                    ".quad 772b - .",
                    ".quad {cell} - .",
                    ".quad {yes} - .",
                    ".byte {size}, 1, 0, 0, 0, 0, 0, 0",
                    ".popsection",
                    cell = sym $name,
                    size = const $crate::imv::size_of_value(&$name),
                    scratch = out(reg) _,
                    yes = label { break 'imv true },
                    options(nostack, preserves_flags, readonly)
                );
            }
            false
        }
    };
}

/// True when an immediate value is not zero: here by a plain load, the fallback for machines without an encoding.
#[cfg(any(not(any(target_arch = "x86_64", target_arch = "aarch64")), lineup_generic))]
#[macro_export]
macro_rules! imv_cond {
    ($name:path) => {
        $crate::imv::Value::to_bits64($name.load()) != 0
    };
}
