//! Timing calls: code that notes when a call of a function begins and ends.
//!
//! The entry's code and that of every end run on the program's stack, below its own, and restore flags and registers;
//! return addresses stay in place. This code handles one open call at a time; see [`crate::timing::open_calls`] for the
//! rest.

use super::assembly::{Address, Code, Gpr, RAX, RCX, RSP};
use super::{gates, trials};
use crate::engine::Engine;
use crate::machine::HostRegisters;
use crate::threads::slots::at;
use crate::timing::open_calls::{slot, state};
use crate::timing::stamps::{self, first_call};
use crate::timing::trials::lots;
use lineup_recording::native::timed;
use std::ops::Range;

const RDX: Gpr = Gpr(2);
const RSI: Gpr = Gpr(6);
const RDI: Gpr = Gpr(7);
/// The words that the code pushes first: two registers and the flags.
const PUSHED_BYTES: i32 = 24;
/// All states except this one need help at a call's beginning and at its end.
const HELPED: u8 = !(state::COUNTS_ONLY as u8);

/// A function of the engine that gets the program's registers.
type Help = unsafe extern "C" fn(*mut HostRegisters);

/// Addresses that the code of one region reads.
#[derive(Clone, Copy)]
pub(crate) struct Stamps {
    slots: i32,
    is_on: u64,
    region: usize,
    /// See [`crate::timing::trials::lots`].
    lots: Option<u64>,
}

impl Stamps {
    /// The code's addresses for an entry of a region, whose function has these parts.
    pub(crate) fn new(engine: &Engine, region: u64, pc: u64, parts: &[Range<u64>]) -> Stamps {
        let region = usize::try_from(region).unwrap_or(usize::MAX).min(timed::STAMPS);
        let lots = lots(engine, region, pc, parts);
        Stamps { slots: engine.slots, is_on: engine.is_on.as_ptr() as u64, region, lots }
    }

    fn table(&self) -> i32 {
        self.slots + at!(times)
    }

    /// A word of the region's slot.
    fn own(&self, word: usize) -> i32 {
        self.slots + at!(own.timed) + 8 * (slot::WORDS * self.region + word) as i32
    }

    fn word(&self, base: Gpr, index: Option<Gpr>, field: usize) -> Address {
        let distance = 8 * (self.region * timed::WORDS + field) as i32;
        Address { base: Some(base), index: index.map(|index| (index, 8)), distance }
    }

    fn increment(&self, code: &mut Code, address: Address) {
        code.with_memory(0xff, 0, address);
    }

    /// Code for an entry, before the replaced instructions.
    pub(crate) fn begin(&self) -> Vec<u8> {
        let mut code = Code::default();
        save(&mut code);
        let off = self.when_off(&mut code, RAX);
        gates::compare_slot(&mut code, self.slots, at!(times));
        let known = code.jump_if(5);
        code.put(&gates::calls(first_call as *const () as u64).bytes);
        code.land(known);
        code.lea_plus(RDX, RSP, PUSHED_BYTES);
        code.load_slot(RAX, self.own(slot::AT));
        code.put(&[0x48, 0x85, 0xc0]); // test rax, rax
        let is_open = code.jump_if(5);
        code.load_slot(RAX, self.own(slot::STATE));
        code.put(&[0xa8, HELPED]); // test al, …
        let fresh = code.jump_if(4);
        let helped = code.jump();
        code.land(is_open);
        code.put(&[0x48, 0x39, 0xc2]); // cmp rdx, rax
        let above = code.jump_if(3);
        code.load_slot(RAX, self.own(slot::STATE));
        code.put(&[0xa8, state::COUNTS_ONLY as u8]); // test al, …
        let inner = code.jump_if(5);
        code.land(above);
        code.land(helped);
        self.help(&mut code, (stamps::enter, 0), PUSHED_BYTES);
        code.with_slot(0x3b, RDX, self.own(slot::AT)); // cmp
        let untimed = code.jump_if(5);
        if let Some(lots) = self.lots {
            // A trial before an inner call would be part of the outer call's time.
            code.load_slot(RAX, self.own(slot::STATE));
            code.put(&[0xa8, state::INSIDE as u8]); // test al, …
            let inside = code.jump_if(5);
            self.draw(&mut code, lots);
            code.land(inside);
        }
        let helped = code.jump();
        code.land(fresh);
        code.load_slot(RAX, self.table());
        self.increment(&mut code, self.word(RAX, None, timed::OPEN));
        if let Some(lots) = self.lots {
            self.draw(&mut code, lots);
        }
        code.store_slot(self.own(slot::AT), RDX);
        code.land(helped);
        read_counter(&mut code);
        code.store_slot(self.own(slot::BEGUN), RAX);
        let begun = code.jump();
        code.land(inner);
        code.load_slot(RAX, self.table());
        self.increment(&mut code, self.word(RAX, None, timed::INNER));
        code.land(untimed);
        code.land(begun);
        code.land(off);
        restore(&mut code);
        code.bytes
    }

    /// Counts the calls down to the next sampled one; `rdx` holds the return address's place.
    fn draw(&self, code: &mut Code, lots: u64) {
        code.load_slot(RAX, self.table());
        code.with_memory(0xff, 1, self.word(RAX, None, timed::COUNTDOWN)); // dec
        let passed = code.jump_if(5);
        trials::draw(code, self.region, lots);
        // The words that the stamps access are in the caches again before the time begins.
        code.load_slot(RAX, self.own(slot::AT));
        trials::serialize(code);
        code.land(passed);
    }

    /// Code for a call's end, before it returns or jumps away.
    pub(crate) fn end(&self, jumps: bool) -> Vec<u8> {
        let mut code = Code::default();
        save(&mut code);
        // Before any use of the thread's data: it may have another base by then, and may not read the counter.
        let off = self.when_off(&mut code, RAX);
        code.lea_plus(RDX, RSP, PUSHED_BYTES);
        code.with_slot(0x3b, RDX, self.own(slot::AT)); // cmp
        let other = code.jump_if(5);
        read_counter(&mut code);
        code.push(RCX);
        code.push(RSI);
        code.with_slot(0x2b, RAX, self.own(slot::BEGUN)); // sub
        code.store_slot(self.own(slot::CYCLES), RAX);
        // At once: a handler of a signal may call the function as well.
        code.clear_slot(self.own(slot::AT));
        code.load_slot(RDX, self.table());
        code.with_memory(0xff, 1, self.word(RDX, None, timed::OPEN)); // dec
        let drawn = self.lots.map(|_| {
            code.lea_plus(RCX, RSP, PUSHED_BYTES + 16);
            code.with_memory(0x3b, RCX.0, self.word(RDX, None, timed::TRIAL)); // cmp
            code.jump_if(4)
        });
        code.with_memory(0x01, RAX.0, self.word(RDX, None, timed::SUM)); // add
        code.with_memory(0x3b, RAX.0, self.word(RDX, None, timed::MOST)); // cmp
        let longest = code.jump_if(7);
        let counts = code.here();
        code.move_register(RSI, RAX);
        code.put(&[0x48, 0x83, 0xf8, 0x20]); // cmp rax, 32
        let short = code.jump_if(2);
        code.put(&[0x48, 0x0f, 0xbd, 0xc8, 0x83, 0xe9, 5]); // bsr rcx, rax; sub ecx, 5
        code.put(&[0x48, 0xd3, 0xee, 0xc1, 0xe1, 5, 0x48, 0x01, 0xce]); // shr rsi, cl; shl ecx, 5; add rsi, rcx
        code.land(short);
        self.increment(&mut code, self.word(RDX, Some(RSI), timed::FIRST_BUCKET));
        if jumps {
            self.increment(&mut code, self.word(RDX, None, timed::JUMPED));
        }
        let over = code.jump();
        code.land(longest);
        self.mark(&mut code);
        let back = code.jump();
        code.land_at(back, counts);
        if let Some((drawn, lots)) = drawn.zip(self.lots) {
            code.land(drawn);
            trials::note(&mut code, self.region, lots);
        }
        code.land(over);
        let jumps = if jumps { stamps::JUMPS } else { 0 };
        code.load_slot(RAX, self.own(slot::STATE));
        code.put(&[0xa8, HELPED]); // test al, …
        let alone = code.jump_if(4);
        self.help(&mut code, (stamps::ended, jumps), PUSHED_BYTES + 16);
        code.land(alone);
        code.put(&[0x5e, 0x59]); // pop rsi; pop rcx
        let ended = code.jump();
        code.land(other);
        self.other_end(&mut code, jumps);
        code.land(ended);
        code.land(off);
        restore(&mut code);
        code.bytes
    }

    /// An end of another call than the innermost open one; `rdx` holds the return address's place.
    fn other_end(&self, code: &mut Code, jumps: u64) {
        code.load_slot(RAX, self.own(slot::STATE));
        code.put(&[0xa8, state::REMEMBERS as u8]); // test al, …
        let remembers = code.jump_if(5);
        code.load_slot(RAX, self.own(slot::AT));
        code.put(&[0x48, 0x85, 0xc0]); // test rax, rax
        let none_open = code.jump_if(4);
        code.put(&[0x48, 0x39, 0xc2]); // cmp rdx, rax
        let below = code.jump_if(2);
        code.land(remembers);
        gates::compare_slot(code, self.slots, at!(times));
        let no_table = code.jump_if(4);
        read_counter(code);
        code.move_register(RDX, RAX);
        self.help(code, (stamps::other_end, jumps), PUSHED_BYTES);
        [none_open, below, no_table].into_iter().for_each(|hole| code.land(hole));
    }

    /// Calls a function of the engine. Its arguments are the region's number with `mark` set in it, the return
    /// address's place, beyond this many pushed bytes, and the value in `rdx`. Takes `rax`.
    fn help(&self, code: &mut Code, (function, mark): (Help, u64), pushed_bytes: i32) {
        code.push(RDI);
        code.push(RSI);
        code.lea_plus(RSI, RSP, pushed_bytes + 16);
        code.move_value(RDI, self.region as u64 | mark);
        code.put(&gates::calls(function as *const () as u64).bytes);
        code.put(&[0x5e, 0x5f]); // pop rsi; pop rdi
    }

    /// Notes the longest call until now: its cycles are in `rax`, the table in `rdx`.
    fn mark(&self, code: &mut Code) {
        code.with_memory(0x89, RAX.0, self.word(RDX, None, timed::MOST));
        code.with_memory(0x8b, RCX.0, self.word(RDX, None, timed::MARKS));
        code.put(&[0x83, 0xe1, timed::MOST_MARKS as u8 - 1]); // and ecx, …
        code.lea(RCX, Address { base: Some(RCX), index: Some((RCX, 2)), distance: 0 });
        code.lea(RSI, self.word(RDX, Some(RCX), timed::FIRST_MARK));
        self.increment(code, self.word(RDX, None, timed::MARKS));
        code.store(RSI, 8, RAX);
        code.load_slot(RCX, self.own(slot::BEGUN));
        code.store(RSI, 0, RCX);
        code.push(RAX);
        code.push(RDX);
        match knows_processor() {
            true => code.put(&[0x0f, 0x01, 0xf9]), // rdtscp
            false => code.move_value(RCX, u64::MAX),
        }
        code.put(&[0x5a, 0x58]); // pop rdx; pop rax
        code.store(RSI, 16, RCX);
    }

    /// A jump for when timing has stopped.
    fn when_off(&self, code: &mut Code, register: Gpr) -> usize {
        code.move_value(register, self.is_on);
        code.put(&[0x80, 0x38 | register.0, 0]); // cmp byte ptr [register], 0
        code.jump_if(4)
    }
}

fn save(code: &mut Code) {
    code.push(RAX);
    code.push(RDX);
    code.put(&[0x9f, 0x0f, 0x90, 0xc0, 0x50]); // lahf; seto al; push rax
}

fn restore(code: &mut Code) {
    code.put(&[0x58, 0x04, 0x7f, 0x9e, 0x5a, 0x58]); // pop rax; add al, 127; sahf; pop rdx; pop rax
}

/// Reads the counter once all instructions before have ended: a load that misses belongs to the side of the reading on which
/// it stands. Without the fence the processor reads the counter while it waits for the load.
fn read_counter(code: &mut Code) {
    code.put(&[0x0f, 0xae, 0xe8]); // lfence
    code.put(&[0x0f, 0x31, 0x48, 0xc1, 0xe2, 0x20, 0x48, 0x09, 0xd0]); // rdtsc; shl rdx, 32; or rax, rdx
}

/// Whether the processor reports its number with its counter.
fn knows_processor() -> bool {
    std::arch::x86_64::__cpuid(0x8000_0001).edx & 1 << 27 != 0
}
