//! Runs `lineup advise`.

use super::args::{Options, PROPOSED};
use super::what_if;
use crate::builds::default_command;
use crate::host::facts;
use crate::kernels::advice::{self, KernelAdvice};
use crate::kernels::commit_message::{Ground, series};
use crate::options::advice::{outcome_of_orders, tell_unfounded_reviews};
use crate::options::pins::check_pins;
use crate::recordings::survey::{self, Surveyed};
use crate::terminal::outcome::Outcome;
use crate::terminal::output;
use crate::terminal::progress::Stages;
use crate::types::guard;
use anyhow::{Context, Result, bail};
use lineup_advise::proposal::Advice;
use lineup_advise::usage::Usage;
use lineup_explain::Explained;
use lineup_recording::Mode;
use lineup_report::study::{Fact, Patch, ProgramFindings, SOURCES, StudyReport, WEIGHTS};
use lineup_report::text::study_text;
use lineup_study::companions::DebugInfos;
use lineup_study::progress::Progress;
use lineup_study::source::judge::BuildJudge;
use lineup_study::source::kernel_configuration::{KernelPlaces, randomisation};
use lineup_study::source::meaning::{self, Reading};
use lineup_study::source::scratch::{Role, Scratch};
use lineup_study::source::texts;
use std::path::{Path, PathBuf};

/// Explains the recording, works out a better layout, has the compiler judge it, and prints it.
pub(crate) fn run(options: &Options) -> Result<Outcome> {
    let stages = Stages::new();
    let surveyed = survey::survey(&options.recording, &stages)?;
    if surveyed.survey.header.mode == Mode::System {
        return run_kernel(options, surveyed, &stages);
    }
    if options.what_if.is_some() {
        bail!(
            "--what-if goes with recordings of kernels; `lineup study` builds and records the changed program"
        );
    }
    let mut known = DebugInfos::default();
    let program = surveyed.recorded_program(&mut known)?;
    let mut recorded = survey::program(surveyed, &program, known, Default::default(), &stages)?;
    let weights = options.weighing.weigh(&mut recorded, &stages)?;
    if options.groups.are_wanted() {
        return options.groups.print(&recorded, options.advice.line_size);
    }
    let mut wanted = options.advice.meant()?;
    check_pins(&wanted.pins, recorded.types())?;
    let source = options.source.as_deref().unwrap_or(Path::new("."));
    let interrupts = stages.watch_signals()?;
    stages.stage("copying the sources");
    let build = default_command::of(options.build.clone(), &program, source);
    let scratch = Scratch::new(source, &build, Path::new(""), &interrupts)?;
    let inside = program.strip_prefix(scratch.source()).ok().with_context(|| {
        let (program, source) = (program.display(), scratch.source().display());
        format!("the recorded program {program} is not inside {source}; name its folder with --source")
    })?;
    let sources = texts::read(scratch.source(), scratch.leave_out())?;
    let mut as_it_is = scratch.copy(Role::Before)?;
    stages.stage("building the unchanged program, and reading its sources");
    let reading = meaning::build_and_read(&scratch, &mut as_it_is, &options.advice.units(), Some(inside))
        .map_err(|error| default_command::explain(error, &build, &program))?;
    let sources = reading.in_their_languages(&sources);
    wanted.meaning = reading.meaning().and(wanted.meaning);
    tell_unfounded_reviews(&wanted.meaning);
    stages.stage("working out a better layout; the compiler judges every candidate");
    let mut judge = BuildJudge::new(&scratch, inside, &as_it_is.path, &reading.calls, &interrupts)?;
    let advice = lineup_advise::advise(
        &Usage::of_explained(&recorded),
        recorded.types(),
        &sources,
        &wanted,
        &mut judge,
    )?;
    stages.end();
    write(
        options,
        &recorded,
        &advice,
        scratch.source(),
        Extra {
            patch: lineup_advise::patch::unified_diff(&sources, &advice.edited),
            reading: Some(&reading),
            weights,
        },
    )?;
    Ok(outcome_of_orders(&wanted.orders, &advice))
}

/// The same for a kernel: nothing is compiled, and without sources the declarations are written out from the types.
fn run_kernel(options: &Options, surveyed: Surveyed, stages: &Stages) -> Result<Outcome> {
    let survey = &surveyed.survey;
    let kernel = survey.images.first().map(|image| PathBuf::from(&image.path));
    let kernel = kernel.with_context(|| format!("{} names no kernel", options.recording.display()))?;
    let word = |index: usize| survey.header.command.get(index).cloned().unwrap_or_default();
    let words = [word(0), word(1)];
    let mut recorded = survey::program(surveyed, &kernel, DebugInfos::default(), Default::default(), stages)?;
    let weights = options.weighing.weigh(&mut recorded, stages)?;
    if options.groups.are_wanted() {
        return options.groups.print(&recorded, options.advice.line_size);
    }
    if let Some(file) = options.what_if.as_deref().filter(|file| *file != Path::new(PROPOSED)) {
        let orders = what_if::read_orders(file, &recorded)?;
        return what_if::run(&options.recording, &recorded, &orders, options.shown(), stages);
    }
    let mut meant = options.advice.meant_of_kernel()?;
    check_pins(&meant.pins, recorded.types())?;
    meant.randomisation = randomisation(&KernelPlaces {
        folder: options.source.as_deref(),
        image: Some(&kernel),
        release: &words[0],
    });
    let wanted = (&meant, &options.advice.units());
    let KernelAdvice { advice, sources, reading } =
        advice::advise(&recorded, options.source.as_deref(), wanted, stages)?;
    if options.what_if.is_some() {
        if let Outcome::Finding = outcome_of_orders(&meant.orders, &advice) {
            return Ok(Outcome::Finding);
        }
        let orders = what_if::proposed(&advice, &recorded);
        return what_if::run(&options.recording, &recorded, &orders, options.shown(), stages);
    }
    stages.end();
    let calls = |region| recorded.calls_made(region);
    let ground = Ground { release: &words[0], workload: &words[1], calls: &calls, tried: None };
    let patch = series(&advice, &sources, &ground);
    let folder = options.source.as_deref().unwrap_or(Path::new(""));
    write(options, &recorded, &advice, folder, Extra { patch, reading: reading.as_ref(), weights })?;
    Ok(outcome_of_orders(&meant.orders, &advice))
}

/// Additions to the advice.
struct Extra<'a> {
    /// The patch, with commit messages where the project takes such.
    patch: String,
    reading: Option<&'a Reading>,
    /// The regions' weights, from samples.
    weights: Option<String>,
}

fn write(
    options: &Options,
    recorded: &Explained,
    advice: &Advice,
    folder: &Path,
    extra: Extra<'_>,
) -> Result<()> {
    let put = |path: &Path, text: &str| {
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
    };
    let file = options.patch.as_deref().map(|path| patch_file(path, recorded.is_kernel()));
    if let Some(path) = &file {
        put(path, &extra.patch)?;
    }
    if let Some(path) = &options.guard {
        guard::write(path, &advice.guard, None)?;
    }
    if let Some(words) = extra.weights.as_ref().filter(|_| options.json) {
        eprintln!("note: weights {words}");
    }
    let mut text = match options.json {
        true => serde_json::to_string_pretty(advice)? + "\n",
        false => as_text(options, recorded, advice, folder, &extra),
    };
    if let Some(language) = options.static_asserts {
        text += &language.assertions(&advice.guard, recorded.types());
    }
    output::print(&text)
}

/// The file of a patch: the name of a kernel's patch, which nobody built, says so.
fn patch_file(given: &Path, is_kernel: bool) -> PathBuf {
    let stem = given.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    if !is_kernel || stem.ends_with(NOT_BUILT) {
        return given.to_owned();
    }
    let end = given.extension().map_or("patch".into(), |end| end.to_string_lossy().into_owned());
    given.with_file_name(format!("{stem}.{NOT_BUILT}.{end}"))
}

/// Part of the name of a patch that nobody built.
const NOT_BUILT: &str = "not-built";

fn as_text(
    options: &Options,
    recorded: &Explained,
    advice: &Advice,
    folder: &Path,
    extra: &Extra<'_>,
) -> String {
    let patch = &extra.patch;
    let sources = extra.reading.map(|reading| (SOURCES, reading.in_words()));
    let weights = extra.weights.as_ref().map(|words| (WEIGHTS, words.clone()));
    let facts = sources.into_iter().chain(weights);
    let file = options.patch.as_deref().map(|path| patch_file(path, recorded.is_kernel()));
    let file = file.map_or("printed above".into(), |path| path.display().to_string());
    let mut report = StudyReport::of_found(ProgramFindings {
        title: options.recording.display().to_string(),
        commands: Vec::new(),
        setting: facts.map(|(name, value)| Fact { name: name.into(), value }).collect(),
        machine: facts::of_this_machine(),
        line: options.advice.line_size,
        built_in: folder,
        before: recorded,
        after: None,
        advice: Some(advice),
        patch: (!patch.is_empty()).then(|| Patch { file, text: patch.clone() }),
        proof: None,
        call_times: None,
        not_timed: Vec::new(),
        contention: None,
        not_proven: None,
    });
    if recorded.is_kernel() {
        report.keep_maps_of(advice);
    }
    let text = study_text(&report, options.report.telling()) + options.report.more();
    match options.patch {
        Some(_) => text,
        None => format!("{patch}{text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_kernels_patch_says_that_nobody_built_it() {
        let named = |given: &str, is_kernel| patch_file(Path::new(given), is_kernel).display().to_string();
        assert_eq!(named("out/order.patch", true), "out/order.not-built.patch");
        assert_eq!(named("out/order.not-built.patch", true), "out/order.not-built.patch");
        assert_eq!(named("6.12", true), "6.not-built.12");
        assert_eq!(named("order", true), "order.not-built.patch");
        assert_eq!(named("order.patch", false), "order.patch");
    }
}
