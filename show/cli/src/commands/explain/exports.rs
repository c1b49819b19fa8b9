//! Recorded calls in forms of other tools.

use super::args::Options;
use super::regions::asked_for;
use crate::recordings::survey::Surveyed;
use crate::terminal::outcome::Outcome;
use crate::terminal::progress::Stages;
use crate::terminal::{output, typed_command};
use anyhow::{Context, Result, bail};
use lineup_recording::Mode;
use lineup_report::exports::{CALLS_HEAD, CallFigures, CallTrace, call_line};

/// Writes the calls as a trace, or prints them as a table.
pub(crate) fn calls(options: &Options, surveyed: &Surveyed, stages: &Stages) -> Result<Outcome> {
    let header = &surveyed.survey.header;
    if header.mode == Mode::System {
        let name = options.recording.display();
        bail!(
            "{name} is of a whole system: `lineup trace report --format chrome {name}`, or `--csv`, has its calls"
        );
    }
    let regions = &header.regions;
    if let Some(file) = &options.trace {
        let mut trace = CallTrace::new(regions, options.line_size);
        surveyed.each_call(stages, |call| trace.add(call))?;
        let program = typed_command::line(header.command.iter().map(Into::into));
        stages.end();
        let text = trace.finish(&program).text();
        std::fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))?;
        return Ok(Outcome::Done);
    }
    let recorded: Vec<&str> = regions.iter().map(|(_, region)| region.name.as_str()).collect();
    let wanted = asked_for(&options.regions, &recorded)?;
    let mut text = CALLS_HEAD.to_string();
    surveyed.each_call(stages, |call| {
        let region = regions.get(call.region).map_or("", |region| region.name.as_str());
        if wanted.is_empty() || wanted.iter().any(|name| name == region) {
            text += &call_line(region, call, &CallFigures::of(call, options.line_size));
        }
    })?;
    stages.end();
    output::print(&text)?;
    Ok(Outcome::Done)
}
