//! Signals. The kernel gets a handler of ours for each that the program handles; it shows the program's handler the
//! context that it would get natively, at every place of the thread in the cache.
//!
//! In a block, marks give the program's address and its registers that lie in slots. While the engine itself runs, a
//! signal is sent again and blocked until the engine is done. When the handler has changed the context, the thread
//! continues natively and the rest of the call is not recorded.

use super::marks::mark_at;
use crate::cache::sequences;
use crate::engine::{self, Engine, Whole};
use crate::entries::traps;
use crate::machine::{Abi, Context, Gates, Handler, Host, HostContext, Translation};
use crate::signals::actions::{self, Action, HIGHEST_CONSTANT};
use crate::signals::interruptions::{self, Unfinished};
use crate::system;
use crate::threads::slots::Slots;
use crate::threads::thread::STACK_BYTES;
use crate::whole_program::sieve;

/// The kernel's handler for every signal that the program handles.
pub(crate) unsafe extern "C-unwind" fn on_signal(
    signal: i32,
    info: *mut libc::siginfo_t,
    context: *mut libc::ucontext_t,
) {
    // SAFETY: from the kernel, for this signal.
    if signal == libc::SIGTRAP && unsafe { traps::takes(info, context) } {
        return;
    }
    let Action { handler, flags, mask, .. } = actions::programs(signal as usize);
    if handler <= HIGHEST_CONSTANT {
        // The program's handler was removed since the signal came.
        return;
    }
    // SAFETY: set together with ours as the kernel's, from the handler that the program gave the kernel.
    let handler: Handler = unsafe { std::mem::transmute(handler as *const ()) };
    let own = if flags & libc::SA_NODEFER as u64 == 0 { 1 << (signal - 1) } else { 0 };
    // SAFETY: the kernel's context, whose mask has 64 bits.
    let blocked = unsafe { (&raw const (*context).uc_sigmask).cast::<u64>().read() } | mask | own;
    // SAFETY: this thread's own, and the kernel's context.
    let (slots, registers) = unsafe { (&mut *Host::slots(), HostContext::of(context)) };
    let pc = registers.pc();
    let engine = match engine::get() {
        Some(engine) if slots.busy == 1 && !engine.signals.entry.contains(&pc) && !is_borrowed(slots) => {
            engine
        }
        _ => {
            // SAFETY: as the kernel would call it.
            return unsafe { traps::run(handler, signal, info, context, blocked) };
        }
    };
    let free = free_stack(slots, registers.stack());
    let Some(program) = on_stack(free, || program_state(engine, slots, registers)) else {
        // SAFETY: the kernel's context and siginfo.
        return unsafe { defer(engine, slots, signal, info, context) };
    };
    if std::mem::take(&mut slots.deferred) != 0 {
        // One that came while lines were looked up still waits: this one, of an instruction of the block, comes first.
        // SAFETY: the kernel's context, whose mask has 64 bits.
        unsafe { (&raw mut (*context).uc_sigmask).cast::<u64>().write(slots.mask) };
    }
    // SAFETY: as above.
    let blocked = unsafe { (&raw const (*context).uc_sigmask).cast::<u64>().read() } | mask | own;
    let cached = std::mem::replace(registers, program);
    slots.interrupted = program.stack();
    // SAFETY: the kernel's context.
    let stack = unsafe { &(*context).uc_stack };
    (slots.handlers_stack, slots.handlers_stack_bytes) = (stack.ss_sp as u64, stack.ss_size as u64);
    if let Some(whole) = &engine.whole {
        // SAFETY: as the kernel would call it, with the context as it would be natively.
        return unsafe {
            run_in_cache(
                (engine, whole),
                (&cached, &program),
                free,
                (signal, info, context),
                (handler, blocked),
            )
        };
    }
    slots.busy = 2;
    // SAFETY: as the kernel would call it, with the context as it would be natively.
    unsafe { traps::run(handler, signal, info, context, blocked) };
    system::block_signals();
    // SAFETY: the kernel's context; the reference from before is not used after the call.
    let registers = unsafe { HostContext::of(context) };
    if !engine.is_on() {
        // Also in a process that the handler forked: it continues natively.
        slots.busy = 0;
    } else if *registers == program {
        *registers = cached;
        slots.busy = 1;
    } else {
        engine.lose_by_signal(slots);
        slots.busy = 0;
    }
}

/// Runs the program's handler in the cache, and goes back. A function of its own: only here does the stack of the
/// program's handlers hold a copy of the slots.
///
/// # Safety
/// As the kernel would call the handler, with the context as it would be natively.
#[inline(never)]
unsafe fn run_in_cache(
    (engine, whole): (&Engine, &Whole),
    (cached, program): (&HostContext, &HostContext),
    free: Option<u64>,
    (signal, info, context): (i32, *mut libc::siginfo_t, *mut libc::ucontext_t),
    (handler, blocked): (Handler, u64),
) {
    // SAFETY: this thread's own.
    let slots = unsafe { &mut *Host::slots() };
    let unfinished = on_stack(free, || interruptions::begin(engine, slots, cached));
    let was = Interrupted { slots: *slots, cached: *cached, program: *program, unfinished };
    // SAFETY: the kernel's context.
    if is_on_own_stack(unsafe { &(*context).uc_stack }, &raw const was as u64) {
        slots.gate = whole.masking_gate;
    }
    system::restore_signals(blocked);
    // SAFETY: the caller's promise.
    unsafe { Host::run_in_cache(signal, info, context, handler, whole.runs_handlers) };
    system::block_signals();
    // SAFETY: the kernel's context, and this thread's slots, of which no other reference is used from here on.
    unsafe { on_stack(free, || go_back(engine, &was, &mut *Host::slots(), context)) };
}

/// The state in the cache that a signal has interrupted.
struct Interrupted {
    slots: Slots,
    /// The registers there.
    cached: HostContext,
    /// And the program's registers.
    program: HostContext,
    /// For a run that is logged: the record that a superblock was writing.
    unfinished: Option<Unfinished>,
}

/// The handler has run in the cache, and has returned: continues at the interrupted place, or at the place that the
/// handler has set.
///
/// # Safety
/// The kernel's context.
unsafe fn go_back(engine: &Engine, was: &Interrupted, slots: &mut Slots, context: *mut libc::ucontext_t) {
    // SAFETY: the caller's promise.
    let registers = unsafe { HostContext::of(context) };
    if !engine.is_on() {
        // Also in a process that the handler forked: it continues natively.
        slots.busy = 0;
        return;
    }
    if *registers == was.program {
        *registers = was.cached;
        *slots = sieve::after_handler(was.slots, slots, engine.logs_all());
        if let Some(unfinished) = &was.unfinished {
            unfinished.go_on(engine, slots, registers);
        }
        return;
    }
    let to = registers.pc();
    match engine.code.with(|code| code.way_in(engine.slots, to)) {
        Some(way_in) => {
            registers.set_pc(way_in);
            slots.busy = 1;
        }
        None => {
            engine.lose_by_signal(slots);
            slots.busy = 0;
        }
    }
}

/// The top of the engine's stack of this thread, unless a signal has interrupted the engine there. `interrupted` is the
/// stack pointer of the interrupted code.
fn free_stack(slots: &Slots, interrupted: u64) -> Option<u64> {
    let top = slots.own_stack;
    let is_used = slots.thread == 0 || top == 0 || top.wrapping_sub(interrupted) <= STACK_BYTES as u64;
    (!is_used).then_some(top)
}

/// Runs on this stack what may need more room than the program's stack for handlers has.
fn on_stack<R, F: FnOnce() -> R>(top: Option<u64>, run: F) -> R {
    let Some(top) = top else { return run() };
    let mut call = StackCall { run: Some(run), result: None };
    // SAFETY: the thread was outside the engine, which alone uses that stack, and all signals are blocked.
    unsafe { Host::call_on_stack(top, answer::<R, F>, (&raw mut call).cast()) };
    // The closure was there, and has returned.
    call.result.unwrap_or_else(|| std::process::abort())
}

/// A closure that runs on another stack.
struct StackCall<F, R> {
    run: Option<F>,
    result: Option<R>,
}

/// # Safety
/// With a [`StackCall`] of these types.
unsafe extern "C" fn answer<R, F: FnOnce() -> R>(call: *mut ()) {
    // SAFETY: the caller's promise.
    let call = unsafe { &mut *call.cast::<StackCall<F, R>>() };
    call.result = call.run.take().map(|run| run());
}

/// Whether an address lies on the handlers' own stack.
fn is_on_own_stack(stack: &libc::stack_t, place: u64) -> bool {
    stack.ss_flags & libc::SS_DISABLE == 0 && place.wrapping_sub(stack.ss_sp as u64) < stack.ss_size as u64
}

/// Whether these are the slots of another process's thread, whose memory this one borrows: it runs natively.
fn is_borrowed(slots: &Slots) -> bool {
    slots.owner != 0 && slots.owner != system::thread()
}

/// The program's registers; `None` while the engine runs.
fn program_state(engine: &Engine, slots: &Slots, registers: &HostContext) -> Option<HostContext> {
    let pc = registers.pc();
    if engine.signals.delivering.contains(&pc) {
        return Some(Host::unmasked(registers, slots));
    }
    if !engine.signals.cache.contains(&pc) {
        let is_copied = sequences::may_hold(pc);
        let at = is_copied.then(|| engine.code.with(|code| code.sequences.program_pc(pc))).flatten()?;
        let mut program = *registers;
        program.set_pc(at);
        return Some(program);
    }
    if let Some(left) = engine.code.with(|code| code.left_at(pc)) {
        let mut program = *registers;
        program.set_pc(left);
        return Some(program);
    }
    let (mark, block) = mark_at(engine, pc)?;
    Some(Host::at_mark(&mark, &block, slots, registers))
}

/// Signals that an instruction may cause.
const FAULTS: u64 = 1 << (libc::SIGSEGV - 1)
    | 1 << (libc::SIGBUS - 1)
    | 1 << (libc::SIGFPE - 1)
    | 1 << (libc::SIGILL - 1)
    | 1 << (libc::SIGTRAP - 1);

/// The signal is sent again, and arrives when the engine is done: until then all are blocked.
unsafe fn defer(
    engine: &Engine,
    slots: &mut Slots,
    signal: i32,
    info: *mut libc::siginfo_t,
    context: *mut libc::ucontext_t,
) {
    // SAFETY: the kernel's context, whose mask has 64 bits.
    let mask = unsafe { &mut *(&raw mut (*context).uc_sigmask).cast::<u64>() };
    // SAFETY: takes nothing; sends a copy of the signal to ourselves.
    unsafe {
        let thread = system::thread();
        system::own(
            libc::SYS_rt_tgsigqueueinfo,
            [system::process(), thread, signal as u64, info as u64, 0, 0],
        );
    }
    // SAFETY: as above.
    let pc = unsafe { HostContext::of(context) }.pc();
    let mut blocked = u64::MAX;
    if engine.whole.is_some() && !engine.logs_all() {
        // Blocks might not hand over to the engine for a long time.
        sieve::call(slots);
        if engine.signals.cache.contains(&pc) {
            // The rest of a block runs before the engine does, and may fault.
            blocked = !FAULTS | 1 << (signal - 1);
        }
    }
    slots.mask = std::mem::replace(mask, blocked);
    slots.deferred = 1;
    if engine.signals.going_back.contains(&pc) {
        // The gate has made its test already.
        slots.scratch = slots.resume;
        slots.resume = engine.signals.unmask;
    }
}
