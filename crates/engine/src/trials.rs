//! What is done to the caches before some of the calls that are timed.
//!
//! The code of an entry counts calls down. For the call at which it arrives at 0, [`draw`] draws what is done before it,
//! does that, and draws when the next call is: a lot follows from the one before, so that the same seed gives the same
//! lots. What takes long is followed by a rest without lots. Calls that were drawn are kept one by one.
//!
//! This is assembly since it runs on the program's stack at any call: it takes six words of it, and uses general
//! registers alone, which it leaves as they were.

use crate::assembly::{Address, Code, Gpr, RAX, RCX, RDX, RSP};
use crate::engine::Engine;
use crate::maps::{self, Mapping};
use crate::{stamps, system};
use lineup_recording::native::timed::{self, Arm, trial};
use lineup_recording::native::word;
use std::arch::global_asm;
use std::mem::offset_of;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of what the processor flushes at once.
const LINE_BYTES: u64 = 64;
const PAGE_BYTES: usize = 4096;
/// Between where the lots of two threads, or regions, begin: lots of one are this odd number's multiples apart from no
/// others that are drawn in practice.
const APART: u64 = 0xd134_2543_de82_ef95;

/// Memory that is read to push other data out of the caches, or 0.
static SWEPT: AtomicU64 = AtomicU64::new(0);
/// So many times the cycles of reading it once.
static DEAREST: AtomicU64 = AtomicU64::new(u64::MAX);
const TIMES_DEARER: u64 = 4;
/// How often it is read to find out.
const TRIES: usize = 3;

/// What the assembly needs to know of one entry.
#[repr(C)]
struct Lots {
    /// Calls up to the next that is drawn are one to so many.
    span: u64,
    /// Half of it, rounded up.
    every: u64,
    /// How many of the next words are arms.
    choices: u64,
    choice: [u64; Arm::ALL.len()],
    swept: u64,
    swept_end: u64,
    /// See [`word::REST`].
    rest: u64,
    /// What is done before a call counts as so many cycles at most: the rest is other programs'.
    dearest: u64,
    /// Where code begins and ends that is flushed, pair after pair, and 0 behind the last.
    ranges: u64,
    /// The word that counts trials, and where they lie.
    trials_word: u64,
    trials: u64,
    /// A trial's tag without its arm.
    tag: u64,
}

global_asm!(
    ".pushsection .text",
    ".globl lineup_engine_draw",
    ".hidden lineup_engine_draw",
    // rax: the region's words of the thread; rcx: its `Lots`; rdx: where the call's return address lies, and is left so.
    "lineup_engine_draw:",
    "push rsi",
    "push rdi",
    "push r8",
    "push r11",
    "mov rdi, rax",
    "mov r8, rdx",
    // In a signal handler: the call that it has interrupted was drawn, and has begun or not ended quite.
    "cmp qword ptr [rdi + 8 * {trial}], 0",
    "jne 27f",
    "mov rsi, [rcx + {trials_word}]",
    "cmp qword ptr [rsi], {most}",
    "jae 28f",
    "rdtsc",
    "shl rdx, 32",
    "or rax, rdx",
    "mov r11, rax",
    "cmp rax, [rdi + 8 * {rest_until}]",
    "jb 27f",
    // Splitmix64, as the tracer draws.
    "movabs rax, 0x9e3779b97f4a7c15",
    "add rax, [rdi + 8 * {lots}]",
    "mov [rdi + 8 * {lots}], rax",
    "mov rsi, rax",
    "shr rax, 30",
    "xor rsi, rax",
    "movabs rax, 0xbf58476d1ce4e5b9",
    "imul rsi, rax",
    "mov rax, rsi",
    "shr rax, 27",
    "xor rsi, rax",
    "movabs rax, 0x94d049bb133111eb",
    "imul rsi, rax",
    "mov rax, rsi",
    "shr rax, 31",
    "xor rsi, rax",
    // The lower half tells the next call, the upper half the arm.
    "mov eax, esi",
    "imul rax, [rcx + {span}]",
    "shr rax, 32",
    "inc rax",
    "mov [rdi + 8 * {countdown}], rax",
    "shr rsi, 32",
    "imul rsi, [rcx + {choices}]",
    "shr rsi, 32",
    "mov rsi, [rcx + 8 * rsi + {choice}]",
    "inc qword ptr [rdi + 8 * {drawn}]",
    "test sil, {data}",
    "jz 23f",
    "mov rax, [rcx + {swept}]",
    "24: mov rdx, [rax]",
    "add rax, {line}",
    "cmp rax, [rcx + {swept_end}]",
    "jb 24b",
    "mfence",
    // Code comes last: the processor fetches ahead along the branches that it foresees.
    "23: test sil, {code}",
    "jz 25f",
    "mov rdx, [rcx + {ranges}]",
    "21: mov rax, [rdx]",
    "test rax, rax",
    "jz 25f",
    "22: clflush [rax]",
    "add rax, {line}",
    "cmp rax, [rdx + 8]",
    "jb 22b",
    "add rdx, 16",
    "jmp 21b",
    "25: mfence",
    "rdtsc",
    "shl rdx, 32",
    "or rax, rdx",
    "mov rdx, rax",
    "sub rdx, r11",
    "add [rdi + 8 * {spent}], rdx",
    "cmp rdx, [rcx + {dearest}]",
    "cmova rdx, [rcx + {dearest}]",
    "imul rdx, [rcx + {rest}]",
    "test rdx, rdx",
    "jz 26f",
    "add rdx, rax",
    "mov [rdi + 8 * {rest_until}], rdx",
    // From here on no handler draws.
    "26: mov [rdi + 8 * {trial}], r8",
    "mov [rdi + 8 * {arm}], rsi",
    "20: mov rdx, r8",
    "pop r11",
    "pop r8",
    "pop rdi",
    "pop rsi",
    "ret",
    // It is too early.
    "27: mov rax, [rcx + {every}]",
    "mov [rdi + 8 * {countdown}], rax",
    "jmp 20b",
    // No more are kept: never again.
    "28: movabs rax, 0x7fffffffffffffff",
    "mov [rdi + 8 * {countdown}], rax",
    "jmp 20b",
    ".globl lineup_engine_note_trial",
    ".hidden lineup_engine_note_trial",
    // rax: cycles; rcx: the region's `Lots`; rdx: its words of the thread. Takes these and rsi.
    "lineup_engine_note_trial:",
    "push rdi",
    "push r8",
    "mov r8, [rdx + 8 * {arm}]",
    "mov qword ptr [rdx + 8 * {trial}], 0",
    "mov rdi, [rcx + {trials_word}]",
    "mov esi, 1",
    "lock xadd [rdi], rsi",
    "cmp rsi, {most}",
    "jae 29f",
    "shl rsi, 4",
    "add rsi, [rcx + {trials}]",
    "mov [rsi + 8], rax",
    "or r8, [rcx + {tag}]",
    "mov [rsi], r8",
    "29: pop r8",
    "pop rdi",
    "ret",
    ".popsection",
    most = const trial::MOST,
    line = const LINE_BYTES,
    code = const Arm::FlushCode as u8,
    data = const Arm::FlushData as u8,
    trial = const timed::TRIAL,
    arm = const timed::ARM,
    countdown = const timed::COUNTDOWN,
    rest_until = const timed::REST_UNTIL,
    lots = const timed::LOTS,
    drawn = const timed::DRAWN,
    spent = const timed::SPENT,
    span = const offset_of!(Lots, span),
    every = const offset_of!(Lots, every),
    choices = const offset_of!(Lots, choices),
    choice = const offset_of!(Lots, choice),
    swept = const offset_of!(Lots, swept),
    swept_end = const offset_of!(Lots, swept_end),
    rest = const offset_of!(Lots, rest),
    dearest = const offset_of!(Lots, dearest),
    ranges = const offset_of!(Lots, ranges),
    trials_word = const offset_of!(Lots, trials_word),
    trials = const offset_of!(Lots, trials),
    tag = const offset_of!(Lots, tag),
);
const _: () = assert!(8 * trial::WORDS == 1 << 4 && trial::TAG == 0 && trial::CYCLES == 1);
// All is flushed by whoever has both bits.
const _: () = assert!(Arm::FlushBoth as u64 == Arm::FlushCode as u64 | Arm::FlushData as u64);

unsafe extern "C" {
    fn lineup_engine_draw();
    fn lineup_engine_note_trial();
}

fn arms(engine: &Engine) -> impl Iterator<Item = Arm> {
    let arms = engine.shared.word(word::ARMS).load(Ordering::Relaxed);
    Arm::ALL.into_iter().filter(move |arm| arms >> arm.number() & 1 == 1)
}

/// Makes the memory that is read before calls, where that is wanted. False when there is none.
pub(crate) fn prepare(engine: &Engine) -> bool {
    if !arms(engine).any(Arm::flushes_data) {
        return true;
    }
    let bytes = engine.shared.word(word::SWEPT_BYTES).load(Ordering::Relaxed) as usize;
    let Some(memory) = system::memory(bytes) else { return false };
    for page in (0..bytes).step_by(PAGE_BYTES) {
        // Each page has memory of its own then. SAFETY: our own memory, and within it.
        unsafe { memory.add(page).write_volatile(1) };
    }
    SWEPT.store(memory as u64, Ordering::Relaxed);
    let cycles = (0..TRIES).map(|_| sweep(memory as u64, bytes)).min().unwrap_or(u64::MAX);
    DEAREST.store(cycles.saturating_mul(TIMES_DEARER), Ordering::Relaxed);
    true
}

/// Reads memory as the assembly does before calls; how many cycles that takes.
fn sweep(memory: u64, bytes: usize) -> u64 {
    let begun = stamps::counter();
    // SAFETY: our own memory, which is read; a line at a time up to its end, which is a multiple of lines.
    unsafe {
        std::arch::asm!(
            "2: mov {word}, [{at}]",
            "add {at}, {line}",
            "cmp {at}, {end}",
            "jb 2b",
            "mfence",
            at = inout(reg) memory => _,
            end = in(reg) memory + bytes as u64,
            word = out(reg) _,
            line = const LINE_BYTES,
            options(nostack, readonly),
        );
    }
    stamps::counter().wrapping_sub(begun)
}

/// Where the lots of one entry are, whose function has these parts; `None` when nothing is drawn.
pub(crate) fn lots(engine: &Engine, region: usize, pc: u64, parts: &[Range<u64>]) -> Option<u64> {
    let word = |number| engine.shared.word(number).load(Ordering::Relaxed);
    let mut choice = [0; Arm::ALL.len()];
    let arms = arms(engine).map(Arm::number);
    let choices = choice.iter_mut().zip(arms).map(|(choice, arm)| *choice = arm).count();
    if choices == 0 {
        return None;
    }
    let every = word(word::DRAWN_EVERY).clamp(1, u64::from(u32::MAX) / 2);
    let maps = maps::read();
    let own = maps.iter().find(|mapping| mapping.range.contains(&pc));
    let flushed = engine.shared.flushed(region);
    let code = if flushed.is_empty() { within(own, parts) } else { of_lines(&flushed) };
    let lines = code.iter().flat_map(|part| [part.start & !(LINE_BYTES - 1), part.end]);
    let ranges: Vec<u64> = lines.chain([0]).collect();
    let swept = SWEPT.load(Ordering::Relaxed);
    let lots = Lots {
        span: 2 * every - 1,
        every,
        choices: choices as u64,
        choice,
        swept,
        swept_end: swept + word(word::SWEPT_BYTES),
        rest: word(word::REST),
        dearest: DEAREST.load(Ordering::Relaxed),
        ranges: Vec::leak(ranges).as_ptr() as u64,
        trials_word: engine.shared.word(word::TRIALS).as_ptr() as u64,
        trials: engine.shared.trials() as u64,
        tag: 1 << trial::IS_WRITTEN_AT | (region as u64) << trial::REGION_AT,
    };
    Some(Box::leak(Box::new(lots)) as *const Lots as u64)
}

/// The parts that lie in this mapping: those of another file may be unmapped while lots are drawn.
fn within(own: Option<&Mapping>, parts: &[Range<u64>]) -> Vec<Range<u64>> {
    let Some(own) = own.map(|own| &own.range) else { return Vec::new() };
    parts.iter().filter(|part| own.start <= part.start && part.end <= own.end).cloned().collect()
}

/// Lines in order, those that follow each other as one.
fn of_lines(lines: &[u64]) -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for line in lines {
        match ranges.last_mut().filter(|last| last.end == *line) {
            Some(last) => last.end += LINE_BYTES,
            None => ranges.push(*line..line + LINE_BYTES),
        }
    }
    ranges
}

/// A thread takes over a table of times: where its lots begin, if nobody had it before.
pub(crate) fn begin(engine: &Engine, number: usize, table: *mut u8) {
    let word = |number| engine.shared.word(number).load(Ordering::Relaxed);
    for region in 0..timed::STAMPS {
        // SAFETY: within the thread's own table.
        let words = unsafe { table.cast::<u64>().add(region * timed::WORDS) };
        let begins = (number * timed::REGIONS + region) as u64;
        // SAFETY: as above.
        unsafe {
            if *words.add(timed::COUNTDOWN) == 0 {
                *words.add(timed::LOTS) = word(word::SEED).wrapping_add(begins.wrapping_mul(APART));
                *words.add(timed::COUNTDOWN) = word(word::DRAWN_EVERY).max(1);
            }
        }
    }
}

/// A thread leaves its table: the calls that it has not ended are left.
pub(crate) fn end(table: *mut u8) {
    for region in 0..timed::STAMPS {
        // SAFETY: within the table, which is the thread's own.
        unsafe { *table.cast::<u64>().add(region * timed::WORDS + timed::TRIAL) = 0 };
    }
}

/// Code that calls one of the assembly's functions, with the region's words in `words` and the address of its lots.
fn calls(code: &mut Code, words: Gpr, region: usize, lots: u64, function: unsafe extern "C" fn()) {
    let distance = (8 * region * timed::WORDS) as i32;
    code.lea(words, Address { base: Some(words), index: None, distance });
    code.move_value(RCX, lots);
    code.put(&[0xff, 0x15, 2, 0, 0, 0, 0xeb, 8]); // call [rip + 2]; jmp over it
    code.put(&(function as *const () as u64).to_le_bytes());
    // The program's frames that come to lie there need not be written to: nobody is to find the address of this code in
    // them when the engine leaves.
    code.store_value(RSP, -8, 0);
}

/// Code that draws for a call: the thread's table is in `rax`, which it changes, and where the return address lies in `rdx`.
pub(crate) fn draw(code: &mut Code, region: usize, lots: u64) {
    code.push(RCX);
    calls(code, RAX, region, lots, lineup_engine_draw);
    code.put(&[0x59]); // pop rcx
}

/// Code that begins anew: nothing behind it was fetched before all before it is over. A fence would let the processor fetch
/// the function's first lines while what was done is still under way. Of what serializes, `cpuid` leaves a virtual
/// machine, and `serialize` is in few processors; so it returns from an interrupt that was none. Nothing may do that
/// while the flag of nested tasks is set, which programs can set. Takes `rax`.
pub(crate) fn serialize(code: &mut Code) {
    code.put(&[0x9c, 0x9c, 0x81, 0x24, 0x24, 0xff, 0xbf, 0xff, 0xff, 0x9d]); // pushfq; pushfq; and …, !NT; popfq
    code.put(&[0x8c, 0xd0, 0x50]); // mov eax, ss; push rax
    code.lea_plus(RAX, RSP, 8);
    code.push(RAX);
    code.put(&[0x9c, 0x8c, 0xc8, 0x50]); // pushfq; mov eax, cs; push rax
    let behind = code.lea_hole(RAX);
    code.push(RAX);
    code.put(&[0x48, 0xcf]); // iretq
    code.land(behind);
    // As in `calls`: the address does not stay.
    code.store_value(RSP, -40, 0);
    code.put(&[0x9d]); // popfq
}

/// Code that keeps a call that was drawn: its cycles are in `rax`, the thread's table in `rdx`. Changes both, `rcx` and
/// `rsi`.
pub(crate) fn note(code: &mut Code, region: usize, lots: u64) {
    calls(code, RDX, region, lots, lineup_engine_note_trial);
}
