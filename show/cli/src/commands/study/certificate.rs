//! The certificate of a study's patch.

use super::comparison::Compared;
use super::plan::Plan;
use super::variant::Variant;
use crate::terminal::progress::Stages;
use crate::terminal::typed_command;
use anyhow::Result;
use lineup_advise::proposal::Advice;
use lineup_check::certificate::{Certificate, NAME, quoted};
use lineup_prove::{Proof, Proven};
use lineup_report::study::{CertificateReport, OpenKind, ProofReport};
use lineup_study::interrupt::Interrupts;
use lineup_study::source::certificate::{CertificateRequest, Certified, certify};
use lineup_study::source::scratch::Scratch;
use std::collections::BTreeMap;
use std::time::Duration;

/// The longest that a certificate takes. A study of a program whose units compile for longer has none.
const LIMIT: Duration = Duration::from_secs(600);

/// Writes the certificate of a changed program that passed, or reports why there is none. The inner error is a
/// difference that the new layout does not explain.
pub(crate) fn write(
    (plan, scratch): (&Plan, &Scratch),
    [before, after]: [&Variant; 2],
    compared: &Compared,
    advice: &Advice,
    (interrupts, stages): (&Interrupts, &Stages),
) -> Result<std::result::Result<CertificateReport, String>> {
    let not_covered = |because: String| Ok(Ok(CertificateReport::NotCovered { because }));
    if let Some(why) = beyond_maps(advice) {
        return not_covered(why);
    }
    let Some(reading) = &before.reading else {
        return not_covered("the compiler calls of the build were not seen".into());
    };
    let request = CertificateRequest {
        scratch,
        trees: [before.tree(), after.tree()],
        calls: &reading.calls,
        program: before.program(),
        edited: advice.edited.keys().map(String::as_str).collect(),
        about: about(compared.as_ref().ok()),
        out: &plan.out,
        limit: LIMIT,
    };
    Ok(match certify(request, interrupts, stages)? {
        Certified::Made(certificate) => Ok(written(&certificate)),
        Certified::NotCovered(because) => Ok(CertificateReport::NotCovered { because }),
        Certified::Differs(because) => Err(because),
    })
}

/// A part of the patch that no map of members says.
fn beyond_maps(advice: &Advice) -> Option<String> {
    if let Some(gather) = advice.gathers.first() {
        return Some(format!("variables become members of {}", gather.name));
    }
    if let Some(variable) = advice.variables.iter().flat_map(|one| &one.variables).next() {
        return Some(format!("{variable} is declared otherwise"));
    }
    if let Some(narrowed) = advice.narrowings.first() {
        return Some(format!("members of {} leave it, or get smaller types", narrowed.type_name));
    }
    let cold = advice.cold_parts.first()?;
    Some(format!("members of {} leave its objects", cold.type_name))
}

/// Records of the comparison: effects, and time with its interval.
fn about(proof: Option<&Proven<Proof>>) -> Vec<String> {
    let mut about = vec![format!("note {}", quoted(&format!("lineup {}", env!("CARGO_PKG_VERSION"))))];
    let Some(proof) = proof.map(ProofReport::from) else { return about };
    let command = typed_command::line(std::env::args_os());
    about.push(format!("effects {} of {}", quoted(&proof.effects_sentence()), quoted(&command)));
    let time = match (&proof.time, &proof.time_not_claimed) {
        (Some(time), _) => format!(
            "{:.4} of the time before, {} interval {:.4} to {:.4}, {}",
            time.ratio,
            lineup_model::figure::level(time.level),
            time.ratio_low,
            time.ratio_high,
            time.links_in_words()
        ),
        (None, Some(why)) => format!("not claimed: {why}"),
        (None, None) => return about,
    };
    about.push(format!("time {}", quoted(&time)));
    about
}

fn written(certificate: &Certificate) -> CertificateReport {
    let mut kinds: BTreeMap<String, u64> = BTreeMap::new();
    certificate.open().for_each(|one| *kinds.entry(one.kind.to_string()).or_default() += 1);
    let open = kinds.values().sum();
    let mut open_kinds: Vec<OpenKind> =
        kinds.into_iter().map(|(kind, count)| OpenKind { kind, count }).collect();
    open_kinds.sort_by_key(|one| std::cmp::Reverse(one.count));
    let findings = &certificate.findings;
    CertificateReport::Written {
        file: NAME.into(),
        functions: findings.functions,
        objects: findings.objects,
        plain_accesses: findings.plain,
        by_rules: findings.obligations.iter().filter(|one| one.rule.is_some()).count() as u64,
        open,
        open_kinds,
    }
}
