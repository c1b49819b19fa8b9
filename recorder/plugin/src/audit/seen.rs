//! Derives evidence from accesses and system calls.

use super::calls;
use super::shadow::{GRANULE_BYTES, Shadow, Source, Tag};
use lineup_recording::audit::{Evidence, Findings, Global, TypeNumber, TypedByte};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Range;

/// The most distinct pieces of evidence.
const MOST_EVIDENCE: usize = 100_000;

/// The most bytes of one hand-over that are read.
const MOST_BYTES: u64 = 1 << 20;

/// Loads that a store is compared with, the newest first.
const RECENT_LOADS: usize = 64;

/// Code of one copying function lies within this.
const COPYING_BYTES: u64 = 1024;

/// This far down and up from the stack's last use is the thread's stack.
const STACK_BYTES: Range<u64> = 1 << 16..8 << 20;

/// A load by code that is not known to access an object.
#[derive(Clone, Copy, Default)]
struct Load {
    pc: u64,
    address: u64,
    size_bytes: u64,
    value: u64,
}

/// State of a thread.
#[derive(Default)]
struct Recent {
    loads: VecDeque<Load>,
    /// Address of its last use of its stack.
    stack: u64,
    awaits_chunk: bool,
    /// A call under way that fills memory, or maps it shared.
    fills: Option<(u8, u64)>,
    maps_bytes: Option<u64>,
    /// An operand that is accessed in parts: its instruction, the next part's address, and the offset in the operand.
    parts: (u64, u64, u64),
}

/// An access of one thread.
pub(super) struct Access {
    pub(super) vcpu: u32,
    pub(super) pc: u64,
    pub(super) runtime_pc: u64,
    pub(super) address: u64,
    pub(super) size_bytes: u64,
    /// The present value at the address; 0 when not read.
    pub(super) value: u64,
    pub(super) is_store: bool,
    pub(super) is_on_stack: bool,
    /// Bytes of its operand, of which this may be a part.
    pub(super) operand_bytes: u64,
    /// Whether its code belongs to no region.
    pub(super) is_outside: bool,
    /// The byte of an object where its operand begins.
    pub(super) typed: Option<TypedByte>,
}

/// Knowledge of memory, and the evidence found.
pub(super) struct AuditState {
    shadow: Shadow,
    sizes: Vec<u64>,
    threads: HashMap<u32, Recent>,
    /// Memory that others see.
    shared: Vec<Range<u64>>,
    pub(super) findings: Findings,
}

impl AuditState {
    pub(super) fn new(sizes: Vec<u64>) -> Self {
        let (threads, shared, findings) = Default::default();
        Self { shadow: Shadow::new(), sizes, threads, shared, findings }
    }

    fn note(&mut self, evidence: Evidence, bytes: u64) {
        if self.findings.evidence.len() >= MOST_EVIDENCE && !self.findings.evidence.contains_key(&evidence) {
            self.findings.not_kept += 1;
            return;
        }
        let amount = self.findings.evidence.entry(evidence).or_default();
        amount.times += 1;
        amount.bytes += bytes;
    }

    pub(super) fn access(&mut self, access: &Access) {
        let recent = self.threads.entry(access.vcpu).or_default();
        if access.is_on_stack {
            recent.stack = access.address;
        }
        let stack = recent.stack;
        let is_stack = stack != 0
            && access.address.saturating_add(STACK_BYTES.start) > stack
            && access.address < stack.saturating_add(STACK_BYTES.end);
        match access.typed {
            Some(mut byte) => {
                let (pc, next, into) = recent.parts;
                let into = if (pc, next) == (access.runtime_pc, access.address) { into } else { 0 };
                if into + access.size_bytes < access.operand_bytes {
                    let next = access.address.wrapping_add(access.size_bytes);
                    recent.parts = (access.runtime_pc, next, into + access.size_bytes);
                } else {
                    recent.parts = Default::default();
                }
                byte.offset = byte.offset.saturating_add(into as u32);
                if access.is_outside {
                    *self.findings.outside.entry(byte.ty).or_default() += 1;
                }
                self.in_object(access, byte, is_stack);
                if self.shared.iter().any(|range| range.contains(&access.address)) {
                    self.note(Evidence::Shared { ty: byte.ty, pc: access.pc }, access.size_bytes);
                }
            }
            None if access.is_store => self.stored(access),
            None => self.loaded(access),
        }
    }

    fn in_object(&mut self, access: &Access, byte: TypedByte, is_stack: bool) {
        let base = access.address.wrapping_sub(u64::from(byte.offset));
        if access.is_store {
            let tag = Tag { source: Source::Code, ty: byte.ty, base, pc: access.pc };
            self.shadow.set(access.address, access.size_bytes, tag);
            return;
        }
        let others: Vec<Tag> =
            self.shadow.tags(access.address, access.size_bytes).map(|(_, tag)| tag).collect();
        for tag in others {
            let pc = access.pc;
            match tag.source {
                Source::Call(call) => {
                    let (call, begins) = (calls::name(call).to_owned(), tag.base.wrapping_sub(base) as i64);
                    self.note(Evidence::Filled { loaded: byte, begins, call, pc }, access.size_bytes);
                }
                Source::Code if !is_stack && (tag.ty, tag.base) != (byte.ty, base) => {
                    let Ok(offset) = u32::try_from(access.address.wrapping_sub(tag.base)) else { continue };
                    let stored = TypedByte { ty: tag.ty, offset };
                    self.note(Evidence::Alias { stored, loaded: byte, pc }, access.size_bytes);
                }
                Source::Code | Source::Copy => {}
            }
        }
    }

    /// Code that is not known to access an object loads: perhaps to copy. In `free`, it may be the size of a chunk.
    fn loaded(&mut self, access: &Access) {
        let Some(recent) = self.threads.get_mut(&access.vcpu) else { return };
        let load = Load {
            pc: access.runtime_pc,
            address: access.address,
            size_bytes: access.size_bytes,
            value: access.value,
        };
        recent.loads.truncate(RECENT_LOADS - 1);
        recent.loads.push_front(load);
        let size = access.value & !7;
        let is_header = access.size_bytes == 8
            && access.address % 16 == 8
            && size.is_multiple_of(16)
            && !access.is_on_stack;
        if recent.awaits_chunk && is_header && (32..1 << 36).contains(&size) {
            recent.awaits_chunk = false;
            self.shadow.clear(access.address.wrapping_add(8), size - 8);
        }
    }

    /// The C library's copying code stores: the value that it loaded just before, or another one.
    fn stored(&mut self, access: &Access) {
        let recent = self.threads.get(&access.vcpu);
        let copied = recent.and_then(|recent| {
            let is_source = |load: &&Load| {
                (load.size_bytes, load.value) == (access.size_bytes, access.value)
                    && load.pc.abs_diff(access.runtime_pc) <= COPYING_BYTES
            };
            recent.loads.iter().find(is_source).copied()
        });
        match copied {
            Some(load) => self.shadow.copy(load.address, access.address, access.size_bytes),
            None => self.shadow.clear(access.address, access.size_bytes),
        }
    }

    /// A heap block is about to be given back.
    pub(super) fn frees(&mut self, vcpu: u32) {
        self.threads.entry(vcpu).or_default().awaits_chunk = true;
    }

    /// A system call takes bytes: all objects among them were handed over.
    pub(super) fn handed(&mut self, call: &str, bytes: Range<u64>, globals: impl Iterator<Item = Global>) {
        let bytes = bytes.start..bytes.end.min(bytes.start.saturating_add(MOST_BYTES));
        let mut objects: BTreeMap<(u64, TypeNumber, bool), (u64, u64, u64)> = BTreeMap::new();
        let size_bytes = bytes.end.saturating_sub(bytes.start);
        for (at, tag) in self.shadow.tags(bytes.start, size_bytes) {
            let is_copy = match tag.source {
                Source::Code => false,
                Source::Copy => true,
                Source::Call(_) => continue,
            };
            let end = (at / GRANULE_BYTES + 1) * GRANULE_BYTES;
            let (from, to, _) = objects.entry((tag.base, tag.ty, is_copy)).or_insert((at, end, tag.pc));
            (*from, *to) = ((*from).min(at), (*to).max(end.min(bytes.end)));
        }
        for global in globals {
            for (base, ty, range) in self.parts(global, &bytes) {
                objects.insert((base, ty, false), (range.start, range.end, 0));
            }
        }
        for ((base, ty, is_copy), (from, to, pc)) in objects {
            let offset = |address: u64| u32::try_from(address.wrapping_sub(base));
            let (Ok(start), Ok(to_offset)) = (offset(from), offset(to)) else { continue };
            let from_byte = TypedByte { ty, offset: start };
            let evidence =
                Evidence::Handed { from: from_byte, to_offset, call: call.to_owned(), pc, is_copy };
            self.note(evidence, to - from);
        }
    }

    /// The objects in a variable that some bytes are part of, with the bytes of each.
    fn parts(&self, global: Global, bytes: &Range<u64>) -> Vec<(u64, TypeNumber, Range<u64>)> {
        let size = self.sizes.get(usize::from(global.ty)).copied().unwrap_or_default();
        if size == 0 {
            return Vec::new();
        }
        let from = bytes.start.max(global.start);
        let to = bytes.end.min(global.start.saturating_add(global.size_bytes));
        let first = global.start + (from - global.start) / size * size;
        let bases =
            std::iter::successors(Some(first), |base| base.checked_add(size)).take_while(|base| *base < to);
        bases.map(|base| (base, global.ty, base.max(from)..(base + size).min(to))).collect()
    }

    /// A call that fills memory begins.
    pub(super) fn begins_to_fill(&mut self, vcpu: u32, call: u8, address: u64) {
        self.threads.entry(vcpu).or_default().fills = Some((call, address));
    }

    /// A call that maps shared memory begins.
    pub(super) fn begins_to_map(&mut self, vcpu: u32, size_bytes: u64) {
        self.threads.entry(vcpu).or_default().maps_bytes = Some(size_bytes);
    }

    /// A call came back.
    pub(super) fn returned(&mut self, vcpu: u32, result: i64) {
        let Some(recent) = self.threads.get_mut(&vcpu) else { return };
        let (fills, maps) = (recent.fills.take(), recent.maps_bytes.take());
        let Ok(result) = u64::try_from(result) else { return };
        if let Some((call, address)) = fills {
            let tag = Tag { source: Source::Call(call), ty: 0, base: address, pc: 0 };
            self.shadow.set(address, result.min(MOST_BYTES), tag);
        }
        if let Some(size_bytes) = maps {
            self.shared.push(result..result.saturating_add(size_bytes));
        }
    }

    /// Forgets all knowledge of this memory.
    pub(super) fn forget(&mut self, address: u64, size_bytes: u64) {
        self.shadow.clear(address, size_bytes);
    }

    /// Pages were taken away.
    pub(super) fn unmapped(&mut self, address: u64, size_bytes: u64) {
        self.forget(address, size_bytes);
        let end = address.saturating_add(size_bytes);
        self.shared.retain(|range| range.end <= address || range.start >= end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(address: u64, typed: Option<TypedByte>, is_store: bool, value: u64) -> Access {
        Access {
            vcpu: 0,
            pc: 0x10,
            runtime_pc: 0x10,
            address,
            size_bytes: 8,
            value,
            is_store,
            is_on_stack: false,
            operand_bytes: 8,
            is_outside: true,
            typed,
        }
    }

    fn byte(ty: TypeNumber, offset: u32) -> Option<TypedByte> {
        Some(TypedByte { ty, offset })
    }

    fn seen() -> AuditState {
        AuditState::new(vec![24, 24])
    }

    fn kinds(seen: &AuditState) -> Vec<&Evidence> {
        seen.findings.evidence.keys().collect()
    }

    #[test]
    fn bytes_of_one_type_that_are_read_as_another_are_evidence() {
        let mut seen = seen();
        seen.access(&access(0x1008, byte(0, 8), true, 1));
        seen.access(&access(0x1008, byte(0, 8), false, 1));
        assert!(kinds(&seen).is_empty());
        seen.access(&access(0x1008, byte(1, 8), false, 1));
        let (stored, loaded) = (TypedByte { ty: 0, offset: 8 }, TypedByte { ty: 1, offset: 8 });
        assert_eq!(kinds(&seen), [&Evidence::Alias { stored, loaded, pc: 0x10 }]);
    }

    #[test]
    fn memory_that_is_used_anew_is_no_evidence() {
        let mut seen = seen();
        seen.access(&access(0x1008, byte(0, 8), true, 1));
        seen.access(&access(0x1008, None, true, 7));
        seen.access(&access(0x1008, byte(1, 8), false, 7));
        seen.access(&access(0x2008, byte(0, 8), true, 1));
        seen.frees(0);
        seen.access(&access(0x1ff8, None, false, 0x41));
        seen.access(&access(0x2008, byte(1, 8), false, 1));
        seen.access(&access(0x3008, byte(0, 8), true, 1));
        seen.unmapped(0x3000, 0x1000);
        seen.access(&access(0x3008, byte(1, 8), false, 1));
        assert!(kinds(&seen).is_empty(), "{:?}", kinds(&seen));
    }

    #[test]
    fn an_operand_in_two_parts_belongs_to_one_object() {
        let mut seen = seen();
        for address in [0x1000, 0x1008, 0x1000, 0x1008] {
            seen.access(&Access { operand_bytes: 16, ..access(address, byte(0, 0), true, 0) });
        }
        seen.access(&access(0x1008, byte(0, 8), false, 0));
        assert!(kinds(&seen).is_empty());
        assert_eq!(seen.findings.outside[&0], 5);
    }

    #[test]
    fn the_stack_is_no_evidence_of_another_type() {
        let mut seen = seen();
        seen.access(&Access { is_on_stack: true, ..access(0x7f_0000, None, false, 1) });
        seen.access(&access(0x7f_0008, byte(0, 8), true, 1));
        seen.access(&access(0x7f_0008, byte(1, 8), false, 1));
        assert!(kinds(&seen).is_empty());
    }

    #[test]
    fn objects_handed_to_a_call_are_told_with_their_bytes_also_when_they_were_copied() {
        let mut seen = seen();
        seen.access(&access(0x1000, byte(0, 0), true, 1));
        seen.access(&access(0x1010, byte(0, 16), true, 2));
        seen.handed("write", 0x1000..0x1018, std::iter::empty());
        for (from, to) in [(0x1000, 0x2000), (0x1010, 0x2010)] {
            seen.access(&access(from, None, false, from));
            seen.access(&access(to, None, true, from));
        }
        seen.handed("write", 0x2000..0x2018, std::iter::empty());
        let from = TypedByte { ty: 0, offset: 0 };
        let handed =
            |is_copy| Evidence::Handed { from, to_offset: 24, call: "write".into(), pc: 0x10, is_copy };
        assert_eq!(kinds(&seen), [&handed(false), &handed(true)]);
    }

    #[test]
    fn an_array_of_objects_in_a_variable_is_handed_over_object_by_object() {
        let mut seen = seen();
        let global = Global { start: 0x5000, size_bytes: 72, ty: 1 };
        seen.handed("writev", 0x5018..0x5048, std::iter::once(global));
        let amount = seen.findings.evidence.values().next().expect("evidence");
        assert_eq!((kinds(&seen).len(), amount.times, amount.bytes), (1, 2, 48));
    }

    #[test]
    fn what_a_call_filled_and_what_others_see_is_evidence() {
        let mut seen = seen();
        let (read, _) = calls::by_number(libc::SYS_read).expect("known");
        seen.begins_to_fill(0, read, 0x1000);
        seen.returned(0, 24);
        seen.access(&access(0x1008, byte(1, 8), false, 1));
        seen.begins_to_map(0, 0x1000);
        seen.returned(0, 0x9000);
        seen.access(&access(0x9000, byte(0, 0), true, 1));
        let loaded = TypedByte { ty: 1, offset: 8 };
        let filled = Evidence::Filled { loaded, begins: 0, call: "read".into(), pc: 0x10 };
        assert_eq!(kinds(&seen), [&filled, &Evidence::Shared { ty: 0, pc: 0x10 }]);
    }
}
