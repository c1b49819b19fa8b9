//! Findings from samples: functions, types and members, and the evidence for the name of each access.
//!
//! Files are laid side by side, each once, even if processes had it at different addresses. An access is named by its
//! address when that lies in a variable, else by the analysis of the instruction's operand. Names that other accesses
//! gave to memory are not used: samples do not say when memory was allocated.

use super::findings::{
    FileInformation, SampledCpu, SampledData, SampledFile, SampledFindings, SampledNext, SampledProcess,
};
use super::options::{MoreNames, SampledOptions};
use super::place_names::Places;
use super::sums::Sums;
use super::{passed_lines, wording};
use crate::error::FindError;
use lineup_debuginfo::DebugInfo;
use lineup_explain::name::Class;
use lineup_samples::tally::Tally;
use lineup_samples::{Code, Ending};
use std::collections::BTreeMap;

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
