//! Runs `lineup kernel`.

use super::args::Options;
use super::report::{Boot, Report, SymbolCheck};
use super::view;
use crate::kernels::guest_root::{root, say_unknown};
use crate::kernels::symbols::{self, DebugFile, KernelTypes, hex};
use crate::terminal::outcome::Outcome;
use crate::terminal::output;
use crate::terminal::progress::Stages;
use anyhow::{Context, Result, bail};
use lineup_kernel::guest::SymbolsWanted;
use lineup_kernel::{KernelImage, KernelSymbols, kallsyms};
use lineup_study::companions;
use lineup_study::guest::boot::{BootRequest, boot, list_symbols};
use lineup_study::guest::workload::Workload;
use lineup_study::interrupt::Interrupts;
use std::collections::BTreeSet;
use std::time::Duration;

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
        type_source: types.as_ref().map(KernelTypes::source),
        boot: booted,
    };
    let printed = match options.json {
        true => serde_json::to_string_pretty(&report).context("cannot write JSON")? + "\n",
        false => view::plain(&report),
    };
    output::print(&printed)?;
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
