//! The system without the C library: the program may replace its functions, and `errno` is the program's.

pub(crate) mod address_tables;
pub(crate) mod allocator;
mod calls;
mod file;
pub(crate) mod holdings;
pub(crate) mod lock;
pub(crate) mod mappings;
mod own_memory;

pub(crate) use calls::{
    block_signals, blocked_signals, call, clock_ns, is_executable, is_sealed, is_thread, own, process,
    process_in_proc, read_link, read_link_into, read_memory, read_text, read_word, register_serializing,
    restore_signals, seal, sealed_flag, serialize_threads, sleep_ns, thread, thread_time_ns,
};
pub(crate) use file::{File, threads};
pub(crate) use own_memory::{
    addresses, forget, memory, memory_at, memory_where, move_over, protect, unmap, wipe_on_fork,
};
