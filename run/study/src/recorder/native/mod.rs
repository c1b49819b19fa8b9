//! Recording with the native engine: the program runs by itself with the engine loaded into it, and Lineup reads the
//! engine's log meanwhile.

mod attach;
mod bursts;
mod call_times;
mod debug_info_loader;
mod follower;
mod followers;
mod heap;
mod heartbeat;
mod inject;
mod logger;
mod mapping;
mod output;
mod pace;
mod process_files;
mod recording;
mod requirements;
mod shared_memory;
mod task;
mod timed_region;
mod tracee;
mod whole_processes;
mod whole_program;

pub use call_times::{Times, time};
pub(super) use recording::{NAME, complete, record};
pub use requirements::command_of;
pub(super) use requirements::{find, is_for};
pub use shared_memory::Trial;
pub(super) use task::Task;
pub use timed_region::{Mark, TimedRegion};
