//! A kernel in a guest under full-system emulation: what runs in it, its run, and how that ended.

pub mod boot;
pub mod emulator;
mod ending;
pub mod modules;
pub mod rootfs;
mod shell;
pub mod workload;

pub use ending::{GuestEnd, Stage};
