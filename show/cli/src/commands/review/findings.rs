//! The findings of `lineup find` on one side.

use super::args::Options;
use super::around::Around;
use super::calls;
use crate::whole_program::findings::{self, FindRequest, WINDOW_MIB};
use anyhow::{Context, Result};
use lineup_find::{Again, Findings};
use lineup_report::find::words::subject;
use lineup_review::FindingOfRun;
use lineup_study::process::Streams;
use lineup_study::recorder::{Engine, Subject};
use std::path::Path;

/// The least gain of a finding, as a share of all modelled stalls: that of `lineup find`.
const LEAST_GAIN: f64 = 0.01;

/// Records the whole program, and works out the findings.
pub(crate) fn find(options: &Options, root: &Path, around: &Around<'_>) -> Result<Vec<FindingOfRun>> {
    let folder = around.interrupts.temporary_folder().context("making a temporary folder")?;
    let run = calls::run(options, root, around)?;
    let subject = Subject::load(&run, None)?;
    let wanted = FindRequest {
        run,
        engine: Engine::Fitting,
        caches: Vec::new(),
        window_mib: WINDOW_MIB,
        page_costs: None,
        recording: folder.path().join("find.rec"),
        recording_stays: false,
        streams: Streams::Captured,
        least_gain: LEAST_GAIN,
        asks_clock: false,
        again: Again::default(),
    };
    Ok(of(&findings::find(wanted, subject, around.stages, around.interrupts)?.whole()?))
}

fn of(findings: &Findings) -> Vec<FindingOfRun> {
    let each = findings.findings.iter();
    each.map(|finding| FindingOfRun { subject: subject(finding), gain: finding.gain, place: None }).collect()
}
