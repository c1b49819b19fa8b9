//! `lineup record` on programs whose calls are known by construction, on four machines.
//!
//! Every program is compiled here and prints what the recording must show: addresses, counts, depths.

#[cfg(target_arch = "x86_64")]
mod attached;
#[cfg(target_arch = "x86_64")]
mod budgets;
#[cfg(target_arch = "x86_64")]
mod bursts;
mod cachegrind;
mod called;
#[cfg(target_arch = "x86_64")]
mod chosen;
mod control;
mod counts;
mod durability;
mod emulators;
#[cfg(target_arch = "x86_64")]
mod engines;
#[cfg(target_arch = "x86_64")]
mod equal;
#[cfg(target_arch = "x86_64")]
mod forked;
mod frames;
#[cfg(target_arch = "x86_64")]
mod gathers;
#[cfg(target_arch = "x86_64")]
mod generated;
#[cfg(target_arch = "x86_64")]
mod hot_paths;
mod injected;
mod interventions;
#[cfg(target_arch = "x86_64")]
mod limited;
#[cfg(target_arch = "x86_64")]
mod logged;
#[cfg(target_arch = "x86_64")]
mod native;
mod own_calls;
mod places;
mod program;
mod refusals;
mod registers;
#[cfg(target_arch = "x86_64")]
mod restartable;
#[cfg(target_arch = "x86_64")]
mod sequences;
mod several;
#[cfg(target_arch = "x86_64")]
mod split;
#[cfg(target_arch = "x86_64")]
mod started;
#[cfg(target_arch = "x86_64")]
mod state;
mod thread_local;
mod times;
#[cfg(target_arch = "x86_64")]
mod transparent;
#[cfg(target_arch = "x86_64")]
mod traps;
#[cfg(target_arch = "x86_64")]
mod whole;
#[cfg(target_arch = "x86_64")]
mod written;
