//! Exact instruction counts: the program runs under the emulator, which counts every instruction.

use anyhow::{Context, Result, bail};
use lineup_prove::metric::{Metric, Observed, Unit};
use lineup_recording::Mode;
use lineup_study::interrupt::Interrupts;
use lineup_study::recorder::{Output, RecordRequest, record};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// How often the program is emulated: two equal counts show that they repeat.
const RUNS: usize = 2;

/// The metric of all instructions that the program executes in user mode.
pub(super) fn instructions(command: &[OsString], interrupts: &Interrupts) -> Result<Metric> {
    let [program, arguments @ ..] = command else { bail!("there is no program to emulate") };
    let scratch = tempfile::tempdir().context("making a scratch folder")?;
    let request = RecordRequest {
        program: on_path(program)?,
        arguments: arguments.to_vec(),
        directory: None,
        environment: Vec::new(),
        regions: Vec::new(),
        mode: Mode::WholeProgram,
        max_calls: None,
        warmup_calls: 0,
        caches: Vec::new(),
        output: scratch.path().join("counts"),
        shown: Output::Hidden,
    };
    let mut per_run = Vec::new();
    for _ in 0..RUNS {
        let outcome = record(&request, interrupts).context("--emulate")?;
        let total = outcome.summary.and_then(|summary| summary.total_instructions);
        let Some(total) = total else { bail!("--emulate: the emulator gave no instruction count") };
        per_run.push(Observed::Value(total as f64));
    }
    Ok(Metric { name: "emulated-instructions".into(), unit: Unit::Events, per_run })
}

/// The file that a command's first word names.
fn on_path(program: &OsStr) -> Result<PathBuf> {
    if Path::new(program).components().count() > 1 {
        return Ok(program.into());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places = std::env::split_paths(&path).map(|directory| directory.join(program));
    places.find(|place| place.is_file()).with_context(|| format!("{} is not on the PATH", program.display()))
}
