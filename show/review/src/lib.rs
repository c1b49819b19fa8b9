//! A change's effects on the memory layout of a program, for its reviewers.
//!
//! A review compares two builds: the [base](Side) that a change starts from, and the head that it leads to. It compares
//! the layouts of types, the lines that recorded calls need, the findings of `lineup find` where they were requested,
//! and the promises of a `lineup.lock`.
//!
//! Design constraints:
//!
//! - Nothing here builds, records, reads or writes files: the caller passes the sides, and texts are returned.
//! - A [`Finding`] is a change for the worse, or a broken promise. The project decides which of them fail the review:
//!   see [`FailIf`].
//! - Names come from programs and may hold anything. Every text that is written here can only be read, never act.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod calls;
mod fail_if;
mod finding;
mod guard_check;
mod layouts;
mod markdown;
mod repository_line;
mod review;
mod sarif;
mod side;

pub use calls::{Compared, Counted, RegionChange, TypeLines};
pub use fail_if::{FailIf, NotARule};
pub use finding::{Finding, Ratio, Rule};
pub use guard_check::{GuardFile, GuardState};
pub use layouts::{FileChanges, TypeChange};
pub use markdown::markdown;
pub use repository_line::RepositoryLine;
pub use review::{CheckedCertificate, Options, Review, review};
pub use sarif::sarif;
pub use side::{BuiltFile, CallMeans, FindingOfRun, RegionFigures, Side};
