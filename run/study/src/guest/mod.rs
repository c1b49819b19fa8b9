//! A kernel in a guest under full-system emulation: its workload, its run, and its end.

pub mod boot;
pub mod emulator;
mod ending;
pub mod modules;
pub mod rootfs;
mod shell;
pub mod workload;

pub use ending::{GuestEnd, Stage};
