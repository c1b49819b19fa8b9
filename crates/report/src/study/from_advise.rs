//! From advice to proposals and refusals.

use super::StudyReport;
use super::proposal::{
    ConstraintNote, Gain, OffsetCheck, Proposal, ProposalKind, ProposalStatus, Refusal, SizeChange,
};
use crate::figure::{mean, share, whole};
use lineup_advise::constraint::Binding;
use lineup_advise::proposal::{
    self, Advice, AlignmentAdvice, Check, GatherProposal, ImmediateAdvice, OrderProposal, RegionLines,
    SplitAdvice,
};
use std::collections::BTreeMap;

impl StudyReport {
    /// Takes over what is proposed and what is refused. The regions have to be in the report already: they are
    /// found by name, and lines of a region that the report does not have are left out.
    pub fn add_advice(&mut self, advice: &Advice) {
        let proposals: Vec<Proposal> = (advice.orders.iter().map(|one| self.order(one)))
            .chain(advice.gathers.iter().map(|one| self.gather(one)))
            .chain(advice.alignments.iter().map(|one| self.alignment(one)))
            .chain(advice.splits.iter().map(split))
            .chain(advice.immediates.iter().map(immediate))
            .collect();
        let refusals: Vec<Refusal> = advice.refusals.iter().map(|one| self.refusal(one)).collect();
        self.proposals.extend(proposals);
        self.refusals.extend(refusals);
        self.already_good.extend(advice.already_good.iter().cloned());
    }

    fn gains(&self, lines: &[RegionLines]) -> Vec<Gain> {
        let gain = |one: &RegionLines| {
            Some(Gain {
                region: self.regions.iter().position(|region| region.name == one.region)?,
                data_model: one.data_model.to_owned(),
                line_bytes: u32::try_from(one.line_bytes).ok()?,
                before: one.before,
                after: one.after,
            })
        };
        lines.iter().filter_map(gain).collect()
    }

    fn order(&self, one: &OrderProposal) -> Proposal {
        let minimal = match one.is_proven_minimal {
            true => "No allowed order needs fewer lines.",
            false => "Found by search: a better order is not excluded.",
        };
        Proposal {
            kind: ProposalKind::Reorder,
            target: one.type_name.clone(),
            summary: format!(
                "Moved in {}: {} ({} bytes). {minimal}",
                one.path,
                one.moved.join(", "),
                whole(one.moved_bytes)
            ),
            reasons: one
                .reasons
                .iter()
                .map(|reason| format!("{}: {}", reason.member, reason.because))
                .collect(),
            gains: self.gains(&one.lines),
            sizes: sizes(&one.sizes),
            constraints: one.obeyed.iter().map(note).collect(),
            status: status(&one.edited),
            check: Some(check(one.check)),
        }
    }

    fn gather(&self, one: &GatherProposal) -> Proposal {
        let types = one
            .reordered_types
            .iter()
            .map(|name| format!("The members of {name} are reordered, hot ones first."));
        Proposal {
            kind: ProposalKind::Gather,
            target: one.variables.join(", "),
            summary: format!("In {}, they become members of one aligned struct, {}.", one.path, one.name),
            reasons: types.collect(),
            gains: self.gains(&one.lines),
            sizes: sizes(&one.sizes),
            constraints: one.notes.iter().map(note).collect(),
            status: status(&one.edited),
            check: Some(check(one.check)),
        }
    }

    fn alignment(&self, one: &AlignmentAdvice) -> Proposal {
        let unaligned = share(one.unaligned_share);
        let mut proposal = reported(ProposalKind::Align, &one.owner, one.how.clone());
        proposal.reasons = vec![format!(
            "{unaligned} of the recorded objects did not start on a line; an alignment of {} bytes would make them.",
            whole(one.align_bytes)
        )];
        proposal.gains = self.gains(&one.lines);
        proposal
    }

    fn refusal(&self, one: &proposal::Refusal) -> Refusal {
        Refusal {
            target: one.owner.clone(),
            because: one.constraints.iter().map(note).collect(),
            gains: self.gains(&one.lines),
            way_out: None,
        }
    }
}

/// A proposal that is left to a person.
fn reported(kind: ProposalKind, target: &str, summary: String) -> Proposal {
    Proposal {
        kind,
        target: target.to_owned(),
        summary,
        reasons: Vec::new(),
        gains: Vec::new(),
        sizes: Vec::new(),
        constraints: Vec::new(),
        status: ProposalStatus::Reported,
        check: None,
    }
}

fn split(one: &SplitAdvice) -> Proposal {
    let summary = format!(
        "Calls use {} of the {} bytes of an object, and {} objects each. Stored apart, {} hot parts would share a line.",
        whole(one.hot_bytes),
        whole(one.size_bytes),
        mean(one.objects_per_call),
        whole(one.hot_parts_per_line)
    );
    let mut proposal = reported(ProposalKind::Split, &one.type_name, summary);
    proposal.reasons = vec![format!("Hot: {}.", one.hot.join(", "))];
    proposal
}

fn immediate(one: &ImmediateAdvice) -> Proposal {
    let summary = format!(
        "{} loads per call in {}, and no recorded call writes it: it could be part of the instructions ({} bytes).",
        mean(one.loads_per_call),
        one.region,
        whole(one.size_bytes)
    );
    reported(ProposalKind::ImmediateValue, &one.variable, summary)
}

fn status(edited: &BTreeMap<String, String>) -> ProposalStatus {
    if edited.is_empty() { ProposalStatus::Reported } else { ProposalStatus::InPatch }
}

fn check(check: Check) -> OffsetCheck {
    match check {
        Check::Compiled => OffsetCheck::Compiled,
        Check::CompiledRecordedOnly => OffsetCheck::CompiledRecordedOnly,
        Check::Predicted => OffsetCheck::Predicted,
    }
}

fn sizes(sizes: &[proposal::SizeChange]) -> Vec<SizeChange> {
    let size = |one: &proposal::SizeChange| SizeChange {
        data_model: one.data_model.to_owned(),
        before_bytes: one.before_bytes,
        after_bytes: one.after_bytes,
    };
    sizes.iter().map(size).collect()
}

fn note(binding: &Binding) -> ConstraintNote {
    ConstraintNote {
        rule: binding.constraint.describe().to_owned(),
        names: binding.names.clone(),
        at: binding.at.as_ref().map(ToString::to_string),
        detail: binding.detail.clone(),
    }
}
