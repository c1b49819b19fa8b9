//! Member orders: orders that the search finds, and orders that the user gives.

pub(crate) mod member_order;
pub(crate) mod orders;
pub(crate) mod user_orders;
