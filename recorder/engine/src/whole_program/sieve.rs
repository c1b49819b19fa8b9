//! Whole programs: the uses of lines that a block passes over, and those that it notes.
//!
//! Each thread has a sieve in the shared memory, see [`lineup_recording::native::sieve`]. A block counts itself there,
//! and looks up the lines that it uses in tables: a repeated use of the most recently used line of a set changes no
//! modelled cache, and is passed over. For the rest, the block goes through code that has the first-level caches use
//! the lines, and notes misses in the log, see [`Translation::uses_lines`].
//!
//! When the log is full, or a signal waits, blocks get an empty table: the next one to begin does not find its code
//! there, and hands over to the engine, with all of the program's registers.

use crate::cache::code_memory::Cache;
use crate::machine::{Host, LineUser, Translation};
use crate::shared::Shared;
use crate::system;
use crate::threads::slots::{RECORD_WORDS, Slots, at};
use crate::whole_program::level::{Level, Levels};
use lineup_recording::native::{DefinedAccess, Definition, noted, record, sieve, window};
use std::sync::atomic::Ordering;

/// The common data of all threads' sieves.
#[derive(Clone, Copy)]
pub(crate) struct Sieves {
    pub(crate) levels: Levels,
    /// Outside and inside of windows.
    uses_data: [u64; 2],
    uses_code: [u64; 2],
    /// The sieve in which every lookup fails.
    nothing: u64,
    /// Memory that no reader looks at.
    aside: u64,
    /// Windows of the run are wanted.
    has_windows: bool,
}

/// The lines of a thread's caches: those of data, and those of code.
#[derive(Clone, Copy)]
pub(crate) struct CachedLines {
    data: u64,
    code: u64,
}

impl Sieves {
    /// Makes the code. `None` without memory.
    pub(crate) fn new(shared: &Shared, cache: &mut Cache, slots: i32) -> Option<Sieves> {
        let code = Level::read(&shared.control().code_cache);
        let data = Level::read(&shared.control().data_cache);
        let has_windows = shared.control().windows.load(Ordering::Relaxed) != 0;
        let own = |distance: usize| distance as i32 - data.line_shift as i32;
        let of_data = LineUser {
            slots,
            level: data,
            table: own(sieve::DATA),
            rows: at!(own.sieve.data_rows),
            words: 2,
            has_windows,
            notes_all: false,
        };
        let of_code = LineUser {
            level: code,
            table: own(sieve::CODE),
            rows: at!(own.sieve.code_rows),
            words: 1,
            ..of_data
        };
        let mut both = |of: LineUser| {
            let usual = cache.put(&Host::uses_lines(of))?;
            let in_window =
                has_windows.then(|| cache.put(&Host::uses_lines(LineUser { notes_all: true, ..of })));
            Some([usual, in_window.unwrap_or(Some(usual))?])
        };
        Some(Sieves {
            levels: Levels { code, data },
            uses_data: both(of_data)?,
            uses_code: both(of_code)?,
            nothing: system::memory(sieve::COUNTS)? as u64,
            aside: system::memory(sieve::COUNTS)? as u64,
            has_windows,
        })
    }

    /// Memory for the lines of a thread's caches.
    pub(crate) fn hold(&self) -> Option<CachedLines> {
        let memory = |level: Level| Some(Level::rows(system::memory(level.bytes())? as u64));
        Some(CachedLines { data: memory(self.levels.data)?, code: memory(self.levels.code)? })
    }

    /// A thread begins, with a sieve that no other thread has now: its caches are empty.
    pub(crate) fn begin(&self, slots: &mut Slots, sieve: u64, held: CachedLines) {
        // SAFETY: within the sieve, which is this thread's alone.
        unsafe { std::ptr::write_bytes(sieve as *mut u8, 0, sieve::COUNTS) };
        system::forget(Level::memory(held.data) as *mut u8, self.levels.data.bytes());
        system::forget(Level::memory(held.code) as *mut u8, self.levels.code.bytes());
        let shift = u64::from(self.levels.data.line_shift);
        slots.own.sieve = crate::threads::slots::Sieve {
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
            data: self.uses_data[0],
            code: self.uses_code[0],
            data_rows: held.data,
            code_rows: held.code,
            kept: [0; 8],
            record: [0; RECORD_WORDS],
        };
        if self.has_windows {
            // The first stretch begins with the first block.
            call(slots);
        }
    }

    /// At the end of a stretch of the run another begins, which may be a window: logs its beginning, for the thread
    /// with these slots.
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
        let stretch = shared.control().stretches.fetch_add(1, Ordering::Relaxed);
        let halvings = shared.control().halvings.load(Ordering::Relaxed);
        let is_window = window::is_chosen(stretch, halvings);
        let shift = u64::from(self.levels.data.line_shift);
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
        own.data = self.uses_data[usize::from(is_window)];
        own.code = self.uses_code[usize::from(is_window)];
        own.tables = if is_window { self.aside + shift } else { own.own };
        is_logged
    }

    /// Logs that a window begins, with the lines in the first level.
    fn log_lines(
        &self,
        own: &crate::threads::slots::Sieve,
        stretch: u64,
        log: impl FnOnce(&[u64]) -> bool,
    ) -> bool {
        let lines = |level: Level, rows: u64| {
            let is_told = level.ways > 0 && level.sets * level.ways <= window::MOST_LINES as u64;
            // SAFETY: the thread's own.
            if is_told { unsafe { level.lines(rows) } } else { Vec::new() }
        };
        let (data, code) = (lines(self.levels.data, own.data_rows), lines(self.levels.code, own.code_rows));
        let head = [u64::from(record::WINDOW) << 32, stretch, data.len() as u64, code.len() as u64];
        log(&[&head[..], &data, &code].concat())
    }

    /// A block that stands alone was executed: has the data cache use its accesses, and logs its record and the misses.
    pub(crate) fn use_alone(&self, slots: &Slots, mut log: impl FnMut(&[u64])) {
        // SAFETY: all bits are words.
        let own = unsafe { slots.own.sieve };
        // SAFETY: the block has set it, to a definition that stays.
        let definition = unsafe { &*(own.definition as *const Definition) };
        let words = 1 + definition.accesses.iter().map(DefinedAccess::words).sum::<usize>();
        let Some([head, words @ ..]) = own.record.get(..words) else { return };
        log(&own.record[..=words.len()]);
        definition.each_alone(words, |access, address, bytes| {
            let end = address.wrapping_add(u64::from(bytes) - 1);
            let lines = address >> self.levels.data.line_shift..=end >> self.levels.data.line_shift;
            let sieve = own.tables - u64::from(self.levels.data.line_shift);
            // SAFETY: this thread's own, of the sizes that `hold` and the shared memory have.
            let uses = |line| unsafe { self.levels.data.uses(line, own.data_rows, sieve) };
            // All lines are used, hits as well.
            if lines.filter(|line| !uses(*line)).count() > 0 {
                let what = u64::from(noted::ALONE_MISSED) << 32 | (access as u64) << noted::BITS_AT;
                log(&[u64::from(*head as u32) | what, address, bytes.into()]);
            }
        });
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

/// The slots of before a signal handler interrupted the thread, with the changes of the handler's blocks since.
pub(crate) fn after_handler(was: Slots, now: &Slots, logs_all: bool) -> Slots {
    let mut slots = Slots { log: now.log, ..was };
    if logs_all {
        return slots;
    }
    // SAFETY: all bits are words.
    unsafe {
        slots.own.sieve.called = now.own.sieve.called;
        slots.own.sieve.current = now.own.sieve.current;
        slots.own.sieve.tables = now.own.sieve.tables;
        slots.own.sieve.notes_all = now.own.sieve.notes_all;
        slots.own.sieve.data = now.own.sieve.data;
        slots.own.sieve.code = now.own.sieve.code;
        slots.own.sieve.left = now.own.sieve.left;
    }
    slots
}
