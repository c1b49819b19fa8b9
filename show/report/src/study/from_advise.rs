//! From advice to proposals and refusals.

use super::coverage::NotObserved;
use super::proposal::{
    ConstraintNote, Gain, OffsetCheck, Proposal, ProposalStatus, Refusal, SavingReport, SizeChange,
};
use super::study_report::StudyReport;
use lineup_advise::constraint::Binding;
use lineup_advise::proposal::{self, Advice, Check, Description, RegionLines};
use lineup_model::region::RegionId;

impl StudyReport {
    /// Adds the proposals and refusals. The regions have to be in the report already: lines of a region that the report
    /// does not have are left out.
    pub fn add_advice(&mut self, advice: &Advice) {
        let proposals: Vec<Proposal> =
            advice.descriptions.iter().chain(&advice.too_little).map(|one| self.proposal(one)).collect();
        let refusals: Vec<Refusal> = advice.refusals.iter().map(|one| self.refusal(one)).collect();
        self.proposals.extend(proposals);
        self.refusals.extend(refusals);
        self.already_good.extend(advice.already_good.iter().cloned());
        let rewritten = advice.orders.iter().flat_map(|order| &order.rewritten_values);
        self.side_effects.extend(rewritten.cloned());
        if !advice.types_not_read.is_empty() {
            let reason = |(name, binding): &(String, Binding)| format!("{name} ({binding})");
            let reasons: Vec<String> = advice.types_not_read.iter().map(reason).collect();
            self.not_observed.push(NotObserved {
                what: format!(
                    "declarations of {} of {} touched types",
                    advice.types_not_read.len(),
                    advice.types_touched
                ),
                consequence: format!(
                    "they could not be read, so no order was looked for: {}",
                    reasons.join("; ")
                ),
            });
        }
        if advice.threads == 1 {
            self.not_observed.push(NotObserved {
                what: "other threads".to_owned(),
                consequence: "calls of one thread (of a kernel: one CPU) were recorded; what others write is not known, so advice \
                              cannot keep it apart from what they read"
                    .to_owned(),
            });
        }
    }

    fn position(&self, region: RegionId) -> Option<usize> {
        self.regions.iter().position(|known| known.id == region)
    }

    fn gains(&self, lines: &[RegionLines]) -> Vec<Gain> {
        let gain = |one: &RegionLines| {
            Some(Gain {
                region: self.position(one.id)?,
                data_model: one.data_model.to_owned(),
                line_bytes: u32::try_from(one.line_bytes).ok()?,
                before: one.before,
                after: one.after,
            })
        };
        lines.iter().filter_map(gain).collect()
    }

    fn proposal(&self, one: &Description) -> Proposal {
        Proposal {
            kind: one.kind,
            target: one.target.clone(),
            summary: one.summary.clone(),
            reasons: one.reasons.clone(),
            predicted: one.predicted,
            worth: one.worth.iter().filter_map(|worth| self.worth(worth)).collect(),
            gains: self.gains(&one.lines),
            sizes: sizes(&one.sizes),
            constraints: one.obeyed.iter().map(note).collect(),
            status: if one.is_in_patch { ProposalStatus::InPatch } else { ProposalStatus::Reported },
            check: one.check.map(check),
        }
    }

    fn worth(&self, one: &proposal::RegionSaving) -> Option<SavingReport> {
        Some(SavingReport {
            region: self.position(one.id)?,
            lines_saved: one.lines_saved,
            of_lines: one.of_lines,
            share: one.share,
            stalls: one.stalls,
            calls_per_second: one.calls_per_second,
        })
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
