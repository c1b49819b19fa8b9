//! The function that the gate out of the cache calls: it finds or makes the next block.

use super::log::is_full;
use super::state::{self, Engine, get};
use crate::cache::sequences::Begun;
use crate::entries::{new_files, restore};
use crate::machine::{Abi, EntryData, Host, HostRegisters, Registers, Translation};
use crate::syscalls::guards;
use crate::system::{self, mappings};
use crate::threads::slots::{Slots, reason};
use crate::threads::thread::Thread;
use crate::whole_program::sieve;
use lineup_recording::native::mappings::Whose;
use lineup_recording::native::record;
use std::sync::atomic::Ordering;

/// Called by the gate, on the engine's stack.
///
/// # Safety
/// Only by the gate, with the registers that it has saved.
pub(crate) unsafe extern "C" fn hand_over(registers: *mut HostRegisters) {
    let Some(engine) = get() else { return };
    // SAFETY: this thread's own; the gate runs one at a time in a thread, since a busy thread enters none.
    let (slots, registers) = unsafe { (&mut *Host::slots(), &mut *registers) };
    guards::inside(|| engine.go_on(slots, registers));
}

/// Whether the thread with this number notes the mapped memory at its first call: the first threads do, and then ever
/// fewer. Each thread has memory of its own, so the notes of all would grow with the square of their number. The
/// command sees later mappings now and then itself.
fn notes_mappings(number: u64) -> bool {
    const ALL_BELOW: u64 = 16;
    number < ALL_BELOW || number.is_power_of_two()
}

impl Engine {
    fn go_on(&self, slots: &mut Slots, registers: &mut HostRegisters) {
        let mut is_first = false;
        let pc = slots.pc;
        slots.resume_pc = pc;
        let resume = match slots.reason {
            reason::ENTER | reason::BURST if state::leaves() => {
                is_first = slots.thread == 0;
                if is_first {
                    slots.own_stack = 0;
                }
                self.leave(slots, pc)
            }
            reason::SYSTEM_CALL if state::leaves() => self.lose(slots, pc - Host::SYSTEM_CALL_BYTES),
            reason::GO
            | reason::INNER
            | reason::FULL
            | reason::RETURNED
            | reason::STATE
            | reason::SEQUENCE
                if state::leaves() =>
            {
                self.lose(slots, pc)
            }
            // All threads begin on one stack, one at a time: slow work waits until they return here on their own stack.
            reason::ENTER | reason::BEGIN | reason::BURST if slots.thread == 0 => {
                is_first = true;
                match self.begin_thread(slots) {
                    true => self.gate,
                    false => self.leave(slots, pc),
                }
            }
            reason::ENTER => {
                let is_begun = self.is_within_pace(slots)
                    && self.is_within_budget(slots)
                    && self.has_chunk(slots)
                    && self.log_mappings(slots)
                    && self.enter(slots, registers);
                match is_begun {
                    true => self.go_into(slots, pc),
                    false => self.leave(slots, pc),
                }
            }
            reason::INNER => self.inner(slots, registers),
            reason::BURST => match self.begin_burst(slots) {
                true => self.go_into(slots, pc),
                false => self.leave(slots, pc),
            },
            reason::FULL => match !self.is_burst_over(slots) && self.make_room(slots) {
                true => self.go_into(slots, pc),
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
            reason::BEGIN => match self.has_chunk(slots) && self.log_begin(slots) {
                true => self.find(slots, pc),
                false => self.leave(slots, pc),
            },
            reason::SYSTEM_CALL => self.system_call(slots, registers),
            reason::RETURNED => match self.resume_burst(slots) && self.log_time(slots) {
                true => self.find(slots, pc),
                false => self.leave(slots, pc),
            },
            reason::ALONE => self.use_alone(slots),
            reason::STATE => {
                Host::see_state(&self.shared, self.slots, slots, registers);
                self.go_into(slots, pc)
            }
            reason::ALLOCATION => self.note_allocation(slots, registers),
            reason::SEQUENCE => self.begin_sequence(slots, registers),
            _ => self.find(slots, pc),
        };
        slots.resume = resume;
        if is_first {
            slots.after_first = resume;
            slots.resume = self.release_first;
        }
    }

    /// Address in the cache where the program continues. Links the jump that led here to it.
    pub(crate) fn find(&self, slots: &mut Slots, pc: u64) -> u64 {
        if pc == Host::after_handler() {
            return self.leave(slots, pc);
        }
        if self.ends_burst_at(slots, pc) {
            return self.leave(slots, pc);
        }
        new_files::notice(self, pc);
        let link = std::mem::take(&mut slots.link);
        let signals = system::block_signals();
        let found = self.code.with(|code| {
            let block = code.block(self, pc)?;
            if link == 0 && slots.reason == reason::GO {
                code.lead_to(pc, &block);
            }
            Some(code.follow(self, link, &block))
        });
        system::restore_signals(signals);
        let Some(start) = found else { return self.lose(slots, pc) };
        if link == 0 && slots.reason == reason::GO && !self.logs_all() {
            // SAFETY: this thread's own table.
            unsafe { Host::lead_in_table(slots.table, pc, start) };
        }
        start
    }

    /// Address where a block continues that handed over before its first instruction. The program may have changed its
    /// code.
    fn go_into(&self, slots: &mut Slots, pc: u64) -> u64 {
        let signals = system::block_signals();
        let found = self.code.with(|code| code.current(self, pc));
        system::restore_signals(signals);
        found.map_or_else(|| self.lose(slots, pc), |block| block.body)
    }

    /// The next store may begin a restartable sequence.
    fn begin_sequence(&self, slots: &mut Slots, registers: &HostRegisters) -> u64 {
        let pc = slots.pc;
        let signals = system::block_signals();
        let (begun, plain) = self.code.with(|code| {
            let begun = code.begin_sequence(self, pc, registers);
            let is_plain = matches!(begun, Begun::Nothing);
            (begun, if is_plain { code.current(self, pc).map(|block| block.plain) } else { None })
        });
        system::restore_signals(signals);
        match begun {
            Begun::Copied(copy, instructions) => {
                self.shared.control().sequences.fetch_add(1, Ordering::Relaxed);
                self.shared.control().sequence_instructions.fetch_add(instructions, Ordering::Relaxed);
                copy
            }
            Begun::Natively => self.lose(slots, pc),
            Begun::Nothing => plain.unwrap_or_else(|| self.lose(slots, pc)),
        }
    }

    /// At a thread's first call: logs the owner of each mapping of the process, as far as there is room: shared memory
    /// first, since it holds the objects of a type. False when the log cannot be written any more.
    fn log_mappings(&self, slots: &mut Slots) -> bool {
        const MOST: usize = 1024;
        let notes = |thread: &mut Thread| std::mem::take(&mut thread.is_new) && notes_mappings(thread.number);
        if !self.thread(slots).is_some_and(notes) {
            return true;
        }
        let signals = system::block_signals();
        let mut all = mappings::of_data();
        all.sort_by_key(|(start, _, whose)| (*whose, *start));
        let head = u64::from(record::MAPPING) << 32;
        let mut written = all.iter().take(MOST).map(|(start, end, whose)| {
            self.log(slots, &[head, *start, *end, u64::from(*whose == Whose::Shared)])
        });
        let is_written = written.all(|is_written| is_written);
        drop(all);
        system::restore_signals(signals);
        is_written
    }

    /// Whether this call may be recorded under a limit of calls a second; it counts against the limit then.
    fn is_within_pace(&self, slots: &Slots) -> bool {
        if self.shared.control().is_paced.load(Ordering::Relaxed) == 0 {
            return true;
        }
        // SAFETY: as in `enter`.
        let entry = unsafe { &*(slots.entry as *const EntryData) };
        self.shared.takes_one(entry.region_number)
    }

    fn enter(&self, slots: &mut Slots, registers: &HostRegisters) -> bool {
        // SAFETY: set by the entry's code, from entries that are never freed.
        let entry = unsafe { &*(slots.entry as *const EntryData) };
        slots.minus_base = slots.stack.wrapping_neg();
        self.log_entry(slots, registers, [record::ENTER.into(), entry.region_number, slots.sequence])
            && self.log_time(slots)
    }

    /// Logs that an entry was reached: its number, stack pointer, return address, and arguments in registers.
    fn log_entry(
        &self,
        slots: &mut Slots,
        registers: &HostRegisters,
        [kind, region, sequence]: [u64; 3],
    ) -> bool {
        // SAFETY: at an entry.
        let return_pc = unsafe { Host::return_address(slots.stack, registers) };
        let base = (&raw const *slots as u64).wrapping_sub(i64::from(self.slots) as u64);
        let [a, b, c, d, e, f] = registers.function_arguments();
        let (head, at) = (kind << 32, self.shared.tick());
        self.log(slots, &[head, region, sequence, at, slots.stack, return_pc, base, a, b, c, d, e, f])
    }

    /// An entry was reached inside a recorded call.
    fn inner(&self, slots: &mut Slots, registers: &HostRegisters) -> u64 {
        let pc = slots.pc;
        let region = self.regions_of(pc);
        if let Some((region, counts)) = region.and_then(|region| Some((region, self.shared.region(region)?)))
        {
            let sequence = counts.calls.fetch_add(1, Ordering::Relaxed);
            self.count_in_thread(slots, region);
            if !self.log_entry(slots, registers, [record::INNER.into(), region, sequence]) {
                return self.leave(slots, pc);
            }
        }
        self.go_into(slots, pc)
    }

    fn regions_of(&self, pc: u64) -> Option<u64> {
        let found = self.shared.entries().iter().find(|entry| entry.address.load(Ordering::Relaxed) == pc)?;
        Some(found.region.load(Ordering::Relaxed))
    }

    /// A thread of a logged run begins. False when the log cannot be written any more.
    fn log_begin(&self, slots: &mut Slots) -> bool {
        let base = (&raw const *slots as u64).wrapping_sub(i64::from(self.slots) as u64);
        !self.logs_all() || self.log(slots, &[u64::from(record::BEGIN) << 32, base])
    }

    /// An instruction that stands alone was executed: its block continues.
    fn use_alone(&self, slots: &mut Slots) -> u64 {
        let mut was_logged = true;
        if let Some(whole) = &self.whole {
            let was = *slots;
            whole.sieves.use_alone(&was, |words| was_logged &= self.log(slots, words));
        }
        match was_logged {
            // SAFETY: all bits are words.
            true => unsafe { slots.own.sieve.back },
            false => self.leave(slots, slots.pc),
        }
    }

    /// An allocator is called, or its call returns: its block continues.
    fn note_allocation(&self, slots: &mut Slots, registers: &HostRegisters) -> u64 {
        let own = self.thread(slots).and_then(|thread| thread.allocations.take());
        let is_written = own.is_none_or(|mut own| {
            let is_written = self.at_allocation(slots, registers, &mut own);
            if let Some(thread) = self.thread(slots) {
                thread.allocations = Some(own);
            }
            is_written
        });
        // SAFETY: all bits are words.
        let back = unsafe { slots.own.sieve.back };
        match (is_written, back) {
            (true, 0) => self.go_into(slots, slots.pc),
            (true, back) => back,
            (false, _) => self.leave(slots, slots.pc),
        }
    }

    /// A block has handed over because the chunk is full or a signal waits.
    fn make_room(&self, slots: &mut Slots) -> bool {
        let Some(whole) = self.whole.as_ref().filter(|_| !self.logs_all()) else {
            return self.next_chunk(slots);
        };
        sieve::is_here(slots);
        whole.sieves.turn(slots, &self.shared, |slots, words| self.log(slots, words))
            && (!is_full(slots) || self.next_chunk(slots))
    }

    /// Ends the record of a call: a signal handler has changed the place where the program continues, so the rest runs
    /// natively.
    pub(crate) fn lose_by_signal(&self, slots: &mut Slots) {
        self.log(slots, &[u64::from(record::LOST) << 32]);
        self.commit(slots);
        self.lose_burst(slots);
    }

    /// The rest of the call runs natively and is not recorded.
    pub(crate) fn lose(&self, slots: &mut Slots, pc: u64) -> u64 {
        self.log(slots, &[u64::from(record::LOST) << 32]);
        self.lose_burst(slots);
        self.leave(slots, pc)
    }

    fn leave(&self, slots: &mut Slots, pc: u64) -> u64 {
        self.commit(slots);
        self.finish_burst(slots);
        let signals = system::block_signals();
        let leave = self.code.with(|code| code.leave(self.slots, pc));
        system::restore_signals(signals);
        // Without room for code recording stops; the thread stays busy, so that it enters no gate.
        leave.unwrap_or_else(|| {
            self.stop("there was no room for more code");
            pc
        })
    }
}
