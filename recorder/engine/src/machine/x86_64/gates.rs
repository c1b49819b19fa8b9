//! The code between the program, the cache and the engine: made once, since it names the thread's slots by their
//! distance.

use crate::machine::x86_64::assembly::{Code, Gpr, JRCXZ, RAX, RCX, RSP};
use crate::machine::x86_64::general_registers::LOG;
use crate::machine::{EntryData, Led, Places};
use crate::threads::budget::{SPENT_COUNT, SPENT_SHIFT};
use crate::threads::slots::{at, reason};
use lineup_recording::native::head::Region;
use std::mem::offset_of;
use std::ops::Range;

/// In the order in which they are pushed.
const PUSHED: [u8; 15] = [0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
/// x87, SSE, AVX, MPX and AVX-512. Protection keys stay unchanged; so do matrices, which the engine does not use.
const VECTOR_STATE: u32 = 0xff;
/// Bytes of that state, rounded up.
pub(crate) const VECTOR_BYTES: usize = 4096;
/// Place after that state, for the lower parts of the first sixteen registers while the engine notes an allocation.
const LOWER_PARTS: i32 = 3072;
const _: () = assert!(LOWER_PARTS as usize + 16 * 16 <= VECTOR_BYTES);

fn vectors(code: &mut Code, instruction: &[u8]) {
    code.move_value(RAX, u64::from(VECTOR_STATE));
    code.put(&[0x31, 0xd2]); // xor edx, edx
    code.put(instruction);
}

/// Keeps the lower parts of the first sixteen vector registers, or restores them.
fn lower_parts(code: &mut Code, opcode: u8) {
    for register in 0..16u8 {
        if register >= 8 {
            code.put(&[0x44]);
        }
        code.put(&[0x0f, opcode, 0x83 | (register & 7) << 3]); // movaps [rbx + distance], xmm, or the other way
        code.put(&(LOWER_PARTS + 16 * i32::from(register)).to_le_bytes());
    }
}

/// One of two pieces of code, by whether an allocator hands over.
fn by_reason(
    code: &mut Code,
    slots: i32,
    of_allocation: impl FnOnce(&mut Code),
    other: impl FnOnce(&mut Code),
) {
    compare_slot_with(code, slots, at!(reason), reason::ALLOCATION as u8);
    let differs = code.jump_short(&[0x75]);
    of_allocation(code);
    let over = code.jump_short(&[0xeb]);
    code.land_short(differs);
    other(code);
    code.land_short(over);
}

pub(crate) fn compare_slot(code: &mut Code, slots: i32, distance: i32) {
    compare_slot_with(code, slots, distance, 0);
}

fn compare_slot_with(code: &mut Code, slots: i32, distance: i32, value: u8) {
    code.put(&[0x64, 0x48, 0x83, 0x3c, 0x25]); // cmp qword ptr fs:[slot], value
    code.put(&(slots + distance).to_le_bytes());
    code.put(&[value]);
}

/// The registers that [`unmask`] keeps, in the order of `kept`: a system call takes or changes them.
pub(crate) const KEPT: [u8; 7] = [0, 1, 2, 6, 7, 10, 11];

/// Restores the mask of signals and continues at the address in the slot `scratch`. The second value is the offset of
/// the system call's end, from which on signals are delivered.
pub(crate) fn unmask(slots: i32) -> (Vec<u8>, usize) {
    let mut code = Code::default();
    let kept = |number: usize| slots + at!(kept) + 8 * number as i32;
    KEPT.iter().enumerate().for_each(|(number, register)| code.store_slot(kept(number), Gpr(*register)));
    code.store_slot_value(slots + at!(deferred), 0);
    code.load_slot(Gpr(6), 0);
    code.lea_plus(Gpr(6), Gpr(6), slots + at!(mask));
    code.move_value(Gpr(7), libc::SIG_SETMASK as u64);
    code.move_value(Gpr(2), 0);
    code.move_value(Gpr(10), 8);
    code.move_value(RAX, libc::SYS_rt_sigprocmask as u64);
    code.put(&[0x0f, 0x05]);
    let delivers = code.here();
    KEPT.iter().enumerate().for_each(|(number, register)| code.load_slot(Gpr(*register), kept(number)));
    code.jump_to_slot(slots + at!(scratch));
    (code.bytes, delivers)
}

/// In place of a system call: calls a function with the registers. The function makes the call, unless its number is
/// given: then it is made after the function has returned, with unchanged registers. Continues at `back`.
pub(crate) fn in_place_of_call(function: u64, number: Option<u32>, back: u64) -> Vec<u8> {
    let mut code = calls(function);
    if let Some(number) = number {
        code.move_value(RAX, u64::from(number));
        code.put(&[0x0f, 0x05]);
    }
    code.jump_far(back);
    code.bytes
}

/// In place of the instruction before a system call of any number: calls of some numbers lead to functions, as above,
/// and continue at `back`. Other calls are made at `call`, their own place: a thread may wait in one for as long as it
/// lives.
pub(crate) fn in_place_of_any_call(before: &[u8], led: &[Led], (call, back): (u64, u64)) -> Vec<u8> {
    const EQUAL: u8 = 4;
    let mut code = Code::default();
    code.put(before);
    let mut holes = Vec::new();
    for (number, ..) in led {
        code.put(&[0x48, 0x3d]); // cmp rax, number
        code.put(&(*number as u32).to_le_bytes());
        holes.push(code.jump_if(EQUAL));
    }
    code.jump_far(call);
    for ((number, function, goes_on), hole) in led.iter().zip(holes) {
        code.land(hole);
        code.put(&in_place_of_call(*function, goes_on.then_some(*number as u32), back));
    }
    code.bytes
}

/// Calls a function with all registers, and restores them.
pub(crate) fn calls(function: u64) -> Code {
    const ROOM: i32 = VECTOR_BYTES as i32 + 64;
    let mut code = Code::default();
    code.lea_plus(RSP, RSP, -128);
    PUSHED.iter().for_each(|register| code.push(Gpr(*register)));
    code.put(&[0x9c, 0xfc]); // pushfq; cld
    code.move_register(Gpr(5), RSP);
    code.lea_plus(RSP, RSP, -ROOM);
    code.put(&[0x48, 0x83, 0xe4, 0xc0]); // and rsp, -64
    for word in 0..8 {
        // The header that the processor expects of the state.
        code.store_value(RSP, 512 + 8 * word, 0);
    }
    vectors(&mut code, &[0x48, 0x0f, 0xae, 0x24, 0x24]); // xsave64 [rsp]
    code.move_register(Gpr(7), Gpr(5));
    code.move_value(RAX, function);
    code.put(&[0xff, 0xd0]); // call rax
    vectors(&mut code, &[0x48, 0x0f, 0xae, 0x2c, 0x24]); // xrstor64 [rsp]
    code.move_register(RSP, Gpr(5));
    code.put(&[0x9d]); // popfq
    for register in PUSHED.iter().rev() {
        code.put(&[0x40 | register >> 3, 0x58 | register & 7]);
    }
    code.lea_plus(RSP, RSP, 128);
    code
}

/// As the gate, but with signals blocked while the engine runs: for signal handlers on a stack of their own. There, the
/// system would take the stack for free while the engine is on its own. The next handler would then overwrite the first
/// one's data there.
pub(crate) fn masking(slots: i32, gate: u64) -> Vec<u8> {
    let mut code = Code::default();
    let kept = |number: usize| slots + at!(kept) + 8 * number as i32;
    KEPT.iter().enumerate().for_each(|(number, register)| code.store_slot(kept(number), Gpr(*register)));
    code.load_slot(Gpr(6), 0);
    code.lea_plus(Gpr(2), Gpr(6), slots + at!(before_all));
    code.lea_plus(Gpr(6), Gpr(6), slots + at!(all));
    code.move_value(Gpr(7), libc::SIG_SETMASK as u64);
    code.move_value(Gpr(10), 8);
    code.move_value(RAX, libc::SYS_rt_sigprocmask as u64);
    code.put(&[0x0f, 0x05]);
    // Sets `deferred`, as a waiting signal does: the mask is restored when the engine is done. A signal may have come
    // just now.
    code.load_slot(RCX, slots + at!(deferred));
    let none = code.jump_short(JRCXZ);
    let over = code.jump_short(&[0xeb]);
    code.land_short(none);
    code.load_slot(RCX, slots + at!(before_all));
    code.store_slot(slots + at!(mask), RCX);
    code.store_slot_value(slots + at!(deferred), 1);
    code.land_short(over);
    KEPT.iter().enumerate().for_each(|(number, register)| code.load_slot(Gpr(*register), kept(number)));
    code.jump_far(gate);
    code.bytes
}

/// From the cache to the engine and back: the program's registers are unchanged, and the reason is in the slots. Also
/// returns the offset from which on a signal must itself see to its delivery.
pub(crate) fn gate(places: &Places, unmask: u64) -> (Vec<u8>, usize) {
    let mut code = Code::default();
    let slot = |distance| places.slots + distance;
    code.store_slot(slot(at!(stack)), RSP);
    code.load_slot(RSP, slot(at!(own_stack)));
    PUSHED.iter().for_each(|register| code.push(Gpr(*register)));
    code.put(&[0x9c]); // pushfq
    code.move_register(Gpr(7), RSP);
    code.load_slot(Gpr(3), slot(at!(vectors)));
    // Allocators are called often. The code that notes the calls is compiled without AVX, and copies by itself. So it
    // changes only the lower parts of sixteen registers, and all others stay unchanged.
    by_reason(
        &mut code,
        places.slots,
        |code| lower_parts(code, 0x29),
        |code| vectors(code, &[0x48, 0x0f, 0xae, 0x23]), // xsave64 [rbx]
    );
    code.put(&[0xfc]); // cld
    code.move_value(RAX, places.engine);
    code.put(&[0xff, 0xd0]); // call rax
    let check = code.here();
    compare_slot(&mut code, places.slots, at!(deferred));
    let none = code.jump_short(&[0x74]);
    code.load_slot(RAX, slot(at!(resume)));
    code.store_slot(slot(at!(scratch)), RAX);
    code.move_value(RAX, unmask);
    code.store_slot(slot(at!(resume)), RAX);
    code.land_short(none);
    by_reason(
        &mut code,
        places.slots,
        |code| lower_parts(code, 0x28),
        |code| vectors(code, &[0x48, 0x0f, 0xae, 0x2b]), // xrstor64 [rbx]
    );
    code.put(&[0x9d]); // popfq
    for register in PUSHED.iter().rev() {
        code.put(&[0x40 | register >> 3, 0x58 | register & 7]); // pop
    }
    code.load_slot(RSP, slot(at!(stack)));
    code.jump_to_slot(slot(at!(resume)));
    (code.bytes, check)
}

/// Gives the first stack back, and continues at the address in the slot `after_first`.
pub(crate) fn release_first(places: &Places) -> Vec<u8> {
    let mut code = Code::default();
    code.store_slot(places.slots + at!(counter), RCX);
    code.move_value(RCX, places.first_lock);
    code.put(&[0xc7, 0x01, 0, 0, 0, 0]); // mov dword ptr [rcx], 0
    code.load_slot(RCX, places.slots + at!(counter));
    code.jump_to_slot(places.slots + at!(after_first));
    code.bytes
}

/// Called by the engine's constructor: the thread continues in the cache where it would continue natively.
pub(crate) fn begin_here(places: &Places, gate: u64) -> Vec<u8> {
    let mut code = Code::default();
    code.put(&[0x58]); // pop rax
    code.store_slot(places.slots + at!(pc), RAX);
    begin(&mut code, places, gate);
    code.bytes
}

/// Start of a thread of a program that is recorded as a whole, after the system call that made it: `rax` is 0, and its
/// slots hold the address to continue at.
pub(crate) fn begin_thread(places: &Places, gate: u64) -> Vec<u8> {
    const R11: Gpr = Gpr(11);
    let mut code = Code::default();
    let kept = |number: i32| places.slots + at!(kept) + 8 * number;
    code.put(&[0x9f, 0x0f, 0x90, 0xc0]); // lahf; seto al
    code.store_slot(kept(0), RAX);
    code.store_slot(kept(1), R11);
    code.store_slot(kept(2), RCX);
    let again = code.here();
    code.move_value(R11, places.first_lock);
    code.put(&[0xb9, 1, 0, 0, 0, 0x41, 0x87, 0x0b, 0x85, 0xc9]); // mov ecx, 1; xchg [r11], ecx; test ecx, ecx
    let got = code.jump_short(&[0x74]);
    // Takes `rcx` and `r11` as well.
    give_way(&mut code, places);
    let back = again as i64 - (code.here() as i64 + 2);
    code.put(&[0xeb, back as u8]);
    code.land_short(got);
    code.load_slot(RCX, kept(2));
    code.load_slot(R11, kept(1));
    code.load_slot(RAX, kept(0));
    code.put(&[0x04, 0x7f, 0x9e]); // add al, 127; sahf
    begin(&mut code, places, gate);
    code.bytes
}

/// Start of a burst: the thread is busy, and its slots hold the address to continue at.
pub(crate) fn begin_burst(places: &Places, gate: u64) -> Vec<u8> {
    const R11: Gpr = Gpr(11);
    let mut code = Code::default();
    let kept = |number: i32| places.slots + at!(kept) + 8 * number;
    code.store_slot(kept(0), RAX);
    code.put(&[0x9f, 0x0f, 0x90, 0xc0]); // lahf; seto al
    code.store_slot(kept(1), RAX);
    compare_slot(&mut code, places.slots, at!(own_stack));
    let known = code.jump_if(5);
    code.store_slot(kept(2), RCX);
    code.store_slot(kept(3), R11);
    let again = code.here();
    code.move_value(R11, places.first_lock);
    code.put(&[0xb9, 1, 0, 0, 0, 0x41, 0x87, 0x0b, 0x85, 0xc9]); // mov ecx, 1; xchg [r11], ecx; test ecx, ecx
    let got = code.jump_short(&[0x74]);
    // Takes `rax`, `rcx` and `r11`.
    give_way(&mut code, places);
    let back = again as i64 - (code.here() as i64 + 2);
    code.put(&[0xeb, back as u8]);
    code.land_short(got);
    code.move_value(RAX, places.first_stack);
    code.store_slot(places.slots + at!(own_stack), RAX);
    code.move_value(RAX, places.first_vectors);
    code.store_slot(places.slots + at!(vectors), RAX);
    code.load_slot(RCX, kept(2));
    code.load_slot(R11, kept(3));
    code.land(known);
    code.load_slot(RAX, kept(1));
    code.put(&[0x04, 0x7f, 0x9e]); // add al, 127; sahf
    code.load_slot(RAX, kept(0));
    code.store_slot_value(places.slots + at!(link), 0);
    code.store_slot_value(places.slots + at!(reason), reason::BURST);
    code.jump_far(gate);
    code.bytes
}

/// Lets another thread run, which may hold the resource that this one waits for. More threads may wait than there are
/// processors, and each would spin for its whole time slice. Without a system call where the program has forbidden
/// them. Takes `rax`, `rcx`, `r11` and the flags.
fn give_way(code: &mut Code, places: &Places) {
    code.move_value(RAX, places.is_sealed);
    code.put(&[0x80, 0x38, 0]); // cmp byte ptr [rax], 0
    let sealed = code.jump_short(&[0x75]);
    code.move_value(RAX, libc::SYS_sched_yield as u64);
    code.put(&[0x0f, 0x05]);
    code.land_short(sealed);
    code.put(&[0xf3, 0x90]); // pause
}

/// Called natively: continues in the cache at the address in `rcx`.
pub(crate) fn go_in(slots: i32) -> Vec<u8> {
    let mut code = Code::default();
    code.store_slot(slots + at!(pc), RCX);
    code.store_slot_value(slots + at!(busy), 1);
    code.store_slot_value(slots + at!(link), 0);
    code.store_slot_value(slots + at!(reason), reason::GO);
    code.jump_to_slot(slots + at!(gate));
    code.bytes
}

/// To the engine, which meets the thread for the first time. Takes `rax`, and leaves 0 there.
fn begin(code: &mut Code, places: &Places, gate: u64) {
    code.store_slot_value(places.slots + at!(busy), 1);
    code.store_slot_value(places.slots + at!(reason), reason::BEGIN);
    code.move_value(RAX, places.first_stack);
    code.store_slot(places.slots + at!(own_stack), RAX);
    code.move_value(RAX, places.first_vectors);
    code.store_slot(places.slots + at!(vectors), RAX);
    code.move_value(RAX, 0);
    code.jump_far(gate);
}

/// Asks the engine for the code at an address: in place of a removed block, or to enter there.
pub(crate) fn again(slots: i32, pc: u64) -> Vec<u8> {
    let mut code = Code::default();
    code.store_slot_value(slots + at!(link), 0);
    code.store_slot_value(slots + at!(pc), pc);
    code.store_slot_value(slots + at!(reason), reason::GO);
    code.jump_to_slot(slots + at!(gate));
    code.bytes
}

/// As [`again`], where the log has its register.
pub(crate) fn again_from_superblocks(slots: i32, pc: u64) -> Vec<u8> {
    let mut code = Code::default();
    code.store_slot(slots + at!(log), LOG);
    code.load_slot(LOG, slots + at!(own.logged));
    code.put(&again(slots, pc));
    code.bytes
}

/// To the program: nothing of the thread's slots is used after it is no longer busy.
pub(crate) fn leave(slots: i32, pc: u64) -> Vec<u8> {
    let mut code = Code::default();
    code.store_slot_value(slots + at!(busy), 0);
    code.jump_far(pc);
    code.bytes
}

/// Target of every patched entry, with the [`EntryData`] in `rax`. The stack holds the native address to continue at,
/// the program's `rax` and 128 bytes that may be in use.
pub(crate) fn entry(places: &Places, gate: u64) -> Vec<u8> {
    let mut code = Code::default();
    let slot = |distance: i32| (places.slots + distance).to_le_bytes();
    code.put(&[0x51, 0x52]); // push rcx, rdx
    code.move_register(RCX, RAX);
    code.put(&[0x9f, 0x0f, 0x90, 0xc0, 0x50]); // lahf; seto al; push rax
    code.move_value(Gpr(2), places.is_on);
    code.put(&[0x80, 0x3a, 0]); // cmp byte ptr [rdx], 0
    let off = code.jump_if(4);
    code.put(&[0x48, 0x8b, 0x11]); // mov rdx, [rcx]: the region
    compare_slot(&mut code, places.slots, at!(busy));
    let busy = code.jump_if(5);
    // Most calls are only counted: the code writes no word of the thread for them.
    let begins = code.here();
    code.put(&[0xb8, 1, 0, 0, 0]); // mov eax, 1
    const _: () = assert!(offset_of!(Region, calls) == 0);
    code.put(&[0xf0, 0x48, 0x0f, 0xc1, 0x02]); // lock xadd [rdx], rax
    code.push(RAX);
    code.put(&[0x48, 0x2b, 0x42, offset_of!(Region, warmup) as u8]); // sub rax, [rdx + …]
    let warms_up = code.jump_if(2);
    code.put(&[0x48, 0xc1, 0xe8, places.run_shift]); // shr rax, run_shift
    code.put(&[0x48, 0xff, 0xc0]); // inc rax
    code.put(&[0x48, 0x0f, 0xaf, 0x41, 0x08]); // imul rax, [rcx + 8]
    code.put(&[0x48, 0x3b, 0x42, offset_of!(Region, bound) as u8]); // cmp rax, [rdx + …]
    let passed_over = code.jump_if(3);
    let spent = unless_spent(&mut code, places.slots);
    // A handler that runs from here on finds the thread busy.
    code.store_slot_value(places.slots + at!(busy), 1);
    code.store_slot(places.slots + at!(entry), RCX);
    code.put(&[0x58]); // pop rax
    code.store_slot(places.slots + at!(sequence), RAX);
    code.put(&[0x48, 0x8b, 0x41, 0x10]); // mov rax, [rcx + 16]
    code.store_slot(places.slots + at!(pc), RAX);
    code.store_slot_value(places.slots + at!(reason), reason::ENTER);
    compare_slot(&mut code, places.slots, at!(own_stack));
    let known = code.jump_if(5);
    code.move_value(Gpr(2), places.first_lock);
    let again = code.here();
    code.put(&[0xb8, 1, 0, 0, 0, 0x87, 0x02, 0x85, 0xc0]); // mov eax, 1; xchg [rdx], eax; test eax, eax
    let got = code.jump_short(&[0x74]);
    code.put(&[0x41, 0x53]); // push r11
    // Takes `rcx` as well, which the slot has.
    give_way(&mut code, places);
    code.put(&[0x41, 0x5b]); // pop r11
    let back = again as i64 - (code.here() as i64 + 2);
    code.put(&[0xeb, back as u8]);
    code.land_short(got);
    code.move_value(RAX, places.first_stack);
    code.store_slot(places.slots + at!(own_stack), RAX);
    code.move_value(RAX, places.first_vectors);
    code.store_slot(places.slots + at!(vectors), RAX);
    code.land(known);
    restore(&mut code);
    code.put(&[0x48, 0x8d, 0x64, 0x24, 0x08]); // lea rsp, [rsp + 8]: the address
    code.put(&[0x58]); // pop rax
    code.lea_plus(RSP, RSP, 128);
    code.jump_far(gate);
    code.land(busy);
    // A handler that was left by a jump has not returned: its stack pointer is not below the interrupted call's, and
    // not on a stack of its own.
    code.put(&[0x64, 0x48, 0x83, 0x3c, 0x25]); // cmp qword ptr fs:[busy], 2
    code.put(&slot(at!(busy)));
    code.put(&[2]);
    let is_busy = code.jump_if(5);
    // The entry's pushed words, and the 128 bytes.
    code.lea_plus(RAX, RSP, 168);
    code.put(&[0x64, 0x48, 0x3b, 0x04, 0x25]); // cmp rax, fs:[interrupted]
    code.put(&slot(at!(interrupted)));
    let is_below = code.jump_if(2);
    code.move_register(RAX, RSP);
    code.put(&[0x64, 0x48, 0x2b, 0x04, 0x25]); // sub rax, fs:[handlers_stack]
    code.put(&slot(at!(handlers_stack)));
    code.put(&[0x64, 0x48, 0x3b, 0x04, 0x25]); // cmp rax, fs:[handlers_stack_bytes]
    code.put(&slot(at!(handlers_stack_bytes)));
    let is_left = code.jump_if(3);
    code.land_at(is_left, begins);
    code.land(is_busy);
    code.land(is_below);
    code.put(&[0xf0, 0x48, 0xff, 0x42, 0x18]); // lock inc qword ptr [rdx + 24]: calls in handlers
    let natively = code.jump();
    code.land(spent);
    code.land(warms_up);
    code.land(passed_over);
    code.lea_plus(RSP, RSP, 8);
    let counted = code.jump();
    code.land(off);
    code.put(&[0x48, 0x8b, 0x11]); // mov rdx, [rcx]
    code.put(&[0xf0, 0x48, 0xff, 0x42, 0x28]); // lock inc qword ptr [rdx + 40]: calls that nobody watches
    code.land(natively);
    code.land(counted);
    restore(&mut code);
    code.put(&[0xc3]);
    code.bytes
}

/// Counts the call in its thread and takes the jump that is returned, where none is recorded of the thread for a while;
/// the [`EntryData`] is in `rcx`, and stays there else.
fn unless_spent(code: &mut Code, slots: i32) -> usize {
    const RDX: Gpr = Gpr(2);
    code.load_slot(RAX, slots + at!(own.calls.spent));
    code.put(&[0x48, 0x85, 0xc0]); // test rax, rax
    let has_none = code.jump_if(4);
    code.put(&[0x48, 0x8b, 0x51, offset_of!(EntryData, region_number) as u8]); // mov rdx, [rcx + …]
    code.put(&[0x48, 0xc1, 0xe2, SPENT_SHIFT]); // shl rdx, SPENT_SHIFT
    code.put(&[0x48, 0x01, 0xd0]); // add rax, rdx
    code.push(RAX);
    code.read_time();
    code.put(&[0x48, 0xc1, 0xe2, 32, 0x48, 0x09, 0xc2]); // shl rdx, 32; or rdx, rax
    code.put(&[0x58, 0x48, 0x3b, 0x10]); // pop rax; cmp rdx, [rax]
    let is_late = code.jump_if(3);
    code.load(RDX, RAX, SPENT_COUNT);
    code.put(&[0x48, 0xff, 0x02]); // inc qword ptr [rdx]
    let spent = code.jump();
    code.land(has_none);
    code.land(is_late);
    spent
}

fn restore(code: &mut Code) {
    code.put(&[0x58, 0x04, 0x7f, 0x9e, 0x5a, 0x59]); // pop rax; add al, 127; sahf; pop rdx; pop rcx
}

/// Code that is skipped when a range holds the return address: before an entry of the C library that the engine itself
/// calls. Takes `r11` and the flags, which a call through the loader may change.
pub(crate) fn unless_called_from(range: &Range<u64>, code: Vec<u8>) -> Vec<u8> {
    let mut all = Code::default();
    all.put(&[0xeb, 16]); // over the constants
    all.put(&range.start.to_le_bytes());
    all.put(&(range.end - range.start).to_le_bytes());
    all.put(&[0x4c, 0x8b, 0x1c, 0x24]); // mov r11, [rsp]
    all.put(&[0x4c, 0x2b, 0x1d, 0xe5, 0xff, 0xff, 0xff]); // sub r11, [rip - 27]: the first
    all.put(&[0x4c, 0x3b, 0x1d, 0xe6, 0xff, 0xff, 0xff]); // cmp r11, [rip - 26]: the second
    let over = all.jump_if(2);
    all.put(&code);
    all.land(over);
    all.bytes
}

/// Target of the entry's jump of a function that chooses another: calls a function with a number in `rax`, and restores
/// all registers. The moved instructions follow it.
pub(crate) fn before_choosing(function: u64, number: u64) -> Vec<u8> {
    let mut code = Code::default();
    code.lea_plus(RSP, RSP, -128);
    code.push(RAX);
    code.move_value(RAX, number);
    code.put(&calls(function).bytes);
    code.put(&[0x58]); // pop rax
    code.lea_plus(RSP, RSP, 128);
    code.bytes
}

/// Target of a patched entry's jump; the moved instructions follow it.
pub(crate) fn thunk(entry: u64, common: u64) -> Vec<u8> {
    let mut code = Code::default();
    code.lea_plus(RSP, RSP, -128);
    code.push(RAX);
    code.move_value(RAX, entry);
    code.put(&[0xff, 0x15, 2, 0, 0, 0, 0xeb, 8]); // call [rip + 2]; jmp over it
    code.put(&common.to_le_bytes());
    code.put(&[0x58]); // pop rax
    code.lea_plus(RSP, RSP, 128);
    code.bytes
}
