//! Findings from samples: functions, types and members, and the evidence for the name of each access.
//!
//! Files are laid side by side, each once, even if processes had it at different addresses. An access is named by its
//! address when that lies in a variable, else by the analysis of the instruction's operand. Names that other accesses
//! gave to memory are not used: samples do not say when memory was allocated.

mod findings;
mod model_comparison;
mod noteworthy;
mod operands;
mod passed_lines;
mod place_names;
mod sums;
mod wording;

pub use findings::{
    AgainstModel, FileInformation, FindingReason, SampledAccesses, SampledByte, SampledCpu, SampledData,
    SampledEvent, SampledEvidence, SampledFile, SampledFinding, SampledFindings, SampledFunction,
    SampledLine, SampledMember, SampledNext, SampledProcess, SampledSource, SampledUser, SampledWithCallees,
};
pub use model_comparison::against_model;
pub use operands::operand_at;

use crate::error::FindError;
use lineup_debuginfo::DebugInfo;
use lineup_explain::name::Class;
use lineup_samples::code_names::CodeNames;
use lineup_samples::tally::Tally;
use lineup_samples::{Code, Ending};
use place_names::Places;
use std::collections::BTreeMap;
use sums::Sums;

/// Types for which a command is proposed, and functions in each.
const PROPOSALS: usize = 3;
const REGIONS: usize = 3;

/// Works out the findings from samples. `debug` holds the debug info of each of the tally's files, `names` further
/// names for code.
///
/// # Errors
/// When the disassembler fails.
pub fn sampled(
    tally: &Tally,
    debug: &[Option<DebugInfo>],
    names: &MoreNames,
    wanted: &SampledOptions,
) -> Result<SampledFindings, FindError> {
    let mut places = Places::new(tally, debug, names);
    let sums = Sums::of(tally, &mut places, wanted)?;
    let lines = passed_lines::lines(tally, &mut places, wanted)?;
    let data = sums.data(&mut places);
    let next = next(tally, &data, &sums);
    let mut processes: Vec<SampledProcess> = tally
        .processes
        .iter()
        .filter(|(_, own)| own.samples > 0)
        .map(|(process, own)| SampledProcess {
            process: *process,
            name: own.name.clone(),
            samples: own.samples,
        })
        .collect();
    processes.sort_by_key(|own| (std::cmp::Reverse(own.samples), own.process));
    let header = &tally.header;
    let mut found = SampledFindings {
        schema: "lineup.samples/1",
        command: header.command_line.clone(),
        host: header.host_name.clone(),
        kernel_release: header.release.clone(),
        architecture: header.architecture.clone(),
        is_whole: tally.ending == Ending::Whole,
        span_ns: tally.span_ns.map(|(first, last)| last - first),
        events: tally.events.iter().map(wording::event).collect(),
        lost_records: tally.lost_records,
        lost_samples: tally.lost_samples,
        worked_out_addresses: tally.worked_out,
        throttled: tally.throttled,
        unreadable_records: tally.unreadable,
        processes,
        cpus: tally.cpus.iter().map(|(cpu, samples)| SampledCpu { cpu: *cpu, samples: *samples }).collect(),
        files: files(tally, debug),
        functions: sums.functions(tally),
        sources: sums.sources(),
        notes: wording::notes(tally, &data),
        data,
        lines,
        findings: Vec::new(),
        against_model: None,
        next,
    };
    found.findings = found.worth(wanted.least_share);
    Ok(found)
}

/// A choice of samples.
#[derive(Clone, Debug)]
pub struct SampledOptions {
    /// Accesses by these functions alone; accesses by all functions if empty.
    pub functions: Vec<String>,
    /// The share from which on something is a finding.
    pub least_share: f64,
}

impl Default for SampledOptions {
    fn default() -> Self {
        SampledOptions { functions: Vec::new(), least_share: 0.01 }
    }
}

impl SampledOptions {
    fn has(&self, function: &str) -> bool {
        self.functions.is_empty() || self.functions.iter().any(|wanted| wanted == function)
    }
}

/// Names for code outside programs' files.
#[derive(Default, Debug)]
pub struct MoreNames {
    /// Names for code that was made at run time, by process.
    pub processes: BTreeMap<u32, CodeNames>,
    /// Names for the code of a file, such as the kernel's. The key is its position among the tally's files; the names
    /// go by the distance from its mapping's start.
    pub files: BTreeMap<u32, CodeNames>,
}

fn files(tally: &Tally, debug: &[Option<DebugInfo>]) -> Vec<SampledFile> {
    let mut samples = vec![0; tally.files.len()];
    for (spot, sum) in &tally.spots {
        if let Code::File { file, .. } = spot.code
            && let Some(own) = samples.get_mut(file as usize)
        {
            *own += sum.samples;
        }
    }
    let all = tally.files.iter().zip(&samples).enumerate().filter(|(_, (_, samples))| **samples > 0);
    let mut all: Vec<SampledFile> = all
        .map(|(number, (file, samples))| SampledFile {
            path: file.path.clone(),
            build_id: file.build_id.as_ref().map(|id| id.iter().map(|byte| format!("{byte:02x}")).collect()),
            samples: *samples,
            known: match debug.get(number).and_then(Option::as_ref) {
                Some(debug) if debug.has_debug_info() => FileInformation::Types,
                Some(_) => FileInformation::Symbols,
                None => FileInformation::Nothing,
            },
        })
        .collect();
    all.sort_by(|one, other| (other.samples, &one.path).cmp(&(one.samples, &other.path)));
    all
}

/// The recordings that would show the members a call touches together: calls of the functions that access a type most.
fn next(tally: &Tally, data: &[SampledData], sums: &Sums) -> Vec<SampledNext> {
    let types = data.iter().filter(|one| one.kind == Class::Member).take(PROPOSALS);
    let proposal = |one: &SampledData| {
        let mut functions: BTreeMap<&str, u64> = BTreeMap::new();
        for user in one.members.iter().flat_map(|member| &member.functions) {
            *functions.entry(&user.name).or_default() += user.samples;
        }
        let mut functions: Vec<(&str, u64)> = functions.into_iter().collect();
        functions.sort_by_key(|(name, samples)| (std::cmp::Reverse(*samples), *name));
        // All in the file of the first: one recording is of one program.
        let file = functions.iter().find_map(|(name, _)| sums.user_file(tally, name))?;
        let own = functions.iter().filter(|(name, _)| sums.user_file(tally, name).as_deref() == Some(&*file));
        let regions: Vec<String> =
            own.take(REGIONS).flat_map(|(name, _)| ["--region".to_owned(), (*name).to_owned()]).collect();
        let words = ["lineup", "record"].map(str::to_owned).into_iter().chain(regions);
        let words = words.chain(["--out", "calls.rec", "--", file.as_str()].map(str::to_owned));
        let command = shell_words::join(words.collect::<Vec<_>>());
        Some(SampledNext { subject: one.name.clone(), command: format!("{command} ARGUMENTS") })
    };
    types.filter_map(proposal).collect()
}
