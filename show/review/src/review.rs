//! The whole review.

use crate::calls::RegionChange;
use crate::fail_if::FailIf;
use crate::finding::{Finding, Rule};
use crate::guard_check::{self, GuardFile, GuardState};
use crate::layouts::{self, FileChanges};
use crate::side::{FindingOfRun, Side};
use lineup_model::figure;
use lineup_model::line::LineSize;
use serde::Serialize;

/// The options of a review.
pub struct Options<'o> {
    /// Names of the types to compare; when empty, all that the repository declares.
    pub types: &'o [String],
    /// The size of the lines that types are laid out on.
    pub line: LineSize,
    /// The promises; `None` when the repository has none.
    pub guard: Option<&'o GuardFile>,
    /// The conditions that fail the review.
    pub fail_if: &'o [FailIf],
}

/// The effects of a change.
#[derive(Clone, PartialEq, Debug)]
pub struct Review {
    /// The base's commit, as [`Side::title`].
    pub base: String,
    /// The head's.
    pub head: String,
    /// The size of the lines that types are laid out on.
    pub line: LineSize,
    /// The changes for the worse; those that fail the review come first.
    pub findings: Vec<Finding>,
    /// The differences between the types of each file.
    pub files: Vec<FileChanges>,
    /// The differences between the calls of each region.
    pub regions: Vec<RegionChange>,
    /// Each file's check against the promises; empty when there are none.
    pub guard: Vec<GuardState>,
    /// The certificate that the user gave, checked again.
    pub certificate: Option<CheckedCertificate>,
    /// The parts that could not be compared, a sentence each.
    pub not_observed: Vec<String>,
}

/// A certificate of this change, checked again.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct CheckedCertificate {
    /// The certificate.
    pub file: String,
    /// It does not hold, or is of other sources; the review fails then.
    pub is_refused: bool,
    /// The counts that it shows, or the reason of the refusal.
    pub sentence: String,
}

impl Review {
    /// True when there is something that the project wants to fail on.
    pub fn fails(&self) -> bool {
        self.findings.iter().any(|finding| finding.fails)
            || self.certificate.as_ref().is_some_and(|certificate| certificate.is_refused)
    }
}

/// Holds the head against the base.
pub fn review(base: &Side<'_>, head: &Side<'_>, options: &Options<'_>) -> Review {
    let mut findings = Vec::new();
    let mut files = Vec::new();
    for (old, new) in base.files.iter().zip(&head.files) {
        let (changes, worse) = layouts::changes((base, old), (head, new), options.types, options.line);
        for finding in worse {
            // A type that several files hold is one type.
            if !findings.contains(&finding) {
                findings.push(finding);
            }
        }
        files.push(changes);
    }
    let regions: Vec<RegionChange> = head
        .regions
        .iter()
        .filter_map(|after| {
            let before = base.regions.iter().find(|before| before.name == after.name)?.clone();
            Some(RegionChange { before, after: after.clone() })
        })
        .collect();
    findings.extend(regions.iter().flat_map(RegionChange::findings));
    let guard = match options.guard {
        Some(guard) => {
            let (states, broken) = guard_check::check(guard, base, head);
            findings.extend(broken);
            states
        }
        None => Vec::new(),
    };
    findings.extend(fresh(base.found.as_deref(), head.found.as_deref()));
    for finding in &mut findings {
        finding.fails = options.fail_if.iter().any(|rule| rule.applies_to(finding));
    }
    findings.sort_by_key(|finding| (!finding.fails, finding.rule));
    Review {
        base: base.title.to_owned(),
        head: head.title.to_owned(),
        line: options.line,
        findings,
        certificate: None,
        not_observed: not_observed(&regions, base, head, options),
        files,
        regions,
        guard,
    }
}

/// New findings of `lineup find`.
fn fresh(before: Option<&[FindingOfRun]>, after: Option<&[FindingOfRun]>) -> Vec<Finding> {
    let (Some(before), Some(after)) = (before, after) else { return Vec::new() };
    let is_new = |found: &&FindingOfRun| !before.iter().any(|known| known.subject == found.subject);
    let finding = |found: &FindingOfRun| Finding {
        rule: Rule::Finding,
        subject: found.subject.clone(),
        message: format!(
            "{} could gain {} of all modelled stalls (upper bound); before the change it was no finding",
            found.subject,
            figure::share(found.gain)
        ),
        place: found.place.clone(),
        ratio: None,
        fails: false,
    };
    after.iter().filter(is_new).map(finding).collect()
}

fn not_observed(
    regions: &[RegionChange],
    base: &Side<'_>,
    head: &Side<'_>,
    options: &Options<'_>,
) -> Vec<String> {
    let mut sentences = Vec::new();
    for region in regions.iter().filter(|region| region.has_other_calls()) {
        let made = |calls: Option<u64>| calls.unwrap_or_default();
        sentences.push(format!(
            "{} is called {} times instead of {}: its means are of other work",
            region.after.name,
            made(region.after.calls_made()),
            made(region.before.calls_made())
        ));
    }
    for (side, name) in [(base, "base"), (head, "head")] {
        let missing = side.regions_missing.iter();
        sentences.extend(
            missing.map(|region| format!("{region} was not recorded: the {name} has no such function")),
        );
    }
    if regions.is_empty() && head.regions_missing.is_empty() && base.regions_missing.is_empty() {
        sentences.push("no calls were recorded: no region was given".to_owned());
    }
    if options.guard.is_none() {
        sentences.push("no promises were checked: the head has no lineup.lock".to_owned());
    }
    sentences
}
