//! Records the effects of each call, process by process.

use super::argument_words;
use super::calls::{self, Meaning, PathArgument, SystemCall};
use super::changed_files::{self, ChangedFiles};
use super::clients::Clients;
use super::memory;
use super::messages::{MESSAGE_BYTES, MOST_PARTS, each_part_of, file_offset, is_peek, message_size, parts};
use super::ptrace::{SystemCallEntry, Tid};
use super::scene::Scene;
use super::targets::{self, Numbers, Opened};
use lineup_prove::effects::{
    Call, CallSite, Content, ContentCollector, Effects, ProcessEffects, ProcessPath, Stream, Target,
    hide_folder,
};
use lineup_prove::run::Ending;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Values below are numbers where an address could stand as well: the first page is never mapped.
const FIRST_ADDRESS: u64 = 4096;

/// A call that a thread is in.
pub(super) struct Entered {
    call: &'static SystemCall,
    arguments: [u64; 6],
    seen: PriorValues,
}

/// Values that had to be read before the kernel acted on them.
enum PriorValues {
    Nothing,
    Bytes(Vec<u8>),
    /// Paths, each with true when something stood there.
    Paths(Vec<(PathBuf, bool)>),
    Words(String),
    /// The place in a file from which bytes are moved.
    Offset(u64),
}

/// The known state of one process.
struct Traced {
    path: ProcessPath,
    children: u32,
    numbers: Numbers,
    streams: BTreeMap<Target, (BTreeSet<&'static str>, ContentCollector)>,
    effects: ProcessEffects,
}

impl Traced {
    fn new(path: ProcessPath) -> Self {
        Self {
            path,
            children: 0,
            numbers: Numbers::default(),
            streams: BTreeMap::new(),
            effects: ProcessEffects::default(),
        }
    }

    fn done(self, ending: Option<Ending>) -> (ProcessPath, ProcessEffects) {
        let mut effects = self.effects;
        let streams = self.streams.into_iter();
        effects.streams = streams
            .map(|(target, (written_by, content))| (target, Stream { written_by, content: content.finish() }))
            .collect();
        effects.ending = ending;
        (self.path, effects)
    }
}

/// Collects the effects of one run.
pub(super) struct Observer {
    scene: Scene,
    processes: HashMap<Tid, Traced>,
    done: BTreeMap<ProcessPath, ProcessEffects>,
    changed: ChangedFiles,
    clients: Clients,
    not_observed: BTreeSet<String>,
    has_moved_output: bool,
}

impl Observer {
    pub(super) fn new(root: Tid, scene: Scene) -> Self {
        Self {
            clients: Clients::new(scene.hidden()),
            scene,
            processes: [(root, Traced::new(ProcessPath::root()))].into(),
            done: BTreeMap::new(),
            changed: ChangedFiles::default(),
            not_observed: BTreeSet::new(),
            has_moved_output: false,
        }
    }

    /// Something that was not observed, in a few words.
    pub(super) fn note(&mut self, what: impl Into<String>) {
        self.not_observed.insert(what.into());
    }

    /// A process made another.
    pub(super) fn child(&mut self, maker: Tid, new: Tid) {
        let path = match self.processes.get_mut(&maker) {
            Some(maker) => {
                maker.children += 1;
                maker.path.child(maker.children)
            }
            None => ProcessPath::root().child(0),
        };
        self.processes.insert(new, Traced::new(path));
    }

    /// A process started a program.
    pub(super) fn runs(&mut self, process: Tid) {
        let Ok(program) = std::fs::read_link(format!("/proc/{process}/exe")) else { return };
        let name = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy().into_owned();
        let mut head = [0u8; 5];
        let file = std::fs::File::open(&program);
        let is_read = file.is_ok_and(|mut file| std::io::Read::read_exact(&mut file, &mut head).is_ok());
        if is_read && head == *b"\x7fELF\x01" {
            self.note(format!("what {name} does, which is a 32-bit program"));
        }
        if program.metadata().is_ok_and(|about| about.permissions().mode() & 0o6000 != 0) {
            self.note(format!("what {name} does with its owner's rights: it ran without them"));
        }
    }

    /// A process ended.
    pub(super) fn ended(&mut self, process: Tid, ending: Ending) {
        if let Some(traced) = self.processes.remove(&process) {
            self.done.extend([traced.done(Some(ending))]);
        }
    }

    /// All effects of a program that ended so. Where the kernel moved bytes to its output that no call's argument held,
    /// all of the output counts as the program's own.
    pub(super) fn finish(mut self, ending: Ending, outputs: [(Target, Content); 2]) -> Effects {
        self.done.extend(self.processes.into_values().map(|traced| traced.done(None)));
        let files = self.changed.left(&self.scene);
        // Inside the folder the files themselves are compared, which starts as it was for every run.
        let is_left = |target: &Target| matches!(target, Target::Path(path) if files.contains_key(path) && !path.starts_with('/'));
        for process in self.done.values_mut() {
            process.streams.retain(|target, _| !is_left(target));
        }
        self.done.entry(ProcessPath::root()).or_default().ending = Some(ending);
        for (target, content) in outputs.into_iter().filter(|_| self.has_moved_output) {
            let writers = self.done.values_mut().filter_map(|process| process.streams.remove(&target));
            let written_by =
                writers.flat_map(|stream| stream.written_by).chain(["moved by the kernel"]).collect();
            let root = self.done.entry(ProcessPath::root()).or_default();
            root.streams.insert(target, Stream { written_by, content });
        }
        let connections = self.clients.finish();
        Effects { processes: self.done, files, connections, not_observed: self.not_observed }
    }

    /// A thread is about to make a call; `None` when its result does not matter.
    pub(super) fn enter(&mut self, tid: Tid, entry: &SystemCallEntry) -> Option<Entered> {
        let call = calls::by_number(entry.number)?;
        let arguments = entry.arguments;
        let value = |place: usize| arguments.get(place).copied().unwrap_or(0);
        let seen = match call.meaning {
            Meaning::Ioctl => {
                let size_bytes = argument_words::request(value(1)).size_bytes.unwrap_or(0);
                PriorValues::Bytes(memory::bytes(tid, value(2), size_bytes))
            }
            Meaning::SocketOption => PriorValues::Bytes(memory::bytes(tid, value(3), value(4))),
            Meaning::Address => PriorValues::Bytes(memory::bytes(tid, value(1), value(2))),
            Meaning::Argument(argument) => {
                let address = value(argument.address);
                let size_bytes = argument_words::argument_bytes(tid, argument.size, address, &arguments);
                PriorValues::Bytes(memory::bytes(tid, address, size_bytes))
            }
            Meaning::Open(path) => PriorValues::Paths(self.paths(tid, &arguments, &[Some(path)])),
            Meaning::Paths(one, other) => {
                PriorValues::Paths(self.paths(tid, &arguments, &[Some(one), other]))
            }
            Meaning::Execute(path, list) => {
                PriorValues::Words(self.command(tid, value(path.path), value(list)))
            }
            Meaning::SendFile => PriorValues::Offset(file_offset(tid, value(1), value(2))),
            _ => PriorValues::Nothing,
        };
        Some(Entered { call, arguments, seen })
    }

    /// A call has returned.
    pub(super) fn leave(
        &mut self,
        tid: Tid,
        process: Tid,
        entered: Entered,
        result: i64,
        process_of: impl Fn(Tid) -> Option<Tid>,
    ) {
        let name = entered.call.name;
        let value = |place: usize| entered.arguments.get(place).copied().unwrap_or(0);
        let Some(done) = outcome(result, entered.call.meaning) else { return };
        match (entered.call.meaning, entered.seen) {
            (Meaning::Write, _) => self.written(tid, process, name, value(0), &[(value(1), done)], ""),
            (Meaning::WriteVector, _) => {
                let parts = parts(tid, value(1), value(2), done);
                self.written(tid, process, name, value(0), &parts, "");
            }
            (Meaning::SendTo, _) => {
                let to = argument_words::address(&memory::bytes(tid, value(4), value(5).min(128)));
                let to = if value(4) == 0 { String::new() } else { format!("to {to}") };
                self.written(tid, process, name, value(0), &[(value(1), done)], &to);
            }
            (Meaning::SendMessage, _) => self.message(tid, process, name, value(0), value(1), done),
            (Meaning::SendMessages, _) => {
                for index in 0..done.min(MOST_PARTS) {
                    let header = value(1).wrapping_add(MESSAGE_BYTES * index);
                    self.message(tid, process, name, value(0), header, message_size(tid, header));
                }
            }
            (Meaning::Transfer(to), _) => self.moved(tid, process, name, value(to)),
            (Meaning::SendFile, PriorValues::Offset(offset)) => {
                let connection = self.clients.of(tid, value(0));
                let is_seen = connection.is_some_and(|connection| {
                    self.clients.sent_from_file(connection, (tid, value(1)), offset, done)
                });
                if !is_seen {
                    self.moved(tid, process, name, value(0));
                }
            }
            (Meaning::Accept, _) => self.clients.accepted(tid, done),
            (Meaning::Read, _) if name == "recvfrom" && is_peek(value(3)) => {}
            (Meaning::Read, _) => self.received(tid, value(0), &[(value(1), done)]),
            (Meaning::ReadVector, _) => {
                self.received(tid, value(0), &parts(tid, value(1), value(2), done));
            }
            (Meaning::ReceiveMessage, _) if is_peek(value(2)) => {}
            (Meaning::ReceiveMessage, _) => self.received_message(tid, value(0), value(1), done),
            (Meaning::ReceiveMessages, _) if is_peek(value(3)) => {}
            (Meaning::ReceiveMessages, _) => {
                for index in 0..done.min(MOST_PARTS) {
                    let header = value(1).wrapping_add(MESSAGE_BYTES * index);
                    self.received_message(tid, value(0), header, message_size(tid, header));
                }
            }
            (Meaning::Ioctl, PriorValues::Bytes(bytes)) => {
                self.request(tid, process, value(0), value(1), value(2), &bytes, result);
            }
            (Meaning::SocketOption, PriorValues::Bytes(bytes)) => {
                let what = format!("level {} option {}{}", value(1) as i32, value(2) as i32, error(result));
                self.on_file(tid, process, name, value(0), Call::new(what, &bytes));
            }
            (Meaning::Address, PriorValues::Bytes(bytes)) => {
                let call = Call::new(self.hide(argument_words::address(&bytes)), &[]);
                self.on_file(tid, process, name, value(0), call);
            }
            (Meaning::Argument(argument), PriorValues::Bytes(bytes)) => {
                let numbers = argument.numbers.iter().map(|place| value(*place).to_string());
                let what = format!("{}{}", numbers.collect::<Vec<_>>().join(" "), error(result));
                let call = Call::new(what, &self.hidden(bytes));
                match argument.file {
                    Some(file) => self.on_file(tid, process, name, value(file), call),
                    None => self.push(process, name, Target::System, call),
                }
            }
            (Meaning::Open(_), PriorValues::Paths(paths)) => self.opened(tid, name, done, paths),
            (Meaning::Paths(..), PriorValues::Paths(paths)) => {
                paths.into_iter().for_each(|(path, existed)| self.changed.note(path, existed, name));
            }
            (Meaning::ChangeFile, _) => {
                if let Some(Opened { path: Some(path), .. }) = self.file(tid, process, value(0)) {
                    self.changed.note(path, true, name);
                }
            }
            (Meaning::MapShared, _) => self.mapped(tid, process, name, value(4)),
            (Meaning::Execute(..), PriorValues::Words(command)) => {
                self.push(process, name, Target::System, Call::new(command, &[]));
            }
            (Meaning::Signal(to, signal), _) => {
                let target = self.signalled(process, value(to) as i32, process_of);
                let call = Call::new(lineup_model::signal_name(value(signal) as i32), &[]);
                self.push(process, name, Target::Process(target), call);
            }
            (Meaning::NotObserved(what), _) => self.note(what),
            _ => {}
        }
    }

    /// Bytes went to an open file.
    fn written(
        &mut self,
        tid: Tid,
        process: Tid,
        name: &'static str,
        number: u64,
        parts: &[(u64, u64)],
        what: &str,
    ) {
        if let Some(connection) = self.clients.of(tid, number) {
            if !what.is_empty() {
                self.clients.called(connection, name, &Call::new(what, &[]));
            }
            return each_part_of(tid, parts, |bytes| self.clients.sent(connection, bytes));
        }
        let opened = self.file(tid, process, number);
        // Bytes written to the null device have no effect.
        let Some(opened) = opened.filter(|opened| opened.target != Target::Path("/dev/null".into())) else {
            return;
        };
        if opened.has_messages {
            let mut bytes = Vec::new();
            for (address, size_bytes) in parts {
                bytes.extend(memory::bytes(tid, *address, *size_bytes));
            }
            return self.push(process, name, opened.target, Call::new(what, &self.hidden(bytes)));
        }
        if let Some(path) = opened.path {
            self.changed.note(path, true, name);
        }
        let hidden = self.scene.hidden();
        let Some(traced) = self.processes.get_mut(&process) else { return };
        let new = || (BTreeSet::new(), ContentCollector::new(hidden));
        let (by, content) = traced.streams.entry(opened.target).or_insert_with(new);
        by.insert(name);
        for (address, size_bytes) in parts {
            memory::each_part(tid, *address, *size_bytes, |bytes| content.add(bytes));
        }
    }

    /// Bytes came from an open file; those of a client's connection are kept.
    fn received(&mut self, tid: Tid, number: u64, parts: &[(u64, u64)]) {
        if let Some(connection) = self.clients.of(tid, number) {
            each_part_of(tid, parts, |bytes| self.clients.received(connection, bytes));
        }
    }

    fn received_message(&mut self, tid: Tid, number: u64, header: u64, size_bytes: u64) {
        if let [_, _, list, count, ..] = memory::words(tid, header, 4)[..] {
            self.received(tid, number, &parts(tid, list, count, size_bytes));
        }
    }

    /// One `struct msghdr`: address and its size, list of parts and its length, control data and their size.
    fn message(&mut self, tid: Tid, process: Tid, name: &'static str, number: u64, header: u64, sent: u64) {
        let words = memory::words(tid, header, 6);
        let [address, address_bytes, list, count, control, control_bytes] = words[..] else { return };
        // Its type is `socklen_t`; the upper half of the word is padding.
        let address_bytes = address_bytes & 0xffff_ffff;
        let mut what = match address {
            0 => String::new(),
            _ => format!(
                "to {}",
                argument_words::address(&memory::bytes(tid, address, address_bytes.min(128)))
            ),
        };
        if control != 0 && control_bytes > 0 {
            let bytes = memory::bytes(tid, control, control_bytes.min(256));
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            what = format!("{what} with {control_bytes} bytes of control data {hex}").trim_start().to_owned();
        }
        let parts = parts(tid, list, count, sent);
        self.written(tid, process, name, number, &parts, &what);
    }

    /// The kernel moved bytes from one file to another.
    fn moved(&mut self, tid: Tid, process: Tid, name: &'static str, to: u64) {
        if self.clients.of(tid, to).is_some() {
            return self.note(format!("bytes that the kernel moved to clients ({name})"));
        }
        let Some(opened) = self.file(tid, process, to) else { return };
        match (opened.target, opened.path) {
            (Target::StandardOutput | Target::StandardError, _) => self.has_moved_output = true,
            (_, Some(path)) => self.changed.note(path, true, name),
            (target, None) => self.note(format!("bytes that the kernel moved to {target} ({name})")),
        }
    }

    /// A request to a device.
    #[expect(clippy::too_many_arguments, reason = "they are the call's arguments and its result")]
    fn request(
        &mut self,
        tid: Tid,
        process: Tid,
        number: u64,
        request: u64,
        argument: u64,
        bytes: &[u8],
        result: i64,
    ) {
        let request = argument_words::request(request);
        if request.is_query {
            return;
        }
        let mut what = format!("{}{}", request.words, error(result));
        if let Some(connection) = self.clients.of(tid, number) {
            return self.clients.called(connection, "ioctl", &Call::new(what, bytes));
        }
        let Some(opened) = self.file(tid, process, number) else { return };
        if request.size_bytes.is_none() && argument < FIRST_ADDRESS {
            what = format!("{what} with {argument}");
        } else if request.size_bytes.is_none() {
            let target = &opened.target;
            self.note(format!("the argument of ioctl {} on {target}: its size is not known", request.words));
        }
        self.push(process, "ioctl", opened.target, Call::new(what, bytes));
    }

    fn opened(&mut self, tid: Tid, name: &'static str, number: u64, paths: Vec<(PathBuf, bool)>) {
        // The path as the kernel resolved it, with all symbolic links followed.
        let link = format!("/proc/{tid}/fd/{number}");
        let (Ok(path), Ok(about)) = (std::fs::read_link(&link), std::fs::metadata(&link)) else { return };
        if about.is_file() && !path.as_os_str().as_bytes().ends_with(b" (deleted)") {
            let existed = paths.first().is_none_or(|(_, existed)| *existed);
            self.changed.note(path, existed, name);
        }
    }

    /// A file was mapped so that stores to memory reach it.
    fn mapped(&mut self, tid: Tid, process: Tid, name: &'static str, number: u64) {
        // Memory without a file is shared with this run's own processes only.
        if number as i32 == -1 {
            return;
        }
        match self.file(tid, process, number) {
            Some(Opened { path: Some(path), .. }) => self.changed.note(path, true, name),
            Some(Opened { target, .. }) => self.note(format!("stores to memory shared with {target}")),
            None => {}
        }
    }

    fn on_file(&mut self, tid: Tid, process: Tid, name: &'static str, number: u64, call: Call) {
        if let Some(connection) = self.clients.of(tid, number) {
            return self.clients.called(connection, name, &call);
        }
        if let Some(opened) = self.file(tid, process, number) {
            self.push(process, name, opened.target, call);
        }
    }

    fn push(&mut self, process: Tid, name: &'static str, target: Target, mut call: Call) {
        call.what = self.hide(call.what);
        if let Some(traced) = self.processes.get_mut(&process) {
            traced.effects.calls.entry(CallSite { name, target }).or_default().push(call);
        }
    }

    fn file(&mut self, tid: Tid, process: Tid, number: u64) -> Option<Opened> {
        let traced = self.processes.get_mut(&process)?;
        targets::opened(tid, number as i32, &self.scene, &mut traced.numbers)
    }

    /// The receiver of a signal, in words that do not change from run to run.
    fn signalled(&self, process: Tid, to: i32, process_of: impl Fn(Tid) -> Option<Tid>) -> String {
        let known = |id: Tid| {
            let id = process_of(id).unwrap_or(id);
            self.processes.get(&id).map(|traced| (id, traced.path.to_string()))
        };
        match to {
            0 => "its process group".into(),
            -1 => "every process".into(),
            1.. => match known(to) {
                Some((id, _)) if id == process => "itself".into(),
                Some((_, path)) => format!("process {path}"),
                None => "a process outside the run".into(),
            },
            _ => match known(-to) {
                Some((_, path)) => format!("the group of process {path}"),
                None => "a process group outside the run".into(),
            },
        }
    }

    /// The command line of a program that is executed.
    fn command(&self, tid: Tid, path: u64, list: u64) -> String {
        let path = memory::text(tid, path);
        let words =
            memory::texts(tid, list).into_iter().map(|word| String::from_utf8_lossy(&word).into_owned());
        let words: Vec<String> = words.collect();
        format!("{} as {}", String::from_utf8_lossy(&path), shell_words::join(words))
    }

    fn paths(&self, tid: Tid, arguments: &[u64; 6], wanted: &[Option<PathArgument>]) -> Vec<(PathBuf, bool)> {
        let paths = wanted.iter().flatten().filter_map(|path| resolved(tid, arguments, *path));
        paths.map(|path| (path.clone(), changed_files::exists(&path))).collect()
    }

    fn hidden(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        hide_folder(&mut bytes, self.scene.hidden());
        bytes
    }

    fn hide(&self, text: String) -> String {
        match self.scene.hidden() {
            [] => text,
            _ => String::from_utf8_lossy(&self.hidden(text.into_bytes())).into_owned(),
        }
    }
}

/// A call's result, when its value matters.
fn outcome(result: i64, meaning: Meaning) -> Option<u64> {
    match (u64::try_from(result), meaning) {
        (Ok(done), _) => Some(done),
        // The connection is being made.
        (Err(_), Meaning::Address) => (result == -i64::from(libc::EINPROGRESS)).then_some(0),
        // The kernel, or a driver, has seen the bytes and said no.
        (Err(_), Meaning::Ioctl | Meaning::SocketOption | Meaning::Argument(_)) => Some(0),
        (Err(_), _) => None,
    }
}

/// A failed call's error, in words; empty when it succeeded.
fn error(result: i64) -> String {
    match i32::try_from(result) {
        Ok(code @ ..0) => format!(", refused ({})", std::io::Error::from_raw_os_error(-code)),
        _ => String::new(),
    }
}

/// An absolute path, its folder without symbolic links.
fn resolved(tid: Tid, arguments: &[u64; 6], wanted: PathArgument) -> Option<PathBuf> {
    let text = memory::text(tid, *arguments.get(wanted.path)?);
    let path = Path::new(OsStr::from_bytes(&text));
    if text.is_empty() {
        return None;
    }
    let folder = wanted.folder.and_then(|place| arguments.get(place)).map(|number| *number as i32);
    let base = match folder {
        Some(number) if number != libc::AT_FDCWD => format!("/proc/{tid}/fd/{number}"),
        _ => format!("/proc/{tid}/cwd"),
    };
    // An absolute path takes the place of the whole base.
    let full = std::fs::read_link(base).ok()?.join(path);
    match (full.parent().and_then(|parent| parent.canonicalize().ok()), full.file_name()) {
        (Some(parent), Some(name)) => Some(parent.join(name)),
        _ => Some(full),
    }
}
