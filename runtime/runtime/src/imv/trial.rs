//! A site of our own on which a way to write is tried before it is trusted.
//!
//! A write may succeed and change nothing that is executed (some emulators translate code once), so only a read
//! that sees the new value counts.

use super::arch::{Form, Site};
use super::patch::{self, Mode, Scratch};
use super::write::{WritePath, Writer};

// Two bytes: on every architecture its change is a change of an instruction, not of a literal.
crate::define_imv! {
    static TRIAL: u16 = ORDINARY;
}

const ORDINARY: u16 = 0x0101;
const PATCHED: u16 = 0x5eed;

/// The address of the trial variable.
pub(super) fn cell() -> usize {
    TRIAL.address()
}

#[inline(never)]
fn read() -> u16 {
    crate::imv_read!(TRIAL)
}

/// Returns the writer when a read returns a value patched with it.
pub(super) fn passes(mut writer: Writer, site: Site) -> Option<Writer> {
    if !reads_own_memory(&writer, site.address) {
        return None;
    }
    let mut scratch = Scratch::default();
    let mut give = |site: Site, value: u16| {
        patch::apply(&mut writer, &mut scratch, &[(site, u64::from(value))], Mode::Direct).is_ok()
            && read() == value
    };
    let before = read();
    let works =
        (before == ORDINARY) && give(site, PATCHED) && give(Site { form: Form::Immediate, ..site }, ORDINARY);
    works.then_some(writer)
}

/// True when `/proc/self/mem` shows this very address space: under an emulator it may be another.
fn reads_own_memory(writer: &Writer, address: usize) -> bool {
    use std::os::unix::fs::FileExt;
    let Writer::ProcMem(file) = writer else { return writer.path() != WritePath::ProcMem };
    let mut seen = [0u8; 8];
    // SAFETY: eight bytes of the trial site's own instruction, in a mapped code page.
    let own = unsafe { (address as *const [u8; 8]).read_unaligned() };
    file.read_exact_at(&mut seen, address as u64).is_ok() && seen == own
}
