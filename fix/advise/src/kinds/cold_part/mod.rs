//! Cold parts: members that no hot call uses, in memory of their own.

pub(crate) mod array_text;
pub(crate) mod boxed_part;
pub(crate) mod c_text;
pub(crate) mod class_text;
pub(crate) mod cold_parts;
pub(crate) mod columns;
pub(crate) mod constructor_list;
pub(crate) mod field_list;
pub(crate) mod heap_calls;
pub(crate) mod heap_text;
pub(crate) mod rust_struct;
pub(crate) mod rust_values;
