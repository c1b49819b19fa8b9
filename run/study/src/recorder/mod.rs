//! Runs a program under the emulator with the recorder in it, or with the native engine in the program.

mod audit;
mod emulator;
mod first_plan;
mod journal_file;
mod native;
mod record;
mod recorded_code;
pub mod recording_file;
mod regions;
pub mod replay;
mod request;
mod rights;
mod runs;
mod sanitizer;
mod sealing;
mod subject;

pub use audit::{AuditRequest, audit};
pub(crate) use emulator::library;
pub use emulator::{
    PluginArgument, executable, native_or_emulated, on_path, plugin_argument, program_emulator,
    require_plugins, require_recorder,
};
pub use native::{Mark, TimedRegion, Times, Trial, command_of, time};
pub use record::record;
pub use recorded_code::RecordedCode;
pub use regions::{without_call, without_inlined};
pub use request::{BurstCost, BurstCounts, Engine, Interventions, RecordOutcome, RecordRequest};
pub use runs::in_words;
pub use sealing::{KeptCalls, ReducedRegion, keep_accesses, keep_same, thin_to_spread};
pub use subject::Subject;
