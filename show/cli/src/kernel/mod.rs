//! `lineup kernel IMAGE`: describes a kernel image, and tries to boot it.

pub(crate) mod advice;
pub(crate) mod commit_message;
pub(crate) mod guest_root;
pub(crate) mod modules;
pub(crate) mod symbols;
mod text;
pub(crate) mod what_if;

use crate::files;
use crate::outcome::Outcome;
use crate::progress::Stages;
use anyhow::{Context, Result, bail};
use guest_root::{root, say_unknown};
use lineup_kernel::guest::SymbolsWanted;
use lineup_kernel::{KernelImage, KernelSymbols, kallsyms};
use lineup_study::companions;
use lineup_study::guest::boot::{BootRequest, boot, list_symbols};
use lineup_study::guest::workload::Workload;
use lineup_study::interrupt::Interrupts;
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;
use symbols::{DebugFile, hex};

/// Identifies a kernel image, and boots it under full-system emulation
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The image as distributed: bzImage, Image, zImage, such as /boot/vmlinuz-*.
    image: PathBuf,
    /// The image's vmlinux with debug information.
    #[arg(long, value_name = "VMLINUX")]
    debug: Option<PathBuf>,
    /// Boot it, without a recording.
    #[arg(long)]
    boot: bool,
    /// Workload of the guest: idle, busy, wakeup, net, a script, or a command.
    #[arg(long, value_name = "NAME|SCRIPT|COMMAND", default_value = "idle", requires = "boot")]
    workload: String,
    /// Virtual CPUs.
    #[arg(long, default_value_t = 1, requires = "boot")]
    cpus: u32,
    /// The guest's memory in MiB.
    #[arg(long, value_name = "MIB", default_value_t = 512, requires = "boot")]
    memory: u32,
    /// Appended to the kernel's command line; `mitigations=…` and `kaslr` replace what is there otherwise.
    #[arg(long, value_name = "TEXT", default_value = "", allow_hyphen_values = true, requires = "boot")]
    cmdline: String,
    /// A static busybox for the guest's machine [default: the installed one].
    #[arg(long, value_name = "FILE", requires = "boot")]
    busybox: Option<PathBuf>,
    /// The guest's root: a folder, or archives of a container's layers, lowest first; read-only, changes in memory.
    #[arg(long, value_name = "DIR|TAR", requires = "boot")]
    rootfs: Vec<PathBuf>,
    /// The folder of the kernel's modules, for --rootfs [default: lib/modules/RELEASE next to the image's folder].
    #[arg(long, value_name = "DIR", requires = "rootfs")]
    modules: Option<PathBuf>,
    /// Stop the guest after this many seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 120, requires = "boot",
          value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,
    /// Show the guest's console.
    #[arg(long, requires = "boot")]
    console: bool,
    /// Have the guest list a sample of its symbols, and compare them with the image's.
    #[arg(long, requires = "boot")]
    check_symbols: bool,
    /// Print JSON, the form lineup.kernel/1.
    #[arg(long)]
    json: bool,
}

/// The printed report.
#[derive(Serialize)]
struct Report {
    schema: &'static str,
    machine: String,
    form: String,
    compression: Option<String>,
    release: String,
    banner: String,
    build_id: Option<String>,
    unpacked_bytes: usize,
    symbols: usize,
    functions: usize,
    symbol_source: String,
    btf_bytes: Option<usize>,
    types: Option<usize>,
    type_source: Option<&'static str>,
    boot: Option<Boot>,
}

/// The guest's boot.
#[derive(Serialize)]
struct Boot {
    emulator: String,
    cmdline: String,
    release: Option<String>,
    clocksource: Option<String>,
    boot_seconds: Option<f64>,
    workload_seconds: Option<f64>,
    total_seconds: f64,
    status: Option<i32>,
    problem: Option<String>,
    troubles: Vec<String>,
    symbols: Option<SymbolCheck>,
}

/// A comparison of the guest's list of symbols with the image's.
#[derive(Serialize)]
struct SymbolCheck {
    /// Symbols that the guest listed.
    listed: usize,
    /// Symbols that the image's table has with the same address, kind and name.
    equal: usize,
    /// Symbols that only one of them has.
    different: usize,
}

/// Runs the command.
pub(crate) fn run(options: &Options) -> Result<Outcome> {
    let name = || options.image.display().to_string();
    let kernel = KernelImage::parse(&companions::read(&options.image)?).with_context(name)?;
    let debug = options.debug.as_ref().map(|path| DebugFile::open(path, &kernel)).transpose()?;
    let stages = Stages::new();
    let interrupts = stages.watch_signals()?;
    let mut list = || {
        let nothing = Workload::nothing();
        Ok(list_symbols(&request(options, &kernel, &nothing, SymbolsWanted::All, &stages), &interrupts)?)
    };
    let (symbols, source) = symbols::symbols(&kernel, debug.as_ref(), &mut list).with_context(name)?;
    let types = match debug.is_some() || lineup_kernel::btf::find(&kernel).is_ok() {
        true => Some(symbols::types(&kernel, debug.as_ref())?),
        false => None,
    };
    let booted = match options.boot {
        true => Some(boot_it(options, &kernel, &symbols, &stages, &interrupts)?),
        false => None,
    };
    let report = Report {
        schema: "lineup.kernel/1",
        machine: kernel.machine.to_string(),
        form: kernel.container.to_string(),
        compression: kernel.compression.map(|compression| compression.to_string()),
        release: kernel.release().into(),
        banner: kernel.banner.clone(),
        build_id: kernel.build_id.as_deref().map(hex),
        unpacked_bytes: kernel.vmlinux.len(),
        symbols: symbols.len(),
        functions: symbols.all().iter().filter(|symbol| symbol.is_code()).count(),
        symbol_source: source.to_string(),
        btf_bytes: lineup_kernel::btf::find(&kernel).ok().map(<[u8]>::len),
        types: types.as_ref().map(|types| types.types().iter().count()),
        type_source: types.as_ref().map(symbols::KernelTypes::source),
        boot: booted,
    };
    let printed = match options.json {
        true => serde_json::to_string_pretty(&report).context("cannot write JSON")? + "\n",
        false => text::plain(&report),
    };
    files::print(&printed)?;
    match report.boot.and_then(|boot| boot.problem) {
        Some(problem) => bail!("{problem}"),
        None => Ok(Outcome::Done),
    }
}

fn boot_it(
    options: &Options,
    kernel: &KernelImage,
    symbols: &KernelSymbols,
    stages: &Stages,
    interrupts: &Interrupts,
) -> Result<Boot> {
    let folder = std::env::current_dir().context("finding the working directory")?;
    let root = root(&options.rootfs, stages, interrupts)?;
    let workload = Workload::new(&options.workload, &folder, kernel.machine, root.as_ref())?;
    say_unknown(&workload, stages);
    let sample = if options.check_symbols { sample(symbols) } else { Vec::new() };
    let wanted = if sample.is_empty() { SymbolsWanted::None } else { SymbolsWanted::Named(sample.clone()) };
    let request = BootRequest { root: root.as_ref(), ..request(options, kernel, &workload, wanted, stages) };
    let outcome = boot(&request, interrupts)?;
    stages.end();
    let seconds = |time: Option<Duration>| time.map(|time| time.as_secs_f64());
    let check = match options.check_symbols && outcome.work.is_some() {
        true => {
            let guest = kallsyms::parse_proc_kallsyms(&outcome.symbols.join("\n"))?;
            Some(compare(symbols, &guest, &sample))
        }
        false => None,
    };
    Ok(Boot {
        problem: outcome.problem(&request),
        status: outcome.status(),
        emulator: outcome.emulator,
        cmdline: outcome.cmdline,
        release: outcome.release,
        clocksource: outcome.clocksource,
        boot_seconds: seconds(outcome.boot),
        workload_seconds: seconds(outcome.work),
        total_seconds: outcome.total.as_secs_f64(),
        troubles: outcome.troubles.into_iter().map(|(_, line)| line).collect(),
        symbols: check,
    })
}

fn request<'a>(
    options: &'a Options,
    kernel: &'a KernelImage,
    workload: &'a Workload,
    symbols: SymbolsWanted,
    progress: &'a Stages,
) -> BootRequest<'a> {
    BootRequest {
        file: &options.image,
        image: kernel,
        cpus: options.cpus,
        memory_mib: options.memory,
        cmdline: &options.cmdline,
        workload,
        busybox: options.busybox.as_deref(),
        root: None,
        modules: options.modules.as_deref(),
        load: &[],
        lists_sections: false,
        ends_at_begin: false,
        symbols,
        shares_memory: false,
        plugin: None,
        timeout: Duration::from_secs(options.timeout),
        shows_console: options.console,
        progress,
    }
}

/// The number of names in the sample, spread over all addresses.
const SAMPLE: usize = 2000;

fn sample(symbols: &KernelSymbols) -> Vec<String> {
    let names = symbols.all().iter().step_by((symbols.len() / SAMPLE).max(1));
    names.map(|symbol| symbol.name.clone()).collect::<BTreeSet<_>>().into_iter().collect()
}

/// Compares the symbols of both for each name in the sample.
fn compare(image: &KernelSymbols, guest: &KernelSymbols, sample: &[String]) -> SymbolCheck {
    let of = |symbols: &KernelSymbols| -> Vec<(u64, char, String)> {
        let named = sample.iter().flat_map(|name| symbols.named(name));
        let mut all: Vec<_> =
            named.map(|symbol| (symbol.address, symbol.kind, symbol.name.clone())).collect();
        all.sort();
        all
    };
    let (ours, theirs) = (of(image), of(guest));
    let equal = theirs.iter().filter(|symbol| ours.binary_search(symbol).is_ok()).count();
    SymbolCheck { listed: theirs.len(), equal, different: ours.len() + theirs.len() - 2 * equal }
}
