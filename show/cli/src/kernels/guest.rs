//! Boots a kernel under full-system emulation with the recorder in the emulator.

use crate::kernels::guest_modules::{Modules, text_of};
use crate::kernels::guest_root::{root, say_unknown};
use crate::kernels::summary::{Guest, Report};
use crate::kernels::symbols::DebugFile;
use crate::kernels::{guest_modules, summary, summary_text, symbols};
use crate::terminal::outcome::Outcome;
use crate::terminal::output;
use crate::terminal::progress::Stages;
use anyhow::{Context, Result, bail};
use clap::Args;
use lineup_cache::CacheSpec;
use lineup_kernel::guest::SymbolsWanted;
use lineup_kernel::machine::{TIME_SHIFT, emulator_version};
use lineup_kernel::region_sets::{self, INTERRUPTS_OFF, KERNEL};
use lineup_kernel::{KernelImage, KernelSymbols, entry_points, flag_saves};
use lineup_model::abi::Abi;
use lineup_model::region::Regions;
use lineup_recording::plan::{Plan, Task};
use lineup_recording::{Arm, Header, Latency, Mode, Recording, Selection, SystemPlan, read_all};
use lineup_study::alias::Alias;
use lineup_study::guest::boot::{BootOutcome, BootRequest, boot, list_sections, list_symbols};
use lineup_study::guest::emulator::find_emulator;
use lineup_study::guest::rootfs::Rootfs;
use lineup_study::guest::workload::Workload;
use lineup_study::interrupt::Interrupts;
use lineup_study::recorder::{plugin_argument, thin_to_spread};
use lineup_study::{companions, recording_file};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Calls of each region recorded with their accesses when the user does not say.
const USUAL_CALLS: u64 = 400;

/// The guest's memory when the user does not say.
const USUAL_MEMORY_MIB: u32 = 512;

/// The time after which a guest is stopped when the user does not say.
const USUAL_TIMEOUT_SECONDS: u64 = 300;

/// Accesses kept per call at most: a call with more is cut, which is counted.
const MAX_ACCESSES_PER_CALL: u64 = 1 << 20;

/// Caches of a usual server core, modelled by default.
const USUAL_CACHES: [&str; 3] = ["l1i=32K,8,64", "l1d=32K,8,64", "l2=1M,16,64"];

/// Arguments that concern a kernel.
#[derive(Args, Clone)]
pub(crate) struct KernelOptions {
    /// Boot this kernel image under full-system emulation and record it instead of a program
    #[arg(long, value_name = "IMAGE")]
    pub(crate) kernel: Option<PathBuf>,
    /// The image's vmlinux with debug information
    #[arg(long, value_name = "VMLINUX", requires = "kernel")]
    pub(crate) debug: Option<PathBuf>,
    /// Workload of the guest: idle, busy, wakeup, net, a script, or a command
    #[arg(long, value_name = "NAME|SCRIPT|COMMAND", default_value = "idle", requires = "kernel")]
    pub(crate) workload: String,
    /// Virtual CPUs
    #[arg(long, value_name = "N", default_value_t = 1, requires = "kernel",
          value_parser = clap::value_parser!(u32).range(1..=16))]
    pub(crate) cpus: u32,
    /// Machine that the image must be for: x86_64, aarch64 or arm
    #[arg(long, value_name = "NAME", requires = "kernel")]
    pub(crate) machine: Option<String>,
    /// The guest's memory in MiB
    #[arg(long, value_name = "MIB", default_value_t = USUAL_MEMORY_MIB, requires = "kernel")]
    pub(crate) memory: u32,
    /// Appended to the kernel's command line; `mitigations=…` replaces the `mitigations=off` that is there otherwise
    #[arg(long, value_name = "TEXT", default_value = "", allow_hyphen_values = true, requires = "kernel")]
    pub(crate) cmdline: String,
    /// A static busybox for the guest's machine [default: the installed one]
    #[arg(long, value_name = "FILE", requires = "kernel")]
    pub(crate) busybox: Option<PathBuf>,
    /// The guest's root: a folder, or archives of a container's layers, lowest first; read-only, changes in memory
    #[arg(long, value_name = "DIR|TAR", requires = "kernel")]
    pub(crate) rootfs: Vec<PathBuf>,
    /// Load this module of the kernel, and those that it needs, before the workload begins: its functions can be
    /// regions
    #[arg(long, value_name = "NAME", requires = "kernel")]
    pub(crate) module: Vec<String>,
    /// The folder of the kernel's modules [default: lib/modules/RELEASE next to the image's folder]
    #[arg(long, value_name = "DIR", requires = "kernel")]
    pub(crate) modules: Option<PathBuf>,
    /// Stop the guest after this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = USUAL_TIMEOUT_SECONDS, requires = "kernel",
          value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) timeout: u64,
    /// Show the guest's console on standard error
    #[arg(long, requires = "kernel")]
    pub(crate) console: bool,
    /// Cycles that a miss stalls: from the second level, from memory
    #[arg(long, value_name = "L2,MEMORY", value_parser = latency, requires = "kernel")]
    pub(crate) latency: Option<Latency>,
    /// Also write the stream that a replay of the caches needs, for `lineup advise --what-if`: this many million steps
    /// at most. Implies
    /// --first
    #[arg(long, value_name = "MILLIONS", num_args = 0..=1, default_value_t = 0, default_missing_value = "2000",
          requires = "kernel", value_parser = clap::value_parser!(u64).range(..=10_000))]
    pub(crate) stream: u64,
    /// State of the caches before each call, sampled by its number: normal, invalidated, prefetched
    #[arg(long, value_name = "ARM,…", value_delimiter = ',', value_parser = arm, requires = "kernel")]
    pub(crate) intervene: Vec<Arm>,
}

impl KernelOptions {
    /// The words of a command that records this guest, up to its regions.
    pub(crate) fn next_words(&self) -> Vec<String> {
        let path = |path: &PathBuf| path.to_string_lossy().into_owned();
        let mut words = ["lineup", "record"].map(str::to_owned).to_vec();
        words.extend(self.kernel.iter().flat_map(|image| ["--kernel".to_owned(), path(image)]));
        words.extend(self.debug.iter().flat_map(|debug| ["--debug".to_owned(), path(debug)]));
        words.extend(self.rootfs.iter().flat_map(|root| ["--rootfs".to_owned(), path(root)]));
        words.extend(self.module.iter().flat_map(|module| ["--module".to_owned(), module.clone()]));
        words.extend(self.modules.iter().flat_map(|modules| ["--modules".to_owned(), path(modules)]));
        words.extend(self.busybox.iter().flat_map(|busybox| ["--busybox".to_owned(), path(busybox)]));
        let numbers = [
            ("--cpus", u64::from(self.cpus), 1),
            ("--memory", u64::from(self.memory), USUAL_MEMORY_MIB.into()),
            ("--timeout", self.timeout, USUAL_TIMEOUT_SECONDS),
        ];
        for (option, number, usual) in numbers {
            if number != usual {
                words.extend([option.to_owned(), number.to_string()]);
            }
        }
        if !self.cmdline.is_empty() {
            words.extend(["--cmdline".to_owned(), self.cmdline.clone()]);
        }
        words.extend(["--workload".to_owned(), self.workload.clone()]);
        words
    }
}

/// The settings that do not concern kernels alone.
pub(crate) struct GuestSettings<'a> {
    /// Regions and their weights, as typed.
    pub(crate) regions: Regions,
    /// Calls of each region kept with their accesses.
    pub(crate) calls: Option<u64>,
    /// The selection of these calls.
    pub(crate) selection: Selection,
    /// Calls left out at first.
    pub(crate) warmup: u64,
    /// Caches to model; the usual ones when empty.
    pub(crate) caches: &'a [CacheSpec],
    /// The recording.
    pub(crate) out: &'a Path,
    /// The kind of recording: calls, or the whole guest.
    pub(crate) what: GuestRecordKind,
}

/// The kind of a guest's recording.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum GuestRecordKind {
    /// Calls of the regions.
    Calls,
    /// Calls of the regions; no caches are modelled.
    CallsWithoutCaches,
    /// All execution and accesses, with windows of the run of this many bytes.
    Whole {
        /// Memory for windows.
        window_bytes: u64,
    },
}

/// A kernel that is ready to be booted and recorded.
pub(crate) struct Prepared {
    kernel: KernelImage,
    options: KernelOptions,
    file: PathBuf,
    workload: Workload,
    root: Option<Rootfs>,
    modules: Modules,
    plan: Plan,
}

impl Prepared {
    /// The file that describes the kernel: its vmlinux, or its image.
    pub(crate) fn described(&self) -> &str {
        &self.plan.program
    }

    /// The start of the kernel's part of the addresses.
    pub(crate) fn kernel_start(&self) -> u64 {
        self.plan.system.as_ref().map_or(0, |system| system.entries.kernel_start)
    }
}

/// A kernel that was recorded.
pub(crate) struct Recorded {
    /// The file's header and records.
    pub(crate) recording: Recording,
    /// The guest's run.
    pub(crate) outcome: BootOutcome,
    /// The guest's problem.
    pub(crate) problem: Option<String>,
}

pub(crate) fn latency(text: &str) -> Result<Latency, String> {
    let both = text.split_once(',').and_then(|(l2, memory)| Some((l2.parse().ok()?, memory.parse().ok()?)));
    let (l2_cycles, memory_cycles) = both.ok_or("write two numbers of cycles, such as 14,200")?;
    Ok(Latency { l2_cycles, memory_cycles })
}

fn arm(text: &str) -> Result<Arm, String> {
    Arm::named(text).ok_or_else(|| format!("{text}: write normal, invalidated or prefetched"))
}

/// The caches modelled by default.
pub(crate) fn usual_caches() -> Result<Vec<CacheSpec>> {
    USUAL_CACHES.iter().map(|text| text.parse().context("a usual cache")).collect()
}

/// Runs `lineup record --kernel`.
pub(crate) fn run(options: &KernelOptions, wanted: &GuestSettings<'_>, json: bool) -> Result<Outcome> {
    let stages = Stages::new();
    let interrupts = stages.watch_signals()?;
    let prepared = prepare(options, wanted, &stages, &interrupts)?;
    let recorded = record(&prepared, &stages, &interrupts)?;
    stages.end();
    let report = report(&prepared, &recorded);
    let printed = match json {
        true => serde_json::to_string_pretty(&report)? + "\n",
        false => summary_text::text(&report),
    };
    output::print(&printed)?;
    if let Some(problem) = recorded.problem {
        bail!("{problem}\nwhat was recorded until then is in {}", prepared.plan.output);
    }
    refuse_silence(&report)?;
    Ok(Outcome::Done)
}

/// Reads the image, finds the regions, and makes the plan. Requests that cannot work are refused here.
pub(crate) fn prepare(
    options: &KernelOptions,
    wanted: &GuestSettings<'_>,
    stages: &Stages,
    interrupts: &Interrupts,
) -> Result<Prepared> {
    let file = options.kernel.clone().context("no kernel given")?;
    let name = || file.display().to_string();
    let kernel = KernelImage::parse(&companions::read(&file)?).with_context(name)?;
    check_machine(options, &kernel)?;
    let debug = options.debug.as_ref().map(|path| DebugFile::open(path, &kernel)).transpose()?;
    let folder = std::env::current_dir().context("finding the working directory")?;
    let root = root(&options.rootfs, stages, interrupts)?;
    let workload = Workload::new(&options.workload, &folder, kernel.machine, root.as_ref())?;
    say_unknown(&workload, stages);
    let mut list = || {
        let nothing = Workload::nothing();
        let request = request(options, &file, &kernel, &nothing, None, stages);
        Ok(list_symbols(&BootRequest { symbols: SymbolsWanted::All, ..request }, interrupts)?)
    };
    let (symbols, _) = symbols::symbols(&kernel, debug.as_ref(), &mut list).with_context(name)?;
    let described = std::path::absolute(options.debug.as_ref().unwrap_or(&file)).with_context(name)?;
    recording_file::check(wanted.out, [file.as_path()])?;
    let usual = request(options, &file, &kernel, &workload, None, stages);
    let guest = BootRequest { root: root.as_ref(), ..usual };
    let modules = placed_modules(&guest, wanted, &symbols, interrupts)?;
    let plan =
        plan(options, wanted, &kernel, (&symbols, &modules), &text_of(&described)?).map_err(|error| {
            guest_modules::refusal((&modules, &guest.to_load()), &wanted.regions, &symbols).unwrap_or(error)
        })?;
    Ok(Prepared { kernel, options: options.clone(), file, workload, root, modules, plan })
}

/// The modules that the guest loads. A boot without work finds their addresses, when a region is in one, or when the
/// whole guest is recorded.
fn placed_modules(
    guest: &BootRequest<'_>,
    wanted: &GuestSettings<'_>,
    symbols: &KernelSymbols,
    interrupts: &Interrupts,
) -> Result<Modules> {
    let mut modules = Modules::read(&guest.to_load())?;
    modules.refuse_network_drivers(&wanted.regions)?;
    let is_of_use = match wanted.what {
        // Several CPUs in real time may be given modules elsewhere by each boot: only who names one wants to know.
        GuestRecordKind::Whole { .. } => !modules.are_none() && (guest.cpus == 1 || !guest.load.is_empty()),
        GuestRecordKind::Calls | GuestRecordKind::CallsWithoutCaches => {
            modules.are_of_use(&wanted.regions, symbols, guest.load)
        }
    };
    if is_of_use {
        guest_modules::check_machine(guest.image)?;
        modules.place(list_sections(guest, interrupts)?)?;
    }
    Ok(modules)
}

fn check_machine(options: &KernelOptions, kernel: &KernelImage) -> Result<()> {
    let is = kernel.machine.to_string();
    match options.machine.as_deref() {
        Some(wanted) if wanted != is => bail!("the image is for {is}, not {wanted}"),
        _ => Ok(()),
    }
}

fn plan(
    options: &KernelOptions,
    wanted: &GuestSettings<'_>,
    kernel: &KernelImage,
    (symbols, modules): (&KernelSymbols, &Modules),
    described: &str,
) -> Result<Plan> {
    let regions = region_sets::find(&wanted.regions, &modules.with_symbols(symbols), described)?;
    let regions = modules.in_their_files(&regions);
    let mut system = system_plan(options, kernel, symbols, &regions)?;
    system.modules = modules.images();
    if wanted.what == GuestRecordKind::CallsWithoutCaches && system.windows.is_some() {
        bail!("the region {KERNEL} keeps all that the kernel accesses, which --no-caches does not watch");
    }
    if system.windows.is_some() || matches!(wanted.what, GuestRecordKind::Whole { .. }) {
        // A kernel that does not describe its types has tasks without names.
        system.task_struct = symbols::own_types(kernel)
            .ok()
            .and_then(|btf| entry_points::task_struct(kernel.machine, &btf.types));
    }
    let abi = Abi::usual(kernel.machine);
    let mut header = Header::new(abi, vec![kernel.release().to_owned(), options.workload.clone()]);
    header.emulator = find_emulator(kernel.machine)?.name;
    let window_bytes = match wanted.what {
        GuestRecordKind::Calls | GuestRecordKind::CallsWithoutCaches => 0,
        GuestRecordKind::Whole { window_bytes } => window_bytes,
    };
    header.mode = match wanted.what {
        GuestRecordKind::Calls | GuestRecordKind::CallsWithoutCaches => Mode::System,
        GuestRecordKind::Whole { .. } => Mode::WholeProgram,
    };
    header.regions = regions;
    header.warmup_calls = wanted.warmup;
    header.max_calls = Some(wanted.calls.unwrap_or(USUAL_CALLS));
    // For calls spread over the run, the selection is known only at its end, and a replay must know it.
    header.selection = if options.stream > 0 { Selection::First } else { wanted.selection };
    header.max_accesses = MAX_ACCESSES_PER_CALL;
    header.caches = match wanted.caches {
        _ if wanted.what == GuestRecordKind::CallsWithoutCaches => Vec::new(),
        [] => usual_caches()?.iter().map(ToString::to_string).collect(),
        caches => caches.iter().map(ToString::to_string).collect(),
    };
    Ok(Plan {
        output: text_of(&std::path::absolute(wanted.out).context("the recording's path")?)?,
        program: described.to_owned(),
        system: Some(system),
        window_bytes,
        ..Plan::new(Task::Record, header)
    })
}

/// The recorder's parameters for the kernel, and the user's choices.
fn system_plan(
    options: &KernelOptions,
    kernel: &KernelImage,
    symbols: &KernelSymbols,
    regions: &Regions,
) -> Result<SystemPlan> {
    let entries = entry_points::find(kernel.machine, symbols)?;
    let arms = if options.intervene.is_empty() { vec![Arm::Untouched] } else { options.intervene.clone() };
    if options.stream > 0 && arms != [Arm::Untouched] {
        bail!("--stream goes without --intervene: a replay does not know what was done to the caches");
    }
    Ok(SystemPlan {
        entries,
        flag_saves: flag_saves::conditional(kernel, symbols),
        cpus: options.cpus,
        time_shift: TIME_SHIFT,
        latency: options.latency.unwrap_or_default(),
        arms,
        interrupts_off: regions.id_of(INTERRUPTS_OFF),
        windows: regions.id_of(KERNEL),
        task_struct: None,
        stream_steps: options.stream * 1_000_000,
        modules: Vec::new(),
    })
}

/// Boots and records; returns the guest's outcome, and its problem.
pub(crate) fn boot_recorded(
    prepared: &Prepared,
    stages: &Stages,
    interrupts: &Interrupts,
) -> Result<(BootOutcome, Option<String>)> {
    let scratch = interrupts.temporary_folder().context("cannot make a temporary folder")?;
    let plan_file = scratch.path().join("plan");
    std::fs::write(&plan_file, prepared.plan.to_text()).context("writing the recorder's plan")?;
    let plan_name = Alias::of(&plan_file)?;
    let emulator = emulator_version(&prepared.plan.header.emulator).unwrap_or_default();
    let argument = plugin_argument(plan_name.text(), emulator)?;
    let plugin = Some(argument.text.clone());
    let usual =
        request(&prepared.options, &prepared.file, &prepared.kernel, &prepared.workload, plugin, stages);
    let system = prepared.plan.system.as_ref();
    let shares_memory = system.is_some_and(|system| system.task_struct.is_some());
    let lists_sections = !prepared.modules.sections.is_empty();
    let request = BootRequest { shares_memory, lists_sections, root: prepared.root.as_ref(), ..usual };
    let outcome = boot(&request, interrupts)?;
    if outcome.work.is_some() && outcome.sections != prepared.modules.sections {
        bail!(
            "the guest has put its modules elsewhere than when it was booted to find out where they lie, so that nothing of \
             the recording holds; with one CPU both boots are alike"
        );
    }
    if let Some(why) = &outcome.write_failure {
        bail!(
            "cannot write the recording {}: {why}; it holds what was recorded until then",
            prepared.plan.output
        );
    }
    let problem = outcome.problem(&request);
    Ok((outcome, problem))
}

/// Boots without the recorder, with additional memory: that moves the kernel's allocations.
pub(crate) fn boot_bare(
    prepared: &Prepared,
    more_memory_mib: u32,
    stages: &Stages,
    interrupts: &Interrupts,
) -> Result<(BootOutcome, Option<String>)> {
    let Prepared { options, file, kernel, workload, root, .. } = prepared;
    let usual = request(options, file, kernel, workload, None, stages);
    let request = BootRequest { memory_mib: options.memory + more_memory_mib, root: root.as_ref(), ..usual };
    let outcome = boot(&request, interrupts)?;
    let problem = outcome.problem(&request);
    Ok((outcome, problem))
}

/// Boots, records, and reads the recording back.
pub(crate) fn record(prepared: &Prepared, stages: &Stages, interrupts: &Interrupts) -> Result<Recorded> {
    let (outcome, problem) = boot_recorded(prepared, stages, interrupts)?;
    let output = &prepared.plan.output;
    let why = problem.as_ref().map(|problem| format!(": {problem}"));
    let nothing = |otherwise: &str| format!("nothing was recorded{}", why.as_deref().unwrap_or(otherwise));
    if !Path::new(output).exists() {
        bail!("{}", nothing(": the recorder wrote no file"));
    }
    if let Err(error) = thin_to_spread(Path::new(output), &prepared.plan.header) {
        bail!("{error:#}; the recording has more calls with their accesses than were asked for");
    }
    let bytes = std::fs::read(output).with_context(|| format!("cannot read back the recording {output}"))?;
    let recording = read_all(&bytes).with_context(|| nothing(""))?;
    if problem.is_none() && (recording.damage.is_some() || recording.system.is_none()) {
        let damage = recording.damage.as_ref().map_or("its end is missing".into(), ToString::to_string);
        bail!("the recording {output} is not whole: {damage}; is there room where it lies?");
    }
    Ok(Recorded { recording, outcome, problem })
}

fn request<'a>(
    options: &'a KernelOptions,
    file: &'a Path,
    kernel: &'a KernelImage,
    workload: &'a Workload,
    plugin: Option<String>,
    progress: &'a Stages,
) -> BootRequest<'a> {
    BootRequest {
        file,
        image: kernel,
        cpus: options.cpus,
        memory_mib: options.memory,
        cmdline: &options.cmdline,
        workload,
        busybox: options.busybox.as_deref(),
        root: None,
        modules: options.modules.as_deref(),
        load: &options.module,
        lists_sections: false,
        ends_at_begin: false,
        symbols: SymbolsWanted::None,
        shares_memory: false,
        plugin,
        timeout: Duration::from_secs(options.timeout),
        shows_console: options.console,
        progress,
    }
}

/// The recording, as shown.
pub(crate) fn report(prepared: &Prepared, recorded: &Recorded) -> Report {
    let system = prepared.plan.system.clone().unwrap_or_default();
    let guest = Guest {
        release: recorded.outcome.release.clone(),
        clocksource: recorded.outcome.clocksource.clone(),
        cmdline: recorded.outcome.cmdline.clone(),
        workload: prepared.options.workload.clone(),
        status: recorded.outcome.status(),
        boot_seconds: recorded.outcome.boot.map(|time| time.as_secs_f64()),
        workload_seconds: recorded.outcome.work.map(|time| time.as_secs_f64()),
        total_seconds: recorded.outcome.total.as_secs_f64(),
    };
    summary::summarise(&prepared.plan.output, &recorded.recording, &system, guest)
}

/// A guest that ended in good order without a call has nothing to say about the regions.
fn refuse_silence(report: &Report) -> Result<()> {
    let silent = report.regions.iter().filter(|region| region.calls == 0);
    let silent: Vec<&str> = silent.map(|region| region.name.as_str()).collect();
    if silent.len() == report.regions.len() {
        bail!("the workload ended without a call of {}; does it lead there?", silent.join(", "));
    }
    Ok(())
}
