//! Exact instruction counts: the program runs under the emulator, which counts every instruction.

use anyhow::{Context, Result, bail};
use lineup_prove::metric::{Metric, Observed, Unit};
use lineup_recording::Mode;
use lineup_study::interrupt::Interrupts;
use lineup_study::recorder::{Engine, RecordRequest, Subject, executable, record};
use lineup_study::run::Run;

/// The number of emulated runs: two equal counts show that they repeat.
const RUNS: usize = 2;

/// The metric of all instructions that the program executes in user mode.
pub(crate) fn instructions(run: &Run, interrupts: &Interrupts) -> Result<Metric> {
    let Some(program) = run.command.first() else { bail!("there is no program to emulate") };
    let mut run = run.clone();
    run.command[0] = executable(program)?.into();
    let scratch = interrupts.temporary_folder().context("making a temporary folder")?;
    let request = RecordRequest {
        output: scratch.path().join("counts"),
        ..RecordRequest::new(run, Engine::Emulator, Mode::WholeProgram)
    };
    let subject = Subject::load(&request.run, None)?;
    let mut per_run = Vec::new();
    for _ in 0..RUNS {
        let outcome = record(&request, &subject, interrupts).context("--emulate")?;
        let total = outcome.summary.total_instructions;
        let Some(total) = total else { bail!("--emulate: the emulator gave no instruction count") };
        per_run.push(Observed::Value(total as f64));
    }
    Ok(Metric { name: "emulated-instructions".into(), unit: Unit::Events, per_run })
}
