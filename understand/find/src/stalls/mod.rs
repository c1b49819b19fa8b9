//! The stalls of the whole run, divided among names, functions, allocation sites, pages and tasks.

pub(crate) mod allocation_sites;
pub(crate) mod attribution;
pub(crate) mod bursts;
pub(crate) mod clock;
pub(crate) mod counts;
pub(crate) mod function_names;
pub(crate) mod line_usage;
pub(crate) mod page_stalls;
pub(crate) mod run_alone;
pub(crate) mod time_shares;
pub(crate) mod visit_order;
pub(crate) mod window_names;
pub(crate) mod window_stalls;
pub(crate) mod work_contexts;
