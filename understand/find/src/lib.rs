//! The findings of a whole program: its modelled stalls by type, member and function, and the upper bound of each gain.
//!
//! Design constraints:
//!
//! * Exact where it can be: the misses of every instruction were counted in the whole run. The division of one
//!   instruction's misses among names comes from windows of the run (`stalls`), in which every access is known.
//! * A gain is measured, not guessed: the windows go through the caches again with the objects, or the code, laid anew
//!   (`trials`). It is a best case, of a layout that a source change could give.
//! * Data without a name is shown as a share, never dropped.
//! * Memory grows with code, types and the bounded sample, not with accesses.
//! * Nothing is printed; [`Findings`] are plain values.

mod error;
mod findings;
mod hand_findings;
mod layout_evidence;
mod options;
mod owner;
mod recorded;
mod sampled;
mod search;
mod stalls;
mod tables;
mod threads;
mod time_findings;
mod trials;
mod work;

pub use error::FindError;
pub use findings::{
    AllocationStalls, BetweenThreads, BurstShare, BurstShares, Bursts, BurstsNotBegun, BurstsTaken,
    ClassShare, ClockContradiction, ClockShare, ContextStalls, Coverage, Evidence, Finding, Findings,
    FunctionStalls, Kind, LaidMember, LargestVariant, MemberMap, MemberStalls, NoFinding, OwnerStalls,
    Sample, Sign, Stack, Stalls, ThreadWaits, Trial, WithoutFinding, WordChange,
};
pub use hand_findings::{AllocationPair, LockWaits, PairedSite, ParallelArrays, StackObject};
pub use lineup_coherence::WAIT_CYCLES;
pub use options::{Again, NextWords, Options};
pub use recorded::Recorded;
pub use sampled::{
    AgainstModel, FileInformation, FindingReason, MoreNames, SampledAccesses, SampledByte, SampledCpu,
    SampledData, SampledEvent, SampledEvidence, SampledFile, SampledFinding, SampledFindings,
    SampledFunction, SampledLine, SampledMember, SampledNext, SampledOptions, SampledProcess, SampledSource,
    SampledUser, SampledWithCallees, against_model, operand_at, sampled,
};
pub use search::work_out;
pub use stalls::clock::Clock;
pub use stalls::page_stalls::{CostSource, HugePages, PageCosts, PageStalls};
pub use stalls::run_alone::RunAlone;
pub use time_findings::{Footprint, FunctionLines, Ranked, Stretch, TimeSource};
pub use trials::layouts::malloc_bytes;
pub use trials::placement_kinds::{Allocator, PlacementKind, PlacementTrial, Placements};
