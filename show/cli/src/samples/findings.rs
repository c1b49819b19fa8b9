//! Samples that perf took, read for the commands that accept them.

use crate::recordings::file_mark::begins_with;
use crate::terminal::progress::Stages;
use anyhow::{Context, Result};
use clap::Args;
use lineup_debuginfo::DebugInfo;
use lineup_find::{MoreNames, SampledFindings, SampledOptions, operand_at, sampled};
use lineup_samples::code_names::CodeNames;
use lineup_samples::operand::Operand;
use lineup_samples::{Code, FileSegment, MappedFile, Reader, SamplesError, Segments, Tally, tally};
use lineup_study::build_ids::{FilesByBuildId, symbols_of_running_kernel};
use lineup_study::progress::Progress;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The name for standard input.
pub(crate) const STANDARD_INPUT: &str = "-";
/// The first bytes of a perf.data, on machines of either byte order.
const MAGIC: [&[u8; 8]; 2] = [b"PERFILE2", b"2ELIFREP"];

/// Where programs are that have samples.
#[derive(Args, Clone, Default)]
pub(crate) struct Symbols {
    /// Of a perf.data: a folder with programs and debug files, by their names or as `.build-id/xx/…`; may be repeated
    #[arg(long = "symbols", value_name = "DIR")]
    folders: Vec<PathBuf>,
}

/// True when a file begins as a perf.data does.
pub(crate) fn is_samples(path: &Path) -> bool {
    begins_with(path, &MAGIC)
}

/// Reads samples, and works out their findings.
pub(crate) fn read(
    path: &Path,
    symbols: &Symbols,
    wanted: &SampledOptions,
    stages: &Stages,
) -> Result<SampledFindings> {
    let mut known = KnownFiles { search: FilesByBuildId::new(symbols.folders.clone()), debug: Vec::new() };
    stages.stage("reading the samples");
    let tally = match path.as_os_str() == STANDARD_INPUT {
        true => count(Reader::of_pipe(std::io::stdin().lock()), &mut known, (stages, 0)),
        false => count_file(path, &mut known, stages),
    };
    let tally = tally.with_context(|| path.display().to_string())?;
    known.find_modules(&tally);
    stages.stage("naming the data that they accessed");
    let names = MoreNames { processes: jit_maps(&tally), files: kernels(&tally, &known) };
    Ok(sampled(&tally, &known.debug, &names, wanted)?)
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

impl KnownFiles {
    /// Modules of the kernel are found by its release, which may stand behind the records.
    fn find_modules(&mut self, tally: &Tally) {
        let Some(release) = &tally.header.release else { return };
        for (file, debug) in tally.files.iter().zip(&mut self.debug) {
            if let (None, Some(name)) = (debug.as_ref(), file.module()) {
                *debug = self.search.load_module(&name, file.build_id.as_deref(), release);
            }
        }
    }
}

impl Segments for KnownFiles {
    fn of(&mut self, file: &MappedFile) -> Vec<FileSegment> {
        let debug = self.search.load(&file.path, file.build_id.as_deref());
        let segments = debug.iter().flat_map(DebugInfo::segments).map(|one| FileSegment {
            file_offset: one.file.start,
            file_bytes: one.file.end - one.file.start,
            address: one.addresses.start,
            memory_bytes: one.addresses.end - one.addresses.start,
            is_code: one.is_executable,
        });
        let segments = segments.collect();
        self.debug.push(debug);
        segments
    }

    fn operand(&mut self, file: u32, at: u64) -> Option<Operand> {
        operand_at(self.debug.get(file as usize)?.as_ref()?, at)
    }
}

/// Names of the functions of kernels and of modules, of those without a file.
fn kernels(tally: &Tally, known: &KnownFiles) -> BTreeMap<u32, CodeNames> {
    let files = (0u32..).zip(&tally.files).zip(&known.debug);
    let unknown = files.filter(|(_, debug)| debug.is_none());
    // The addresses of modules are known only for the running kernel.
    let runs = OnceCell::new();
    let running = || {
        let release = tally.header.release.as_deref()?;
        runs.get_or_init(|| symbols_of_running_kernel(release)).as_deref()
    };
    let names = unknown.filter_map(|((number, file), _)| {
        if let Some(module) = file.module() {
            let loaded = tally.kernel_ranges.get(&number)?.clone();
            return Some((number, CodeNames::of_module(running()?, &module, loaded)));
        }
        let text =
            known.search.kallsyms(&file.path, file.build_id.as_deref().filter(|_| file.is_kernel())?)?;
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
        let name = tally.processes.get(&process).map_or("", |own| own.name.as_str());
        maps.entry(process).or_insert_with(|| {
            let text = jit_map(process, name).and_then(|path| lineup_mapping::FileBytes::open(&path).ok());
            text.map(|text| CodeNames::of_jit_map(&String::from_utf8_lossy(text.as_ref())))
                .unwrap_or_default()
        });
    }
    maps
}

/// The file of a process's map. A process that still runs in a container wrote it below its own root, under its number
/// there.
fn jit_map(process: u32, name: &str) -> Option<PathBuf> {
    let here = PathBuf::from(format!("/tmp/perf-{process}.map"));
    if here.is_file() {
        return Some(here);
    }
    let about = PathBuf::from(format!("/proc/{process}"));
    let runs = std::fs::read_to_string(about.join("comm")).ok()?;
    let status = std::fs::read_to_string(about.join("status")).ok()?;
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    let own = numbers.split_whitespace().next_back()?;
    // Another process may have its number by now.
    (runs.trim_end() == name).then(|| about.join(format!("root/tmp/perf-{own}.map")))
}
