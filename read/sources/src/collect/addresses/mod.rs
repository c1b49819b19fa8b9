//! Uses of addresses as numbers: their alignment, their order, distances from an object's end.

mod alignment;
mod ends;
mod order;
