//! Records made here, not by the kernel: for mappings from before the kernel reported them, and for test files.

use crate::container::put_text;
use crate::record::{FORKED, LOST, MMAP2, NAMED};

const USER: u16 = 2;
const KERNEL: u16 = 1;
/// Bits of the head of a mapping's record.
const HAS_BUILD_ID: u16 = 1 << 14;
const IS_DATA: u16 = 1 << 13;
/// The protection bit of executable memory.
const EXECUTABLE: u32 = 4;
/// A private mapping.
const PRIVATE: u32 = 2;
/// Bits of the fields that a sample carries, and every other record behind its body.
const TID: u64 = 1 << 1;
const TIME: u64 = 1 << 2;
const ID: u64 = 1 << 6;
const CPU: u64 = 1 << 7;
const IDENTIFIER: u64 = 1 << 16;

/// The process of mappings of the kernel.
pub const KERNEL_PROCESS: u32 = u32::MAX;

/// A mapping.
#[derive(Clone, Debug)]
pub struct MappingSpec<'a> {
    /// The process; [`KERNEL_PROCESS`] for the kernel.
    pub process: u32,
    /// First byte.
    pub start: u64,
    /// Size in bytes.
    pub size_bytes: u64,
    /// Offset in the file.
    pub file_offset: u64,
    /// Protection, `PROT_…`.
    pub protection: u32,
    /// The path.
    pub path: &'a str,
    /// The build id, when it is known.
    pub build_id: Option<&'a [u8]>,
}

/// A record without its head.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SyntheticRecord {
    /// Its number.
    pub number: u32,
    /// The bits of its head.
    pub misc: u16,
    /// Its body.
    pub body: Vec<u8>,
}

/// Makes records of an event.
#[derive(Clone, Copy, Debug)]
pub struct Maker {
    /// The fields that its samples carry: other records carry some of them, too.
    pub sample_type: u64,
    /// Its identity.
    pub id: u64,
}

pub(crate) fn pair(first: u32, second: u32) -> u64 {
    u64::from(first) | u64::from(second) << 32
}

pub(crate) fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

impl Maker {
    /// A mapping.
    pub fn mapping(&self, mapping: &MappingSpec<'_>) -> SyntheticRecord {
        let mut body = words(&[
            pair(mapping.process, mapping.process),
            mapping.start,
            mapping.size_bytes,
            mapping.file_offset,
        ]);
        let mut which = [0; 24];
        if let Some(build_id) = mapping.build_id {
            let size = build_id.len().min(20);
            which[0] = size as u8;
            which[4..4 + size].copy_from_slice(&build_id[..size]);
        }
        body.extend_from_slice(&which);
        body.extend_from_slice(&words(&[pair(mapping.protection, PRIVATE)]));
        put_text(&mut body, mapping.path, 8);
        let mode = if mapping.process == KERNEL_PROCESS { KERNEL } else { USER };
        let has_id = if mapping.build_id.is_some() { HAS_BUILD_ID } else { 0 };
        let is_data = if mapping.protection & EXECUTABLE == 0 { IS_DATA } else { 0 };
        self.made(MMAP2, mode | has_id | is_data, body, mapping.process, 0)
    }

    /// The name of a thread.
    pub fn name(&self, process: u32, thread: u32, name: &str) -> SyntheticRecord {
        let mut body = words(&[pair(process, thread)]);
        put_text(&mut body, name, 8);
        self.made(NAMED, 0, body, process, 0)
    }

    /// A fork of a process.
    pub fn fork(&self, process: u32, parent: u32, time_ns: u64) -> SyntheticRecord {
        let both = pair(process, parent);
        self.made(FORKED, 0, words(&[both, both, time_ns]), process, time_ns)
    }

    /// A loss of records.
    pub fn lost(&self, count: u64, time_ns: u64) -> SyntheticRecord {
        self.made(LOST, 0, words(&[self.id, count]), 0, time_ns)
    }

    /// Adds the fields behind every record that is no sample.
    fn made(&self, number: u32, misc: u16, body: Vec<u8>, process: u32, time_ns: u64) -> SyntheticRecord {
        self.on_cpu(number, misc, body, (process, process), 0, time_ns)
    }

    /// The same of a thread, on a CPU.
    pub(crate) fn on_cpu(
        &self,
        number: u32,
        misc: u16,
        mut body: Vec<u8>,
        (process, thread): (u32, u32),
        cpu: u32,
        time_ns: u64,
    ) -> SyntheticRecord {
        let behind = [
            (TID, pair(process, thread)),
            (TIME, time_ns),
            (ID, self.id),
            (CPU, u64::from(cpu)),
            (IDENTIFIER, self.id),
        ];
        for (_, word) in behind.into_iter().filter(|(bit, _)| self.sample_type & bit != 0) {
            body.extend_from_slice(&word.to_le_bytes());
        }
        SyntheticRecord { number, misc, body }
    }
}
