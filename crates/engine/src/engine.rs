//! What the gate out of the cache calls: finds or makes the block that comes next.

use crate::cache::Cache;
use crate::gates::{self, Entry, Registers};
use crate::lock::Lock;
use crate::maps::{self, Mapping};
use crate::patch;
use crate::processes::{self, New};
use crate::restore::{self, Patch};
use crate::shared::Shared;
use crate::signals::{self, Signals};
use crate::slots::{Slots, reason};
use crate::system;
use crate::translate::{Task, Translated, Ways, translate};
use lineup_recording::native::{chunk, record, word};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

/// Bytes of code looked at for one block.
const MOST_CODE_BYTES: u64 = 720;
/// Places of indirect jumps that a thread keeps: by the lower 16 bits of their address, two words each.
const TABLE_BYTES: usize = (1 << 16) * 16;
const STACK_BYTES: usize = 1 << 18;

/// The engine of this process.
pub(crate) struct Engine {
    pub(crate) shared: Shared,
    pub(crate) slots: i32,
    pub(crate) gate: u64,
    pub(crate) release_first: u64,
    /// Where patched entries lead.
    pub(crate) entry: u64,
    /// One byte, which is 0 in processes that are forked off.
    pub(crate) is_on: &'static AtomicU8,
    pub(crate) code: Lock<Blocks>,
    pub(crate) thread_key: u32,
    pub(crate) signals: Signals,
}

/// A block in the cache.
#[derive(Clone)]
pub(crate) struct Block {
    start: u64,
    body: u64,
    /// Where its code ends in the program.
    end: u64,
}

/// Blocks, and what they are made from.
pub(crate) struct Blocks {
    pub(crate) cache: Cache,
    blocks: BTreeMap<u64, Block>,
    links: Vec<u64>,
    /// Addresses of blocks in the program, by where they begin in the cache.
    places: BTreeMap<u64, u64>,
    leaves: HashMap<u64, u64>,
    /// System calls by what follows them.
    calls: HashMap<u64, Ways<u64>>,
    pub(crate) entries: HashSet<u64>,
    /// Instructions that a jump stands in place of, and where they are now.
    pub(crate) moved: HashMap<u64, u64>,
    /// What stood where code is patched.
    pub(crate) patches: Vec<Patch>,
    mappings: Vec<Mapping>,
    /// Memory for code near entries.
    pub(crate) near: Vec<patch::Near>,
}

/// What the engine keeps of a thread.
pub(crate) struct Thread {
    number: u64,
    /// The chunk that it fills, and where that begins; `None` between calls when there are few.
    chunk: Option<(usize, u64)>,
    stack: *mut u8,
    table: *mut u8,
}

const UNREAD: &str = "the log was not read for some seconds";

/// Set once it was told that there is no room for more code.
static NO_ROOM: AtomicU8 = AtomicU8::new(0);

static ENGINE: OnceLock<Engine> = OnceLock::new();

/// The engine; `None` before it has started.
pub(crate) fn get() -> Option<&'static Engine> {
    ENGINE.get()
}

/// Sets the engine, once.
pub(crate) fn set(engine: Engine) -> Option<&'static Engine> {
    ENGINE.set(engine).ok()?;
    ENGINE.get()
}

/// Called by the gate, on the engine's stack.
///
/// # Safety
/// Only by the gate, with the registers that it has saved.
pub(crate) unsafe extern "C" fn hand_over(registers: *mut Registers) {
    let Some(engine) = get() else { return };
    // SAFETY: this thread's own; the gate runs one at a time in a thread, since a busy thread enters none.
    let (slots, registers) = unsafe { (&mut *gates::slots(), &mut *registers) };
    engine.go_on(slots, registers);
}

impl Blocks {
    pub(crate) fn new(cache: Cache) -> Blocks {
        Blocks {
            cache,
            blocks: BTreeMap::new(),
            links: Vec::new(),
            places: BTreeMap::new(),
            leaves: HashMap::new(),
            calls: HashMap::new(),
            entries: HashSet::new(),
            moved: HashMap::new(),
            patches: Vec::new(),
            mappings: Vec::new(),
            near: Vec::new(),
        }
    }

    /// The program's code at an address, as it was before entries were patched.
    fn bytes(&mut self, pc: u64) -> Option<Vec<u8>> {
        let find =
            |mappings: &[Mapping]| mappings.iter().find(|mapping| mapping.range.contains(&pc)).cloned();
        let known = find(&self.mappings).filter(|mapping| mapping.is_fixed_code);
        let mapping = known.or_else(|| {
            self.mappings = maps::read();
            find(&self.mappings).filter(|mapping| mapping.is_fixed_code)
        })?;
        let end = mapping.range.end.min(pc + MOST_CODE_BYTES);
        // SAFETY: mapped readable, as the kernel has just told or told before; programs that unmap code that they run
        // in a recorded call would have to be in it.
        let mut bytes = unsafe { std::slice::from_raw_parts(pc as *const u8, (end - pc) as usize) }.to_vec();
        for patch in &self.patches {
            for (offset, byte) in patch.original.iter().enumerate() {
                let place = (patch.pc + offset as u64).wrapping_sub(pc) as usize;
                if let Some(there) = bytes.get_mut(place) {
                    *there = *byte;
                }
            }
        }
        Some(bytes)
    }

    /// The block at an address, made when there is none; `None` when it cannot be.
    fn block(&mut self, engine: &Engine, pc: u64) -> Option<Block> {
        if let Some(block) = self.blocks.get(&pc) {
            return Some(block.clone());
        }
        let Some(bytes) = self.bytes(pc) else {
            engine.shared.note(&format!(
                "code at {pc:#x} lies in no file: calls that run it are recorded up to there"
            ));
            return None;
        };
        let mut translated = self.translated(engine, &bytes, pc);
        for unlogged in &translated.unlogged {
            let what = if unlogged.is_lost {
                "is where recording of its call ended"
            } else {
                "has accesses that are not recorded"
            };
            engine.shared.note(&format!("{} at {:#x} {what}", unlogged.mnemonic, unlogged.pc));
        }
        if translated.definition_hole > 0 {
            let Some(number) = engine.shared.define(&translated.definition) else {
                engine
                    .shared
                    .note_once(&NO_ROOM, "there was no room for more code: calls that run it end there");
                return None;
            };
            let hole = translated.definition_hole;
            translated.code[hole..hole + 4].copy_from_slice(&number.to_le_bytes());
        }
        for ((low, high), number) in translated.link_holes.iter().zip(self.links.len() as u64 + 1..) {
            translated.code[*low..*low + 4].copy_from_slice(&(number as u32).to_le_bytes());
            translated.code[*high..*high + 4].copy_from_slice(&((number >> 32) as u32).to_le_bytes());
        }
        let Some(start) = self.cache.put(&translated.code) else {
            engine.shared.note_once(&NO_ROOM, "there was no room for more code: calls that run it end there");
            return None;
        };
        self.links.extend(translated.links.iter().map(|link| start + link.hole as u64));
        if let Some(ways) = translated.system_call {
            let next = pc + translated.definition.code.len() as u64;
            self.calls.insert(next, ways.map(|place| start + place as u64));
        }
        let end = pc + (translated.definition.code.len() as u64).max(1);
        let block = Block { start, body: start + translated.body as u64, end };
        self.places.insert(start, pc);
        self.blocks.insert(pc, block.clone());
        Some(block)
    }

    /// Whether any code that was looked at lies in a range.
    fn is_code(&self, range: &Range<u64>) -> bool {
        self.blocks_in(range).next().is_some()
            || self.entries.iter().any(|pc| range.contains(pc))
            || self.mappings.iter().any(|mapping| {
                mapping.is_fixed_code && mapping.range.start < range.end && range.start < mapping.range.end
            })
    }

    fn translated(&self, engine: &Engine, bytes: &[u8], pc: u64) -> Translated {
        translate(&Task { bytes, pc, slots: engine.slots, is_entry: self.entries.contains(&pc) })
    }

    /// The block that holds an address of the cache: where it begins there, and the block as it was made.
    pub(crate) fn around(&mut self, engine: &Engine, address: u64) -> Option<(u64, Translated)> {
        let (start, pc) = self.places.range(..=address).next_back().map(|(start, pc)| (*start, *pc))?;
        let bytes = self.bytes(pc)?;
        let translated = self.translated(engine, &bytes, pc);
        (address < start + translated.code.len() as u64).then_some((start, translated))
    }

    /// Forgets code that is unmapped: other code may be mapped there later. What leads to a block leads to the engine
    /// from now on, which looks for the new one.
    fn forget(&mut self, engine: &Engine, range: &Range<u64>) {
        self.mappings.clear();
        let gone: Vec<(u64, Block)> = self.blocks_in(range).map(|(pc, block)| (*pc, block.clone())).collect();
        for (pc, block) in &gone {
            self.blocks.remove(pc);
            self.places.remove(&block.start);
            self.leaves.remove(pc);
            if let Some(again) = self.cache.put(&gates::again(engine.slots, *pc)) {
                self.cache.lead(block.start, again);
            }
        }
        self.entries.retain(|pc| !range.contains(pc));
        self.moved.retain(|pc, _| !range.contains(pc));
        self.patches.retain(|patch| !range.contains(&patch.pc));
        engine.shared.forget_entries(range);
    }

    /// Blocks of code in a range; one may reach into it from before.
    fn blocks_in(&self, range: &Range<u64>) -> impl Iterator<Item = (&u64, &Block)> {
        let (first, start) = (range.start.saturating_sub(MOST_CODE_BYTES), range.start);
        self.blocks.range(first..range.end).filter(move |(_, block)| block.end > start)
    }

    /// Where code that leaves the cache leads.
    pub(crate) fn left_at(&self, address: u64) -> Option<u64> {
        const MOST_BYTES: u64 = 40;
        let leave = self.leaves.iter().find(|(_, leave)| address.wrapping_sub(**leave) < MOST_BYTES);
        leave.map(|(pc, _)| *pc)
    }

    /// Code that goes on natively at an address.
    fn leave(&mut self, slots: i32, pc: u64) -> Option<u64> {
        if let Some(leave) = self.leaves.get(&pc) {
            return Some(*leave);
        }
        // At an entry stands the jump that leads back here.
        let to = self.moved.get(&pc).copied().unwrap_or(pc);
        let leave = self.cache.put(&gates::leave(slots, to))?;
        self.leaves.insert(pc, leave);
        Some(leave)
    }
}

impl Engine {
    fn go_on(&self, slots: &mut Slots, registers: &mut Registers) {
        let mut is_first = false;
        let pc = slots.pc;
        slots.resume_pc = pc;
        let resume = match slots.reason {
            reason::ENTER => {
                is_first = slots.thread == 0;
                match (!is_first || self.begin_thread(slots)) && self.has_chunk(slots) && self.enter(slots) {
                    true => self.find(slots, pc, |block| block.body),
                    false => self.leave(slots, pc),
                }
            }
            reason::INNER => self.inner(slots),
            reason::FULL => match self.next_chunk(slots) {
                true => self.find(slots, pc, |block| block.body),
                false => self.leave(slots, pc),
            },
            reason::LEAVE => {
                self.log(slots, &[u64::from(record::LEAVE) << 32]);
                restore::finished_regions(self);
                let leave = self.leave(slots, pc);
                self.share_chunk(slots);
                leave
            }
            reason::LOST => self.lose(slots, pc),
            reason::SYSTEM_CALL => self.system_call(slots, registers),
            _ => self.find(slots, pc, |block| block.start),
        };
        slots.resume = resume;
        if is_first {
            slots.after_first = resume;
            slots.resume = self.release_first;
        }
    }

    /// Where the program goes on in the cache, with what led there linked to it.
    fn find(&self, slots: &mut Slots, pc: u64, part: impl Fn(&Block) -> u64) -> u64 {
        let link = std::mem::take(&mut slots.link);
        let signals = system::block_signals();
        let found = self.code.with(|code| {
            let block = code.block(self, pc)?;
            if let Some(hole) = link.checked_sub(1).and_then(|link| code.links.get(link as usize).copied()) {
                code.cache.link(hole, block.start);
            }
            Some(block)
        });
        system::restore_signals(signals);
        let Some(block) = found else { return self.lose(slots, pc) };
        if link == 0 && slots.reason == reason::GO {
            let place = slots.table + (pc & 0xffff) * 16;
            // SAFETY: within this thread's own table.
            unsafe {
                (place as *mut u64).write(pc.wrapping_neg());
                (place as *mut u64).add(1).write(block.start);
            }
        }
        part(&block)
    }

    /// A thread is met for the first time. False when there is no memory for it.
    fn begin_thread(&self, slots: &mut Slots) -> bool {
        let (Some(stack), Some(table)) = (system::memory(STACK_BYTES), system::memory(TABLE_BYTES)) else {
            // The stack of threads that are not known is used under its lock alone.
            slots.own_stack = 0;
            return false;
        };
        let number = self.shared.word(word::NEXT_THREAD).fetch_add(1, Ordering::Relaxed);
        let thread = Thread { number, chunk: None, stack, table };
        slots.owner = system::thread();
        slots.own_stack = stack as u64 + STACK_BYTES as u64;
        slots.vectors = stack as u64;
        slots.table = table as u64;
        slots.gate = self.gate;
        slots.thread = Box::into_raw(Box::new(thread)) as u64;
        // SAFETY: the key is ours; it belongs to the first 32, for which the C library keeps room in every thread, so
        // that nothing is allocated.
        unsafe { libc::pthread_setspecific(self.thread_key, slots.thread as *const libc::c_void) };
        true
    }

    /// Sees to a chunk for the thread. False when there is none soon: then this call is not recorded.
    fn has_chunk(&self, slots: &mut Slots) -> bool {
        const MOST_ROUNDS: u32 = 2_000;
        let Some(thread) = self.thread(slots) else { return false };
        if thread.chunk.is_none() {
            let taken = self.shared.take_chunk(thread.number, MOST_ROUNDS);
            thread.chunk = taken.map(|(number, start)| (number, start as u64));
            let Some((_, start)) = thread.chunk else {
                if !self.shared.is_read() {
                    self.stop(UNREAD);
                }
                self.shared.word(word::PASSED_OVER).fetch_add(1, Ordering::Relaxed);
                return false;
            };
            slots.log = start;
        }
        true
    }

    /// The thread's call has ended: others may need its chunk.
    fn share_chunk(&self, slots: &Slots) {
        if let Some(thread) = self.thread(slots).filter(|_| self.shared.is_scarce())
            && let Some((chunk, start)) = thread.chunk.take()
        {
            self.shared.submit_chunk(chunk, slots.log - start);
        }
    }

    fn enter(&self, slots: &mut Slots) -> bool {
        // SAFETY: set by the entry's code, from entries that are never freed.
        let entry = unsafe { &*(slots.entry as *const Entry) };
        slots.minus_base = slots.stack.wrapping_neg();
        self.log_entry(slots, record::ENTER, entry.region_number, slots.sequence)
    }

    /// Logs that an entry was reached: its number, stack pointer and return address.
    fn log_entry(&self, slots: &mut Slots, kind: u32, region: u64, sequence: u64) -> bool {
        // SAFETY: at an entry the return address lies where the stack pointer points.
        let return_pc = unsafe { (slots.stack as *const u64).read() };
        let base = (&raw const *slots as u64).wrapping_sub(i64::from(self.slots) as u64);
        let head = u64::from(kind) << 32;
        self.log(slots, &[head, region, sequence, self.shared.tick(), slots.stack, return_pc, base])
    }

    /// An entry was reached inside a recorded call.
    fn inner(&self, slots: &mut Slots) -> u64 {
        let pc = slots.pc;
        let region = self.regions_of(pc);
        if let Some((region, words)) = region.and_then(|region| Some((region, self.shared.region(region)?))) {
            let sequence = words.fetch_add(1, Ordering::Relaxed);
            if !self.log_entry(slots, record::INNER, region, sequence) {
                return self.leave(slots, pc);
            }
        }
        self.find(slots, pc, |block| block.body)
    }

    fn regions_of(&self, pc: u64) -> Option<u64> {
        use lineup_recording::native::{entry, word};
        let entries = self.shared.word(word::ENTRIES).load(Ordering::Relaxed) as usize;
        let found = (0..entries)
            .find(|number| self.shared.entry(*number, entry::ADDRESS).load(Ordering::Relaxed) == pc)?;
        Some(self.shared.entry(found, entry::REGION).load(Ordering::Relaxed))
    }

    /// Writes a record. False when the log cannot be written any more.
    fn log(&self, slots: &mut Slots, words: &[u64]) -> bool {
        if slots.log >> 16 & 0xff != 0 && !self.next_chunk(slots) {
            return false;
        }
        for word in words {
            // SAFETY: behind a full chunk there is room for more than a record.
            unsafe { (slots.log as *mut u64).write(*word) };
            slots.log += 8;
        }
        true
    }

    fn thread<'a>(&self, slots: &Slots) -> Option<&'a mut Thread> {
        // SAFETY: null or made by `begin_thread`, and used by its thread alone.
        unsafe { (slots.thread as *mut Thread).as_mut() }
    }

    /// Hands the thread's chunk over and takes another.
    fn next_chunk(&self, slots: &mut Slots) -> bool {
        let Some(thread) = self.thread(slots) else { return false };
        let Some((chunk, start)) = thread.chunk else { return false };
        self.shared.submit_chunk(chunk, slots.log - start);
        match self.shared.take_chunk(thread.number, u32::MAX) {
            Some((number, start)) => {
                thread.chunk = Some((number, start as u64));
                slots.log = start as u64;
                true
            }
            None => {
                self.stop(UNREAD);
                // What is written from now on is overwritten.
                slots.log = start;
                false
            }
        }
    }

    /// What is logged up to here can be read.
    fn commit(&self, slots: &Slots) {
        if let Some((chunk, start)) = self.thread(slots).and_then(|thread| thread.chunk) {
            self.shared.commit_chunk(chunk, (slots.log - start).min(chunk::BYTES));
        }
    }

    /// The rest of the call runs natively and is not recorded: a signal handler has changed where the program goes on.
    pub(crate) fn lose_by_signal(&self, slots: &mut Slots) {
        self.log(slots, &[u64::from(record::LOST) << 32]);
        self.commit(slots);
    }

    /// The rest of the call runs natively and is not recorded.
    fn lose(&self, slots: &mut Slots, pc: u64) -> u64 {
        self.log(slots, &[u64::from(record::LOST) << 32]);
        self.leave(slots, pc)
    }

    fn leave(&self, slots: &mut Slots, pc: u64) -> u64 {
        self.commit(slots);
        let signals = system::block_signals();
        let leave = self.code.with(|code| code.leave(self.slots, pc));
        system::restore_signals(signals);
        // Without room for code nothing is recorded any more; the thread stays busy, so that it enters no gate.
        leave.unwrap_or_else(|| {
            self.stop("there was no room for more code");
            pc
        })
    }

    /// Nothing is recorded any more.
    fn stop(&self, why: &str) {
        if self.is_on.swap(0, Ordering::Relaxed) != 0 {
            self.shared.note(&format!(
                "recording ended before the program, and later calls were not counted: {why}"
            ));
        }
    }

    /// False when nothing is recorded any more, and in processes that were forked off.
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed) != 0
    }

    /// Memory is about to be unmapped. Other code may be mapped there later.
    fn notice_unmapped(&self, start: u64, bytes: u64) {
        if !self.is_on() {
            return;
        }
        let signals = system::block_signals();
        let range = start..start.saturating_add(bytes).checked_next_multiple_of(4096).unwrap_or(u64::MAX);
        self.code.with(|code| {
            if code.is_code(&range) {
                code.forget(self, &range);
            }
        });
        system::restore_signals(signals);
    }

    /// A file was mapped to be executed: entries may lie in it.
    fn notice_mapped(&self, protection: u64, file: u64, result: i64) {
        let is_code = protection & libc::PROT_EXEC as u64 != 0 && (file as i32) >= 0 && result > 0;
        if !is_code || !self.is_on() {
            return;
        }
        self.shared.word(word::MAPPED).fetch_add(1, Ordering::Release);
        if self.shared.word(word::LOOKS_FOR_MORE).load(Ordering::Relaxed) != 0 {
            let signals = system::block_signals();
            LOOKING.with(|()| patch::more(self));
            system::restore_signals(signals);
        }
    }

    fn system_call(&self, slots: &mut Slots, registers: &mut Registers) -> u64 {
        match registers.rax as i64 {
            libc::SYS_munmap => self.notice_unmapped(registers.rdi, registers.rsi),
            // What was there is unmapped.
            libc::SYS_mmap if registers.r10 & libc::MAP_FIXED as u64 != 0 => {
                self.notice_unmapped(registers.rdi, registers.rsi);
            }
            _ => {}
        }
        slots.resume_pc = slots.pc - 2;
        let tick = self.shared.tick();
        let head = u64::from(record::SYSTEM_CALL) << 32;
        let r = &registers;
        self.log(slots, &[head, r.rax, r.rdi, r.rsi, r.rdx, r.r10, tick]);
        self.commit(slots);
        if registers.rax as i64 == libc::SYS_rt_sigaction {
            signals::set_handler(registers);
            registers.rcx = slots.pc;
            slots.resume_pc = slots.pc;
            return self.find(slots, slots.pc, |block| block.start);
        }
        if registers.rax as i64 == libc::SYS_mmap && registers.rdx & libc::PROT_EXEC as u64 != 0 {
            map(self, registers);
            registers.rcx = slots.pc;
            slots.resume_pc = slots.pc;
            return self.find(slots, slots.pc, |block| block.start);
        }
        if registers.rax as i64 == libc::SYS_exit
            && let Some((chunk, start)) = self.thread(slots).and_then(|thread| thread.chunk.take())
        {
            // The thread ends here, and does not come back.
            self.shared.submit_chunk(chunk, slots.log - start);
        }
        let new = processes::before_call(self, registers);
        let signals = system::block_signals();
        let found = self.code.with(|code| code.calls.get(&slots.pc).copied());
        system::restore_signals(signals);
        match (found, new) {
            (Some(ways), New::Nothing) => ways.alone,
            (Some(ways), New::Sharing) => ways.shared,
            (Some(ways), New::Copy) => ways.forked,
            // The address of the instruction: two bytes before the next.
            (None, _) => self.lose(slots, slots.pc - 2),
        }
    }
}

/// From a system call of the C library that unmaps memory.
///
/// # Safety
/// Only from [`gates::in_place_of_call`], with the registers of a system call.
pub(crate) unsafe extern "C" fn unmap_from_site(registers: *mut Registers) {
    // SAFETY: the caller's promise.
    let registers = unsafe { &mut *registers };
    if let Some(engine) = get() {
        engine.notice_unmapped(registers.rdi, registers.rsi);
    }
    // SAFETY: the program's own system call.
    registers.rax =
        unsafe { system::call(libc::SYS_munmap, [registers.rdi, registers.rsi, 0, 0, 0, 0]) } as u64;
}

/// From a system call of the C library or the loader that maps memory.
///
/// # Safety
/// Only from [`gates::in_place_of_call`], with the registers of a system call.
pub(crate) unsafe extern "C" fn map_from_site(registers: *mut Registers) {
    // SAFETY: the caller's promise.
    let registers = unsafe { &mut *registers };
    match get() {
        Some(engine) => {
            if registers.r10 & libc::MAP_FIXED as u64 != 0 {
                engine.notice_unmapped(registers.rdi, registers.rsi);
            }
            map(engine, registers);
        }
        None => registers.rax = map_memory(registers) as u64,
    }
}

fn map_memory(r: &Registers) -> i64 {
    // SAFETY: the program's own system call.
    unsafe { system::call(libc::SYS_mmap, [r.rdi, r.rsi, r.rdx, r.r10, r.r8, r.r9]) }
}

/// Maps memory for the program, and looks for entries in it.
fn map(engine: &Engine, registers: &mut Registers) {
    let result = map_memory(registers);
    registers.rax = result as u64;
    engine.notice_mapped(registers.rdx, registers.r8, result);
}

/// Held while entries are looked for in new files.
static LOOKING: Lock<()> = Lock::new(());

/// A thread ends: what it had is given back.
pub(crate) unsafe extern "C" fn end_thread(thread: *mut libc::c_void) {
    let (Some(engine), false) = (get().filter(|engine| engine.is_on()), thread.is_null()) else { return };
    // SAFETY: this thread's own; it is not in the cache, since the C library calls this natively.
    let slots = unsafe { &mut *gates::slots() };
    if slots.thread != thread as u64 || slots.busy == 1 {
        return;
    }
    slots.busy = 1;
    // SAFETY: made by `begin_thread`, and nobody else's.
    let thread = unsafe { Box::from_raw(thread.cast::<Thread>()) };
    if let Some((chunk, start)) = thread.chunk {
        engine.shared.submit_chunk(chunk, slots.log - start);
    }
    slots.thread = 0;
    slots.own_stack = 0;
    system::unmap(thread.stack, STACK_BYTES);
    system::unmap(thread.table, TABLE_BYTES);
    slots.busy = 0;
}
