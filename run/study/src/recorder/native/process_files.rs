//! A process whose log is read: its identity, the files that it has mapped, and the output for its records.

use super::output::Output;
use crate::companions;
use crate::error::Result;
use crate::recorder::native::shared_memory::Memory;
use lineup_bundle::Library;
use lineup_debuginfo::{demangle, function_range, is_meant};
use lineup_follow::images::{EntryPlace, Images};
use lineup_follow::maps::{self, GuestFile};
use lineup_model::access::{MemoryEvent, MemoryEventKind, ProcessId, ThreadId};
use lineup_model::image::LoadedImage;
use lineup_model::process::{AddressSpace, Origin, Process};
use lineup_recording::native::mappings::{Whose, data_mappings};
use lineup_recording::native::{note, timed};
use lineup_recording::plan::Plan;
use lineup_recording::{Encoder, Unfollowed};
use std::collections::{BTreeSet, HashSet};
use std::ffi::OsString;
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::Ordering::Acquire;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// From one look at the process's memory to the next, at first and at last.
const FIRST_WAIT: Duration = Duration::from_millis(10);
/// See [`FIRST_WAIT`].
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// The process.
pub(super) struct ProcessFiles<'a> {
    memory: Arc<Memory>,
    plan: &'a Plan,
    output: Arc<Mutex<Output<'a>>>,
    /// The process, as the recording numbers it.
    pub(super) id: ProcessId,
    origin: Origin,
    /// The position in the order of events at which it began.
    pub(super) began_at: u64,
    /// The files that it has mapped.
    pub(super) images: Images,
    /// The number of them at the last look.
    looked_at: u64,
    /// Mappings of code that no file was found for: a look for each is enough.
    nowhere: Vec<Range<u64>>,
    /// It was written.
    is_written: bool,
    /// Mappings that were written.
    noted: HashSet<(u64, u64, Whose)>,
    /// The time of the next look, and the wait after it.
    next_look: Option<(Instant, Duration)>,
    /// The ranges of its mappings at the last look for a stack, in order of address.
    stacks: Vec<Range<u64>>,
    /// It has ended, or has become another program: the system's list is not its own.
    pub(super) has_ended: bool,
}

impl<'a> ProcessFiles<'a> {
    /// A process of which only the number and the origin are known.
    pub(super) fn new(
        memory: Arc<Memory>,
        plan: &'a Plan,
        output: Arc<Mutex<Output<'a>>>,
        (id, origin): (ProcessId, Origin),
    ) -> Self {
        let images = Images::default();
        ProcessFiles {
            memory,
            plan,
            output,
            id,
            origin,
            began_at: 0,
            images,
            looked_at: 0,
            nowhere: Vec::new(),
            is_written: false,
            noted: HashSet::new(),
            stacks: Vec::new(),
            next_look: None,
            has_ended: false,
        }
    }

    /// The process, as the system numbers it; 0 before it is known.
    pub(super) fn system_id(&self) -> u64 {
        self.memory.control().process.load(Acquire)
    }

    /// Its addresses meet no other process's.
    pub(super) fn space(&self) -> AddressSpace {
        AddressSpace(u16::try_from(self.id.0).unwrap_or(u16::MAX))
    }

    /// Packs addresses of the process.
    pub(super) fn encoder(&self) -> Encoder {
        Encoder::of(self.space())
    }

    /// Writes who the program's process is, once.
    pub(super) fn note_process(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.is_written, true) {
            return Ok(());
        }
        let system_id = self.memory.control().process.load(Acquire);
        let program = fs::read_link(format!("/proc/{system_id}/exe")).unwrap_or_default();
        let mut encoder = self.encoder();
        encoder.process(&Process {
            id: self.id,
            origin: self.origin,
            system_id: u32::try_from(system_id).unwrap_or_default(),
            began_at: self.began_at,
            program: program.to_string_lossy().into_owned(),
        });
        self.write(&mut encoder)
    }

    /// Takes in files that were mapped since the last look.
    pub(super) fn look_at_images(&mut self) -> Result<Vec<GuestFile>> {
        self.looked_at = self.memory.control().mapped.load(Acquire);
        // The engine's own code is not recorded.
        let mut files = maps::native_files(&self.maps());
        files.retain(|file| {
            Path::new(&file.path).file_name().is_none_or(|name| name != Library::Engine.file_name())
        });
        let fresh = self.images.refresh(&files, 0, self.plan);
        self.images.look_for_names(&fresh.images, self.plan, &is_spelled);
        self.images.note_choosers(&fresh.images, self.plan, &is_spelled);
        let mut encoder = self.encoder();
        fresh.images.iter().for_each(|image| encoder.image(image));
        self.write(&mut encoder)?;
        Ok(files)
    }

    /// A function that the loader chose for a region: its entry, and its name.
    pub(super) fn take_chosen(&mut self, pc: u64, region: u16) -> (EntryPlace, String) {
        let range = |image: &LoadedImage, link: u64| {
            function_range(companions::read(Path::new(&image.path)).ok()?, link)
        };
        let place = self.images.add_chosen(pc, region, range);
        let of_file = |(name, image): (String, &LoadedImage)| {
            let file = Path::new(&image.path).file_name().unwrap_or_default().display();
            format!("{name} of {file}")
        };
        let name = self.images.name_at(pc).map_or_else(|| format!("{pc:#x}"), of_file);
        (place, name)
    }

    /// As [`ProcessFiles::look_at_images`], when files were mapped since.
    pub(super) fn look_if_mapped(&mut self) -> Result<()> {
        if self.is_written && self.memory.control().mapped.load(Acquire) != self.looked_at {
            self.look_at_images()?;
        }
        Ok(())
    }

    /// As [`ProcessFiles::look_at_images`], when code at this address may be of a new file.
    pub(super) fn look_for(&mut self, pc: u64) -> Result<()> {
        let is_new = self.memory.control().mapped.load(Acquire) != self.looked_at;
        let is_known =
            || self.images.image_at(pc).is_some() || self.nowhere.iter().any(|all| all.contains(&pc));
        if is_new || !is_known() {
            self.look_at_images()?;
            if self.images.image_at(pc).is_none() {
                let (start, end) = maps::mapping_around(&self.maps(), pc).unwrap_or((pc, pc + 1));
                self.nowhere.push(start..end);
            }
        }
        Ok(())
    }

    /// Its mappings, as the system lists them.
    pub(super) fn maps(&self) -> String {
        if self.has_ended {
            return String::new();
        }
        fs::read_to_string(format!("/proc/{}/maps", self.memory.control().process.load(Acquire)))
            .unwrap_or_default()
    }

    /// The memory around a thread's stack pointer. The system lists all mappings at once, so the list is read again
    /// only when the last one has none there.
    pub(super) fn stack_around(&mut self, slot: u64) -> Option<(u64, u64)> {
        let find = |all: &[Range<u64>]| {
            let place = all.partition_point(|mapping| mapping.end <= slot);
            all.get(place)
                .filter(|mapping| mapping.contains(&slot))
                .map(|mapping| (mapping.start, mapping.end))
        };
        find(&self.stacks).or_else(|| {
            self.stacks = maps::ranges(&self.maps());
            find(&self.stacks)
        })
    }

    /// Writes new mappings and their kinds. Looking takes longer the more mappings there are, so the interval grows.
    pub(super) fn note_memory(&mut self) -> Result<()> {
        let now = Instant::now();
        if !self.is_written || self.next_look.is_some_and(|(at, _)| now < at) {
            return Ok(());
        }
        let wait = self.next_look.map_or(FIRST_WAIT, |(_, wait)| (wait * 2).min(LONGEST_WAIT));
        self.next_look = Some((now + wait, wait));
        self.note_mappings(&data_mappings(&self.maps()))
    }

    /// Writes those of these mappings that are new.
    pub(super) fn note_mappings(&mut self, all: &[(u64, u64, Whose)]) -> Result<()> {
        let mut encoder = self.encoder();
        for &(start, end, whose) in all {
            if !self.noted.insert((start, end, whose)) {
                continue;
            }
            let kind = match whose {
                Whose::Private => MemoryEventKind::Private,
                Whose::Shared => MemoryEventKind::Shared,
            };
            encoder.memory(&MemoryEvent {
                at: self.began_at,
                process: self.id,
                thread: ThreadId(0),
                kind,
                address: start,
                size_bytes: Some(end.saturating_sub(start)),
            });
        }
        self.write(&mut encoder)
    }

    /// The recording's file.
    pub(super) fn output(&self) -> MutexGuard<'_, Output<'a>> {
        self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes packed records.
    pub(super) fn write(&mut self, encoder: &mut Encoder) -> Result<()> {
        self.output().write(encoder)
    }

    /// The engine's notes for the user.
    pub(super) fn notes(&self) -> Vec<String> {
        let told = self.memory.told().into_iter();
        told.filter_map(|(kind, text)| match kind {
            note::TEXT => Some(text),
            note::INSTRUCTION => self.of_instruction(&text),
            _ => None,
        })
        .chain(self.notes_of_traps())
        .chain(self.memory.note_of_sequences())
        .collect()
    }

    /// Functions whose calls cost more than others'.
    fn notes_of_traps(&self) -> impl Iterator<Item = String> {
        let told = self.memory.told().into_iter().filter(|(kind, _)| *kind == note::TRAP);
        let numbers: BTreeSet<u16> = told.filter_map(|(_, number)| number.parse().ok()).collect();
        let regions = self.plan.header.regions.iter().filter(move |(id, _)| numbers.contains(&id.0));
        regions.map(|(_, region)| {
            format!(
                "{} has no room for a jump: each of its calls meets a trap, which takes some microseconds",
                region.name
            )
        })
    }

    /// A note of an instruction, with its place in its file: that is the same in every process.
    fn of_instruction(&self, text: &str) -> Option<String> {
        let mut words = text.splitn(3, ' ');
        let pc = u64::from_str_radix(words.next()?, 16).ok()?;
        let (mnemonic, what) = (words.next()?, words.next()?);
        Some(match self.images.image_at(pc) {
            Some(image) => {
                let file = Path::new(&image.path).file_name().unwrap_or_default().display();
                format!("{mnemonic} at {:#x} of {file} {what}", image.to_link(pc))
            }
            None => format!("{mnemonic} at {pc:#x} {what}"),
        })
    }

    /// Programs that ran unrecorded, when no process but the first is.
    pub(super) fn unfollowed(&self) -> Vec<Unfollowed> {
        let why = |kind| match kind {
            note::EXEC => Some("was started by exec, which the native engine does not follow"),
            note::SECOND => Some("ran once more, and the native engine records the first process"),
            _ => None,
        };
        let told = self.memory.told().into_iter();
        told.filter_map(|(kind, program)| Some(Unfollowed { program, why: why(kind)?.into() })).collect()
    }

    /// The likely place of the calls when this process made none: behind the place where recording ended, in a program
    /// that it started or became, or in processes whose calls are not timed.
    pub(super) fn elsewhere(&self, command: &[OsString]) -> Option<String> {
        let mut notes = self.memory.told().into_iter();
        if let Some((_, ended)) =
            notes.find(|(kind, text)| *kind == note::TEXT && text.starts_with(note::ENDED))
        {
            return Some(ended);
        }
        if let Some(Unfollowed { program, .. }) = self.unfollowed().pop() {
            return Some(format!(
                "it started {program}, which is not recorded: add --children, or name that program after --"
            ));
        }
        let is_timed = self.memory.control().mode.load(Acquire) == timed::MODE;
        let (processes, their) = match self.memory.control().forked.load(Acquire) {
            0 => return None,
            1 => ("a process".to_owned(), "its"),
            many => (format!("{many} processes"), "their"),
        };
        let regions = self.plan.header.regions.iter();
        let regions = regions.map(|(_, region)| format!(" --region {}", shell_words::quote(&region.name)));
        let command: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
        is_timed.then(|| {
            format!(
                "it forked off {processes}, and the native engine neither times nor records {their} calls; under the \
                 emulator `lineup record --engine qemu{} -- {}` records them",
                regions.collect::<String>(),
                shell_words::join(command)
            )
        })
    }
}

/// True when a mangled symbol belongs to the function that the user spelled as in the source.
fn is_spelled(symbol: &str, wanted: &str) -> bool {
    let own = wanted.split(['(', '<']).next().unwrap_or(wanted);
    let own = own.rsplit("::").next().unwrap_or(own).trim_start_matches('~');
    let is_mangled = symbol.starts_with("_Z") || symbol.starts_with("_R");
    // Spelling all symbols of a large library takes long.
    if !is_mangled || !symbol.contains(own) {
        return false;
    }
    let is_whole = |full: &str| wanted.contains("::") || full.starts_with(wanted);
    demangle(symbol).is_some_and(|full| is_whole(&full) && is_meant(&full, wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_are_found_by_what_the_source_calls_them() {
        let read_value = "_ZN4Json9OurReader9readValueEv";
        assert!(is_spelled(read_value, "Json::OurReader::readValue"));
        assert!(is_spelled(read_value, "OurReader::readValue()"));
        // Any class may have one.
        assert!(!is_spelled(read_value, "readValue"));
        assert!(!is_spelled("_ZN4Json9OurReader9readValueEv.cold", "Json::OurReader::readValue"));
        assert!(!is_spelled("readValue", "readValue"));
        assert!(is_spelled("_Z9readValuei", "readValue"));
        assert!(is_spelled("_ZN4Json5ValueD1Ev", "Json::Value::~Value"));
    }
}
