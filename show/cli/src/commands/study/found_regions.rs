//! Regions that were not named: those of the best findings that a study can act on.

use super::plan::Plan;
use super::timed_edits::stalling::Stalling;
use super::variant::Built;
use crate::terminal::progress::Stages;
use crate::whole_program::findings::{self, FindRequest, WINDOW_MIB};
use anyhow::{Context, Result};
use lineup_cache::CacheSpec;
use lineup_find::{Again, Finding, Findings, Kind, Placements, Trial};
use lineup_model::region::{Region, Regions};
use lineup_report::find::words;
use lineup_report::visible::one_line;
use lineup_study::interrupt::Interrupts;
use lineup_study::process::Streams;
use lineup_study::progress::Progress;
use lineup_study::recorder::{Engine, Subject};
use lineup_study::run::Run;
use std::path::Path;

/// Findings that are studied together at most.
const MOST_FINDINGS: usize = 3;
/// A finding whose upper bound is smaller is not worth a study.
const LEAST_GAIN: f64 = 0.01;

/// The findings of the whole program's run that a study needs.
pub(crate) struct Found {
    /// The functions that a study is to measure; the reason in sentences where there are none.
    pub(crate) regions: Result<FoundRegions, String>,
    /// Where the modelled cycles go.
    pub(crate) cycles: String,
    /// Placements in a model of the run.
    pub(crate) placements: Option<Placements>,
    /// Where the run stalls for data.
    pub(crate) stalling: Stalling,
}

/// The functions that a study is to measure.
pub(crate) struct FoundRegions {
    /// The functions.
    pub(crate) regions: Regions,
    /// The reason for choosing them, in a sentence.
    pub(crate) why: String,
}

/// Finds regions that are worth a study in the program as it was built.
pub(crate) fn regions(plan: &Plan, built: &Built, stages: &Stages, interrupts: &Interrupts) -> Result<Found> {
    let named = plan.program.as_ref().map(|program| built.tree.path.join(program));
    let run = plan.run(&built.tree)?;
    let findings = whole_run((run, named.as_deref()), (plan.engine, &plan.caches), stages, interrupts)?;
    let regions = choose(&findings, plan.advice.allow_growth);
    if let Ok(found) = &regions {
        stages.line(&format!("lineup: {}", found.why));
    }
    let (cycles, stalling) = (words::cycles_in_words(&findings), Stalling::of(&findings));
    Ok(Found { regions, cycles, placements: findings.placements, stalling })
}

/// The findings of a whole run; `named` is the program that is looked at, where the run starts it in turn.
pub(crate) fn whole_run(
    (run, named): (Run, Option<&Path>),
    (engine, caches): (Engine, &[CacheSpec]),
    stages: &Stages,
    interrupts: &Interrupts,
) -> Result<Findings> {
    let subject = Subject::load(&run, named)?;
    let scratch = interrupts.temporary_folder().context("making a temporary folder")?;
    let wanted = FindRequest {
        run,
        engine,
        caches: caches.to_vec(),
        window_mib: WINDOW_MIB,
        page_costs: None,
        recording: scratch.path().join("find.rec"),
        recording_stays: false,
        streams: Streams::Captured,
        least_gain: LEAST_GAIN,
        asks_clock: false,
        again: Again::default(),
    };
    findings::find(wanted, subject, stages, interrupts)?.whole()
}

/// The best findings of a layout, and the functions in which they stall; or, when there are no such findings, the
/// others in sentences. With `allow_growth` findings about threads that contend for lines count as well.
fn choose(findings: &Findings, allow_growth: bool) -> Result<FoundRegions, String> {
    let gain = |finding: &Finding| match finding.kind {
        Kind::OwnLines => (allow_growth && finding.next.starts_with("lineup study ")).then_some(finding.gain),
        _ => {
            // A study writes orders for C and C++, and a Box for Rust; of other kinds the finding says it: its own, and
            // the one that a study writes in its place.
            let written = |trial: &&Trial| {
                let is_own = finding.is_written && trial.kind == finding.kind;
                let is_instead = finding.instead == Some(trial.kind);
                is_own || is_instead || matches!(trial.kind, Kind::Order | Kind::Boxed)
            };
            let trials = finding.trials.iter().filter(written);
            let best = trials.max_by(|one, other| one.gain.total_cmp(&other.gain));
            best.map(|trial| trial.gain).filter(|gain| *gain >= LEAST_GAIN)
        }
    };
    let studied = findings.findings.iter().filter(|one| !one.functions.is_empty() && !one.next.is_empty());
    let studied = studied.filter_map(|finding| Some((finding, gain(finding)?)));
    let mut chosen: Vec<(&Finding, f64)> = studied.collect();
    chosen.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    chosen.truncate(MOST_FINDINGS);
    if chosen.is_empty() {
        return Err(nothing(findings));
    }
    let mut names: Vec<&str> = Vec::new();
    for name in chosen.iter().flat_map(|(finding, _)| &finding.functions) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let subjects = chosen.iter().map(|(finding, gain)| {
        let subject = one_line(finding.subject.as_deref().unwrap_or_default()).into_owned();
        format!("{subject} (upper bound −{} of {})", lineup_model::figure::share(*gain), words::base(finding))
    });
    let subjects: Vec<String> = subjects.collect();
    let shown: Vec<_> = names.iter().map(|name| one_line(name)).collect();
    Ok(FoundRegions {
        why: format!("studies {}, for {}", shown.join(", "), subjects.join(", ")),
        regions: names.into_iter().map(Region::named).collect(),
    })
}

/// The message of a study that has nothing to change.
fn nothing(findings: &Findings) -> String {
    let mut text =
        "No patch: in the whole program no layout that a study writes gains 1 % of the modelled stalls.\n"
            .to_owned();
    for finding in findings.findings.iter().take(MOST_FINDINGS) {
        let subject = words::subject(finding);
        text += &format!(
            "- {subject}: {}, upper bound {} of {}\n",
            words::layout(finding.kind),
            words::saved(finding.gain),
            words::base(finding)
        );
        if let Some(by_hand) = &finding.by_hand {
            text += &format!("  {}\n", one_line(by_hand));
        }
    }
    text + "`lineup find` shows all of it; --region studies a function all the same.\n"
}
