//! A program that tries the native engine on random instructions: it runs each sequence twice from equal states, once
//! natively and once in `run_watched`, and compares registers, flags, vector registers and memory.
//!
//! Recorded with `lineup record --engine native --region run_watched`, the second run is one from the code cache. A
//! sequence consists of random bytes that decode to instructions after which control continues; all memory operands lie
//! in one page. Sequences that fault natively are left out. Arguments: a seed, the number of sequences, and the number
//! of one sequence to run alone.
//!
//! With the argument `sums` the program prints a checksum of each sequence's final state. Recorded as a whole program,
//! both runs come from the code cache, and its output is compared with that of the program alone.

use iced_x86::{
    Code, Decoder, DecoderOptions, Encoder, FlowControl, Instruction, InstructionInfoFactory, MemoryOperand,
    Mnemonic, OpAccess, OpKind, Register,
};
use std::arch::global_asm;
use std::ffi::c_int;
use std::fs::File;
use std::hash::{Hash, Hasher};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Instructions of a sequence.
const INSTRUCTIONS: usize = 24;
/// States that each is run from.
const STATES: usize = 2;
/// Bytes of each sequence's code at most.
const CODE_BYTES: usize = 512;
const DATA_BYTES: usize = 4096;
/// Addresses of code and data, in every run.
const AT: usize = 0x1234_5000_0000;
const VECTOR_BYTES: usize = 4096;
/// The control word of x87 after its start.
const X87_CONTROL: u16 = 0x37f;
/// The flags that every instruction leaves as the processor's manual says.
const FLAGS: u64 = 0x8c5;

global_asm!(
    // rdi: the code, rsi: the state.
    ".globl lineup_sequence_run",
    "lineup_sequence_run:",
    "push rbx; push rbp; push r12; push r13; push r14; push r15; push rsi",
    "mov eax, 0xe7; xor edx, edx",
    "xrstor64 [rsi + 4096]",
    "push rdi",
    "push qword ptr [rsi + 128]; popfq",
    "mov rax, [rsi]; mov rcx, [rsi + 8]; mov rdx, [rsi + 16]; mov rbx, [rsi + 24]; mov rbp, [rsi + 40]",
    "mov rdi, [rsi + 56]; mov r8, [rsi + 64]; mov r9, [rsi + 72]; mov r10, [rsi + 80]; mov r11, [rsi + 88]",
    "mov r12, [rsi + 96]; mov r13, [rsi + 104]; mov r14, [rsi + 112]; mov r15, [rsi + 120]",
    "mov rsi, [rsi + 48]",
    "call [rsp]",
    "pushfq; cld; push rsi",
    // The state's address lies below the flags, the code's address and the registers that were pushed here.
    "mov rsi, [rsp + 24]",
    "mov [rsi], rax; mov [rsi + 8], rcx; mov [rsi + 16], rdx; mov [rsi + 24], rbx; mov [rsi + 40], rbp",
    "mov [rsi + 56], rdi; mov [rsi + 64], r8; mov [rsi + 72], r9; mov [rsi + 80], r10; mov [rsi + 88], r11",
    "mov [rsi + 96], r12; mov [rsi + 104], r13; mov [rsi + 112], r14; mov [rsi + 120], r15",
    "pop rax; mov [rsi + 48], rax; pop rax; mov [rsi + 128], rax",
    "mov eax, 0xe7; xor edx, edx",
    "xsave64 [rsi + 4096]",
    "pop rdi; pop rsi; pop r15; pop r14; pop r13; pop r12; pop rbp; pop rbx",
    // The state that the ABI requires.
    "push 0x1f80; ldmxcsr [rsp]; pop rax; fninit; vzeroupper",
    "ret",
);

unsafe extern "C" {
    fn lineup_sequence_run(code: *const u8, state: *mut State);
    // The C library's function, which keeps the signal mask when asked to.
    #[link_name = "__sigsetjmp"]
    fn set_jump(place: *mut [u64; 32], keeps_mask: c_int) -> c_int;
    #[link_name = "siglongjmp"]
    fn jump(place: *mut [u64; 32], value: c_int) -> !;
}

/// The state before and after a sequence.
#[repr(C, align(4096))]
#[derive(Clone)]
pub struct State {
    registers: [u64; 16],
    flags: u64,
    unused: [u64; 495],
    vectors: [u8; VECTOR_BYTES],
}

/// The place where a faulting native run continues.
static mut FAULTED: [u64; 32] = [0; 32];
/// Set while a native run is under way.
static RUNS_NATIVELY: AtomicBool = AtomicBool::new(false);

extern "C" fn on_fault(signal: i32) {
    if !RUNS_NATIVELY.swap(false, Ordering::Relaxed) {
        // A fault in the cache that does not occur natively ends the program by that signal. SAFETY: this is the action
        // of before. The faulting instruction is executed again.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
        return;
    }
    // SAFETY: only while a native run is under way, which has set the place.
    unsafe { jump(&raw mut FAULTED, 1) }
}

/// The run that is to be recorded.
///
/// # Safety
/// As for a native run.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn run_watched(code: *const u8, state: *mut State) {
    // SAFETY: the caller's promise.
    unsafe { lineup_sequence_run(code, state) };
}

/// Numbers that look random.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 11) % end
    }
}

/// Whether an instruction cannot be compared, or would end the run: its results differ each time, or it stores
/// addresses of the code.
fn is_odd(instruction: &Instruction) -> bool {
    const ODD: [&str; 30] = [
        "Rd", "Cpuid", "Xsave", "Xrstor", "Fxsave", "Fxrstor", "Fnsave", "Fnstenv", "Fstenv", "Fsave",
        "Frstor", "Fldenv", "Sgdt", "Sidt", "Sldt", "Smsw", "Str", "Vm", "Enc", "Getsec", "Monitor", "Mwait",
        "Umonitor", "Umwait", "Tpause", "Wr", "Sys", "Xgetbv", "Xabort", "Hreset",
    ];
    let name = format!("{:?}", instruction.mnemonic());
    ODD.iter().any(|odd| name.starts_with(odd)) || name.starts_with("Serialize") || name.starts_with("Rsm")
}

/// An instruction that a sequence can have, with its memory in the page at `data`.
fn fitted(random: &mut Random, factory: &mut InstructionInfoFactory, ip: u64, data: u64) -> Option<Vec<u8>> {
    let bytes = [random.next().to_le_bytes(), random.next().to_le_bytes()].concat();
    let mut one = Decoder::with_ip(64, &bytes, ip, DecoderOptions::NONE).decode();
    let has_segment = (0..one.op_count()).any(|number| {
        one.op_kind(number) == OpKind::Register && one.op_register(number).is_segment_register()
    });
    if one.is_invalid()
        || one.flow_control() != FlowControl::Next
        || one.is_privileged()
        || one.is_vsib()
        || one.is_stack_instruction()
        || has_segment
        || is_odd(&one)
    {
        return None;
    }
    let memory = (0..one.op_count()).any(|number| one.op_kind(number) == OpKind::Memory);
    let info = factory.info(&one);
    let writes = |access: OpAccess| !matches!(access, OpAccess::Read | OpAccess::CondRead | OpAccess::None);
    let kept = [Register::RSP, Register::RSI, Register::RDI];
    let changes = |register: Register| register.is_gpr() && kept.contains(&register.full_register());
    // The stack pointer is not the same in both runs; and a bit's number in a register leads out of the page.
    let uses_stack =
        info.used_registers().iter().any(|used| used.register().full_register() == Register::RSP);
    let is_bit = matches!(one.mnemonic(), Mnemonic::Bt | Mnemonic::Btc | Mnemonic::Btr | Mnemonic::Bts);
    if uses_stack || is_bit && memory && one.op1_kind() == OpKind::Register {
        return None;
    }
    if info.used_registers().iter().any(|used| writes(used.access()) && changes(used.register()))
        || info.used_memory().len() > usize::from(memory)
    {
        return None;
    }
    if memory {
        let at = match one.memory_size().size() {
            0..=8 => random.below(2000),
            _ => 64 * random.below(30),
        };
        let is_here = random.below(3) == 0;
        one.set_segment_prefix(Register::None);
        one.set_memory_base(if is_here { Register::RIP } else { Register::RSI });
        let is_indexed = !is_here && random.below(2) == 0;
        one.set_memory_index(if is_indexed { Register::RDI } else { Register::None });
        one.set_memory_index_scale(if is_indexed { 8 } else { 1 });
        one.set_memory_displ_size(if is_here { 8 } else { 4 });
        one.set_memory_displacement64(if is_here { data + at } else { at });
    }
    let mut encoder = Encoder::new(64);
    encoder.encode(&one, ip).ok()?;
    Some(encoder.take_buffer())
}

/// A gather or a scatter of some elements in the page at `rsi`.
fn gathering(random: &mut Random) -> Option<Vec<u8>> {
    static ALL: OnceLock<Vec<Code>> = OnceLock::new();
    let all = ALL.get_or_init(|| {
        let is_one =
            |name: &str| (name.contains("gather") || name.contains("scatter")) && !name.contains("erpf");
        Code::values().filter(|code| is_one(&format!("{code:?}"))).collect()
    });
    let code = all[random.below(all.len() as u64) as usize];
    let (is_old, is_store) =
        (format!("{code:?}").starts_with("VEX"), format!("{code:?}").contains("scatter"));
    let numbers = if is_old { 16 } else { 32 };
    let mut vector = || {
        let first = [Register::XMM0, Register::YMM0, Register::ZMM0][random.below(3) as usize];
        first + random.below(numbers) as u32
    };
    let (data, index, mask) = (vector(), vector(), vector());
    let (scale, at) = (1 + random.below(2) as u32, random.below(2000) as i64);
    let place = MemoryOperand::new(Register::RSI, index, scale, at, 8, false, Register::None);
    let mut one = match (is_old, is_store) {
        (true, _) => Instruction::with3(code, data, place, mask),
        (false, true) => Instruction::with2(code, place, data),
        (false, false) => Instruction::with2(code, data, place),
    }
    .ok()?;
    let number = index.number() as u32;
    let is_wide = one.vsib()?;
    // Indices below 1024.
    let (shift, by) = match (is_old, is_wide) {
        (true, false) => (Code::VEX_Vpsrld_ymm_ymm_imm8, 22),
        (true, true) => (Code::VEX_Vpsrlq_ymm_ymm_imm8, 54),
        (false, false) => (Code::EVEX_Vpsrld_zmm_k1z_zmmm512b32_imm8, 22),
        (false, true) => (Code::EVEX_Vpsrlq_zmm_k1z_zmmm512b64_imm8, 54),
    };
    let index = if is_old { Register::YMM0 } else { Register::ZMM0 } + number;
    let mut instructions = vec![Instruction::with3(shift, index, index, by).ok()?];
    if !is_old {
        let mask = Register::K1 + random.below(7) as u32;
        let from = Register::EAX + random.below(4) as u32;
        instructions.push(Instruction::with2(Code::VEX_Kmovw_kr_r32, mask, from).ok()?);
        one.set_op_mask(mask);
    }
    instructions.push(one);
    let mut encoder = Encoder::new(64);
    instructions.iter().all(|one| encoder.encode(one, 0).is_ok()).then(|| encoder.take_buffer())
}

/// The code of a sequence, with jumps over parts of it.
fn sequence(random: &mut Random, factory: &mut InstructionInfoFactory, start: u64, data: u64) -> Vec<u8> {
    let mut code = Vec::new();
    let mut made = 0;
    while made < INSTRUCTIONS && code.len() + 64 < CODE_BYTES {
        let jumps = random.below(6) == 0;
        let begin = code.len();
        if jumps {
            code.extend([0x70 | random.below(16) as u8, 0]);
        }
        let count = if jumps { 1 + random.below(2) } else { 1 };
        for _ in 0..count {
            let ip = start + code.len() as u64;
            let gathers = random.below(12) == 0;
            let found = (0..100_000).find_map(|_| match gathers {
                true => gathering(random),
                false => fitted(random, factory, ip, data),
            });
            code.extend(found.unwrap_or_else(|| vec![0x90]));
            made += 1;
        }
        if jumps {
            code[begin + 1] = (code.len() - begin - 2) as u8;
        }
    }
    code.push(0xc3);
    code
}

fn state(random: &mut Random, data: u64) -> State {
    let mut state = State { registers: [0; 16], flags: 0x202, unused: [0; 495], vectors: [0; VECTOR_BYTES] };
    state.registers.fill_with(|| random.next() >> (random.0 % 3 * 20));
    (state.registers[6], state.registers[7]) = (data, 3);
    state.flags |= random.next() & FLAGS;
    // x87 as after its start, vectors at random: the head says which are there.
    state.vectors[..2].copy_from_slice(&X87_CONTROL.to_le_bytes());
    state.vectors[24..28].copy_from_slice(&0x1f80u32.to_le_bytes());
    for bytes in state.vectors[160..416].chunks_mut(8) {
        bytes.copy_from_slice(&(random.next() & 0x3fff_ffff_3fff_ffff).to_le_bytes());
    }
    state.vectors[512] = 3;
    state
}

/// Checksum of a sequence's final state.
fn sum((registers, flags, vectors): &(Vec<u64>, u64, Vec<u8>), memory: &[u8]) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    (registers, flags, vectors, memory).hash(&mut hasher);
    hasher.finish()
}

/// The compared part of a state.
fn compared(state: &State) -> (Vec<u64>, u64, Vec<u8>) {
    let registers = state.registers.iter().enumerate().filter(|(number, _)| *number != 4);
    let there = state.vectors[512];
    let mut vectors = state.vectors[24..28].to_vec();
    // Without the address of the last x87 instruction. The fields that the processor calls unused are as after the
    // start.
    let mut x87 = [0; 6 + 128];
    x87[..2].copy_from_slice(&X87_CONTROL.to_le_bytes());
    if there & 1 != 0 {
        x87[..6].copy_from_slice(&state.vectors[..6]);
        x87[6..].copy_from_slice(&state.vectors[32..160]);
    }
    vectors.extend(x87);
    vectors.extend(&state.vectors[160..416]);
    vectors.extend(&state.vectors[576..]);
    (registers.map(|(_, value)| *value).collect(), state.flags & FLAGS, vectors)
}

/// The differing registers, flags and bytes of vectors, by their places.
fn difference(native: &(Vec<u64>, u64, Vec<u8>), cached: &(Vec<u64>, u64, Vec<u8>)) -> String {
    let registers: Vec<_> =
        native.0.iter().zip(&cached.0).enumerate().filter(|(_, (one, other))| one != other).collect();
    let vectors: Vec<_> =
        native.2.iter().zip(&cached.2).enumerate().filter(|(_, (one, other))| one != other).collect();
    format!("registers {registers:x?}, flags {:x} {:x}, vectors {vectors:x?}", native.1, cached.1)
}

/// Memory for code of a file, with a page that can be written behind it.
struct CodeMemory {
    code: *const u8,
    data: *mut u8,
}

impl CodeMemory {
    /// Maps code; its beginning is at the address that `make` got.
    fn new(bytes: usize, make: impl FnOnce(u64, u64) -> Vec<u8>) -> CodeMemory {
        let all = bytes + DATA_BYTES;
        // SAFETY: new memory.
        let at = unsafe {
            libc::mmap(
                AT as *mut libc::c_void,
                all,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE,
                -1,
                0,
            )
        };
        assert_ne!(at, libc::MAP_FAILED);
        let data = at.cast::<u8>().wrapping_add(bytes);
        let mut code = make(at as u64, data as u64);
        code.resize(bytes, 0xcc);
        let path = std::env::temp_dir().join(format!("lineup-sequences-{}", std::process::id()));
        File::create(&path).and_then(|mut file| file.write_all(&code)).expect("writing the code");
        let file = File::open(&path).expect("the code");
        let fixed = libc::MAP_PRIVATE | libc::MAP_FIXED;
        // SAFETY: over memory that was reserved just now.
        unsafe {
            let mapped = libc::mmap(at, bytes, libc::PROT_READ | libc::PROT_EXEC, fixed, file.as_raw_fd(), 0);
            assert_eq!(mapped, at);
            let both = libc::PROT_READ | libc::PROT_WRITE;
            let mapped = libc::mmap(data.cast(), DATA_BYTES, both, fixed | libc::MAP_ANONYMOUS, -1, 0);
            assert_eq!(mapped, data.cast());
        }
        std::fs::remove_file(&path).expect("removing the code");
        CodeMemory { code: at.cast(), data }
    }

    fn data(&self) -> &'static mut [u8] {
        // SAFETY: mapped for good, and used by the one thread.
        unsafe { std::slice::from_raw_parts_mut(self.data, DATA_BYTES) }
    }
}

/// Runs a sequence natively; false when it faults.
fn runs_natively(code: *const u8, state: &mut State) -> bool {
    // SAFETY: the handler comes back here, while this function is under way; the code changes its own page alone.
    unsafe {
        if set_jump(&raw mut FAULTED, 1) != 0 {
            return false;
        }
        RUNS_NATIVELY.store(true, Ordering::Relaxed);
        lineup_sequence_run(code, state);
    }
    RUNS_NATIVELY.store(false, Ordering::Relaxed);
    true
}

fn set_handlers() {
    for signal in [libc::SIGILL, libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGTRAP] {
        // SAFETY: a handler that jumps, or sets the usual one.
        unsafe { libc::signal(signal, on_fault as *const () as usize) };
    }
}

fn main() {
    let mut words = std::env::args().skip(1).filter_map(|word| word.parse::<u64>().ok());
    let prints_sums = std::env::args().any(|word| word == "sums");
    set_handlers();
    let (seed, count, only) = (words.next().unwrap_or(1), words.next().unwrap_or(1000), words.next());
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut factory = InstructionInfoFactory::new();
    let bytes = (count as usize * CODE_BYTES).next_multiple_of(4096);
    let place = CodeMemory::new(bytes, |start, data| {
        let mut all = Vec::new();
        for number in 0..count {
            let start = start + number * CODE_BYTES as u64;
            let mut code = sequence(&mut random, &mut factory, start, data);
            code.resize(CODE_BYTES, 0xcc);
            all.extend(code);
        }
        all
    });
    let (mut run, mut faulted, mut different) = (0, 0, 0);
    for number in 0..count as usize {
        let code = place.code.wrapping_add(number * CODE_BYTES);
        for _ in 0..STATES {
            let begin = state(&mut random, place.data as u64);
            let memory: Vec<u8> = (0..DATA_BYTES).map(|_| random.next() as u8).collect();
            if only.is_some_and(|only| only != number as u64) {
                continue;
            }
            let (mut native, mut cached) = (begin.clone(), begin);
            place.data().copy_from_slice(&memory);
            if !runs_natively(code, &mut native) {
                faulted += 1;
                continue;
            }
            let after = place.data().to_vec();
            place.data().copy_from_slice(&memory);
            // SAFETY: it has run natively from the same state.
            unsafe { run_watched(code, &mut cached) };
            run += 1;
            if prints_sums {
                println!("sum {number} {:016x}", sum(&compared(&native), &after));
            }
            if compared(&native) != compared(&cached) || after != place.data() {
                different += 1;
                // SAFETY: the sequence's code.
                let bytes = unsafe { std::slice::from_raw_parts(code, CODE_BYTES) };
                println!("different: sequence {number} of seed {seed}: {bytes:02x?}");
                println!("{}", difference(&compared(&native), &compared(&cached)));
            }
        }
    }
    println!("runs {run}\nfaulted {faulted}\ndifferent {different}");
}
