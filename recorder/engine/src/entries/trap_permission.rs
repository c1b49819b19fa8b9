//! Traps in the program's code: whether they may stand there, and the handling that they need.

use crate::engine::Engine;
use crate::entries::{code_changes, traps};
use crate::machine::{Abi, Host};
use crate::signals::{actions, handlers};
use crate::system;
use crate::system::mappings::{self, Mapping};
use crate::threads::slots::at;
use lineup_recording::native::Refusal;
use std::sync::atomic::Ordering;

/// Makes a trap possible at a place. `blocked` are the signals that the program blocks in this thread.
pub(crate) fn permit(engine: &Engine, pc: u64, blocked: u64) -> Result<(), Refusal> {
    if is_used(&mappings::read(), pc) {
        return Err(Refusal::EngineUses);
    }
    if traps::are_on() {
        return Ok(());
    }
    let has_begun = engine.is_on();
    // The command handles the threads of an attached program, while they stand still. Other threads must not be in code
    // that is changed for masks, and this thread cannot change their masks.
    let is_late =
        !code_changes::defers() && (system::threads() != 1 || has_begun && blocked & traps::BIT != 0);
    if is_late {
        return Err(Refusal::TooLate);
    }
    actions::while_still(|| {
        let action = actions::current(libc::SIGTRAP as usize).unwrap_or(actions::NO_ACTION);
        actions::keep(libc::SIGTRAP as usize, &action);
        traps::set_on(true);
        actions::put(libc::SIGTRAP as usize, &handlers::kernels(&action));
    });
    engine.shared.control().trap_slot.store(at!(own.calls.blocks_trap) as u64, Ordering::Release);
    if !code_changes::defers() && !has_begun {
        // SAFETY: this thread's own.
        unsafe { (*Host::slots()).own.calls.blocks_trap = blocked & traps::BIT };
        system::restore_signals(blocked & !traps::BIT);
    }
    Ok(())
}

/// Whether the engine calls functions of the file that an address lies in, or may do so.
fn is_used(maps: &[Mapping], pc: u64) -> bool {
    let called = [
        libc::pthread_key_create as *const () as u64,
        libc::pthread_key_delete as *const () as u64,
        libc::pthread_setspecific as *const () as u64,
        // A program may have its own.
        libc::strlen as *const () as u64,
    ];
    let path = |pc: u64| maps.iter().find(|one| one.range.contains(&pc)).map(|one| one.path.as_str());
    let Some(own) = path(pc) else { return true };
    let is_loader = own.rsplit('/').next().is_some_and(|name| name.starts_with("ld-") || name == "ld.so");
    is_loader || called.into_iter().any(|called| path(called) == Some(own))
}

/// Gives the handling of SIGTRAP back: the program's code has no trap any more. Threads that have just met one continue
/// through our handler, which has begun.
pub(crate) fn give_back() {
    actions::while_still(|| {
        if traps::are_on() {
            handlers::put_programs(libc::SIGTRAP as usize);
            traps::set_on(false);
        }
    });
}
