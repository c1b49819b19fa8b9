//! `lineup explain`: the data and code that recorded calls touched.

mod exports;
pub(crate) mod modules;
pub(crate) mod page;
mod text;
pub(crate) mod usage;

use crate::advice_options::line_size;
use crate::files;
use crate::kernel::symbols;
use crate::outcome::Outcome;
use crate::progress::{ReadInStage, Stages};
use crate::sampled::{self, Symbols};
use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use lineup_cache::CacheSpec;
use lineup_debuginfo::{DebugInfo, FoundFunctions, spelled};
use lineup_explain::{Explained, Explanation, Survey};
use lineup_model::access::Call;
use lineup_model::line::LineSize;
use lineup_recording::{Event, Reader, RecordingError};
use lineup_report::text::TextStyle;
use lineup_study::companions::{self, DebugInfos, DiskCompanions};
use lineup_study::progress::Progress;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// Rows shown of each table of samples.
const SAMPLED_ROWS: usize = 15;

/// Arguments of `lineup explain`.
#[derive(Args)]
pub(crate) struct Options {
    /// A recording, as `lineup record` writes it, or a perf.data
    recording: PathBuf,
    /// Bytes in a cache line of the maps: 32, 64 or 128
    #[arg(long, value_name = "BYTES", default_value = "64", value_parser = line_size)]
    line_size: LineSize,
    /// Show only these regions
    #[arg(long = "region", value_name = "FUNCTION")]
    regions: Vec<String>,
    /// Lines shown per region, most needed first [default: as many as fit on the first screen; all with --full]
    #[arg(long, value_name = "COUNT")]
    top: Option<usize>,
    /// Show everything: all line sizes, evidence, what rides along on each line, code by function
    #[arg(long)]
    full: bool,
    /// Caches for which misses are expected, such as l1d=32K,8,64
    #[arg(long = "cache", value_name = "LEVEL=SIZE,WAYS,LINE")]
    caches: Vec<CacheSpec>,
    /// Other data that passes through the caches between two calls: bytes, or with K, M, G
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, requires = "caches")]
    pressure: Vec<u64>,
    /// Seconds that the program runs without emulation, to compute calls per second
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    seconds: Option<f64>,
    /// Print JSON (schema lineup.explain/1; of a perf.data lineup.samples/1)
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    symbols: Symbols,
    /// Print what the calls used, for `lineup fleet add` on another machine (schema lineup.usage/1)
    #[arg(long, conflicts_with_all = ["json", "full", "top", "regions"])]
    usage: bool,
    /// Print comma-separated values instead: a line for each call, or for each member that calls used
    #[arg(long, value_enum, value_name = "WHAT", conflicts_with_all = ["json", "usage", "full", "top"])]
    csv: Option<Table>,
    /// Write a page with all of it to FILE, and print nothing
    #[arg(long, value_name = "FILE", conflicts_with_all = ["csv", "json", "usage", "full", "top", "regions", "caches", "seconds", "trace"])]
    html: Option<PathBuf>,
    /// Write the calls to FILE as a trace that Perfetto opens (Chrome's trace events), and print nothing
    #[arg(long, value_name = "FILE", conflicts_with_all = ["csv", "json", "usage", "full", "top", "regions"])]
    trace: Option<PathBuf>,
}

/// The rows of a table of comma-separated values.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Table {
    /// Each recorded call
    Calls,
    /// Each member and variable that calls used, by region and line
    Members,
}

fn parse_bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(['K', 'M', 'G']);
    let shift = match &text[digits.len()..] {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        _ => 64,
    };
    let bytes = digits.parse::<u64>().ok().and_then(|count| count.checked_mul(1u64.checked_shl(shift)?));
    bytes.ok_or_else(|| "a number of bytes, such as 262144 or 256K".to_owned())
}

fn parse_seconds(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|seconds| *seconds > 0.0 && f64::is_finite(*seconds))
        .ok_or("more than 0".to_owned())
}

/// Runs `lineup explain`.
pub(crate) fn run(options: &Options) -> Result<Outcome> {
    let stages = Stages::new();
    if sampled::is_samples(&options.recording) {
        return of_samples(options, &stages);
    }
    if let Some(html) = &options.html {
        let page = page::page(&options.recording, options.line_size, &stages)?;
        std::fs::write(html, page).with_context(|| html.display().to_string())?;
        return Ok(Outcome::Done);
    }
    let surveyed = survey(&options.recording, &stages)?;
    if options.trace.is_some() || options.csv == Some(Table::Calls) {
        return exports::calls(options, &surveyed, &stages);
    }
    let wanted = lineup_explain::Options {
        line_size: options.line_size,
        caches: options.caches.clone(),
        pressure_bytes: options.pressure.clone(),
        program_seconds: options.seconds,
        ..lineup_explain::Options::default()
    };
    let debug = surveyed.debug_infos(&mut DebugInfos::default(), &stages);
    let explanation = surveyed.explain(&debug, wanted, &stages)?;
    if options.usage {
        return print_json(&usage::of_recording(&surveyed, &debug, &explanation, &stages)?);
    }
    stages.end();
    let explanation = select(explanation, &options.regions)?;
    if options.csv.is_some() {
        files::print(&lineup_report::exports::members(&explanation))?;
        return Ok(Outcome::Done);
    }
    let out = if options.json {
        serde_json::to_string_pretty(&explanation)? + "\n"
    } else {
        let columns = match files::text_style() {
            TextStyle::Terminal { columns } => Some(usize::from(columns)),
            TextStyle::Plain => None,
        };
        text::text(&explanation, text::Shape { is_full: options.full, top: options.top, columns })
    };
    files::print(&out)?;
    Ok(Outcome::Done)
}

/// The same of samples, which know no calls.
fn of_samples(options: &Options, stages: &Stages) -> Result<Outcome> {
    let of_calls = [
        (!options.caches.is_empty(), "--cache"),
        (options.seconds.is_some(), "--seconds"),
        (options.usage, "--usage"),
        (options.html.is_some(), "--html"),
    ];
    if let Some((_, option)) = of_calls.into_iter().find(|(is_given, _)| *is_given) {
        bail!("{option} needs recorded calls, and {} has samples", options.recording.display());
    }
    let rows = if options.full { usize::MAX } else { options.top.unwrap_or(SAMPLED_ROWS) };
    let functions: Vec<String> = options.regions.iter().map(|name| spelled(name)).collect();
    sampled::explain(&options.recording, &options.symbols, (&functions, rows), options.json, stages)
}

fn print_json(document: &impl serde::Serialize) -> Result<Outcome> {
    files::print(&(serde_json::to_string_pretty(document)? + "\n"))?;
    Ok(Outcome::Done)
}

/// The usage by the calls of a recording, for `lineup fleet add`.
pub(crate) fn usage_of(recording: &Path, stages: &Stages) -> Result<usage::UsageJson> {
    let surveyed = survey(recording, stages)?;
    let debug = surveyed.debug_infos(&mut DebugInfos::default(), stages);
    let explanation = surveyed.explain(&debug, Default::default(), stages)?;
    usage::of_recording(&surveyed, &debug, &explanation, stages)
}

/// A recording that was read through. Its file stays open: every pass over the calls reads the same bytes.
pub(crate) struct Surveyed {
    path: PathBuf,
    file: File,
    /// Everything but the calls.
    pub(crate) survey: Survey,
}

/// Reads everything of a recording but its calls. Records after damage are left out, with a message.
pub(crate) fn survey(path: &Path, stages: &Stages) -> Result<Surveyed> {
    let surveyed = survey_any(path, stages)?;
    surveyed.require_calls()?;
    Ok(surveyed)
}

/// The same, where there may be no calls.
pub(crate) fn survey_any(path: &Path, stages: &Stages) -> Result<Surveyed> {
    let name = || path.display().to_string();
    stages.stage(&format!("reading {}", path.display()));
    let file = lineup_mapping::open(path).with_context(name)?;
    let survey = Survey::read(reader(&file, stages).with_context(name)?);
    if let Some(damage) = &survey.damage {
        stages.line(&format!("lineup: {}: {damage}; what stands before is used", path.display()));
    }
    Ok(Surveyed { path: path.to_owned(), file, survey })
}

/// Reads an open recording from its start.
fn reader<'s>(file: &File, stages: &'s Stages) -> Result<Reader<BufReader<ReadInStage<'s>>>, RecordingError> {
    Reader::new(BufReader::new(ReadInStage::new(file.try_clone()?, stages)))
}

impl Surveyed {
    fn require_calls(&self) -> Result<()> {
        if self.survey.calls == 0 {
            bail!("{}: no call was recorded; check that the program calls the regions", self.path.display());
        }
        Ok(())
    }

    /// The number of calls of which not every access was recorded; `None` when it was not counted.
    pub(crate) fn calls_cut(&self) -> Option<u64> {
        let summary = self.survey.summary.as_ref()?;
        Some(summary.regions.iter().map(|counts| counts.truncated).sum())
    }

    /// The debug info of every file that the program had mapped. A missing file may lie next to the recording, where a
    /// study keeps the program that it built. Debug info that was read before is taken from `known`.
    pub(crate) fn debug_infos(&self, known: &mut DebugInfos, stages: &Stages) -> Vec<Option<DebugInfo>> {
        let kept = |image: &Path| {
            let beside = self.path.parent()?.join(image.file_name()?);
            (!image.exists() && beside.is_file()).then_some(beside)
        };
        let file_of = |image: &Path| kept(image).unwrap_or_else(|| image.to_owned());
        let read = |image: &Path, file: &Path| known.take_or(image, || debug_info(file, stages));
        modules::debug_infos(&self.survey.images, &self.survey.modules, file_of, read, stages)
    }

    /// Goes through the calls, in the order in which they stand in the file.
    pub(crate) fn each_call(&self, stages: &Stages, mut see: impl FnMut(&Call)) -> Result<()> {
        stages.stage(&format!("reading the calls in {}", self.path.display()));
        for event in reader(&self.file, stages)? {
            if let Event::Call(call) = event {
                see(&call);
            }
        }
        Ok(())
    }

    /// Names every access: two passes over the calls.
    pub(crate) fn explain(
        &self,
        debug: &[Option<DebugInfo>],
        wanted: lineup_explain::Options,
        stages: &Stages,
    ) -> Result<Explanation> {
        stages.stage(&format!("naming the accesses in {}", self.path.display()));
        Ok(self.survey.explain(debug, wanted, || reader(&self.file, stages))?)
    }
}

/// Explains a surveyed recording of the program at this path. `known` is debug info that was read before.
pub(crate) fn program(
    surveyed: Surveyed,
    program: &Path,
    mut known: DebugInfos,
    options: lineup_explain::Options,
    stages: &Stages,
) -> Result<Explained> {
    let position = surveyed.survey.images.iter().position(|image| Path::new(&image.path) == program);
    let program = position.with_context(|| {
        let (recording, program) = (surveyed.path.display(), program.display());
        format!("{recording} holds no trace of {program}; was it recorded with another path?")
    })?;
    let mut debug = surveyed.debug_infos(&mut known, stages);
    let explanation = surveyed.explain(&debug, options, stages)?;
    Ok(Explained::new(surveyed.survey, explanation, program, debug.swap_remove(program)))
}

/// The program whose functions the regions are, by its mapped path: one below `folder`, when there is one.
pub(crate) fn program_with_regions(
    survey: &Survey,
    folder: &Path,
    infos: &mut DebugInfos,
) -> Option<PathBuf> {
    let own = survey.images.iter().filter(|image| !image.is_shared_library());
    let own = own.map(|image| PathBuf::from(&image.path)).filter(|path| path.starts_with(folder));
    let counted = own.filter_map(|path| Some((regions_in(infos.of(&path)?, survey), path)));
    let most = counted.filter(|(regions, _)| *regions > 0).max_by_key(|(regions, _)| *regions);
    most.map(|(_, path)| path)
}

/// True when a program has any of the regions' functions.
pub(crate) fn has_regions(debug: &DebugInfo, survey: &Survey) -> bool {
    regions_in(debug, survey) > 0
}

fn regions_in(debug: &DebugInfo, survey: &Survey) -> usize {
    let has = |name: &str| matches!(debug.find_functions(name), FoundFunctions::OutOfLine(_));
    survey.header.regions.iter().filter(|(_, region)| has(&region.name)).count()
}

/// The debug info of a file that the program had mapped; `None`, with a message, when it cannot be read.
pub(crate) fn debug_info(path: &Path, stages: &Stages) -> Option<DebugInfo> {
    if path.as_os_str().is_empty() || path.as_os_str().as_encoded_bytes().starts_with(b"[") {
        return None;
    }
    told(path, stages, || {
        let bytes = companions::read(path)?;
        match symbols::distributed(&bytes)? {
            None => Ok(DebugInfo::parse(bytes, &mut DiskCompanions::of(path))?),
            Some(kernel) => symbols::own_info(kernel),
        }
    })
}

/// A file's debug info; `None`, with a message, when reading fails.
fn told(path: &Path, stages: &Stages, read: impl FnOnce() -> Result<DebugInfo>) -> Option<DebugInfo> {
    stages.stage(&format!("reading the debug information of {}", path.display()));
    match read() {
        Ok(info) => Some(info),
        Err(error) => {
            let path = path.display();
            stages.line(&format!("lineup: {path}: {error:#}; accesses are explained without it"));
            None
        }
    }
}

/// The regions that were asked for, as the recording calls them.
fn asked_for(asked: &[String], recorded: &[&str]) -> Result<Vec<String>> {
    // A name may be given as it was when the calls were recorded.
    let wanted: Vec<String> = asked.iter().map(|name| spelled(name)).collect();
    if let Some(unknown) = wanted.iter().find(|name| !recorded.contains(&name.as_str())) {
        bail!("region {unknown} is not in the recording; it has {}", recorded.join(", "));
    }
    Ok(wanted)
}

fn select(mut explanation: Explanation, asked: &[String]) -> Result<Explanation> {
    let recorded: Vec<&str> = explanation.regions.iter().map(|region| region.name.as_str()).collect();
    let wanted = asked_for(asked, &recorded)?;
    explanation.regions.retain(|region| wanted.is_empty() || wanted.contains(&region.name));
    Ok(explanation)
}
