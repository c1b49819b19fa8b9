//! System calls of the program that the engine must know of, and the processes that some of them make.

pub(crate) mod address_limits;
pub(crate) mod calls;
pub(crate) mod filters;
pub(crate) mod forks;
pub(crate) mod guards;
pub(crate) mod processes;
pub(crate) mod redirections;
