//! Findings from samples, and the recordings that would add what samples do not contain.

use crate::sampled::findings::{
    FindingReason, SampledData, SampledFinding, SampledFindings, SampledFunction, SampledLine,
};
use std::collections::BTreeMap;

/// The largest numbers of listed findings, and of members and functions of each.
const FINDINGS: usize = 10;
const NAMES: usize = 4;

impl SampledFindings {
    /// Data with at least this share of the latency of all accesses, or of the samples if those have no weights. If no
    /// sample came with an address, the functions with most time.
    pub(super) fn worth(&self, least: f64) -> Vec<SampledFinding> {
        let mut all: Vec<SampledFinding> = self.data.iter().filter_map(|data| self.passed(data)).collect();
        // Addresses that were worked out show where the program was found, not how often it accessed data.
        let is_sampled = |data: &&SampledData| data.accesses.samples > data.accesses.worked_out;
        let sampled = self.data.iter().filter(is_sampled);
        all.extend(sampled.clone().filter(|data| !data.name.starts_with('(')).map(|data| self.waited(data)));
        if sampled.count() == 0 {
            all.extend(self.functions.iter().filter_map(|function| self.ran(function)));
        }
        all.retain(|finding| finding.share >= least && finding.samples > 0);
        // Passing between CPUs is more specific than waiting for the same type, and is listed before it.
        all.sort_by(|one, other| {
            (other.share.total_cmp(&one.share)).then_with(|| one.worth.cmp(&other.worth))
        });
        all.truncate(FINDINGS);
        all
    }

    /// Lines of a type or variable that CPUs take from each other.
    fn passed(&self, data: &SampledData) -> Option<SampledFinding> {
        if data.accesses.hitm == 0 || data.name.starts_with('(') {
            return None;
        }
        let all: u64 = self.data.iter().map(|data| data.accesses.weight).sum();
        let loads = |member: &super::SampledMember| (member.accesses.hitm, member.path.clone());
        let weight = data.members.iter().map(|member| member.hitm_weight).sum::<u64>();
        let share = if all > 0 { weight as f64 / all as f64 } else { 0.0 };
        let own = |line: &&SampledLine| line.bytes.iter().any(|byte| is_of(&byte.name, &data.name));
        let stores = self.lines.iter().filter(own).flat_map(|line| &line.stores);
        let mut written: BTreeMap<(String, String), u64> = BTreeMap::new();
        for byte in stores {
            *written.entry((byte.name.clone(), byte.function.clone())).or_default() += byte.samples;
        }
        let mut written: Vec<_> = written.into_iter().collect();
        written.sort_by(|one, other| (other.1, &one.0).cmp(&(one.1, &other.0)));
        Some(SampledFinding {
            worth: FindingReason::PassedBetweenCpus,
            subject: data.name.clone(),
            share,
            samples: data.accesses.hitm,
            weight,
            members: most(data.members.iter().filter(|member| member.accesses.hitm > 0).map(loads)),
            functions: users(data, |member| member.accesses.hitm > 0),
            written: written
                .into_iter()
                .take(NAMES)
                .map(|((name, function), _)| format!("{name} by {function}"))
                .collect(),
            command: self.command_of(&data.name),
        })
    }

    /// A type or variable whose accesses were waited for.
    fn waited(&self, data: &SampledData) -> SampledFinding {
        let has_weight = self.data.iter().any(|data| data.accesses.weight > 0);
        let weight = |member: &super::SampledMember| {
            let accesses = &member.accesses;
            (if has_weight { accesses.weight } else { accesses.samples }, member.path.clone())
        };
        SampledFinding {
            worth: FindingReason::WaitedFor,
            subject: data.name.clone(),
            share: if has_weight { data.accesses.weight_share } else { data.accesses.sample_share },
            samples: data.accesses.samples,
            weight: data.accesses.weight,
            members: most(data.members.iter().map(weight).filter(|(weight, _)| *weight > 0)),
            functions: users(data, |_| true),
            written: Vec::new(),
            command: self.command_of(&data.name),
        }
    }

    /// A function of a program, by its share of an event without addresses.
    fn ran(&self, function: &SampledFunction) -> Option<SampledFinding> {
        let is_program = function.file.starts_with('/') && !function.name.starts_with('(');
        let words =
            ["lineup", "record", "--region", &function.name, "--out", "calls.rec", "--", &function.file];
        is_program.then(|| SampledFinding {
            worth: FindingReason::TimeSpent,
            subject: function.name.clone(),
            share: function.share,
            samples: function.samples,
            weight: 0,
            members: Vec::new(),
            functions: Vec::new(),
            written: Vec::new(),
            command: Some(format!("{} ARGUMENTS", shell_words::join(words))),
        })
    }

    fn command_of(&self, subject: &str) -> Option<String> {
        self.next.iter().find(|next| next.subject == subject).map(|next| next.command.clone())
    }
}

/// Whether a name is `owner.member`, or the variable `owner` itself.
fn is_of(name: &str, owner: &str) -> bool {
    name.strip_prefix(owner).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Names with most of something, each once; entries without a name are left out.
fn most(counted: impl Iterator<Item = (u64, String)>) -> Vec<String> {
    let mut counted: Vec<(u64, String)> = counted.filter(|(_, name)| !name.is_empty()).collect();
    counted.sort_by(|one, other| (other.0, &one.1).cmp(&(one.0, &other.1)));
    counted.into_iter().take(NAMES).map(|(_, name)| name).collect()
}

/// The functions that accessed members of a thing most.
fn users(data: &SampledData, counts: impl Fn(&super::SampledMember) -> bool) -> Vec<String> {
    let mut samples: BTreeMap<&str, u64> = BTreeMap::new();
    for user in data.members.iter().filter(|member| counts(member)).flat_map(|member| &member.functions) {
        *samples.entry(&user.name).or_default() += user.samples;
    }
    most(samples.into_iter().map(|(name, samples)| (samples, name.to_owned())))
}
