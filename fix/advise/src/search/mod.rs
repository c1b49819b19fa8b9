//! The search for the best order of members: the problem, its score, and the orders that are tried.

pub mod shuffle;

pub(crate) mod best_order;
pub(crate) mod further_moves;
pub(crate) mod outcome;
pub(crate) mod plan_orders;
pub(crate) mod reasons;
pub(crate) mod score;
pub(crate) mod small_order;
pub(crate) mod unit_set;
