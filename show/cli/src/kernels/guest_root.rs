//! The root that a guest is given, and the programs that its workload will miss.

use crate::terminal::progress::Stages;
use anyhow::Result;
use lineup_study::guest::rootfs::Rootfs;
use lineup_study::guest::workload::Workload;
use lineup_study::interrupt::Interrupts;
use lineup_study::progress::Progress as _;
use std::path::PathBuf;

/// The guest's root, if one was given.
pub(crate) fn root(given: &[PathBuf], stages: &Stages, interrupts: &Interrupts) -> Result<Option<Rootfs>> {
    if given.is_empty() {
        return Ok(None);
    }
    Ok(Some(Rootfs::open(given, stages, interrupts)?))
}

/// Names programs that the workload seems to start and the guest lacks; only its run shows whether it starts them.
pub(crate) fn say_unknown(workload: &Workload, stages: &Stages) {
    if !workload.unknown.is_empty() {
        let names: Vec<&str> = workload.unknown.iter().map(String::as_str).collect();
        let names = names.join(", ");
        stages.line(&format!("lineup: the workload seems to start what the guest will not have: {names}"));
    }
}
