//! Variants of a program in, verdicts out.
//!
//! Design constraints:
//!
//! * [`Proven`] values come only from comparisons that ran: the type has no public constructor, and
//!   [`prove`] is the one place that makes a [`Proof`].
//! * No process is spawned and no clock is read here. A [`Runner`] does that and hands back plain values; the
//!   schedule, the stop and the judgement are this crate's.
//! * Equal work first: two recordings are compared only when both runs read the same and made as many calls of every
//!   region, and a timed run must read what the recorded one read ([`Conduct`]).
//! * Deterministic first, then timed: lines per call are compared exactly, time with an interval and
//!   one of three verdicts. Fewer lines never imply less time; [`Conclusion`] keeps the two apart.
//! * A program whose own output differs between two runs of the same variant cannot be shown to
//!   print the same after a change; its footprints are proven and its time is not claimed.
//!
//! ```
//! use lineup_prove::{Conduct, ProofPlan, Recorded, RunResult, Slot, Variant, prove};
//!
//! // A runner that "runs" a program whose second variant takes 5 % less time.
//! let mut runner = |slot: &Slot| {
//!     let wall_ns = if slot.variant == Variant::BEFORE { 1_000_000 } else { 950_000 };
//!     Ok(RunResult::finished(0, b"same output", b"", wall_ns + slot.number % 3))
//! };
//! let recorded = Recorded { footprints: Vec::new(), conduct: Conduct::quiet(Vec::new()) };
//! let proof = prove(&recorded, &recorded, &mut runner, &ProofPlan::default())?;
//! assert!(proof.value().conclusion().contains("less time"));
//! # Ok::<(), lineup_prove::ProveError>(())
//! ```

pub mod bisect;
pub mod compare;
pub mod conduct;
pub mod disturbance;
pub mod effects;
pub mod elimination;
pub mod error;
pub mod footprint;
mod from_explain;
pub mod links;
pub mod measure;
pub mod metric;
pub mod noise;
pub mod output;
pub mod pair;
pub mod proof;
pub mod proven;
pub mod readings;
pub mod region_time;
pub mod run;
pub mod schedule;
pub mod timing;

pub use conduct::{Conduct, ConductEffects, Recorded, RegionCalls};
pub use error::ProveError;
pub use noise::detectable_in_words;
pub use proof::{Conclusion, NotTimed, OutputNotRepeatable, Proof, ProofPlan, prove};
pub use proven::{Evidence, Proven};
pub use run::{RunResult, Runner, Slot, Variant};
