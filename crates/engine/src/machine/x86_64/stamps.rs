//! Timing calls: code that notes when a call of a function begins and ends.
//!
//! The entry's code and that of every end run on the program's stack, below its own, and leave flags and registers as
//! they were; return addresses stay where they are. A call inside a call of the same region is counted and not timed. One
//! that was left by an exception or a jump is found out by the next: the stack pointer then lies no lower.

use super::assembly::{Address, Code, Gpr, RAX, RCX, RSP};
use super::{gates, trials};
use crate::engine::Engine;
use crate::slots::at;
use crate::stamps::first_call;
use lineup_recording::native::timed;
use std::ops::Range;

const RDX: Gpr = Gpr(2);
const RSI: Gpr = Gpr(6);
/// What the code pushes first: two registers and the flags.
const PUSHED_BYTES: i32 = 24;
/// Where the code of one region looks.
#[derive(Clone, Copy)]
pub(crate) struct Stamps {
    slots: i32,
    is_on: u64,
    region: usize,
    /// See [`crate::trials::lots`].
    lots: Option<u64>,
}

impl Stamps {
    /// Of a region, for an entry whose function has these parts.
    pub(crate) fn new(engine: &Engine, region: u64, pc: u64, parts: &[Range<u64>]) -> Stamps {
        let region = usize::try_from(region).unwrap_or(usize::MAX).min(timed::STAMPS);
        let lots = crate::trials::lots(engine, region, pc, parts);
        Stamps { slots: engine.slots, is_on: engine.is_on.as_ptr() as u64, region, lots }
    }

    fn table(&self) -> i32 {
        self.slots + at!(times)
    }

    /// The slot with where the return address lies; behind it that with the time.
    fn own(&self) -> i32 {
        self.slots + at!(own.timed) + 16 * self.region as i32
    }

    fn word(&self, base: Gpr, index: Option<Gpr>, field: usize) -> Address {
        let distance = 8 * (self.region * timed::WORDS + field) as i32;
        Address { base: Some(base), index: index.map(|index| (index, 8)), distance }
    }

    fn increment(&self, code: &mut Code, address: Address) {
        code.with_memory(0xff, 0, address);
    }

    /// At an entry, before what was there.
    pub(crate) fn begin(&self) -> Vec<u8> {
        let mut code = Code::default();
        save(&mut code);
        let off = self.when_off(&mut code, RAX);
        gates::compare_slot(&mut code, self.slots, at!(times));
        let known = code.jump_if(5);
        code.put(&gates::calls(first_call as *const () as u64).bytes);
        code.land(known);
        code.load_slot(RAX, self.own());
        code.put(&[0x48, 0x85, 0xc0]); // test rax, rax
        let fresh = code.jump_if(4);
        code.lea_plus(RDX, RSP, PUSHED_BYTES);
        code.put(&[0x48, 0x39, 0xc2]); // cmp rdx, rax
        let inner = code.jump_if(2);
        code.load_slot(RAX, self.table());
        self.increment(&mut code, self.word(RAX, None, timed::LEFT));
        if self.lots.is_some() {
            code.store_value(RAX, self.word(RAX, None, timed::TRIAL).distance, 0);
        }
        code.land(fresh);
        code.lea_plus(RDX, RSP, PUSHED_BYTES);
        if let Some(lots) = self.lots {
            self.draw(&mut code, lots);
        }
        code.store_slot(self.own(), RDX);
        read_counter(&mut code);
        code.store_slot(self.own() + 8, RAX);
        let begun = code.jump();
        code.land(inner);
        code.load_slot(RAX, self.table());
        self.increment(&mut code, self.word(RAX, None, timed::INNER));
        code.land(begun);
        code.land(off);
        restore(&mut code);
        code.bytes
    }

    /// Counts the calls down to the next that is drawn; where the return address lies is in `rdx`.
    fn draw(&self, code: &mut Code, lots: u64) {
        code.load_slot(RAX, self.table());
        code.with_memory(0xff, 1, self.word(RAX, None, timed::COUNTDOWN)); // dec
        let passed = code.jump_if(5);
        trials::draw(code, self.region, lots);
        // What the stamps access is in the caches again before the time begins.
        code.load_slot(RAX, self.own());
        trials::serialize(code);
        code.land(passed);
    }

    /// Where a call ends, before it returns or jumps away.
    pub(crate) fn end(&self, jumps: bool) -> Vec<u8> {
        let mut code = Code::default();
        save(&mut code);
        // Before anything of the thread's is looked at: it may have another base by then, and may not read the counter.
        let off = self.when_off(&mut code, RAX);
        code.lea_plus(RDX, RSP, PUSHED_BYTES);
        code.with_slot(0x3b, RDX, self.own()); // cmp
        let other = code.jump_if(5);
        if self.lots.is_some() {
            // A last load that misses is the call's.
            code.put(&[0x0f, 0xae, 0xe8]); // lfence
        }
        read_counter(&mut code);
        code.push(RCX);
        code.push(RSI);
        code.with_slot(0x2b, RAX, self.own() + 8); // sub
        // At once: a handler of a signal may call the function as well.
        code.clear_slot(self.own());
        code.load_slot(RDX, self.table());
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
        code.put(&[0x5e, 0x59]); // pop rsi; pop rcx
        code.land(other);
        code.land(off);
        restore(&mut code);
        code.bytes
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
        code.load_slot(RCX, self.own() + 8);
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

    /// A jump for when nothing is timed any more.
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

fn read_counter(code: &mut Code) {
    code.put(&[0x0f, 0x31, 0x48, 0xc1, 0xe2, 0x20, 0x48, 0x09, 0xd0]); // rdtsc; shl rdx, 32; or rax, rdx
}

/// Whether the processor tells its number with its counter.
fn knows_processor() -> bool {
    std::arch::x86_64::__cpuid(0x8000_0001).edx & 1 << 27 != 0
}
