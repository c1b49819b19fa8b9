//! Names and handles that the emulator gives out, which only it looks into.

/// Names this plugin to the emulator.
pub(crate) type PluginId = u64;

/// A block being translated; opaque.
#[repr(C)]
pub(crate) struct Tb {
    _opaque: [u8; 0],
}

/// An instruction of such a block; opaque.
#[repr(C)]
pub(crate) struct Insn {
    _opaque: [u8; 0],
}

/// The place of an access in the emulator's memory or a device; opaque.
#[repr(C)]
pub(crate) struct MemPlace {
    _opaque: [u8; 0],
}

/// A register of the guest; opaque.
#[repr(C)]
pub(crate) struct Register {
    _opaque: [u8; 0],
}
