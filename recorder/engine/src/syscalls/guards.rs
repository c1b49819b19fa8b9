//! System calls of the program after which the engine could not work as before: those that forbid other calls
//! (seccomp), that give a thread another base, and that register memory for restartable sequences with a signature of
//! the program's own.
//!
//! They lead to the engine before they are made, at every place where the program makes them: in the cache, in the code
//! of its files that sets their number, and in the C library's function for any call.

use crate::cache::sequence_copies;
use crate::engine::{self, Engine};
use crate::entries::{code_changes, restore, trap_permission, traps};
use crate::machine::{Abi, Entries, Gates, Host, HostRegisters, Led, Registers, SpreadSite};
use crate::signals::{handlers, masks};
use crate::syscalls::{address_limits, filters, processes};
use crate::system::{self, allocator, lock};
use lineup_recording::native::{timed, whole};
use std::sync::atomic::{AtomicU32, Ordering};

const NUMBERS: [i64; 4] = [libc::SYS_prctl, libc::SYS_seccomp, libc::SYS_rseq, Host::SET_BASE.0];

/// The functions that calls of each of these numbers lead to.
fn led() -> [Led; NUMBERS.len()] {
    let functions: [unsafe extern "C" fn(*mut HostRegisters); NUMBERS.len()] =
        [before_prctl, before_seccomp, before_rseq, before_base];
    std::array::from_fn(|place| (NUMBERS[place], functions[place] as *const () as u64, true))
}

/// The thread's way of continuing after such a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum After {
    /// As before.
    AsBefore,
    /// Natively, before the call. Recording stops.
    Natively,
}

/// Threads that the engine runs for.
static INSIDE: AtomicU32 = AtomicU32::new(0);

/// Does the engine's work for a thread.
pub(crate) fn inside<R>(work: impl FnOnce() -> R) -> R {
    INSIDE.fetch_add(1, Ordering::AcqRel);
    let result = work();
    INSIDE.fetch_sub(1, Ordering::AcqRel);
    result
}

/// Waits until the engine runs for at most `own` threads: the others have system calls to make.
fn wait_for_others(own: u32) {
    const ROUNDS: u32 = 20_000;
    const ROUND_NS: i64 = 50_000;
    for _ in 0..ROUNDS {
        if INSIDE.load(Ordering::Acquire) <= own {
            return;
        }
        system::sleep_ns(ROUND_NS);
    }
}

/// Leads such calls in the program's files to the engine, or those in the code that an address lies in.
pub(crate) fn lead(engine: &Engine, only: Option<u64>) {
    let led = [&led()[..], &address_limits::led()].concat();
    let numbers: Vec<i64> = led.iter().map(|(number, ..)| *number).collect();
    let masks = (libc::SYS_rt_sigprocmask, masks::from_site as *const () as u64, false);
    let all: Vec<Led> = led.iter().copied().chain([masks]).chain(processes::led()).collect();
    code_changes::in_others_code(engine, only, |code, start, leader| {
        for site in Host::spread_sites(code, start, &numbers) {
            let function = led.iter().find(|(number, ..)| *number == site.number());
            leader.lead(site.at(), |at| function.and_then(|one| site.code(at, one.1, one.2)));
        }
        for at in Host::any_call_sites(code, start) {
            leader.lead(at, |_| Some(Host::in_place_of_any_call(at, &all)));
        }
    });
}

/// Before such a call that the program makes natively.
///
/// # Safety
/// Only from [`crate::machine::Gates::in_place_of_call`], with the registers of the system call.
unsafe extern "C" fn before_prctl(registers: *mut HostRegisters) {
    // SAFETY: the caller's promise.
    unsafe { before_natively(registers, libc::SYS_prctl) };
}

/// As [`before_prctl`].
///
/// # Safety
/// As for [`before_prctl`].
unsafe extern "C" fn before_seccomp(registers: *mut HostRegisters) {
    // SAFETY: the caller's promise.
    unsafe { before_natively(registers, libc::SYS_seccomp) };
}

/// As [`before_prctl`].
///
/// # Safety
/// As for [`before_prctl`].
unsafe extern "C" fn before_rseq(registers: *mut HostRegisters) {
    // SAFETY: the caller's promise.
    unsafe { before_natively(registers, libc::SYS_rseq) };
}

/// As [`before_prctl`].
///
/// # Safety
/// As for [`before_prctl`].
unsafe extern "C" fn before_base(registers: *mut HostRegisters) {
    // SAFETY: the caller's promise.
    unsafe { before_natively(registers, Host::SET_BASE.0) };
}

unsafe fn before_natively(registers: *mut HostRegisters, number: i64) {
    // SAFETY: the caller's promise.
    let registers = unsafe { &mut *registers };
    // The jump replaces the site's first instruction, which sets the number.
    registers.set_call(number);
    if let Some(engine) = engine::get() {
        before(engine, registers, 0);
    }
}

/// Whether calls of a number are looked at.
pub(crate) fn watch(number: i64) -> bool {
    NUMBERS.contains(&number)
}

/// Handles such a call before it is made. `own` is the calling thread's share of [`INSIDE`].
pub(crate) fn before(engine: &Engine, registers: &HostRegisters, own: u32) -> After {
    let number = registers.call();
    let [first, second, third, fourth, ..] = registers.arguments();
    if lock::is_borrowed() {
        // A limit of this process is its own, but the state here belongs to the other process.
        return After::AsBefore;
    }
    if !engine.is_on() {
        // A forked process still calls the engine where it sets handlers and maps memory.
        if forbidden(number, [first, second, third]).is_some() {
            system::seal();
        }
        return After::AsBefore;
    }
    if number == libc::SYS_rseq {
        let is_registered = third == 0;
        if is_registered {
            sequence_copies::add_signature(engine, fourth as u32);
        }
        return After::AsBefore;
    }
    if (number, first) == Host::SET_BASE {
        stop(
            engine,
            "the program sets the base of a thread by itself, where the engine's words of the thread lie",
        );
        return After::Natively;
    }
    let is_whole = engine.shared.control().mode.load(Ordering::Relaxed) == whole::MODE;
    if forbids_counter(number, [first, second]) && !is_whole {
        stop(
            engine,
            "the program forbids itself the processor's counter, which the engine reads at each call",
        );
        wait_for_others(own);
        if (number, first) != (libc::SYS_prctl, libc::PR_SET_TSC as u64) {
            system::seal();
        }
        return After::Natively;
    }
    if filter(number, [first, second, third]).is_some_and(filters::forbids_start) {
        processes::hide_from_programs();
    }
    match forbidden(number, [first, second, third]) {
        Some(call) => limit(engine, call, own),
        None => After::AsBefore,
    }
}

/// Whether a call makes the processor's counter end the program: the strict mode of seccomp does, too.
fn forbids_counter(number: i64, [first, second]: [u64; 2]) -> bool {
    match (number, first) == (libc::SYS_prctl, libc::PR_SET_TSC as u64) {
        true => second == libc::PR_TSC_SIGSEGV as u64,
        false => sets_strict(number, [first, second]),
    }
}

/// Whether a call sets the strict mode of seccomp.
fn sets_strict(number: i64, [first, second]: [u64; 2]) -> bool {
    let by_prctl = first == libc::PR_SET_SECCOMP as u64 && second == u64::from(libc::SECCOMP_MODE_STRICT);
    match number {
        libc::SYS_prctl => by_prctl,
        libc::SYS_seccomp => first == u64::from(libc::SECCOMP_SET_MODE_STRICT),
        _ => false,
    }
}

/// Address of the filter that a call installs.
fn filter(number: i64, [first, second, third]: [u64; 3]) -> Option<u64> {
    let by_prctl = first == libc::PR_SET_SECCOMP as u64 && second == u64::from(libc::SECCOMP_MODE_FILTER);
    let is_installed = match number {
        libc::SYS_prctl => by_prctl,
        libc::SYS_seccomp => first == u64::from(libc::SECCOMP_SET_MODE_FILTER),
        _ => false,
    };
    is_installed.then_some(third)
}

/// The first of the engine's own calls that this call forbids.
fn forbidden(number: i64, arguments: [u64; 3]) -> Option<&'static str> {
    let [first, second, _] = arguments;
    match sets_strict(number, [first, second]) {
        true => Some("every call but read, write, exit and rt_sigreturn"),
        false => filter(number, arguments).and_then(filters::forbidden_by),
    }
}

/// Makes the engine run without system calls of its own, since one would end the program. Functions that need none keep
/// working.
fn limit(engine: &Engine, call: &str, own: u32) -> After {
    let is_timed = engine.shared.control().mode.load(Ordering::Relaxed) == timed::MODE;
    if is_timed {
        engine.shared.note(&format!(
            "the program's seccomp filter forbids {call}, which the engine needs for threads that make their first call \
             later: their calls are not timed"
        ));
        system::seal();
        return After::AsBefore;
    }
    // The C library's own handlers are set with the first thread, and called when the process changes its user or a
    // thread is cancelled: with them the program runs as it would alone.
    if handlers::are_set() || traps::are_on() {
        stop(
            engine,
            &format!(
                "its seccomp filter forbids {call}, which the engine needs where a program handles signals"
            ),
        );
        wait_for_others(own);
        system::seal();
        return After::Natively;
    }
    let signals = system::block_signals();
    engine.code.with(|code| code.read_ahead());
    system::restore_signals(signals);
    engine.shared.note(&format!(
        "the program's seccomp filter forbids {call}: from there on the engine makes no system call, and records neither \
         threads that begin nor code that is loaded later"
    ));
    handlers::give_back();
    wait_for_others(own);
    match allocator::reserve_memory() {
        true => {
            system::seal();
            After::AsBefore
        }
        false => {
            stop(engine, "there is no memory for what the engine needs behind its seccomp filter");
            system::seal();
            After::Natively
        }
    }
}

/// Stops recording, and removes all traces of the engine from the program.
fn stop(engine: &Engine, why: &str) {
    engine.stop(why);
    handlers::give_back();
    if traps::are_on() {
        restore::take_out_traps(engine);
        trap_permission::give_back();
    }
}
