//! Findings from samples: plain values.

use crate::findings::ClockShare;
use serde::Serialize;

/// The findings from a file's samples.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SampledFindings {
    /// Version of this value as JSON.
    pub schema: &'static str,
    /// The command line of perf.
    pub command: Vec<String>,
    /// The machine's name.
    pub host: Option<String>,
    /// The kernel's release.
    pub kernel_release: Option<String>,
    /// The machine's architecture.
    pub architecture: Option<String>,
    /// True when the file was read to its end as perf wrote it.
    pub is_whole: bool,
    /// From the first sample to the last.
    pub span_ns: Option<u64>,
    /// The events.
    pub events: Vec<SampledEvent>,
    /// Records that the kernel had no room for.
    pub lost_records: u64,
    /// Samples that the processor had no room for.
    pub lost_samples: u64,
    /// Samples whose address was worked out from sampled registers.
    pub worked_out_addresses: u64,
    /// The number of times the kernel stopped sampling for a while.
    pub throttled: u64,
    /// Records shorter than their fields.
    pub unreadable_records: u64,
    /// Processes, most samples first.
    pub processes: Vec<SampledProcess>,
    /// Samples by CPU.
    pub cpus: Vec<SampledCpu>,
    /// Files that samples lie in, most samples first.
    pub files: Vec<SampledFile>,
    /// Functions, for each event most events first.
    pub functions: Vec<SampledFunction>,
    /// Types, variables and all else that was accessed, most weight first.
    pub data: Vec<SampledData>,
    /// The sources of the data, most weight first.
    pub sources: Vec<SampledSource>,
    /// Lines that were passed between CPUs, most loads first.
    pub lines: Vec<SampledLine>,
    /// The findings, the largest share first.
    pub findings: Vec<SampledFinding>,
    /// Functions with the shares from a model and from samples, most samples first; `None` when no model was given.
    pub against_model: Option<Vec<AgainstModel>>,
    /// Commands for facts that samples do not contain.
    pub next: Vec<SampledNext>,
    /// Further notes.
    pub notes: Vec<String>,
}

/// An event and its samples.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SampledEvent {
    /// Its name.
    pub name: String,
    /// The fields of its samples, in words.
    pub carries: Vec<&'static str>,
    /// The number of samples.
    pub samples: u64,
    /// The number of events they stand for.
    pub period: u64,
    /// Their weights: on most machines cycles.
    pub weight: u64,
    /// Samples in the kernel.
    pub in_kernel: u64,
    /// Samples of which the processor says that the instruction is the one that was sampled.
    pub precise: u64,
}

/// A process and its samples.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct SampledProcess {
    /// Its number.
    pub process: u32,
    /// Its name.
    pub name: String,
    /// The number of samples.
    pub samples: u64,
}

/// A CPU and its samples.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct SampledCpu {
    /// Its number.
    pub cpu: u32,
    /// The number of samples.
    pub samples: u64,
}

/// A file that samples lie in.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct SampledFile {
    /// The path as the process saw it.
    pub path: String,
    /// Its build id in hexadecimal, when perf wrote it down.
    pub build_id: Option<String>,
    /// Samples whose instruction lies in it.
    pub samples: u64,
    /// The information read from it.
    pub known: FileInformation,
}

/// The information read from a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FileInformation {
    /// Types and symbols.
    Types,
    /// Symbols.
    Symbols,
    /// It was not found, or has another build id.
    Nothing,
}

/// A function and its samples.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SampledFunction {
    /// Position of the event.
    pub event: u32,
    /// Its name.
    pub name: String,
    /// The file's path.
    pub file: String,
    /// The number of samples.
    pub samples: u64,
    /// The number of events they stand for.
    pub period: u64,
    /// Share of the event's, by `period`.
    pub share: f64,
    /// The same with the functions that it called, each sample once; `None` where the event takes no chains of calls.
    pub with_callees: Option<SampledWithCallees>,
}

/// A function's samples with those of the functions that it called.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct SampledWithCallees {
    /// The number of samples.
    pub samples: u64,
    /// The number of events they stand for.
    pub period: u64,
    /// Share of the event's, by `period`.
    pub share: f64,
}

/// Something that was accessed.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SampledData {
    /// Its name.
    pub name: String,
    /// Its kind: `member` for objects of a type, `variable`, `stack` and so on.
    pub kind: lineup_explain::name::Class,
    /// Its accesses.
    #[serde(flatten)]
    pub accesses: SampledAccesses,
    /// Its members, by offset; for data without members, one without a name.
    pub members: Vec<SampledMember>,
}

/// A member and its accesses.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SampledMember {
    /// Its name in the type.
    pub path: String,
    /// Its offset.
    pub offset: u64,
    /// Its size in bytes.
    pub size_bytes: u64,
    /// Its accesses.
    #[serde(flatten)]
    pub accesses: SampledAccesses,
    /// Weight of the loads of lines that another CPU's cache had changed.
    pub hitm_weight: u64,
    /// The sources of its data, most weight first.
    pub sources: Vec<SampledSource>,
    /// The evidence for its name, with numbers of samples.
    pub evidence: Vec<SampledEvidence>,
    /// The functions that accessed it, most samples first.
    pub functions: Vec<SampledUser>,
}

/// Samples of accesses.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize)]
pub struct SampledAccesses {
    /// The number of samples.
    pub samples: u64,
    /// The loads among them.
    pub loads: u64,
    /// The stores among them.
    pub stores: u64,
    /// Loads of lines that another CPU's cache had changed.
    pub hitm: u64,
    /// Locked instructions.
    pub locked: u64,
    /// Accesses whose address was worked out from sampled registers.
    pub worked_out: u64,
    /// Their weights.
    pub weight: u64,
    /// Share of the weight of all accesses.
    pub weight_share: f64,
    /// Share of the samples of all accesses.
    pub sample_share: f64,
}

/// Evidence of names.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct SampledEvidence {
    /// The evidence for the name.
    pub evidence: lineup_explain::name::Evidence,
    /// The number of samples.
    pub samples: u64,
}

/// A function that accessed a member.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct SampledUser {
    /// Its name.
    pub name: String,
    /// The number of samples.
    pub samples: u64,
}

/// The source of data.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SampledSource {
    /// The kind of access and the level of memory, in words.
    pub from: String,
    /// The number of samples.
    pub samples: u64,
    /// Their weights.
    pub weight: u64,
    /// Share of the weight of all accesses.
    pub weight_share: f64,
}

/// A line that was passed between CPUs.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SampledLine {
    /// The process.
    pub process: u32,
    /// Its address.
    pub address: String,
    /// Loads that found it changed by another CPU.
    pub samples: u64,
    /// Their weights.
    pub weight: u64,
    /// By the CPU that loaded it.
    pub cpus: Vec<SampledCpu>,
    /// The bytes that were loaded from it so, in their order.
    pub bytes: Vec<SampledByte>,
    /// The bytes that were stored to it, as far as stores were sampled, in their order.
    pub stores: Vec<SampledByte>,
}

/// Bytes that were loaded from a line, or stored to it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct SampledByte {
    /// Byte of the line.
    pub at: u8,
    /// Their name: `type.member` or a variable.
    pub name: String,
    /// The function that did it.
    pub function: String,
    /// The number of samples.
    pub samples: u64,
}

/// A function's shares in a model and in samples of the clock.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct AgainstModel {
    /// Its name.
    pub name: String,
    /// Its share of all modelled cycles.
    pub of_cycles: f64,
    /// Its share of the samples in programs.
    pub clock: ClockShare,
}

/// A command for facts that samples do not contain.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct SampledNext {
    /// The command's subject.
    pub subject: String,
    /// The command; the program's arguments are for the user to add.
    pub command: String,
}

/// The reason why something is worth a look.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingReason {
    /// CPUs take its lines from each other.
    PassedBetweenCpus,
    /// Its accesses were waited for; of samples without weights, it was accessed most.
    WaitedFor,
    /// Time was spent in it: no sample came with an address.
    TimeSpent,
}

/// Something that is worth a look.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SampledFinding {
    /// The reason.
    pub worth: FindingReason,
    /// The type, variable or function.
    pub subject: String,
    /// Share of the weight of all accesses; of the samples where there are no weights; of its event for a function.
    pub share: f64,
    /// The number of samples.
    pub samples: u64,
    /// Their weights.
    pub weight: u64,
    /// The members that it is about, most weight first.
    pub members: Vec<String>,
    /// The functions that accessed them, most samples first.
    pub functions: Vec<String>,
    /// The bytes that were stored to the lines, and the storing functions, as far as stores were sampled.
    pub written: Vec<String>,
    /// The recording that would show the members a call touches together. The user has to add the program's arguments.
    pub command: Option<String>,
}
