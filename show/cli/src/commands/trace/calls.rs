//! `lineup trace report` on recordings of whole systems.

use crate::kernels::module_file;
use crate::kernels::symbols::own_symbols;
use crate::terminal::progress::Stages;
use crate::terminal::typed_command;
use anyhow::{Context, Result, bail};
use lineup_debuginfo::{Bytes, DebugInfo, NoCompanions};
use lineup_kernel::KernelImage;
use lineup_model::program::SymbolKind;
use lineup_recording::{Recording, read_all};
use lineup_report::calls::{Calls, shown_by_default};
use lineup_study::companions;
use lineup_study::progress::Progress;
use lineup_tail::{Analysis, Run, Symbols, analyse};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The first bytes of a recording.
const MAGIC: &[u8; 8] = b"LINEUPRC";

/// True when a file begins as a recording does. For a file that cannot be read, the next one to open it reports the
/// error.
pub(crate) fn is_recording(path: &Path) -> bool {
    let mut start = [0; MAGIC.len()];
    let read = lineup_mapping::open(path).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && start == *MAGIC
}

/// Recordings, read and analysed.
pub(crate) struct Studied {
    pub(crate) runs: Vec<Run>,
    pub(crate) analysis: Analysis,
    shown: Vec<String>,
    title: String,
    command: String,
}

/// Reads and analyses recordings. Functions are named from `symbols`, or else from the image that each recording names.
pub(crate) fn study(
    paths: &[PathBuf],
    symbols: Option<&Path>,
    regions: &[String],
    stages: &Stages,
) -> Result<Studied> {
    let mut known: Vec<(PathBuf, Symbols)> = Vec::new();
    let labels = labels(paths);
    let mut runs = Vec::new();
    for (path, label) in paths.iter().zip(labels) {
        stages.stage(&format!("reading {}", path.display()));
        let recording = read(path)?;
        let symbols = symbols_of(&recording, symbols, &mut known)?.and(of_modules(&recording));
        runs.push(Run::new(label, recording, symbols));
    }
    stages.stage("analysing the calls");
    let analysis = analyse(&runs);
    for name in regions {
        if !analysis.regions.iter().any(|region| region.name == *name) {
            let recorded: Vec<&str> = analysis.regions.iter().map(|region| region.name.as_str()).collect();
            bail!("region {name} is not recorded; there are {}", recorded.join(", "));
        }
    }
    let shown = if regions.is_empty() { shown_by_default(&analysis) } else { regions.to_vec() };
    let title = shown.first().cloned().unwrap_or_else(|| "no calls".to_owned());
    let command = typed_command::line(std::iter::once("lineup".into()).chain(std::env::args_os().skip(1)));
    Ok(Studied { command, runs, analysis, shown, title })
}

impl Studied {
    /// The calls in the reports' form.
    pub(crate) fn calls(&self) -> Calls<'_> {
        Calls {
            runs: &self.runs,
            analysis: &self.analysis,
            shown: &self.shown,
            title: &self.title,
            command: &self.command,
        }
    }
}

fn read(path: &Path) -> Result<Recording> {
    let bytes = companions::read(path)?;
    let recording = read_all(&bytes).with_context(|| path.display().to_string())?;
    if !lineup_tail::run::is_system(&recording) {
        bail!(
            "{} is a recording of a program, not of a whole system; `lineup explain` shows what its calls touched",
            path.display()
        );
    }
    if recording.header.caches.is_empty() {
        bail!(
            "{} was recorded with --no-caches: the stalls of its calls, which the report is about, were not modelled; \
             `lineup explain` shows what they access",
            path.display()
        );
    }
    if let Some(damage) = &recording.damage {
        eprintln!("lineup: {}: {damage}; what stands before is used", path.display());
    }
    if recording.measured.is_empty() {
        bail!("{}: no call was recorded; check that the workload reaches the regions", path.display());
    }
    Ok(recording)
}

/// Short names: files' stems, or whole paths where stems repeat.
fn labels(paths: &[PathBuf]) -> Vec<String> {
    let stem = |path: &PathBuf| path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let label = |path: &PathBuf| {
        let own = stem(path);
        let is_unique = paths.iter().filter(|other| stem(other) == own).count() == 1;
        own.filter(|_| is_unique).unwrap_or_else(|| path.display().to_string())
    };
    paths.iter().map(label).collect()
}

/// Symbols of a recording's kernel. Each file is read once.
fn symbols_of(
    recording: &Recording,
    given: Option<&Path>,
    known: &mut Vec<(PathBuf, Symbols)>,
) -> Result<Symbols> {
    let image = recording.images.first();
    let Some(path) = given.or_else(|| image.map(|image| Path::new(&image.path))) else {
        return Ok(Symbols::default());
    };
    if let Some((_, symbols)) = known.iter().find(|(other, _)| other == path) {
        return Ok(symbols.clone());
    }
    let bias = image.map_or(0, |image| image.bias);
    let symbols = match read_symbols(path, bias) {
        Ok(symbols) => symbols,
        Err(error) if given.is_some() => return Err(error),
        Err(error) => {
            eprintln!("lineup: {error:#}; functions are shown by address, unless --symbols names a file");
            Symbols::default()
        }
    };
    known.push((path.to_owned(), symbols.clone()));
    Ok(symbols)
}

/// The functions of a kernel's modules at the kernel's addresses. A module that cannot be read has no functions.
fn of_modules(recording: &Recording) -> Symbols {
    let mut read: BTreeMap<&str, Option<DebugInfo>> = BTreeMap::new();
    let mut all = Vec::new();
    for section in recording.images.iter().skip(1) {
        let parse = || {
            DebugInfo::parse(module_file::unpacked(Path::new(&section.path)).ok()?, &mut NoCompanions).ok()
        };
        let Some(info) = read.entry(&section.path).or_insert_with(parse) else { continue };
        let functions = info.symbols().iter().filter(|symbol| symbol.kind == SymbolKind::Function);
        let placed = functions.map(|symbol| (section.to_runtime(symbol.address), symbol));
        let here = placed.filter(|(start, _)| section.contains(*start));
        all.extend(here.map(|(start, symbol)| (start, symbol.size_bytes, symbol.name.clone())));
    }
    Symbols::new(all)
}

/// From an ELF file, from the table in a kernel's image, or from a list such as `/proc/kallsyms` or `System.map`.
/// Addresses of lists and images are runtime addresses.
fn read_symbols(path: &Path, bias: u64) -> Result<Symbols> {
    let bytes = companions::read(path)?;
    let named =
        if bytes.starts_with(b"\x7fELF") { of_elf(path, bytes.clone(), bias)? } else { of_list(&bytes) };
    if !named.is_empty() {
        return Ok(named);
    }
    let none =
        || format!("{} holds no symbols: neither an ELF file, a kernel's image nor a list", path.display());
    let kernel = KernelImage::parse(&bytes).with_context(none)?;
    let symbols = own_symbols(&kernel, "give --symbols with the list of the running kernel");
    let symbols = symbols.with_context(none)?;
    let code = symbols.all().iter().filter(|symbol| symbol.is_code());
    Ok(Symbols::new(code.map(|symbol| (symbol.address, 0, symbol.name.clone()))))
}

fn of_list(bytes: &[u8]) -> Symbols {
    std::str::from_utf8(bytes).map(Symbols::from_map).unwrap_or_default()
}

fn of_elf(path: &Path, bytes: Bytes, bias: u64) -> Result<Symbols> {
    let info = DebugInfo::parse(bytes, &mut NoCompanions).with_context(|| path.display().to_string())?;
    let is_code = |kind: SymbolKind, address: u64| match kind {
        SymbolKind::Function => true,
        SymbolKind::Other => info
            .segments()
            .iter()
            .any(|segment| segment.is_executable && segment.addresses.contains(&address)),
        _ => false,
    };
    let functions = info.symbols().iter().filter(|symbol| is_code(symbol.kind, symbol.address));
    Ok(Symbols::new(
        functions.map(|symbol| (symbol.address.wrapping_add(bias), symbol.size_bytes, symbol.name.clone())),
    ))
}
