//! Boots a kernel under full-system emulation, and always ends it.

use super::emulator::find_emulator;
use super::ending::{GuestEnd, Stage};
use super::modules::ToLoad;
use super::rootfs::Rootfs;
use super::workload::Workload;
use crate::companions;
use crate::error::{Doing, Error, Result};
use crate::files::{cannot_read, not_utf8};
use crate::process::child::{Streams, Waiting};
use crate::process::interrupt::Interrupts;
use crate::process::run::Run;
use crate::progress::Progress;
use crate::recorder::on_path;
use lineup_kernel::guest::{Console, Event, InitOptions, Printed, SymbolsWanted, Trouble, init_script};
use lineup_kernel::initramfs::{InitramfsEntry, needed_by};
use lineup_kernel::machine::{GuestMachine, has_kaslr};
use lineup_kernel::modules::Module;
use lineup_kernel::{Container, KernelImage};
use lineup_prove::run::Ending;
use lineup_recording::WRITE_FAILED;
use std::collections::VecDeque;
use std::io::Read;
use std::path::Path;
use std::process::ChildStdout;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// The longest restart of a guest after a panic.
const AFTER_PANIC: Duration = Duration::from_secs(2);

/// The interval between checks of signals and the time while the guest is silent.
const LOOK: Duration = Duration::from_millis(100);

/// Lines of the console that are kept for an error message.
const LAST_LINES: usize = 20;

/// The kernel and the workload to boot, with their options.
#[derive(Clone)]
pub struct BootRequest<'a> {
    /// The file of the image.
    pub file: &'a Path,
    /// The image.
    pub image: &'a KernelImage,
    /// Virtual CPUs.
    pub cpus: u32,
    /// Memory in MiB.
    pub memory_mib: u32,
    /// Appended to the kernel's command line, see [`GuestMachine::kernel_cmdline`].
    pub cmdline: &'a str,
    /// The guest's workload.
    pub workload: &'a Workload,
    /// A busybox for the guest's machine; `None` for the installed one.
    pub busybox: Option<&'a Path>,
    /// The root file system that the workload sees; `None` for busybox alone.
    pub root: Option<&'a Rootfs>,
    /// The folder of the kernel's modules; `None` for the one next to the image.
    pub modules: Option<&'a Path>,
    /// Modules that are loaded before the workload begins, by their names.
    pub load: &'a [String],
    /// True when the guest lists the addresses of its modules' sections.
    pub lists_sections: bool,
    /// True when the guest is ended as its workload would begin.
    pub ends_at_begin: bool,
    /// The symbols that the guest lists.
    pub symbols: SymbolsWanted,
    /// True when the plugin reads the guest's memory.
    pub shares_memory: bool,
    /// The emulator's `-plugin` argument.
    pub plugin: Option<String>,
    /// The longest run.
    pub timeout: Duration,
    /// True when progress gets the console's lines.
    pub shows_console: bool,
    /// Hears how far the guest is.
    pub progress: &'a dyn Progress,
}

impl<'a> BootRequest<'a> {
    /// The modules that the guest loads.
    pub fn to_load(&self) -> ToLoad<'a> {
        ToLoad {
            image: self.file,
            release: self.image.release(),
            folder: self.modules,
            named: self.load,
            has_root: self.root.is_some(),
        }
    }
}

/// Boots a guest only to have its symbols: the request asks for all of them, and for no work.
pub fn list_symbols(request: &BootRequest<'_>, interrupts: &Interrupts) -> Result<Vec<String>> {
    let outcome = boot(request, interrupts)?;
    match outcome.problem(request) {
        Some(problem) => {
            let what = "the image has no readable symbol table, and its guest did not list it";
            Err(Error::Guest(format!("{what}: {problem}")))
        }
        None => Ok(outcome.symbols),
    }
}

/// A module section's address in a guest.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ModuleSection {
    /// The module's name.
    pub module: String,
    /// The section's.
    pub section: String,
    /// The address of its first byte.
    pub address: u64,
}

/// Boots a guest up to the beginning of its workload to list its modules' sections. The boot to be recorded is the same
/// up to that point, and so are these addresses.
pub fn list_sections(request: &BootRequest<'_>, interrupts: &Interrupts) -> Result<Vec<ModuleSection>> {
    let request = BootRequest { lists_sections: true, ends_at_begin: true, ..request.clone() };
    let outcome = boot(&request, interrupts)?;
    match outcome.problem(&request) {
        Some(problem) => Err(Error::Guest(format!("where modules lie is not known: {problem}"))),
        None => Ok(outcome.sections),
    }
}

/// A guest that ran.
#[derive(Debug)]
pub struct BootOutcome {
    /// The run's end.
    pub end: GuestEnd,
    /// The kernel's release, as it reports it, once it booted.
    pub release: Option<String>,
    /// The kernel's source of time.
    pub clocksource: Option<String>,
    /// From the start of the emulator to the init script.
    pub boot: Option<Duration>,
    /// From the workload's begin to its end.
    pub work: Option<Duration>,
    /// From the start of the emulator to its end.
    pub total: Duration,
    /// The kernel's complaints, in order.
    pub troubles: Vec<(Trouble, String)>,
    /// The guest's list of symbols, as asked for.
    pub symbols: Vec<String>,
    /// The addresses of its modules' sections, as asked for.
    pub sections: Vec<ModuleSection>,
    /// The error when the recorder could not write the recording, such as that of a full disk.
    pub write_failure: Option<String>,
    /// The last lines of the console.
    pub last_lines: VecDeque<String>,
    /// The output of the kernel and of the workload.
    pub printed: Printed,
    /// The emulator's version text.
    pub emulator: String,
    /// The kernel's command line.
    pub cmdline: String,
}

impl BootOutcome {
    /// The workload's exit status, if it ended.
    pub fn status(&self) -> Option<i32> {
        match self.end {
            GuestEnd::Finished { status } => Some(status),
            _ => None,
        }
    }

    /// The problem, with the console's last lines; nothing when the workload ended well.
    pub fn problem(&self, request: &BootRequest<'_>) -> Option<String> {
        let killed = self.troubles.iter().find(|(trouble, _)| *trouble == Trouble::OutOfMemory);
        let killed = killed.map(|(_, line)| line.as_str());
        let mut problem = self.end.problem(request.timeout, request.memory_mib, killed)?;
        if !self.last_lines.is_empty() {
            problem += "\nlast lines of the console:";
        }
        for line in &self.last_lines {
            problem += &format!("\n  {line}");
        }
        Some(problem)
    }
}

/// Boots a kernel, runs the workload, and waits for the end. No process stays behind, whatever the end.
///
/// An error is a failure on the host; a failure in the guest is part of the outcome.
pub fn boot(request: &BootRequest<'_>, interrupts: &Interrupts) -> Result<BootOutcome> {
    refuse_unknown_addresses(request)?;
    let emulator = find_emulator(request.image.machine)?;
    let scratch = interrupts.temporary_folder().doing("cannot make a temporary folder")?;
    let initramfs = scratch.path().join("initramfs");
    std::fs::write(&initramfs, initramfs_of(request)?).doing("cannot write the initramfs")?;
    let machine = GuestMachine {
        machine: request.image.machine,
        emulator: emulator.version,
        cpus: request.cpus,
        memory_mib: request.memory_mib,
        kernel: kernel_file(request, scratch.path())?,
        initramfs: text(&initramfs)?,
        root: request.root.map(Rootfs::image).transpose()?,
        cmdline: request.cmdline.into(),
        shares_memory: request.shares_memory,
        plugin: request.plugin.clone(),
    };
    let arguments = machine.arguments()?.into_iter().map(Into::into);
    let invocation =
        Run { command: [emulator.command.into()].into_iter().chain(arguments).collect(), ..Run::default() };
    let mut waiting = Waiting::start(&invocation, Streams::Piped, interrupts)?;
    let pipe =
        waiting.take_pipe().ok_or_else(|| Error::Start("the emulator's console is not connected".into()))?;
    let mut watch = Watch::new(request, emulator.name, machine.kernel_cmdline()?);
    waiting.release()?;
    let chunks = read_in_background(pipe);
    let ended = watch.follow(&chunks, interrupts)?;
    if !ended {
        waiting.end();
        return Ok(watch.outcome(None));
    }
    let finished = waiting.finish(watch.started)?;
    let complaint = String::from_utf8_lossy(&finished.stderr.head).into_owned();
    watch.outcome.write_failure = write_failure(&complaint);
    Ok(watch.outcome(Some((finished.ending, complaint))))
}

/// The recorder's error in the emulator's messages.
fn write_failure(complaint: &str) -> Option<String> {
    complaint.lines().find_map(|line| line.strip_prefix(WRITE_FAILED)).map(str::to_owned)
}

/// Recording and listing a guest need the addresses that its image has.
fn refuse_unknown_addresses(request: &BootRequest<'_>) -> Result<()> {
    let needs_addresses =
        request.plugin.is_some() || request.lists_sections || request.symbols != SymbolsWanted::None;
    match has_kaslr(request.cmdline) && needs_addresses {
        true => Err(lineup_kernel::Error::Option {
            option: "--cmdline",
            value: request.cmdline.into(),
            why: "functions are found at the addresses that the image has; kaslr is for a plain boot",
        }
        .into()),
        false => Ok(()),
    }
}

/// The image in the form that the emulator loads: a compressed image is unpacked here, as firmware would do.
fn kernel_file(request: &BootRequest<'_>, scratch: &Path) -> Result<String> {
    let image = request.image;
    match (image.container, image.compression) {
        (Container::Elf, _) => Err(Error::file(
            request.file,
            format!(
                "is a vmlinux, which the emulator does not boot; give the distributed image, such as /boot/vmlinuz-{}",
                image.release()
            ),
        )),
        (Container::EfiZboot, _) | (Container::Arm64Image, Some(_)) => {
            let unpacked = scratch.join("Image");
            std::fs::write(&unpacked, &image.vmlinux).doing("cannot write the unpacked kernel")?;
            text(&unpacked)
        }
        _ => text(&std::path::absolute(request.file).doing_with(|| cannot_read(request.file))?),
    }
}

fn text(path: &Path) -> Result<String> {
    Ok(path.to_str().ok_or_else(|| not_utf8(path))?.to_owned())
}

fn initramfs_of(request: &BootRequest<'_>) -> Result<Vec<u8>> {
    let (busybox, path) = find_busybox(request)?;
    let script = init_script(&InitOptions {
        workload: request.workload.script.clone(),
        directory: request.workload.directory.clone(),
        loopback: request.workload.loopback,
        symbols: request.symbols.clone(),
        modules: modules_of(request)?,
        lists_sections: request.lists_sections,
        has_root: request.root.is_some(),
    })?;
    let mut tree = script.tree(&busybox)?;
    let machine = request.image.machine;
    for library in needed_by(&path, &busybox, machine, &mut |path| std::fs::read(path).ok())? {
        tree.put(&library.path, InitramfsEntry::File { mode: 0o755, contents: library.contents })?;
    }
    request.workload.pack(&mut tree)?;
    Ok(tree.to_cpio()?)
}

fn modules_of(request: &BootRequest<'_>) -> Result<Vec<Module>> {
    if request.root.is_none() && request.load.is_empty() {
        return Ok(Vec::new());
    }
    Ok(request.to_load().files()?.into_iter().map(|file| file.module).collect())
}

fn find_busybox(request: &BootRequest<'_>) -> Result<(Vec<u8>, String)> {
    let machine = request.image.machine;
    let path = match request.busybox {
        Some(path) => path.to_owned(),
        None if machine.is_host() => {
            on_path("busybox").ok_or_else(|| Error::not_installed("busybox", "busybox-static"))?
        }
        None => {
            return Err(Error::Tool {
                tool: format!("a static busybox for {machine}"),
                what: "is needed for the guest".into(),
                next:
                    "give one with --busybox; on Debian: apt download busybox-static:ARCHITECTURE and dpkg -x"
                        .into(),
            });
        }
    };
    Ok((companions::read(&path)?.to_vec(), text(&path)?))
}

/// Sends the console's output in the background; the channel closes with the console.
fn read_in_background(mut pipe: ChildStdout) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = pipe.read(&mut buffer) {
            if sender.send(buffer[..count].to_vec()).is_err() {
                break;
            }
        }
    });
    receiver
}

/// Follows a guest's console.
struct Watch<'a> {
    started: Instant,
    deadline: Instant,
    stage: Stage,
    work_began: Option<Instant>,
    status: Option<i32>,
    panic: Option<(Trouble, String, Stage)>,
    not_set_up: Option<String>,
    saw_anything: bool,
    shows_console: bool,
    ends_at_begin: bool,
    progress: &'a dyn Progress,
    outcome: BootOutcome,
}

impl<'a> Watch<'a> {
    fn new(request: &BootRequest<'a>, emulator: String, cmdline: String) -> Watch<'a> {
        let started = Instant::now();
        request.progress.stage(&format!("{}: booting", request.image.release()));
        let outcome = BootOutcome {
            end: GuestEnd::Silent,
            release: None,
            clocksource: None,
            boot: None,
            work: None,
            total: Duration::ZERO,
            troubles: Vec::new(),
            symbols: Vec::new(),
            sections: Vec::new(),
            write_failure: None,
            last_lines: VecDeque::new(),
            printed: Printed::default(),
            emulator,
            cmdline,
        };
        Watch {
            started,
            deadline: started + request.timeout,
            stage: Stage::Booting,
            work_began: None,
            status: None,
            panic: None,
            not_set_up: None,
            saw_anything: false,
            shows_console: request.shows_console,
            ends_at_begin: request.ends_at_begin,
            progress: request.progress,
            outcome,
        }
    }

    /// Until the console closes (true) or the time is over (false).
    fn follow(&mut self, chunks: &Receiver<Vec<u8>>, interrupts: &Interrupts) -> Result<bool> {
        let mut console = Console::default();
        loop {
            interrupts.check()?;
            if self.ends_at_begin && self.work_began.is_some() {
                self.status = Some(0);
                return Ok(false);
            }
            if Instant::now() >= self.deadline {
                return Ok(false);
            }
            match chunks.recv_timeout(LOOK) {
                Ok(bytes) => {
                    self.saw_anything = true;
                    console.push(&bytes).into_iter().for_each(|event| self.take(event));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    console.finish().into_iter().for_each(|event| self.take(event));
                    interrupts.check()?;
                    return Ok(true);
                }
            }
        }
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Booted { release, clocksource } => {
                self.stage = Stage::Booted;
                self.outcome.boot = Some(self.started.elapsed());
                self.progress.stage(&format!("{release}: booted"));
                self.outcome.release = Some(release);
                self.outcome.clocksource = Some(clocksource).filter(|name| !name.is_empty());
            }
            Event::SymbolLine(line) => self.outcome.symbols.push(line),
            Event::SymbolsListed | Event::PoweredOff => {}
            Event::ModuleSection { module, section, address } => {
                self.outcome.sections.push(ModuleSection { module, section, address });
            }
            Event::NotSetUp(why) => self.not_set_up = Some(why),
            Event::WorkloadBegan => {
                self.stage = Stage::Working;
                self.work_began = Some(Instant::now());
                self.progress.stage("workload runs");
            }
            Event::WorkloadEnded { status } => {
                self.stage = Stage::Ended;
                self.status = Some(status);
                self.outcome.work = self.work_began.map(|began| began.elapsed());
                self.progress.stage("workload has ended");
            }
            Event::Output(line) => {
                self.outcome.printed.add(&line, self.stage == Stage::Working);
                self.line(line);
            }
            Event::Trouble { trouble, line } => {
                self.outcome.printed.add_message(&line);
                self.trouble(trouble, line.clone());
                self.line(line);
            }
        }
    }

    fn line(&mut self, line: String) {
        if self.shows_console {
            self.progress.line(&line);
        }
        if self.outcome.last_lines.len() == LAST_LINES {
            self.outcome.last_lines.pop_front();
        }
        self.outcome.last_lines.push_back(line);
    }

    fn trouble(&mut self, trouble: Trouble, line: String) {
        let is_last = line.starts_with("Kernel panic");
        if is_last && self.panic.is_none() {
            self.panic = Some((trouble, line.clone(), self.stage));
            self.deadline = self.deadline.min(Instant::now() + AFTER_PANIC);
        }
        self.outcome.troubles.push((trouble, line));
    }

    fn outcome(self, ended: Option<(Ending, String)>) -> BootOutcome {
        let not_set_up = self.not_set_up.map(GuestEnd::NotSetUp);
        let end = match (self.panic, self.status, ended) {
            (Some((trouble, line, stage)), ..) => GuestEnd::Panicked { stage, trouble, line },
            (None, None, _) if not_set_up.is_some() => not_set_up.unwrap_or(GuestEnd::Silent),
            (None, Some(status), _) => GuestEnd::Finished { status },
            (None, None, Some((ending, complaint))) if ending != Ending::Exited(0) => {
                GuestEnd::EmulatorFailed { ending, complaint }
            }
            (None, None, Some(_)) => GuestEnd::EndedEarly(self.stage),
            (None, None, None) if !self.saw_anything => GuestEnd::Silent,
            (None, None, None) => GuestEnd::TimedOut(self.stage),
        };
        BootOutcome { end, total: self.started.elapsed(), ..self.outcome }
    }
}
