//! The recorder of an audit: watches the whole program for evidence against moving members of a type. Evidence is kept
//! by type and kind, so that memory grows with neither accesses nor objects.
//!
//! * Memory that code stored to as part of one type's object is marked so ([`shadow`]). Any other store there removes
//!   the mark. Only bytes that are still an object's are evidence when another type's code loads them, or a system call
//!   takes them.
//! * Memory that is given back (`free`, `munmap`, a frame) loses its marks. One function after the other uses a stack,
//!   so bytes there are no evidence of another type.
//! * The C library's copying is followed: a store copies the load just before it when both values are equal.

mod callbacks;
mod calls;
mod install;
mod seen;
mod shadow;
mod state;

pub(crate) use install::install;
