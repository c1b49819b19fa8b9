//! Background load to measure under.
//!
//! Design constraints:
//!
//! * Every load is a plain function that runs until its [`Stop`] is set; it spawns only threads that it joins before it
//!   returns, and prints nothing. Its caller owns the process and its end.
//! * The same options and seed give the same sequence of work, so that two variants can be measured
//!   under the same load.
//! * Control groups are real and need permission. Without it the refusal names the file that could not be written;
//!   nothing falls back to a load that is only similar. A group is removed when dropped.
//! * `/proc/stat` is parsed as untrusted text.

pub mod cgroup;
pub mod error;
pub mod memory;
pub mod pingpong;
pub mod stop;
pub mod tasks;
pub mod utilisation;

pub use error::LoadError;
pub use stop::Stop;
