//! The texts of the heap library: plans of pools, profiles of allocations, and plans that are made of profiles.
//!
//! Design constraints:
//!
//! * Reading a plan allocates nothing: the heap library reads it before a program's allocator may be used.
//! * A place in code is a module's build id and an offset in it, so that a plan holds for the very build it was made of.

mod candidates;
mod classes;
mod frame;
mod plan;
mod profile;

pub use candidates::{Style, plan_of};
pub use classes::{Alignment, LARGEST, STEP, stride};
pub use frame::{BuildId, CALLERS, Frame};
pub use plan::{HEADER, Pages, PlanError, PoolLine, PoolLines, lines};
pub use profile::{ClassCounts, PROFILE_HEADER, Profile, ProfileError, SiteCounts};
