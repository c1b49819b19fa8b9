//! Every integration test of this crate, in one program.

mod aarch64;
mod c_programs;
mod clock_memory;
mod immediate_values_study;
mod installed;
mod timer_tail;
mod trace_memory;
