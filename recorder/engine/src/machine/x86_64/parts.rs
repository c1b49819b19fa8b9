//! The parts of the machine: each function leads to the file that does its work.

use super::displacement::{self, Displaced, JUMP_BYTES};
use super::processor::X86_64;
use super::registers::{Gregs, Registers};
use super::slot_registers::{self, SlotRegisters};
use super::{
    ends, gates, inner_jumps, processor_state, restarts, signals, sites, superblock, targets, threads,
    translate, trials,
};
use crate::engine::Engine;
use crate::entries::near_code::Near;
use crate::entries::region_points::RegionPoint;
use crate::machine::{
    Abi, CallSite, Context, Entries, Gates, Handler, HostContext, InnerJumps, Led, LineUser, Machine, Mark,
    OpenLog, Places, Restarts, Route, SequenceCopy, SequenceTask, Source, Task, ThreadBlock, TimedFunction,
    Timing, Translated, Translation, Whole, Write,
};
use crate::shared::Shared;
use crate::system::address_tables::Map;
use crate::system::{self, File};
use crate::threads::slots::Slots;
use lineup_recording::native::Refusal;
use std::arch::asm;
use std::ops::Range;

impl Machine for X86_64 {}

impl Abi for X86_64 {
    type Registers = Registers;
    type Context = Gregs;

    const SYSTEM_CALL_BYTES: u64 = 2;
    const ADDRESSES_END: u64 = 1 << 47;
    const RETURN_BYTES: u64 = 8;
    const FORK: Option<i64> = Some(libc::SYS_fork);
    const VFORK: Option<i64> = Some(libc::SYS_vfork);
    /// `arch_prctl(ARCH_SET_FS)`.
    const SET_BASE: (i64, u64) = (libc::SYS_arch_prctl, 0x1002);
    /// `AUDIT_ARCH_X86_64`.
    const AUDITED_AS: u32 = 0xc000_003e;

    #[inline]
    fn page_bytes() -> u64 {
        4096
    }

    #[inline]
    unsafe fn system_call(number: i64, arguments: [u64; 6]) -> i64 {
        let [a, b, c, d, e, f] = arguments;
        let result: i64;
        // SAFETY: the caller's promise; the kernel changes `rcx` and `r11` alone besides.
        unsafe {
            asm!(
                "syscall",
                inlateout("rax") number => result,
                in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
                lateout("rcx") _, lateout("r11") _,
                options(nostack)
            );
        }
        result
    }

    unsafe fn read_link(path: *const u8, text: &mut [u8]) -> i64 {
        let arguments = [path as u64, text.as_mut_ptr() as u64, text.len() as u64, 0, 0, 0];
        // SAFETY: the path is terminated, the room is the caller's.
        unsafe { system::own(libc::SYS_readlink, arguments) }
    }

    #[inline]
    fn counter() -> u64 {
        // SAFETY: every processor has it.
        unsafe { std::arch::x86_64::_rdtsc() }
    }

    fn slots_distance() -> i32 {
        threads::slots_distance()
    }

    #[inline]
    fn slots() -> *mut Slots {
        threads::slots()
    }

    #[inline]
    unsafe fn return_address(stack: u64, _registers: &Registers) -> u64 {
        // SAFETY: it lies where the stack pointer points.
        unsafe { (stack as *const u64).read() }
    }

    unsafe fn thread_block(memory: u64, bytes: u64) -> Option<ThreadBlock> {
        // SAFETY: the caller's promise.
        unsafe { threads::block(memory, bytes) }
    }

    unsafe fn make_thread(flags: u64, block: &ThreadBlock) -> i64 {
        // SAFETY: the caller's promise.
        unsafe { threads::make(flags, block.stack, block.base) }
    }

    fn return_from_signal() -> u64 {
        signals::return_from_signal()
    }

    unsafe fn run_in_cache(
        signal: i32,
        info: *mut libc::siginfo_t,
        context: *mut libc::ucontext_t,
        handler: Handler,
        leads_there: u64,
    ) {
        // SAFETY: the caller's promise.
        unsafe { signals::in_cache(signal, info, context, handler, leads_there) }
    }

    unsafe fn call_on_stack(top: u64, function: unsafe extern "C" fn(*mut ()), argument: *mut ()) {
        // SAFETY: the caller's promise.
        unsafe { signals::on_stack(top, function, argument) }
    }

    #[inline]
    fn after_handler() -> u64 {
        signals::after_handler()
    }
}

impl Gates for X86_64 {
    const VECTOR_BYTES: usize = gates::VECTOR_BYTES;
    const MOST_LEAVE_BYTES: u64 = 40;

    fn gate(places: &Places, unmask: u64) -> (Vec<u8>, usize) {
        gates::gate(places, unmask)
    }

    fn masking(slots: i32, gate: u64) -> Vec<u8> {
        gates::masking(slots, gate)
    }

    fn unmask(slots: i32) -> (Vec<u8>, usize) {
        gates::unmask(slots)
    }

    fn unmasked(registers: &HostContext, slots: &Slots) -> HostContext {
        slot_registers::unmasked(registers, slots)
    }

    fn release_first(places: &Places) -> Vec<u8> {
        gates::release_first(places)
    }

    fn begin_here(places: &Places, gate: u64) -> Vec<u8> {
        gates::begin_here(places, gate)
    }

    fn begin_burst(places: &Places, gate: u64) -> Vec<u8> {
        gates::begin_burst(places, gate)
    }

    fn begin_thread(places: &Places, gate: u64) -> Vec<u8> {
        gates::begin_thread(places, gate)
    }

    fn go_in(slots: i32) -> Vec<u8> {
        gates::go_in(slots)
    }

    fn again(slots: i32, pc: u64) -> Vec<u8> {
        gates::again(slots, pc)
    }

    fn again_from_superblocks(slots: i32, pc: u64) -> Vec<u8> {
        gates::again_from_superblocks(slots, pc)
    }

    fn leave(slots: i32, pc: u64) -> Vec<u8> {
        gates::leave(slots, pc)
    }

    fn entry(places: &Places, gate: u64) -> Vec<u8> {
        gates::entry(places, gate)
    }

    fn thunk(entry: u64, common: u64) -> Vec<u8> {
        gates::thunk(entry, common)
    }

    fn unless_called_from(range: &Range<u64>, code: Vec<u8>) -> Vec<u8> {
        gates::unless_called_from(range, code)
    }

    fn before_choosing(function: u64, number: u64) -> Vec<u8> {
        gates::before_choosing(function, number)
    }

    fn in_place_of_call(function: u64, number: Option<u32>, back: u64) -> Vec<u8> {
        gates::in_place_of_call(function, number, back)
    }

    fn in_place_of_any_call(at: u64, led: &[Led]) -> Vec<u8> {
        sites::in_place_of_any(at, led)
    }
}

impl Translation for X86_64 {
    type DisplacedRegisters = SlotRegisters;

    /// By the lower 16 bits of the address, two words each.
    const TABLE_BYTES: usize = (1 << 16) * 16;
    const NO_TARGET_MEMORY: &str = "there is no memory in the lowest 2 GB";

    fn lacks_for_whole_programs() -> Option<&'static str> {
        let has_all = is_x86_feature_detected!("bmi2");
        (!has_all).then_some("whole programs are recorded natively on processors with BMI2")
    }

    fn translate(task: &Task<'_>) -> Translated {
        translate::translate(task)
    }

    fn translate_superblock(
        task: &Task<'_>,
        whole: &Whole,
        source: Source<'_>,
        route: &Route,
    ) -> Option<Translated> {
        superblock::translate(task, whole, source, route)
    }

    fn at_mark(mark: &Mark, block: &Translated, slots: &Slots, registers: &HostContext) -> HostContext {
        slot_registers::at_mark(mark, block, slots, registers)
    }

    fn open_log(mark: &Mark, registers: &HostContext) -> Option<OpenLog> {
        slot_registers::open_log(mark, registers)
    }

    fn set_log(registers: &mut HostContext, log: u64) {
        slot_registers::set_log(registers, log);
    }

    #[inline]
    unsafe fn lead_in_table(table: u64, pc: u64, to: u64) {
        let place = table + (pc & 0xffff) * 16;
        // SAFETY: within the table.
        unsafe {
            (place as *mut u64).write(pc.wrapping_neg());
            (place as *mut u64).add(1).write(to);
        }
    }

    fn target_memory(bytes: usize) -> Option<*mut u8> {
        // The lowest 2 GB.
        system::memory_where(bytes, libc::MAP_32BIT)
    }

    fn target(slots: i32, target: u64, at: u64, inner: u64, next: u64) -> (Vec<u8>, Vec<Mark>) {
        targets::node(slots, target, at, inner, next)
    }

    fn no_target(slots: i32) -> (Vec<u8>, Vec<Mark>) {
        targets::last(slots)
    }

    fn uses_lines(of: LineUser) -> Vec<u8> {
        of.code()
    }

    fn see_state(shared: &Shared, distance: i32, slots: &mut Slots, registers: &Registers) {
        processor_state::see(shared, distance, slots, registers);
    }
}

impl Entries for X86_64 {
    type Displaced = Displaced;
    type SpreadSite = sites::Site;

    const JUMP_BYTES: u64 = JUMP_BYTES;
    const JUMP_REACH: u64 = 1 << 31;

    fn displace(pc: u64, size: u64, room: u64) -> Result<Displaced, Refusal> {
        displacement::at(pc, size, room)
    }

    fn displace_by_trap(pc: u64, size: u64, room: u64) -> Result<Displaced, Refusal> {
        displacement::by_trap(pc, size, room)
    }

    fn jump(at: u64, to: u64) -> Write {
        displacement::jump(at, to)
    }

    fn is_trap(written: &[u8]) -> bool {
        written == [displacement::TRAP]
    }

    #[inline]
    fn trap_at(code: i32, registers: &HostContext) -> Option<u64> {
        const OF_KERNEL: i32 = 0x80;
        // The thread is after it.
        (code == OF_KERNEL).then(|| registers.pc().wrapping_sub(displacement::TRAP_BYTES))
    }

    fn call_sites(code: &[u8]) -> impl Iterator<Item = CallSite> {
        sites::of_calls(code)
    }

    fn spread_sites(code: &[u8], start: u64, numbers: &[i64]) -> Vec<sites::Site> {
        sites::spread(code, start, numbers)
    }

    fn any_call_sites(code: &[u8], start: u64) -> Vec<u64> {
        sites::anys(code).map(|offset| start + offset as u64).collect()
    }

    fn ends_without_call(code: &[u8], start: u64) -> bool {
        inner_jumps::ends_without_call(code, start)
    }

    #[inline]
    fn lead_word(from: u64, to: u64) -> u64 {
        let mut jump = [0xe9, 0, 0, 0, 0, 0x90, 0x90, 0x90];
        jump[1..5].copy_from_slice(&(to.wrapping_sub(from + JUMP_BYTES) as u32).to_le_bytes());
        u64::from_le_bytes(jump)
    }

    /// The hole holds the distance from its end.
    #[inline]
    fn link_word(hole: u64, to: u64) -> u32 {
        to.wrapping_sub(hole + 4) as u32
    }

    /// Processors do so by themselves.
    #[inline]
    fn code_was_written(_executed: u64, _bytes: usize) {}
}

impl Restarts for X86_64 {
    fn signatures(code: &[u8], signature: u32) -> Vec<usize> {
        restarts::signatures(code, signature)
    }

    fn stored(code: &[u8], pc: u64, registers: &Registers) -> Option<(u64, u64)> {
        restarts::stored(code, pc, registers)
    }

    fn copy_sequence(
        task: &SequenceTask<'_>,
        way_in: &mut dyn FnMut(u64) -> Option<u64>,
    ) -> Option<SequenceCopy> {
        restarts::copy(task, way_in)
    }
}

impl InnerJumps for X86_64 {
    fn lead_within(engine: &Engine, memory: &File, near: &mut Vec<Near>, entries: &[RegionPoint]) {
        inner_jumps::lead(engine, memory, near, entries);
    }
}

impl Timing for X86_64 {
    #[inline]
    fn line_bytes() -> u64 {
        trials::LINE_BYTES
    }

    fn stamp(
        engine: &Engine,
        place: (&File, &mut Vec<Near>),
        moved: &mut Map<u64>,
        region: u64,
        parts: &[TimedFunction],
    ) -> Result<(), Refusal> {
        ends::stamp(engine, place, moved, region, parts)
    }

    fn stamped_function(engine: &Engine) -> [Vec<u8>; 2] {
        ends::stamped_function(engine)
    }

    unsafe fn sweep(from: u64, to: u64) {
        // SAFETY: the caller's promise.
        unsafe { trials::sweep(from, to) }
    }
}
