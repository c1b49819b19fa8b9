//! The program's limit of its address space. The engine's memory lies there, too: the kernel gets a limit with room for
//! it, and the program reads the one that it has set.

use crate::engine::{self, Engine};
use crate::machine::{HostRegisters, Led, Registers};
use crate::system::{self, holdings, lock};
use std::sync::atomic::{AtomicU64, Ordering};

const NUMBERS: [i64; 3] = [libc::SYS_setrlimit, libc::SYS_getrlimit, libc::SYS_prlimit64];
/// Room for memory that the engine maps later.
const LATER_BYTES: u64 = 256 << 20;
/// The bytes by which the limit is above the program's.
static RAISED: AtomicU64 = AtomicU64::new(0);

/// A limit and the most to which it may be raised.
type Limit = [u64; 2];

/// The functions that calls of each of these numbers lead to.
pub(crate) fn led() -> [Led; NUMBERS.len()] {
    let functions: [unsafe extern "C" fn(*mut HostRegisters); NUMBERS.len()] =
        [set_from_site, get_from_site, change_from_site];
    std::array::from_fn(|place| (NUMBERS[place], functions[place] as *const () as u64, false))
}

/// Whether calls of a number are made here.
pub(crate) fn watch(number: i64) -> bool {
    NUMBERS.contains(&number)
}

/// From a system call that sets a limit.
///
/// # Safety
/// Only from [`crate::machine::Gates::in_place_of_call`], with the registers of the system call.
unsafe extern "C" fn set_from_site(registers: *mut HostRegisters) {
    // SAFETY: the caller's promise.
    unsafe { from_site(registers, libc::SYS_setrlimit) };
}

/// From one that reads a limit.
///
/// # Safety
/// As for [`set_from_site`].
unsafe extern "C" fn get_from_site(registers: *mut HostRegisters) {
    // SAFETY: the caller's promise.
    unsafe { from_site(registers, libc::SYS_getrlimit) };
}

/// From one that does both.
///
/// # Safety
/// As for [`set_from_site`].
unsafe extern "C" fn change_from_site(registers: *mut HostRegisters) {
    // SAFETY: the caller's promise.
    unsafe { from_site(registers, libc::SYS_prlimit64) };
}

unsafe fn from_site(registers: *mut HostRegisters, number: i64) {
    // SAFETY: the caller's promise.
    let registers = unsafe { &mut *registers };
    registers.set_call(number);
    let result = match engine::get() {
        Some(engine) => make(engine, registers),
        // SAFETY: the program's own system call.
        None => unsafe { system::call(number, registers.arguments()) },
    };
    registers.come_back_to_site();
    registers.set_result(result as u64);
}

/// Makes such a call for the program.
pub(crate) fn make(engine: &Engine, registers: &HostRegisters) -> i64 {
    let number = registers.call();
    let mut arguments = registers.arguments();
    let [first, second, third, fourth, ..] = arguments;
    let (resource, new, old) = match number {
        libc::SYS_setrlimit => (first, second, 0),
        libc::SYS_getrlimit => (first, 0, second),
        _ if first as u32 == 0 || first == system::process() => (second, third, fourth),
        _ => (u64::MAX, 0, 0),
    };
    // A limit of a process that borrows this one's memory is its own.
    let is_ours = resource as u32 == libc::RLIMIT_AS && !lock::is_borrowed();
    let before = RAISED.load(Ordering::Acquire);
    let raised = match is_ours && engine.is_on() && new != 0 {
        true => read(new).map(|limit| raise(limit, held_bytes() + LATER_BYTES)),
        false => None,
    };
    if let Some((limit, _)) = &raised {
        arguments[if number == libc::SYS_setrlimit { 1 } else { 2 }] = limit.as_ptr() as u64;
    }
    // SAFETY: the program's own system call, with a limit of this function's.
    let result = unsafe { system::call(number, arguments) };
    if result < 0 || !is_ours {
        return result;
    }
    if old != 0 {
        // SAFETY: the kernel has just written there.
        unsafe { old_limit(old as *mut Limit, before) };
    }
    if let Some((_, by)) = raised {
        RAISED.store(by, Ordering::Release);
        if by > 0 {
            engine.shared.note(&format!(
                "the program limits its address space: the kernel's limit is {} MB higher, since the engine's memory lies \
                 there, too",
                by >> 20
            ));
        }
    }
    result
}

fn read(at: u64) -> Option<Limit> {
    let mut bytes = [0; 16];
    (system::read_memory(at, &mut bytes) == bytes.len()).then_some(())?;
    let (words, _) = bytes.as_chunks::<8>();
    Some([u64::from_le_bytes(words[0]), u64::from_le_bytes(words[1])])
}

/// The limit with more room, and the room.
fn raise(limit: Limit, by: u64) -> (Limit, u64) {
    let is_none = limit[0] == libc::RLIM_INFINITY;
    let higher = |bytes: u64| if bytes == libc::RLIM_INFINITY { bytes } else { bytes.saturating_add(by) };
    (limit.map(higher), if is_none { 0 } else { by })
}

/// Takes the room out of a limit that the kernel has given.
///
/// # Safety
/// Memory of the program that can be written.
unsafe fn old_limit(at: *mut Limit, by: u64) {
    // SAFETY: the caller's promise.
    let limit = unsafe { at.read_unaligned() };
    let own = limit.map(|bytes| if bytes == libc::RLIM_INFINITY { bytes } else { bytes.saturating_sub(by) });
    // SAFETY: as above.
    unsafe { at.write_unaligned(own) };
}

fn held_bytes() -> u64 {
    let mut sum = 0;
    holdings::each(|_, bytes| sum += bytes);
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_raised_and_the_program_reads_its_own() {
        let (limit, by) = raise([300, libc::RLIM_INFINITY], 50);
        assert_eq!((limit, by), ([350, libc::RLIM_INFINITY], 50));
        let mut read = limit;
        // SAFETY: a variable.
        unsafe { old_limit(&raw mut read, by) };
        assert_eq!(read, [300, libc::RLIM_INFINITY]);
        assert_eq!(raise([libc::RLIM_INFINITY; 2], 50), ([libc::RLIM_INFINITY; 2], 0));
    }
}
