//! Runs `lineup find`.

use super::args::Options;
use super::diff::Old;
use super::{again, diff, folded, kernel, live, pprof, replay, samples};
use crate::recordings::file_mark::begins_with;
use crate::terminal::outcome::Outcome;
use crate::terminal::output;
use crate::terminal::progress::Stages;
use crate::whole_program::findings::{FindOutcome, FindRequest, Unfinished, find};
use anyhow::{Context, Result, anyhow, bail};
use lineup_find::Findings;
use lineup_recording::MAGIC;
use lineup_report::find::{find_page, find_text};
use lineup_study::interrupt::Interrupts;
use lineup_study::process::Streams;
use lineup_study::recorder::{Engine, Subject};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Runs `lineup find`.
pub(crate) fn run(options: &Options) -> Result<Outcome> {
    if let Some(log) = options.file.as_deref().filter(|file| begins_with(file, &[MAGIC])) {
        return replay::run(options, log);
    }
    if let Some(samples) = &options.file {
        if !options.caches.is_empty() || options.out.is_some() {
            bail!("{}: --cache and --out need a program, or a log of one", samples.display());
        }
        return samples::run(
            samples,
            &options.symbols,
            (options.least, options.top),
            options.json,
            &Stages::new(),
        );
    }
    let stages = Stages::new();
    let interrupts = stages.watch_signals()?;
    let old = options.diff.as_deref().map(Old::read).transpose()?;
    let FindOutcome { findings, crash } = match (options.kernel.kernel.is_some(), options.pid) {
        (true, _) => FindOutcome { findings: kernel::find(options, &stages, &interrupts)?, crash: None },
        (_, Some(process)) => {
            FindOutcome { findings: live::find(options, process, &stages, &interrupts)?, crash: None }
        }
        (_, None) => of_program(options, &stages, &interrupts)?,
    };
    stages.end();
    write(options, &findings)?;
    let out = match (options.json, old) {
        (true, _) => serde_json::to_string_pretty(&findings)? + "\n",
        (false, Some(old)) => diff::text(&old, &findings, options.top, output::text_style()),
        (false, None) => find_text(&findings, options.top, output::text_style()),
    };
    output::print(&out)?;
    Ok(crash.map_or(Outcome::Done, |crash| Outcome::CutShort(anyhow!(crash))))
}

fn of_program(options: &Options, stages: &Stages, interrupts: &Interrupts) -> Result<FindOutcome> {
    let scratch = interrupts.temporary_folder().context("making a temporary folder")?;
    let wanted = FindRequest {
        run: options.limits.run(&options.command, &options.environment, interrupts, stages)?,
        engine: options.engine.map_or(Engine::Fitting, Engine::from),
        caches: options.caches.clone(),
        window_mib: options.windows,
        page_costs: options.page_cycles,
        recording: options.out.clone().unwrap_or_else(|| scratch.path().join("find.rec")),
        recording_stays: options.out.is_some(),
        streams: if options.json { Streams::Shown } else { Streams::Ours },
        least_gain: options.least,
        asks_clock: !options.no_clock,
        again: again::again(
            &options.command,
            &options.environment,
            &options.limits,
            (options.engine, &options.caches),
        ),
    };
    let subject = Subject::load(&wanted.run, None)?;
    let recording = wanted.recording.clone();
    find(wanted, subject, stages, interrupts).map_err(|error| {
        let is_cut_short = interrupts.check().is_err() || error.is::<Unfinished>();
        if !(is_cut_short && options.out.is_none() && recording.exists()) {
            return error;
        }
        let _keeping = interrupts.keeping();
        with_kept(error, &recording)
    })
}

/// Takes the recording of a work that was ended early out of the temporary folder, and names it.
fn with_kept(error: anyhow::Error, recording: &Path) -> anyhow::Error {
    match kept(recording) {
        Ok(kept) => error.context(format!(
            "the work was ended early; what was recorded until then is kept in {0}, which `lineup explain {0}` reads",
            kept.display()
        )),
        Err(cause) => error.context(format!("what was recorded until then cannot be kept here: {cause}")),
    }
}

/// Copies the recording to the current folder, under a name that nothing has there.
fn kept(recording: &Path) -> io::Result<PathBuf> {
    for number in 1.. {
        let name =
            if number == 1 { "lineup-find.rec".to_owned() } else { format!("lineup-find-{number}.rec") };
        match File::create_new(&name) {
            Ok(mut file) => {
                io::copy(&mut File::open(recording)?, &mut file)?;
                return Ok(name.into());
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    unreachable!("one of the names is free")
}

/// Writes the files that are wanted.
fn write(options: &Options, findings: &Findings) -> Result<()> {
    let to = |file: &Path, bytes: Vec<u8>| {
        std::fs::write(file, bytes).with_context(|| format!("cannot write {}", file.display()))
    };
    if let Some(file) = &options.folded {
        to(file, folded::text(&findings.stacks).into_bytes())?;
    }
    if let Some(file) = &options.pprof {
        to(file, pprof::bytes(&findings.stacks))?;
    }
    if let Some(file) = &options.html {
        let words: Vec<String> =
            std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
        let title = findings.command.first().and_then(|path| path.rsplit('/').next()).unwrap_or_default();
        to(file, find_page(findings, title, &shell_words::join(&words)).into_bytes())?;
    }
    Ok(())
}
