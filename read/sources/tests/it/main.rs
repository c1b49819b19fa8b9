//! Every integration test of this crate, in one program.

mod alignment;
mod array_objects;
mod beyond_members;
mod builds;
mod calls_as_other_types;
mod chases;
mod cookies;
mod cpp;
mod exactness;
mod fixed_places;
mod headers;
mod headers_before_objects;
mod heap_objects;
mod hidden_order;
mod kernel;
mod many_types;
mod member_facts;
mod numbers;
mod one_name;
mod program;
mod sizes_in_variables;
mod splitting;
mod texts;
mod user_space;
mod written_offsets;
