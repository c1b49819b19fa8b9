//! The patching protocol: from a list of sites and values to stores, barriers and traps.
//!
//! *Direct* mode makes one aligned store per site, then one barrier for all, where a store appears at once. Processor
//! vendors call that unsynchronised cross-modification and leave its result open; the torture tests measure that a core
//! executes either the old or the new instruction; no manual promises it. *Conservative* mode follows the documented
//! way: a trap instruction first, a barrier, the other bytes, a barrier, the first byte, a barrier; a thread that meets
//! the trap is given the new value by the handler. A thread that blocks SIGTRAP is killed by the kernel when it meets
//! one.

use super::arch::{self, Encoding, SITE_BYTES_MAX, Site, Store, TRAP};
use super::barrier;
use super::trap;
use super::write::Writer;
use std::io;

/// The way code is changed while threads run.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Mode {
    /// One aligned store per site, one barrier for the batch; a store that could be seen half made goes the other way.
    #[default]
    Direct,
    /// Trap, barrier, rest, barrier, first byte, barrier.
    Conservative,
}

/// Bytes of code at `address`: the maximum that a site there may own.
fn code_at(site: &Site) -> [u8; SITE_BYTES_MAX] {
    let mut code = [0u8; SITE_BYTES_MAX];
    let len = if cfg!(target_arch = "x86_64") && site.size_bytes != 8 { 8 } else { 10 };
    let len = if cfg!(target_arch = "aarch64") { if site.size_bytes >= 4 { 16 } else { 4 } } else { len };
    let len =
        if site.kind == arch::Kind::Branch { if cfg!(target_arch = "x86_64") { 8 } else { 4 } } else { len };
    // SAFETY: the site's own bytes, in a mapped code page. Only a set writes there, and sets are serialised.
    unsafe { std::ptr::copy_nonoverlapping(site.address as *const u8, code.as_mut_ptr(), len) };
    code
}

/// Reads the kind of `site` and decides if it can be patched.
pub(super) fn analyse(mut site: Site) -> Option<Site> {
    site.dormant = code_at(&site);
    site.register = arch::analyse(&site, &site.dormant)?;
    Some(site)
}

/// True when the site's bytes are no longer those that the macros emitted.
pub(super) fn is_changed(site: &Site) -> bool {
    code_at(site) != site.dormant
}

/// Room for one change of every site, reserved when sites are registered: a set in a signal handler may have
/// interrupted the allocator on its own thread, so it must not allocate.
#[derive(Default, Debug)]
pub(super) struct Scratch {
    encoded: Vec<(Site, Encoding)>,
    stores: Vec<Store>,
}

impl Scratch {
    /// Makes room for `sites` sites.
    pub(super) fn reserve(&mut self, sites: usize) {
        const STORES_PER_SITE: usize = 8;
        self.encoded.clear();
        self.encoded.reserve(sites);
        self.stores.clear();
        self.stores.reserve(STORES_PER_SITE * sites);
    }

    /// Writes the result of `piece` for every site that is (or is not) `direct`, then the barrier.
    fn step(
        &mut self,
        writer: &mut Writer,
        wanted: impl Fn(&Encoding) -> bool,
        mut piece: impl FnMut(&Site, &Encoding, &mut Vec<Store>),
    ) -> io::Result<()> {
        self.stores.clear();
        for (site, encoding) in self.encoded.iter().filter(|(_, encoding)| wanted(encoding)) {
            piece(site, encoding, &mut self.stores);
        }
        if self.stores.is_empty() {
            return Ok(());
        }
        writer.write(&mut self.stores)?;
        synchronise()
    }
}

/// Gives every site its value. On success every thread sees it from its next read on.
pub(super) fn apply(
    writer: &mut Writer,
    scratch: &mut Scratch,
    changes: &[(Site, u64)],
    mode: Mode,
) -> io::Result<()> {
    let encoded = changes.iter().map(|(site, value)| {
        let mut encoding = arch::encode(site, *value, &code_at(site));
        encoding.direct = encoding
            .direct
            .filter(|(stores, count)| stores[..*count].iter().all(|store| writer.appears_at_once(store)));
        (*site, encoding)
    });
    scratch.encoded.clear();
    scratch.encoded.extend(encoded);
    let is_direct = |encoding: &Encoding| mode == Mode::Direct && encoding.direct.is_some();
    for round in 0..2 {
        scratch.step(writer, is_direct, |_, encoding, stores| {
            stores
                .extend(encoding.direct.filter(|(_, count)| round < *count).map(|(direct, _)| direct[round]));
        })?;
    }
    if scratch.encoded.iter().all(|(_, encoding)| is_direct(encoding)) {
        return Ok(());
    }
    if !trap::install() {
        return Err(io::Error::last_os_error());
    }
    let trapped = |encoding: &Encoding| !is_direct(encoding);
    let first = TRAP.len();
    scratch.step(writer, trapped, |site, _, stores| pieces(site.address, TRAP, stores))?;
    scratch.step(writer, trapped, |site, encoding, stores| {
        pieces(site.address + first, &encoding.bytes[first..encoding.len], stores);
    })?;
    scratch.step(writer, trapped, |site, encoding, stores| {
        pieces(site.address, &encoding.bytes[..first], stores);
    })
}

/// Adds `bytes` at `address` as aligned stores.
fn pieces(mut address: usize, mut bytes: &[u8], stores: &mut Vec<Store>) {
    while !bytes.is_empty() {
        let len = [8, 4, 2]
            .into_iter()
            .find(|len| address.is_multiple_of(*len) && bytes.len() >= *len)
            .unwrap_or(1);
        let (piece, rest) = bytes.split_at(len);
        let mut word = [0u8; 8];
        word[..len].copy_from_slice(piece);
        stores.push(Store { address, value: u64::from_le_bytes(word), bytes: len as u8 });
        address += len;
        bytes = rest;
    }
}

fn synchronise() -> io::Result<()> {
    if barrier::sync_cores() { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_aligned_and_cover_every_byte_once() {
        let bytes: Vec<u8> = (0..13).collect();
        for start in 0x1000..0x1008 {
            let mut stores = Vec::new();
            pieces(start, &bytes, &mut stores);
            let mut at = start;
            for store in &stores {
                assert_eq!(store.address, at);
                assert_eq!(store.address % usize::from(store.bytes), 0);
                let expected = &bytes[at - start..at - start + usize::from(store.bytes)];
                assert_eq!(&store.value.to_le_bytes()[..expected.len()], expected);
                at += usize::from(store.bytes);
            }
            assert_eq!(at, start + bytes.len());
        }
    }
}
