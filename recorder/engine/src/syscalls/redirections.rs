//! System calls of the C library that lead to the engine.

use crate::engine::Engine;
use crate::entries::{code_changes, traps};
use crate::machine::{CallSite, Entries, Gates, Host, Led};
use crate::signals::{handlers, masks};
use crate::syscalls::{calls, guards, processes};
use lineup_recording::native::timed;
use std::sync::atomic::Ordering;

/// Redirects the C library's system calls that the engine must handle: those that set a signal's handler, and those
/// that map and unmap memory. Calls that start a process or a program lead to the engine before they are made.
pub(crate) fn system_calls(engine: &Engine) {
    let mut led: Vec<Led> = vec![
        (libc::SYS_mmap, calls::map_from_site as *const () as u64, false),
        (libc::SYS_munmap, calls::unmap_from_site as *const () as u64, false),
        (libc::SYS_mremap, calls::remap_from_site as *const () as u64, false),
    ];
    led.extend(processes::led());
    if engine.shared.control().mode.load(Ordering::Relaxed) != timed::MODE {
        led.push((libc::SYS_rt_sigaction, handlers::from_site as *const () as u64, false));
    }
    code_changes::in_others_code(engine, None, |code, start, leader| {
        for (site, (number, function, goes_on)) in sites(code, &led) {
            let at = start + site.offset as u64;
            let in_place =
                Host::in_place_of_call(*function, goes_on.then_some(*number as u32), at + site.bytes);
            leader.lead(at, |_| Some(in_place));
        }
    });
    guards::lead(engine, None);
    if traps::are_on() {
        masks::lead(engine, None);
    }
}

/// System calls in code that are redirected to functions.
fn sites<'a>(code: &'a [u8], led: &'a [Led]) -> impl Iterator<Item = (CallSite, &'a Led)> {
    let is_of = |site: &CallSite| led.iter().find(|(number, ..)| *number == site.number);
    Host::call_sites(code).filter_map(move |site| Some((site, is_of(&site)?)))
}
