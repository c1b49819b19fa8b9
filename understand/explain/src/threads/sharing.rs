//! Bytes and lines that several threads use.
//!
//! Forked processes have memory of their own: memory that two processes touch at one address is not shared. Calls are
//! taken to happen one after the other in the order in which they were entered: finer order between threads is not
//! recorded.

use crate::naming::name::VariableId;
use crate::naming::owner::{OwnerKey, Part};
use lineup_model::access::{ProcessId, ThreadId};
use lineup_model::line::LineSize;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// First pass: which lines more than one thread touched and at least one wrote.
#[derive(Default, Debug)]
pub struct LineThreads {
    lines: HashMap<(ProcessId, u64), Users>,
}

#[derive(Clone, Copy, Debug)]
struct Users {
    first: ThreadId,
    is_several: bool,
    is_written: bool,
}

impl LineThreads {
    /// Notes that a thread touched a line.
    pub fn add(&mut self, line: (ProcessId, u64), thread: ThreadId, is_store: bool) {
        let users =
            self.lines.entry(line).or_insert(Users { first: thread, is_several: false, is_written: false });
        users.is_several |= users.first != thread;
        users.is_written |= is_store;
    }

    /// Keeps only the lines that are shared and written.
    pub fn settle(&mut self) {
        self.lines.retain(|_, users| users.is_several && users.is_written);
        self.lines.shrink_to_fit();
    }

    /// True for a line that several threads of a process use and at least one writes.
    pub fn is_shared(&self, line: (ProcessId, u64)) -> bool {
        self.lines.contains_key(&line)
    }
}

/// One call's use of shared lines.
#[derive(Clone, Debug)]
pub struct SharedUse {
    /// When the call was entered.
    pub entered_at: u64,
    /// Its process.
    pub process: ProcessId,
    /// Its thread.
    pub thread: ThreadId,
    /// The bytes used, with the address of the first and whether they were read and written.
    pub parts: Vec<(Part, u64, bool, bool)>,
}

/// The threads' accesses to a run of bytes of a type or variable.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ByteSharing {
    /// Threads that read it.
    pub readers: BTreeSet<ThreadId>,
    /// Threads that wrote it.
    pub writers: BTreeSet<ThreadId>,
    /// Times a thread touched bytes last written by another.
    pub handovers: u64,
}

/// A line that passes between threads.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct LineSharing {
    /// Threads that read it.
    pub readers: BTreeSet<ThreadId>,
    /// Threads that wrote it.
    pub writers: BTreeSet<ThreadId>,
    /// Times a call needed the line after another thread wrote bytes that the call uses.
    pub true_handovers: u64,
    /// Times a call needed the line after another thread wrote other bytes of it.
    pub false_handovers: u64,
    /// The bytes on it that were touched, by owner: offset, size, written or not.
    pub parts: BTreeSet<(OwnerKey, u64, u64, bool)>,
}

/// Sharing by bytes and by line.
#[derive(Default, Debug)]
pub struct Shared {
    /// By owner, offset and size. Objects of one type count together.
    pub bytes: BTreeMap<(SharedOwner, u64, u64), ByteSharing>,
    /// By line number.
    pub lines: BTreeMap<u64, LineSharing>,
}

/// An owner with the objects of one type taken together.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum SharedOwner {
    /// Objects of a type.
    Type(crate::types::catalog::Ty),
    /// A variable of an image.
    Variable(usize, VariableId),
    /// Threads' blocks of the thread-local variables of an image.
    Blocks(usize),
}

impl From<OwnerKey> for SharedOwner {
    fn from(owner: OwnerKey) -> Self {
        match owner {
            OwnerKey::Object(ty, _) => SharedOwner::Type(ty),
            OwnerKey::Variable(image, variable) => SharedOwner::Variable(image, variable),
            OwnerKey::Block(image, _) => SharedOwner::Blocks(image),
        }
    }
}

#[derive(Default)]
struct LineState {
    last: Option<ThreadId>,
    bytes: HashMap<u64, ThreadId>,
}

/// Plays the calls in the order in which they were entered.
pub fn share(mut uses: Vec<SharedUse>, line_size: LineSize) -> Shared {
    uses.sort_by_key(|call| call.entered_at);
    let mut states: HashMap<(ProcessId, u64), LineState> = HashMap::new();
    let mut shared = Shared::default();
    for call in &uses {
        hand_over(call, line_size, &mut states, &mut shared);
        for (part, address, _, is_written) in &call.parts {
            if !is_written {
                continue;
            }
            for byte in *address..*address + part.size_bytes {
                let state = states.entry((call.process, line_size.line_of(byte))).or_default();
                state.last = Some(call.thread);
                state.bytes.insert(byte, call.thread);
            }
        }
    }
    shared
}

fn hand_over(
    call: &SharedUse,
    line_size: LineSize,
    states: &mut HashMap<(ProcessId, u64), LineState>,
    shared: &mut Shared,
) {
    let mut lines: BTreeMap<u64, bool> = BTreeMap::new();
    for (part, address, is_read, is_written) in &call.parts {
        let mut is_foreign = false;
        for byte in *address..*address + part.size_bytes {
            let line = line_size.line_of(byte);
            let state = states.entry((call.process, line)).or_default();
            let foreign_byte = state.bytes.get(&byte).is_some_and(|writer| *writer != call.thread);
            is_foreign |= foreign_byte;
            if state.last.is_some_and(|last| last != call.thread) {
                *lines.entry(line).or_default() |= foreign_byte;
            }
        }
        let bytes = shared.bytes.entry((part.owner.into(), part.offset, part.size_bytes)).or_default();
        bytes.handovers += u64::from(is_foreign);
        for line in line_size.lines(*address, part.size_bytes) {
            let of_line = shared.lines.entry(line).or_default();
            if !part.is_in_variable {
                of_line.parts.insert((part.owner, part.offset, part.size_bytes, *is_written));
            }
            if *is_read {
                of_line.readers.insert(call.thread);
            }
            if *is_written {
                of_line.writers.insert(call.thread);
            }
        }
        if *is_read {
            bytes.readers.insert(call.thread);
        }
        if *is_written {
            bytes.writers.insert(call.thread);
        }
    }
    for (line, is_true) in lines {
        let of_line = shared.lines.entry(line).or_default();
        *(if is_true { &mut of_line.true_handovers } else { &mut of_line.false_handovers }) += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(at: u64, thread: u32, offset: u64, is_written: bool) -> SharedUse {
        let owner = OwnerKey::Variable(0, VariableId::Described(0));
        let part = Part { owner, offset, size_bytes: 8, is_in_variable: false };
        SharedUse {
            entered_at: at,
            process: ProcessId(0),
            thread: ThreadId(thread),
            parts: vec![(part, 0x1000 + offset, !is_written, is_written)],
        }
    }

    #[test]
    fn a_counter_that_two_threads_write_is_truly_shared() {
        let shared =
            share(vec![used(1, 0, 0, true), used(3, 0, 0, true), used(2, 1, 0, true)], LineSize::B64);
        let line = &shared.lines[&0x40];
        assert_eq!((line.true_handovers, line.false_handovers), (2, 0));
        let bytes = &shared.bytes[&(SharedOwner::Variable(0, VariableId::Described(0)), 0, 8)];
        assert_eq!((bytes.handovers, bytes.writers.len()), (2, 2));
    }

    #[test]
    fn a_neighbour_of_what_another_thread_writes_is_falsely_shared() {
        let shared = share(vec![used(1, 0, 0, true), used(2, 1, 8, false)], LineSize::B64);
        let line = &shared.lines[&0x40];
        assert_eq!((line.true_handovers, line.false_handovers), (0, 1));
        assert_eq!(line.parts.len(), 2);
    }

    #[test]
    fn lines_of_one_thread_and_lines_nobody_writes_are_not_shared() {
        let mut lines = LineThreads::default();
        for (line, thread, is_store) in
            [(1, 0, true), (1, 0, false), (2, 0, false), (2, 1, false), (3, 0, true), (3, 1, false)]
        {
            lines.add((ProcessId(0), line), ThreadId(thread), is_store);
        }
        lines.settle();
        assert_eq!([1, 2, 3].map(|line| lines.is_shared((ProcessId(0), line))), [false, false, true]);
    }

    #[test]
    fn what_two_processes_write_at_one_address_is_not_shared() {
        let of_child = |used: SharedUse| SharedUse { process: ProcessId(1), ..used };
        let uses = vec![used(1, 0, 0, true), of_child(used(2, 1, 0, true)), used(3, 0, 0, true)];
        let shared = share(uses, LineSize::B64);
        assert_eq!(shared.lines[&0x40].true_handovers, 0);
        let mut lines = LineThreads::default();
        lines.add((ProcessId(0), 7), ThreadId(0), true);
        lines.add((ProcessId(1), 7), ThreadId(1), true);
        lines.settle();
        assert!(!lines.is_shared((ProcessId(0), 7)));
    }
}
