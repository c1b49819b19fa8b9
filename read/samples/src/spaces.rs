//! The mappings of each process, in the order of time.

use crate::header::Header;
use crate::operand::Operand;
use crate::record::{Mapping, Mode};
use foldhash::HashMap;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

/// A mapped file, or a mapping that the kernel named.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct MappedFile {
    /// The path as the process saw it; `[kernel.kallsyms]`, `[vdso]` and the like for a mapping of no file.
    pub path: String,
    /// Its build id, when perf wrote it down.
    pub build_id: Option<Vec<u8>>,
}

impl MappedFile {
    /// True for the kernel itself.
    pub fn is_kernel(&self) -> bool {
        self.path.starts_with("[kernel.") || self.path.starts_with("[guest.kernel.")
    }

    /// The name of a module of the kernel, as the kernel writes it: of `[ext4]`, or of a path such as
    /// `/lib/modules/6.1.0/kernel/fs/ext4/ext4.ko.xz`.
    pub fn module(&self) -> Option<String> {
        const OTHERS: [&str; 4] = ["vdso", "vsyscall", "vectors", "uprobes"];
        if let Some(name) = self.path.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            let is_module = !self.is_kernel() && !OTHERS.contains(&name) && !name.contains([' ', '.', ':']);
            return is_module.then(|| name.to_owned());
        }
        let (name, packed) = self.path.rsplit('/').next()?.split_once(".ko")?;
        matches!(packed, "" | ".xz" | ".zst" | ".gz").then(|| name.replace('-', "_"))
    }
}

/// A part of a file that is loaded, from its program headers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileSegment {
    /// The offset in the file at which it begins.
    pub file_offset: u64,
    /// Bytes in the file.
    pub file_bytes: u64,
    /// Link address.
    pub address: u64,
    /// Bytes in memory.
    pub memory_bytes: u64,
    /// True for an executable segment.
    pub is_code: bool,
}

impl FileSegment {
    /// The bias to subtract from addresses of a mapping for link addresses, if the mapping begins in this segment.
    fn bias(&self, mapping: &Mapping) -> u64 {
        let link = self.address.wrapping_sub(self.file_offset).wrapping_add(mapping.file_offset);
        mapping.start.wrapping_sub(link)
    }
}

/// Gives the segments of files; implemented by the code that opens files.
pub trait Segments {
    /// The segments of a file; none when it was not found. Each file is requested once, in the order of their
    /// positions.
    fn of(&mut self, file: &MappedFile) -> Vec<FileSegment>;

    /// The one operand in memory of an instruction, by the position of its file and its link address; `None` when it
    /// has none, or several, or is not known.
    fn operand(&mut self, file: u32, at: u64) -> Option<Operand> {
        let _ = (file, at);
        None
    }
}

/// A place in code.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Code {
    /// In a file.
    File {
        /// Its position among the files.
        file: u32,
        /// Link address; where no segments are known, the offset in the file; of the kernel and its modules the
        /// distance from where they were mapped.
        at: u64,
    },
    /// In memory without a file, as compilers at run time make it.
    Anonymous {
        /// The process.
        process: u32,
        /// The address.
        at: u64,
    },
    /// Nothing was mapped there, as far as the records show.
    Unmapped {
        /// True for an address of the kernel.
        is_kernel: bool,
    },
}

/// The place of accessed data.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Data {
    /// No address was sampled.
    Unsaid,
    /// In a file's data, or in the zeroed memory behind it.
    File {
        /// Its position among the files.
        file: u32,
        /// Link address.
        at: u64,
    },
    /// In the main thread's stack.
    Stack,
    /// In memory that belongs to no file: the heap, other stacks.
    Memory,
    /// An address of the kernel.
    Kernel,
}

#[derive(Clone, Copy, Debug)]
struct Area {
    end: u64,
    /// The bias to subtract from an address for [`Code::File`] and [`Data::File`].
    bias: u64,
    kind: AreaKind,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum AreaKind {
    File(u32),
    Stack,
    Anonymous,
}

/// The whole range of a loaded file with the zeroed memory behind it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Extent {
    start: u64,
    end: u64,
    bias: u64,
    file: u32,
}

#[derive(Clone, Default, Debug)]
struct Space {
    areas: BTreeMap<u64, Area>,
    extents: Vec<Extent>,
}

/// The address spaces of all processes. Of ended processes, the last ones are kept.
#[derive(Default, Debug)]
pub(crate) struct Spaces {
    files: Vec<MappedFile>,
    numbers: HashMap<MappedFile, u32>,
    segments: Vec<Rc<[FileSegment]>>,
    kernel: Space,
    /// The last ranges of the kernel and its modules, by file.
    kernel_ranges: BTreeMap<u32, Range<u64>>,
    processes: HashMap<u32, Rc<Space>>,
    /// The number of changes of a mapping's address.
    changes: u64,
    ended: std::collections::VecDeque<u32>,
}

/// Address spaces kept of ended processes: one of their samples may come late.
const ENDED_KEPT: usize = 1024;
/// The maximum number of files, and of mappings of a process. A process that maps more for hours was built to do so.
const MOST_FILES: usize = 1 << 17;
const MOST_AREAS: usize = 1 << 17;
/// Addresses from here on are the kernel's, on the machines with 64 bits that perf runs on.
const KERNEL: u64 = 1 << 63;

impl Spaces {
    /// The files, and the ranges of the kernel's files.
    pub(crate) fn into_files(self) -> (Vec<MappedFile>, BTreeMap<u32, Range<u64>>) {
        (self.files, self.kernel_ranges)
    }

    /// A place that was found holds as long as this number is the same.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    pub(crate) fn see_mapping(&mut self, mapping: &Mapping, header: &Header, segments: &mut dyn Segments) {
        let kind = self.kind(mapping, header, segments);
        let Some(end) = mapping.start.checked_add(mapping.size_bytes) else { return };
        let (bias, extent) = match kind {
            AreaKind::File(file) => self.place(file, mapping),
            _ => (0, None),
        };
        let area = Area { end, bias, kind };
        self.changes += 1;
        match mapping.process {
            None => {
                if let AreaKind::File(file) = kind {
                    self.kernel_ranges.insert(file, mapping.start..end);
                }
                self.kernel.insert(mapping.start, area, extent);
            }
            Some(process) => {
                Rc::make_mut(self.processes.entry(process).or_default()).insert(mapping.start, area, extent);
            }
        }
    }

    fn kind(&mut self, mapping: &Mapping, header: &Header, segments: &mut dyn Segments) -> AreaKind {
        let path = mapping.path.as_str();
        if path.starts_with("[stack") {
            return AreaKind::Stack;
        }
        let is_anonymous = path.is_empty()
            || path.starts_with("//anon")
            || path.starts_with("[heap")
            || path.starts_with("[anon")
            || path.starts_with("/memfd:")
            || path.starts_with("/dev/zero")
            || path.starts_with("/SYSV")
            || path.starts_with("/anon_hugepage");
        if is_anonymous || self.files.len() >= MOST_FILES {
            return AreaKind::Anonymous;
        }
        // The kernel is mapped as its name with that of a symbol.
        let path = if mapping.process.is_none() {
            path.split_once(']').map_or(path, |(name, _)| name)
        } else {
            path
        };
        let path =
            if path.starts_with('[') && !path.ends_with(']') { format!("{path}]") } else { path.to_owned() };
        let of_header =
            header.build_ids.iter().find(|known| known.path == path).map(|known| known.id.clone());
        let file = MappedFile { path, build_id: mapping.build_id.clone().or(of_header) };
        if let Some(number) = self.numbers.get(&file) {
            return AreaKind::File(*number);
        }
        let number = self.files.len() as u32;
        self.segments.push(segments.of(&file).into());
        self.numbers.insert(file.clone(), number);
        self.files.push(file);
        AreaKind::File(number)
    }

    /// The bias that turns addresses of a mapping of a file into link addresses, and the range that the file then
    /// covers.
    fn place(&self, file: u32, mapping: &Mapping) -> (u64, Option<Extent>) {
        if mapping.process.is_none() {
            return (mapping.start, None);
        }
        let none: &[FileSegment] = &[];
        let segments = self.segments.get(file as usize).map_or(none, |all| all);
        // A mapping begins at a page's start, a segment anywhere in it: a page of the file can hold parts of several.
        let holds = |one: &&FileSegment| {
            let first = one.file_offset & !0xfff;
            (first..one.file_offset.saturating_add(one.file_bytes.max(1))).contains(&mapping.file_offset)
        };
        let space = mapping.process.and_then(|process| self.processes.get(&process));
        let known = space.map_or(&[][..], |space| &space.extents);
        let lies_elsewhere =
            |one: &FileSegment| !known.iter().any(|it| it.file == file && it.bias == one.bias(mapping));
        let held = segments.iter().filter(holds);
        let Some(of) = held.min_by_key(|one| (lies_elsewhere(one), one.is_code != mapping.is_code)) else {
            return (mapping.start.wrapping_sub(mapping.file_offset), None);
        };
        let bias = of.bias(mapping);
        let start = segments.iter().map(|one| one.address).min().unwrap_or_default();
        let end =
            segments.iter().map(|one| one.address.saturating_add(one.memory_bytes)).max().unwrap_or_default();
        let extent = Extent { start: start.wrapping_add(bias), end: end.wrapping_add(bias), bias, file };
        (bias, (extent.start < extent.end).then_some(extent))
    }

    pub(crate) fn see_fork(&mut self, process: u32, parent: u32) {
        if process != parent
            && let Some(space) = self.processes.get(&parent).cloned()
        {
            self.processes.insert(process, space);
            self.changes += 1;
        }
    }

    /// The process has become another program.
    pub(crate) fn see_executed(&mut self, process: u32) {
        self.processes.insert(process, Rc::default());
        self.changes += 1;
    }

    pub(crate) fn see_ended(&mut self, process: u32) {
        self.ended.push_back(process);
        if self.ended.len() > ENDED_KEPT
            && let Some(first) = self.ended.pop_front()
            && !self.ended.contains(&first)
        {
            self.processes.remove(&first);
            self.changes += 1;
        }
    }

    pub(crate) fn code(&self, process: u32, mode: Mode, at: u64) -> Code {
        let is_kernel = mode == Mode::Kernel || at >= KERNEL;
        let space = if is_kernel { Some(&self.kernel) } else { self.processes.get(&process).map(Rc::as_ref) };
        match space.and_then(|space| space.area(at)) {
            Some(Area { kind: AreaKind::File(file), bias, .. }) => {
                Code::File { file, at: at.wrapping_sub(bias) }
            }
            Some(_) => Code::Anonymous { process, at },
            None => Code::Unmapped { is_kernel },
        }
    }

    pub(crate) fn data(&self, process: u32, at: u64) -> Data {
        if at >= KERNEL {
            return Data::Kernel;
        }
        let Some(space) = self.processes.get(&process) else { return Data::Memory };
        if let Some(area) = space.area(at) {
            match area.kind {
                AreaKind::Stack => return Data::Stack,
                AreaKind::File(file) => return Data::File { file, at: at.wrapping_sub(area.bias) },
                AreaKind::Anonymous => {}
            }
        }
        // Perf records mappings of data only on request; a file's parts lie together.
        let inside = space.extents.iter().rev().find(|extent| (extent.start..extent.end).contains(&at));
        inside
            .map_or(Data::Memory, |extent| Data::File { file: extent.file, at: at.wrapping_sub(extent.bias) })
    }
}

impl Space {
    fn area(&self, at: u64) -> Option<Area> {
        let (_, area) = self.areas.range(..=at).next_back()?;
        (at < area.end).then_some(*area)
    }

    /// A new mapping replaces the earlier ones in its range.
    fn insert(&mut self, start: u64, area: Area, extent: Option<Extent>) {
        let before = self.areas.range(..start).next_back().map(|(start, area)| (*start, *area));
        if let Some((first, old)) = before.filter(|(_, old)| old.end > start) {
            self.areas.insert(first, Area { end: start, ..old });
            if old.end > area.end {
                self.areas.insert(area.end, old);
            }
        }
        let inside: Vec<u64> = self.areas.range(start..area.end).map(|(start, _)| *start).collect();
        for first in inside {
            if let Some(old) = self.areas.remove(&first).filter(|old| old.end > area.end) {
                self.areas.insert(area.end, old);
            }
        }
        if self.areas.len() < MOST_AREAS {
            self.areas.insert(start, area);
        }
        if let Some(extent) = extent.filter(|extent| !self.extents.contains(extent)) {
            self.extents.retain(|old| old.end <= extent.start || extent.end <= old.start);
            self.extents.push(extent);
        }
    }
}
