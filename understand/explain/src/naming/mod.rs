//! The name of each access, from the code and from the contents of memory.

pub mod access_context;
pub(crate) mod address_names;
pub(crate) mod code_names;
pub(crate) mod data_behind;
pub(crate) mod learning;
pub(crate) mod library_code;
pub mod name;
pub mod namer;
pub mod owner;
pub(crate) mod pool_variables;
