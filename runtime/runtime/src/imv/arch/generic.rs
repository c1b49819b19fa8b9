//! Machines without an encoding: the headers and macros emit plain loads and no sites, so nothing is ever patched.

use super::{Encoding, SITE_BYTES_MAX, Site};

/// No trap protocol.
pub(in crate::imv) const TRAP: &[u8] = &[];

/// No site can be patched.
pub(in crate::imv) fn analyse(_site: &Site, _code: &[u8; SITE_BYTES_MAX]) -> Option<u8> {
    None
}

/// Leaves the code unchanged.
pub(in crate::imv) fn encode(_site: &Site, _value: u64, code: &[u8; SITE_BYTES_MAX]) -> Encoding {
    Encoding { bytes: *code, len: 0, direct: None }
}

/// Nothing is patched, so nothing needs flushing.
pub(in crate::imv) fn flush_code(_address: usize, _len: usize) {}

/// No trap is ours.
pub(in crate::imv) fn trapped_at(_context: &libc::ucontext_t) -> usize {
    0
}

/// Never called: no site is registered.
pub(in crate::imv) fn emulate(_site: &Site, _context: &mut libc::ucontext_t) {}
