//! Orders of functions, and the files in which linkers take them.

pub(crate) mod cold_order;
pub(crate) mod function_order;
pub(crate) mod kernel_order;
pub(crate) mod linker_files;
