//! The objects that arrive at each place: pointers followed through the whole program.
//!
//! A pointer that a function takes and gives back (`realloc`, a list's `void *`) comes out at the call that gave it,
//! not at every call of the function.
//!
//! A program may have hundreds of thousands of places, and objects of thousands of types may arrive at each of them. So
//! places and origins have numbers. Where the kept objects have more than [`follower::MANY`] types, they are merged:
//! they are added to [`PointsTo::many`], and all such places hold any of these. Memory without a type is treated
//! likewise where it arrives together with objects of several types.

mod call_flows;
mod flow_edges;
mod follower;
mod levels;
mod numbers;
mod objects;
mod passed_arguments;

pub(crate) use objects::{Objects, Pointed, PointsTo};
