//! Whole programs: what a block passes over, and what it notes.
//!
//! Each thread has a sieve in the shared memory, see [`lineup_recording::native::sieve`]. A block counts itself there, and
//! looks up the lines that it uses in tables: what uses the most recently used lines of their sets again changes no modelled
//! cache, and is passed over. For the rest, the block goes through the code here, which has the first-level caches use the
//! lines, and notes in the log what was not there.
//!
//! When the log is full, or a signal waits, blocks get a table in which nothing is found: the next one to begin finds its
//! code not there, and hands over to the engine, with all registers as the program has them.

use crate::assembly::{Address, Code, Gpr, RAX, RCX};
use crate::cache::Cache;
use crate::shared::Shared;
use crate::slots::{RECORD_WORDS, Slots, at};
use crate::system;
use lineup_recording::native::{Definition, noted, record, sieve, window, word};
use std::sync::atomic::Ordering;

const RDX: Gpr = Gpr(2);
const RSI: Gpr = Gpr(6);
const RDI: Gpr = Gpr(7);
const R8: Gpr = Gpr(8);
const R9: Gpr = Gpr(9);

/// The registers that are kept, besides `rax` and the flags. `rcx` holds what is noted.
const KEPT: [Gpr; 6] = [RDX, RSI, RDI, R8, R9, RCX];
/// The last one's place.
const NOTED: i32 = 7;

/// Short jumps.
const EQUAL: &[u8] = &[0x74];
const NOT_EQUAL: u8 = 0x75;
const ALWAYS: u8 = 0xeb;

/// A first-level cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Level {
    /// Bytes of a line, as a power of two.
    pub(crate) line_shift: u32,
    /// A power of two.
    sets: u64,
    /// 0 when all is found there.
    ways: u64,
}

impl Level {
    /// As the command says.
    fn read(shared: &Shared, line_shift: usize, sets: usize, ways: usize) -> Level {
        let value = |number| shared.word(number).load(Ordering::Relaxed);
        let line_shift = (value(line_shift) as u32).clamp(3, 12);
        Level { line_shift, sets: value(sets).clamp(1, 1 << 30), ways: value(ways).min(1 << 16) }
    }

    /// Bytes of a line.
    pub(crate) fn line_bytes(self) -> u64 {
        1 << self.line_shift
    }

    /// Whether lines that follow each other lie in different sets.
    pub(crate) fn parts_neighbours(self) -> bool {
        self.sets > 1
    }

    fn bytes(self) -> usize {
        (8 * self.sets * self.ways.max(1)) as usize
    }
}

/// What all threads' sieves have in common.
#[derive(Clone, Copy)]
pub(crate) struct Sieves {
    pub(crate) code: Level,
    pub(crate) data: Level,
    uses_data: u64,
    uses_code: u64,
    /// In it nothing is found.
    nothing: u64,
    /// Where nobody looks.
    aside: u64,
    /// Windows of the run are wanted.
    has_windows: bool,
}

/// The lines of a thread's caches: those of data, and those of code.
#[derive(Clone, Copy)]
pub(crate) struct Held {
    data: u64,
    code: u64,
}

impl Sieves {
    /// Makes the code. `None` without memory.
    pub(crate) fn new(shared: &Shared, cache: &mut Cache, slots: i32) -> Option<Sieves> {
        let code = Level::read(shared, word::CODE_LINE_SHIFT, word::CODE_SETS, word::CODE_WAYS);
        let data = Level::read(shared, word::DATA_LINE_SHIFT, word::DATA_SETS, word::DATA_WAYS);
        let own = |distance: usize| distance as i32 - data.line_shift as i32;
        let of_data =
            User { slots, level: data, table: own(sieve::DATA), lines: at!(own.sieve.data_lines), words: 2 };
        let of_code = User {
            level: code,
            table: own(sieve::CODE),
            lines: at!(own.sieve.code_lines),
            words: 1,
            ..of_data
        };
        Some(Sieves {
            code,
            data,
            uses_data: cache.put(&of_data.code())?,
            uses_code: cache.put(&of_code.code())?,
            nothing: system::memory(sieve::COUNTS)? as u64,
            aside: system::memory(sieve::COUNTS)? as u64,
            has_windows: shared.word(word::WINDOWS).load(Ordering::Relaxed) != 0,
        })
    }

    /// Memory for the lines of a thread's caches.
    pub(crate) fn hold(&self) -> Option<Held> {
        let memory = |level: Level| Some(system::memory(level.bytes())? as u64);
        Some(Held { data: memory(self.data)?, code: memory(self.code)? })
    }

    /// A thread begins, with a sieve that no other has now: its caches are empty.
    pub(crate) fn begin(&self, slots: &mut Slots, sieve: u64, held: Held) {
        // SAFETY: within the sieve, which is this thread's alone.
        unsafe { std::ptr::write_bytes(sieve as *mut u8, 0, sieve::COUNTS) };
        system::forget(held.data as *mut u8, self.data.bytes());
        system::forget(held.code as *mut u8, self.code.bytes());
        let shift = u64::from(self.data.line_shift);
        slots.own.sieve = crate::slots::Sieve {
            current: sieve + shift,
            own: sieve + shift,
            nothing: self.nothing + shift,
            tables: sieve + shift,
            notes_all: 0,
            left: 0,
            called: 0,
            address: 0,
            back: 0,
            definition: 0,
            data: self.uses_data,
            code: self.uses_code,
            data_lines: held.data,
            code_lines: held.code,
            kept: [0; 8],
            record: [0; RECORD_WORDS],
        };
        if self.has_windows {
            // The first stretch begins with the first block.
            call(slots);
        }
    }

    /// At the end of a stretch of the run another begins, which may be a window: what is to be logged then, for the thread with
    /// these slots.
    pub(crate) fn turn(
        &self,
        slots: &mut Slots,
        shared: &Shared,
        mut log: impl FnMut(&mut Slots, &[u64]) -> bool,
    ) -> bool {
        // SAFETY: all bits are words.
        let own = unsafe { slots.own.sieve };
        if !self.has_windows || own.left.cast_signed() > 0 {
            return true;
        }
        let stretch = shared.word(word::STRETCHES).fetch_add(1, Ordering::Relaxed);
        let halvings = shared.word(word::HALVINGS).load(Ordering::Relaxed);
        let is_window = window::is_chosen(stretch, halvings);
        let shift = u64::from(self.data.line_shift);
        let mut is_logged = true;
        if own.notes_all != 0 {
            is_logged &= log(slots, &[u64::from(record::WINDOW_END) << 32]);
        }
        if is_window {
            // SAFETY: within the thread's own sieve.
            unsafe { std::ptr::write_bytes((own.own - shift) as *mut u8, 0, sieve::COUNTS) };
            is_logged &= self.log_lines(&own, stretch, |words| log(slots, words));
        }
        // SAFETY: all bits are words.
        let own = unsafe { &mut slots.own.sieve };
        own.left = window::STRETCH;
        own.notes_all = is_window.into();
        own.tables = if is_window { self.aside + shift } else { own.own };
        is_logged
    }

    /// Logs that a window begins, with what the first level holds.
    fn log_lines(&self, own: &crate::slots::Sieve, stretch: u64, log: impl FnOnce(&[u64]) -> bool) -> bool {
        let lines = |level: Level, at: u64| {
            let count = level.bytes() / 8;
            let is_told = level.ways > 0 && count <= window::MOST_LINES;
            // SAFETY: the thread's own, of this size.
            let all = unsafe { std::slice::from_raw_parts(at as *const u64, count) };
            if is_told { all } else { &[] }
        };
        let (data, code) = (lines(self.data, own.data_lines), lines(self.code, own.code_lines));
        let head = [u64::from(record::WINDOW) << 32, stretch, data.len() as u64, code.len() as u64];
        log(&[&head[..], data, code].concat())
    }

    /// A block that stands alone was executed: has the data cache use what it accessed, and passes on what is to be logged:
    /// its record, and what missed.
    pub(crate) fn use_alone(&self, slots: &Slots, mut log: impl FnMut(&[u64])) {
        // SAFETY: all bits are words.
        let own = unsafe { slots.own.sieve };
        // SAFETY: the block has set it, to a definition that stays.
        let definition = unsafe { &*(own.definition as *const Definition) };
        let words = 1 + definition.accesses.iter().map(|access| access.form.words()).sum::<usize>();
        let Some([head, words @ ..]) = own.record.get(..words) else { return };
        log(&own.record[..=words.len()]);
        definition.each_alone(words, |access, address, bytes| {
            let end = address.wrapping_add(u64::from(bytes) - 1);
            let lines = address >> self.data.line_shift..=end >> self.data.line_shift;
            let sieve = own.tables - u64::from(self.data.line_shift);
            // SAFETY: this thread's own, of the sizes that `hold` and the shared memory have.
            let uses = |line| unsafe { self.data.uses(line, own.data_lines, sieve) };
            // All of them are used, whatever is found.
            if lines.filter(|line| !uses(*line)).count() > 0 {
                let what = u64::from(noted::ALONE_MISSED) << 32 | (access as u64) << noted::BITS_AT;
                log(&[u64::from(*head as u32) | what, address, bytes.into()]);
            }
        });
    }
}

impl Level {
    /// Uses a line of data; true when it was there.
    ///
    /// # Safety
    /// The thread's own lines and sieve.
    unsafe fn uses(self, line: u64, lines: u64, sieve: u64) -> bool {
        if self.ways == 0 {
            return true;
        }
        let place =
            |line: u64| (sieve as usize + sieve::DATA + 8 * (line as usize % sieve::PLACES)) as *mut u64;
        // SAFETY: the caller's promise.
        unsafe {
            let first = (lines as *mut u64).add(((line & (self.sets - 1)) * self.ways) as usize);
            let set = std::slice::from_raw_parts_mut(first, self.ways as usize);
            if set[0] == line {
                return true;
            }
            place(set[0]).write(0);
            place(line).write(line.wrapping_neg());
            let found = set.iter().position(|held| *held == line);
            let last = found.unwrap_or(set.len() - 1);
            set[..=last].rotate_right(1);
            set[0] = line;
            found.is_some()
        }
    }
}

/// The next block is to hand over to the engine.
pub(crate) fn call(slots: &mut Slots) {
    // SAFETY: all bits are words.
    let own = unsafe { &mut slots.own.sieve };
    own.called = 1;
    own.current = own.nothing;
}

/// The engine was called.
pub(crate) fn is_here(slots: &mut Slots) {
    // SAFETY: all bits are words.
    let own = unsafe { &mut slots.own.sieve };
    own.called = 0;
    own.current = own.own;
}

/// As the slots were when a signal handler interrupted the thread, but for what the handler's blocks have done since.
pub(crate) fn after_handler(was: Slots, now: &Slots) -> Slots {
    let mut slots = Slots { log: now.log, ..was };
    // SAFETY: all bits are words.
    unsafe {
        slots.own.sieve.called = now.own.sieve.called;
        slots.own.sieve.current = now.own.sieve.current;
        slots.own.sieve.tables = now.own.sieve.tables;
        slots.own.sieve.notes_all = now.own.sieve.notes_all;
        slots.own.sieve.left = now.own.sieve.left;
    }
    slots
}

/// Writes the code that uses lines of a cache.
///
/// It changes no register but `rcx`, which holds what is noted: of it, the sixth byte is the distance from the address to
/// the first byte that is used, and the upper two from there to the last.
#[derive(Clone, Copy)]
struct User {
    slots: i32,
    level: Level,
    /// Where its table is, from what blocks take for the sieve.
    table: i32,
    /// The slot that says where its lines are.
    lines: i32,
    /// Words that are logged: with two, the address is the second.
    words: i32,
}

impl User {
    fn slot(self, distance: i32) -> i32 {
        self.slots + distance
    }

    fn kept(self, number: i32) -> i32 {
        self.slot(at!(own.sieve.kept) + 8 * number)
    }

    fn code(self) -> Vec<u8> {
        let mut code = Code::default();
        self.keep(&mut code);
        if self.level.ways > 0 {
            self.end_stretch(&mut code);
            self.first_and_last(&mut code);
            // The lines that missed; in a window there is a bit from the start.
            code.load_slot(R8, self.slot(at!(own.sieve.notes_all)));
            code.load_slot(R9, self.slot(at!(own.sieve.tables)));
            let next_line = code.here();
            self.use_line(&mut code);
            code.with_slot(0x3b, RAX, self.slot(at!(scratch))); // cmp rax, [scratch]
            let was_last = code.jump_short(EQUAL);
            code.put(&[0x48, 0xff, 0xc0]); // inc rax
            let again = code.jump();
            code.land_at(again, next_line);
            code.land_short(was_last);
            code.put(&[0x45, 0x85, 0xc0]); // test r8d, r8d
            let none = code.jump_if(EQUAL[0] & 0xf);
            self.note(&mut code);
            code.land(none);
        }
        self.give_back(&mut code);
        code.bytes
    }

    /// Keeps `rax`, the flags and the other registers.
    fn keep(self, code: &mut Code) {
        code.store_slot(self.kept(0), RAX);
        code.put(&[0x9f, 0x0f, 0x90, 0xc0]); // lahf; seto al
        code.store_slot(self.kept(1), RAX);
        for (number, register) in (2..).zip(KEPT) {
            code.store_slot(self.kept(number), register);
        }
    }

    fn give_back(self, code: &mut Code) {
        for (number, register) in (2..).zip(KEPT) {
            code.load_slot(register, self.kept(number));
        }
        code.load_slot(RAX, self.kept(1));
        code.put(&[0x04, 0x7f, 0x9e]); // add al, 127; sahf
        code.load_slot(RAX, self.kept(0));
        code.jump_to_slot(self.slot(at!(own.sieve.back)));
    }

    /// The first line to `rax`, the last to the slot `scratch`.
    fn first_and_last(self, code: &mut Code) {
        code.load_slot(RAX, self.slot(at!(own.sieve.address)));
        code.move_register(RDX, RCX);
        code.put(&[0x48, 0xc1, 0xe2, 16, 0x48, 0xc1, 0xfa, 56]); // shl rdx, 16; sar rdx, 56
        code.put(&[0x48, 0x01, 0xd0]); // add rax, rdx
        code.put(&[0x48, 0xc1, 0xe9, 48, 0x48, 0x01, 0xc1]); // shr rcx, 48; add rcx, rax
        let shift = self.level.line_shift as u8;
        code.put(&[0x48, 0xc1, 0xe8, shift, 0x48, 0xc1, 0xe9, shift]); // shr rax, shift; shr rcx, shift
        code.store_slot(self.slot(at!(scratch)), RCX);
    }

    /// Has the cache use the line with the number in `rax`: that is the most recently used one of its set then. A bit more in
    /// `r8`: whether it missed.
    fn use_line(self, code: &mut Code) {
        let row_bytes = (8 * self.level.ways) as u32;
        code.put(&[0x45, 0x01, 0xc0]); // add r8d, r8d
        code.put(&[0x89, 0xc7, 0x81, 0xe7]); // mov edi, eax; and edi, sets - 1
        code.put(&(self.level.sets as u32 - 1).to_le_bytes());
        code.put(&[0x48, 0x69, 0xff]); // imul rdi, rdi, row_bytes
        code.put(&row_bytes.to_le_bytes());
        code.load_slot(RSI, self.slot(self.lines));
        code.put(&[0x48, 0x01, 0xfe]); // add rsi, rdi
        code.load(RDX, RSI, 0);
        code.put(&[0x48, 0x39, 0xc2]); // cmp rdx, rax
        let is_most_recent = code.jump_short(EQUAL);
        let place = Address { base: Some(R9), index: Some((RDI, 8)), distance: self.table };
        code.put(&[0x0f, 0xb6, 0xfa]); // movzx edi, dl
        code.with_memory(0xc7, 0, place); // mov qword ptr [r9 + 8 * rdi + table], 0
        code.put(&[0; 4]);
        code.put(&[0x0f, 0xb6, 0xf8]); // movzx edi, al
        code.put(&[0x48, 0xf7, 0xd8]); // neg rax
        code.with_memory(0x89, RAX.0, place);
        code.put(&[0x48, 0xf7, 0xd8]); // neg rax
        code.store(RSI, 0, RAX);
        code.lea_plus(RDI, RSI, row_bytes as i32 - 8);
        let next_way = code.here();
        code.put(&[0x48, 0x39, 0xfe]); // cmp rsi, rdi
        let is_missing = code.jump_short(EQUAL);
        code.put(&[0x48, 0x8b, 0x4e, 8]); // mov rcx, [rsi + 8]
        code.put(&[0x48, 0x89, 0x56, 8]); // mov [rsi + 8], rdx
        code.put(&[0x48, 0x83, 0xc6, 8]); // add rsi, 8
        code.put(&[0x48, 0x39, 0xc1]); // cmp rcx, rax
        code.move_register(RDX, RCX);
        jump_back(code, NOT_EQUAL, next_way);
        let was_there = code.jump_short(&[ALWAYS]);
        code.land_short(is_missing);
        code.put(&[0x41, 0x83, 0xc8, 1]); // or r8d, 1
        code.land_short(was_there);
        code.land_short(is_most_recent);
    }

    /// Logs what missed. When the log is full then, the next block is to hand over.
    fn note(self, code: &mut Code) {
        let own_bits = 64 - noted::BITS_AT as u8;
        code.load_slot(RCX, self.kept(NOTED));
        code.put(&[0x48, 0xc1, 0xe1, own_bits, 0x48, 0xc1, 0xe9, own_bits]); // shl rcx, own_bits; shr rcx, own_bits
        code.put(&[0x49, 0xc1, 0xe0, noted::BITS_AT as u8, 0x4c, 0x09, 0xc1]); // shl r8, bits_at; or rcx, r8
        code.load_slot(RDX, self.slot(at!(log)));
        code.store(RDX, 0, RCX);
        if self.words == 2 {
            code.load_slot(RAX, self.slot(at!(own.sieve.address)));
            code.store(RDX, 8, RAX);
        }
        code.lea_plus(RDX, RDX, 8 * self.words);
        code.store_slot(self.slot(at!(log)), RDX);
        code.put(&[0xf7, 0xc2, 0, 0, 0xff, 0]); // test edx, 0xff0000
        let has_room = code.jump_short(EQUAL);
        self.call(code);
        code.land_short(has_room);
    }

    /// The next block is to hand over.
    fn call(self, code: &mut Code) {
        code.store_slot_value(self.slot(at!(own.sieve.called)), 1);
        code.load_slot(RSI, self.slot(at!(own.sieve.nothing)));
        code.store_slot(self.slot(at!(own.sieve.current)), RSI);
    }

    /// Counts down to the end of the stretch. Then the next block is to hand over.
    fn end_stretch(self, code: &mut Code) {
        let left = self.slot(at!(own.sieve.left)).to_le_bytes();
        code.put(&[0x64, 0x48, 0x83, 0x2c, 0x25]); // sub qword ptr fs:[left], 1
        code.put(&left);
        code.put(&[1]);
        let goes_on = code.jump_short(&[NOT_EQUAL]);
        self.call(code);
        code.land_short(goes_on);
    }
}

fn jump_back(code: &mut Code, opcode: u8, to: usize) {
    let distance = to as i64 - (code.here() as i64 + 2);
    debug_assert!(distance >= -128);
    code.put(&[opcode, distance as u8]);
}
