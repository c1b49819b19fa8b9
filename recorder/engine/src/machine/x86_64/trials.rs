//! Changes of the caches before some of the timed calls.
//!
//! See [`crate::timing::trials`]. This is assembly since it runs on the program's stack at any call: it takes six words
//! of it, and uses general registers alone, which it restores.

use super::assembly::{Address, Code, Gpr, RAX, RCX, RDX, RSP};
use crate::timing::trials::SamplingData;
use lineup_recording::native::timed::{self, Arm, trial};
use std::arch::{asm, global_asm};
use std::mem::offset_of;

/// The number of bytes that the processor flushes at once.
pub(crate) const LINE_BYTES: u64 = 64;

global_asm!(
    ".pushsection .text",
    ".globl lineup_engine_draw",
    ".hidden lineup_engine_draw",
    // rax: the region's words of the thread; rcx: its `SamplingData`; rdx: the place of the call's return address,
    // which is preserved.
    "lineup_engine_draw:",
    "push rsi",
    "push rdi",
    "push r8",
    "push r11",
    "mov rdi, rax",
    "mov r8, rdx",
    // In a signal handler: the interrupted call was sampled, and has begun or not quite ended.
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
    // Splitmix64, as in the tracer's sampling.
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
    // The lower half selects the next call, the upper half the arm.
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
    // Code comes last: the processor fetches ahead along predicted branches.
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
    // From here on no handler samples a call.
    "26: mov [rdi + 8 * {trial}], r8",
    "mov [rdi + 8 * {arm}], rsi",
    "20: mov rdx, r8",
    "pop r11",
    "pop r8",
    "pop rdi",
    "pop rsi",
    "ret",
    // Not yet.
    "27: mov rax, [rcx + {every}]",
    "mov [rdi + 8 * {countdown}], rax",
    "jmp 20b",
    // No room for more trials: never again.
    "28: movabs rax, 0x7fffffffffffffff",
    "mov [rdi + 8 * {countdown}], rax",
    "jmp 20b",
    ".globl lineup_engine_note_trial",
    ".hidden lineup_engine_note_trial",
    // rax: cycles; rcx: the region's `SamplingData`; rdx: its words of the thread. Takes these and rsi.
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
    span = const offset_of!(SamplingData, span),
    every = const offset_of!(SamplingData, every),
    choices = const offset_of!(SamplingData, choices),
    choice = const offset_of!(SamplingData, choice),
    swept = const offset_of!(SamplingData, swept),
    swept_end = const offset_of!(SamplingData, swept_end),
    rest = const offset_of!(SamplingData, rest),
    dearest = const offset_of!(SamplingData, dearest),
    ranges = const offset_of!(SamplingData, ranges),
    trials_word = const offset_of!(SamplingData, trials_word),
    trials = const offset_of!(SamplingData, trials),
    tag = const offset_of!(SamplingData, tag),
);
const _: () = assert!(8 * trial::WORDS == 1 << 4);

unsafe extern "C" {
    fn lineup_engine_draw();
    fn lineup_engine_note_trial();
}

/// See [`crate::machine::Timing::sweep`].
///
/// # Safety
/// All of it must be readable.
pub(crate) unsafe fn sweep(from: u64, to: u64) {
    // SAFETY: the caller's promise.
    unsafe {
        asm!(
            "2: mov {word}, [{at}]",
            "add {at}, {line}",
            "cmp {at}, {end}",
            "jb 2b",
            "mfence",
            at = inout(reg) from => _,
            end = in(reg) to,
            word = out(reg) _,
            line = const LINE_BYTES,
            options(nostack, readonly),
        );
    }
}

/// Code that calls one of the assembly's functions, with the region's words in `words` and the address of its lots.
fn calls(code: &mut Code, words: Gpr, region: usize, lots: u64, function: unsafe extern "C" fn()) {
    let distance = (8 * region * timed::WORDS) as i32;
    code.lea(words, Address { base: Some(words), index: None, distance });
    code.move_value(RCX, lots);
    code.put(&[0xff, 0x15, 2, 0, 0, 0, 0xeb, 8]); // call [rip + 2]; jmp over it
    code.put(&(function as *const () as u64).to_le_bytes());
    // The program's later frames need not overwrite these words: no address of this code may remain in them when the
    // engine leaves.
    code.store_value(RSP, -8, 0);
}

/// Code that samples for a call: `rax` holds the thread's table, and is changed; `rdx` holds the return address's
/// place.
pub(crate) fn draw(code: &mut Code, region: usize, lots: u64) {
    code.push(RCX);
    calls(code, RAX, region, lots, lineup_engine_draw);
    code.put(&[0x59]); // pop rcx
}

/// Code that serializes: the processor fetches nothing after it until all before it is over. A fence would let the
/// processor fetch the function's first lines while the trial is still under way. Of the serializing instructions,
/// `cpuid` leaves a virtual machine, and few processors have `serialize`. So the code uses a return from an interrupt,
/// without an interrupt. That is not allowed while the flag of nested tasks is set, which programs can set. Takes
/// `rax`.
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
    // As in `calls`: the address must not remain.
    code.store_value(RSP, -40, 0);
    code.put(&[0x9d]); // popfq
}

/// Code that keeps a sampled call: its cycles are in `rax`, the thread's table in `rdx`. Changes both, `rcx` and `rsi`.
pub(crate) fn note(code: &mut Code, region: usize, lots: u64) {
    calls(code, RDX, region, lots, lineup_engine_note_trial);
}
