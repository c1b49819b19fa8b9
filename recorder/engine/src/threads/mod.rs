//! The engine's state of each thread of the program, and a thread of its own.

pub(crate) mod budget;
pub(crate) mod own_thread;
pub(crate) mod owned;
pub(crate) mod slots;
pub(crate) mod thread;
pub(crate) mod thread_memory;
