//! Kernels: symbols, guests that are recorded, advice and commit messages.

pub(crate) mod advice;
pub(crate) mod commit_message;
pub(crate) mod guest;
pub(crate) mod guest_modules;
pub(crate) mod guest_root;
pub(crate) mod module_file;
pub(crate) mod summary;
pub(crate) mod summary_text;
pub(crate) mod symbols;
