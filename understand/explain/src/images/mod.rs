//! The files of the program in memory: their code, their variables, and the places where they were mapped.

pub(crate) mod functions_by_place;
pub(crate) mod globals;
pub mod image;
pub mod kernel_files;
pub(crate) mod lack;
pub(crate) mod loaded_images;
pub(crate) mod percpu_variables;
pub(crate) mod thread_blocks;
