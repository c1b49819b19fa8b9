//! Entries of watched functions: the jumps and traps that replace their first bytes, and other changes of the
//! program's code.

pub(crate) mod choosers;
pub(crate) mod code_changes;
pub(crate) mod inner_jumps;
pub(crate) mod near_code;
pub(crate) mod new_files;
pub(crate) mod patch;
pub(crate) mod patching;
pub(crate) mod region_points;
pub(crate) mod restore;
pub(crate) mod trap_permission;
pub(crate) mod traps;
