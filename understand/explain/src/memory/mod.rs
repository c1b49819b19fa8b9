//! The contents of memory: objects, their lifetimes, and the memory that has none.

pub(crate) mod by_address;
pub(crate) mod containers;
pub(crate) mod copied_data;
pub(crate) mod lifetimes;
mod list_heads;
pub(crate) mod list_links;
pub(crate) mod live_times;
pub(crate) mod mappings;
pub(crate) mod objects;
pub(crate) mod sightings;
pub mod slabs;
