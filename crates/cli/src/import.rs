//! `lineup import`: what samples say that perf took.

mod text;

use crate::files;
use crate::outcome::Outcome;
use crate::progress::Stages;
use anyhow::{Context, Result, bail};
use clap::Args;
use lineup_debuginfo::DebugInfo;
use lineup_find::{MoreNames, against_model, sampled};
use lineup_samples::code_names::CodeNames;
use lineup_samples::{Code, FileSegment, MappedFile, Reader, SamplesError, Segments, Tally, tally};
use lineup_study::build_ids::FilesByBuildId;
use lineup_study::progress::Progress;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The name for standard input.
const STANDARD_INPUT: &str = "-";

/// Arguments of `lineup import`.
#[derive(Args)]
pub(crate) struct Options {
    /// A file of `perf record`, `perf mem record` or `perf c2c record`; - for a pipe from `perf record -o -`
    #[arg(value_name = "PERF_DATA")]
    file: PathBuf,
    /// A folder with programs and debug files, by their names or as `.build-id/xx/…`; may be repeated
    #[arg(long, value_name = "DIR")]
    symbols: Vec<PathBuf>,
    /// Hold the shares of functions that `lineup find --json` wrote into this file against those of the samples
    #[arg(long, value_name = "FIND_JSON")]
    find: Option<PathBuf>,
    /// Rows shown of each table
    #[arg(long, value_name = "COUNT", default_value_t = 15)]
    top: usize,
    /// Print JSON (schema lineup.samples/1)
    #[arg(long)]
    json: bool,
    /// Write the report into this file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Runs `lineup import`.
pub(crate) fn run(options: &Options) -> Result<Outcome> {
    let model = options.find.as_deref().map(shares_of_model).transpose()?;
    let stages = Stages::new();
    let mut known = KnownFiles { search: FilesByBuildId::new(options.symbols.clone()), debug: Vec::new() };
    stages.stage("reading the samples");
    let tally = match options.file.as_os_str() == STANDARD_INPUT {
        true => count(Reader::of_pipe(std::io::stdin().lock()), &mut known, (&stages, 0)),
        false => count_file(&options.file, &mut known, &stages),
    };
    let tally = tally.with_context(|| options.file.display().to_string())?;
    stages.stage("naming what they accessed");
    let names = MoreNames { processes: jit_maps(&tally), files: kernels(&tally, &known) };
    let mut found = sampled(&tally, &known.debug, &names)?;
    if let Some(model) = &model {
        found.against_model = against_model(&found, model);
    }
    stages.end();
    let text = match options.json {
        true => serde_json::to_string_pretty(&found)? + "\n",
        false => text::text(&found, options.top, files::text_for(options.out.as_deref(), false).0),
    };
    match &options.out {
        Some(path) => {
            std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?
        }
        None => files::print(&text)?,
    }
    Ok(Outcome::Done)
}

fn count_file(path: &Path, known: &mut KnownFiles, stages: &Stages) -> Result<Tally> {
    let file = File::open(path)?;
    let about = file.metadata()?;
    match about.is_file() {
        true => count(Reader::of_file(file), known, (stages, about.len() >> 20)),
        false => count(Reader::of_pipe(file), known, (stages, 0)),
    }
}

fn count<R: Read>(
    reader: Result<Reader<R>, SamplesError>,
    known: &mut KnownFiles,
    (stages, total_mib): (&Stages, u64),
) -> Result<Tally> {
    let mut progress = |read_bytes: u64| {
        if total_mib > 0 {
            stages.advance(read_bytes >> 20, total_mib);
        }
    };
    Ok(tally(&mut reader?, known, &mut progress)?)
}

/// The debug information of the files that samples were taken in, in their order.
struct KnownFiles {
    search: FilesByBuildId,
    debug: Vec<Option<DebugInfo>>,
}

impl Segments for KnownFiles {
    fn of(&mut self, file: &MappedFile) -> Vec<FileSegment> {
        let debug = self.search.load(&file.path, file.build_id.as_deref());
        let segments = debug.iter().flat_map(DebugInfo::segments).map(|one| FileSegment {
            file_offset: one.file.start,
            file_bytes: one.file.end - one.file.start,
            address: one.addresses.start,
            memory_bytes: one.addresses.end - one.addresses.start,
        });
        let segments = segments.collect();
        self.debug.push(debug);
        segments
    }
}

/// Shares of all modelled cycles by function, as `lineup find --json` wrote them.
fn shares_of_model(path: &Path) -> Result<BTreeMap<String, f64>> {
    let name = || path.display().to_string();
    let bytes = std::fs::read(path).with_context(name)?;
    let value: Value = serde_json::from_slice(&bytes).with_context(name)?;
    if value["schema"] != "lineup.find/1" {
        bail!("{}: these are no findings of `lineup find --json` (schema lineup.find/1)", path.display());
    }
    let mut shares = BTreeMap::new();
    for function in value["functions"].as_array().into_iter().flatten() {
        if let (Some(name), Some(share)) = (function["name"].as_str(), function["of_cycles"].as_f64()) {
            *shares.entry(name.to_owned()).or_default() += share;
        }
    }
    Ok(shares)
}

/// Names of kernels' functions, of those without an image.
fn kernels(tally: &Tally, known: &KnownFiles) -> BTreeMap<u32, CodeNames> {
    let files = (0u32..).zip(&tally.files).zip(&known.debug);
    let unknown = files.filter(|((_, file), debug)| file.is_kernel() && debug.is_none());
    let names = unknown.filter_map(|((number, file), _)| {
        let text = known.search.kallsyms(&file.path, file.build_id.as_deref()?)?;
        Some((number, CodeNames::of_kallsyms(&text)))
    });
    names.collect()
}

/// The maps that compilers at run time wrote, of the processes that have samples in such code.
fn jit_maps(tally: &Tally) -> BTreeMap<u32, CodeNames> {
    let processes = tally.spots.keys().filter_map(|spot| match spot.code {
        Code::Anonymous { process, .. } => Some(process),
        _ => None,
    });
    let mut maps = BTreeMap::new();
    for process in processes {
        maps.entry(process).or_insert_with(|| {
            let path = PathBuf::from(format!("/tmp/perf-{process}.map"));
            let bytes = lineup_mapping::FileBytes::open(&path).ok();
            bytes
                .map(|bytes| CodeNames::of_jit_map(&String::from_utf8_lossy(bytes.as_ref())))
                .unwrap_or_default()
        });
    }
    maps
}
