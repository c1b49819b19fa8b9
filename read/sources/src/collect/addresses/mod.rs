//! Uses of addresses as numbers: their alignment, their order, distances from an object's end, and of the elements of arrays.

mod alignment;
mod elements;
mod ends;
mod order;
