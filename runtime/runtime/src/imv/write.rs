//! The ways to write to code without a page that is writable and executable at once.

use super::arch::{Store, flush_code};
use std::collections::BTreeMap;
use std::io;

/// The way code is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WritePath {
    /// Through `/proc/self/mem`: the page stays a private page of its file, with its name, its breakpoints and uprobes;
    /// a forked child is independent. The kernel copies the bytes, and not always an aligned word in one piece: on
    /// x86-64 only a change of one byte is written this way without a trap.
    ProcMem,
    /// Through a second, writable mapping of a memory file that replaces the page: a true atomic store. A forked
    /// child shares the page until the fork handler has given it its own.
    Alias,
    /// By preparing a private copy of the page and moving it over the old one: all of the change appears at once.
    /// The page loses its file's name, and breakpoints set through the kernel.
    Swap,
}

impl WritePath {
    /// The paths by which a change appears at once come first; of them, first the one that a bare `clone` does not
    /// share.
    pub(super) const BY_PREFERENCE: [WritePath; 3] = [WritePath::Swap, WritePath::Alias, WritePath::ProcMem];
}

/// A writer of code.
#[derive(Debug)]
pub(super) enum Writer {
    ProcMem(std::fs::File),
    Alias(BTreeMap<usize, usize>),
    Swap,
}

pub(super) fn page_bytes() -> usize {
    // SAFETY: sysconf reads a constant.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}

fn checked_map(result: *mut libc::c_void) -> io::Result<usize> {
    if result == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(result as usize) }
}

impl Writer {
    /// A writer of this kind, or why the system forbids it.
    pub(super) fn open(path: WritePath) -> io::Result<Self> {
        match path {
            WritePath::ProcMem => {
                std::fs::OpenOptions::new().read(true).write(true).open("/proc/self/mem").map(Self::ProcMem)
            }
            WritePath::Alias => Ok(Self::Alias(BTreeMap::new())),
            WritePath::Swap => Ok(Self::Swap),
        }
    }

    pub(super) fn path(&self) -> WritePath {
        match self {
            Self::ProcMem(_) => WritePath::ProcMem,
            Self::Alias(_) => WritePath::Alias,
            Self::Swap => WritePath::Swap,
        }
    }

    /// True when a thread that executes there sees all of a store or nothing of it. On x86-64 Linux copies a write to
    /// `/proc/self/mem` by `rep movsb` where processors have it fast for short copies (`fsrm`), and other cores see its
    /// bytes one after the other. On AArch64 it was a store of the whole word; that is not promised.
    pub(super) fn appears_at_once(&self, store: &Store) -> bool {
        if !cfg!(target_arch = "x86_64") || self.path() != WritePath::ProcMem {
            return true;
        }
        let new = store.value.to_le_bytes();
        // SAFETY: bytes of a site that is about to be written, in a mapped code page. Only a set writes there, and sets
        // are serialised.
        let is_new = |at: usize| unsafe { *((store.address + at) as *const u8) } != new[at];
        (0..usize::from(store.bytes)).filter(|at| is_new(*at)).count() <= 1
    }

    /// Makes every store; their order within one call is not defined. Allocates only for a page never written before.
    pub(super) fn write(&mut self, stores: &mut [Store]) -> io::Result<()> {
        match self {
            Self::ProcMem(file) => stores.iter().try_for_each(|store| write_proc_mem(file, store))?,
            Self::Alias(pages) => stores.iter().try_for_each(|store| write_alias(pages, store))?,
            Self::Swap => swap_pages(stores)?,
        }
        for store in &*stores {
            flush_code(store.address, usize::from(store.bytes));
        }
        Ok(())
    }

    /// Gives this process its own pages: writes through a memory file shared with another no longer reach it.
    pub(super) fn make_private(&mut self) -> io::Result<()> {
        match self {
            // The old descriptor still names the parent's memory.
            Self::ProcMem(_) => *self = Self::open(WritePath::ProcMem)?,
            Self::Alias(pages) => {
                for (page, alias) in std::mem::take(pages) {
                    replace_page(page, &[])?;
                    // SAFETY: the alias is a mapping of ours that nothing refers to any more.
                    unsafe { libc::munmap(alias as *mut libc::c_void, page_bytes()) };
                }
            }
            Self::Swap => {}
        }
        Ok(())
    }

    /// Forgets pages inside `range`, whose image is about to be unmapped.
    pub(super) fn forget(&mut self, range: std::ops::Range<usize>) {
        if let Self::Alias(pages) = self {
            pages.retain(|page, alias| {
                let stays = !range.contains(page);
                if !stays {
                    // SAFETY: the alias is a mapping of ours that nothing refers to any more.
                    unsafe { libc::munmap(*alias as *mut libc::c_void, page_bytes()) };
                }
                stays
            });
        }
    }
}

fn write_proc_mem(file: &std::fs::File, store: &Store) -> io::Result<()> {
    use std::os::unix::fs::FileExt;
    file.write_all_at(&store.value.to_le_bytes()[..usize::from(store.bytes)], store.address as u64)
}

/// The pages that hold `store`: its bytes may lie on two.
fn write_alias(pages: &mut BTreeMap<usize, usize>, store: &Store) -> io::Result<()> {
    let page_bytes = page_bytes();
    let page = store.address & !(page_bytes - 1);
    let alias = match pages.get(&page) {
        Some(alias) => *alias,
        None => {
            let alias = make_alias(page)?;
            pages.insert(page, alias);
            alias
        }
    };
    super::cell::store(alias + (store.address - page), store.bytes, store.value);
    Ok(())
}

/// Replaces `page` by a page of a memory file and returns the address of its writable mapping.
fn make_alias(page: usize) -> io::Result<usize> {
    const MFD_EXEC: libc::c_uint = 0x10;
    let page_bytes = page_bytes();
    // SAFETY: plain system calls on a descriptor of our own; `page` is a mapped, readable code page, so copying
    // from it reads live memory. The replacement holds the same bytes, and the kernel installs it under the
    // address-space lock: a thread that executes there meanwhile faults, waits, and continues with equal code.
    unsafe {
        let name = c"lineup-imv".as_ptr();
        let mut memory = libc::memfd_create(name, libc::MFD_CLOEXEC | MFD_EXEC);
        if memory < 0 {
            memory = libc::memfd_create(name, libc::MFD_CLOEXEC);
        }
        if memory < 0 {
            return Err(io::Error::last_os_error());
        }
        let map = |address: usize, protection: libc::c_int, flags: libc::c_int| {
            checked_map(libc::mmap(
                address as *mut _,
                page_bytes,
                protection,
                flags | libc::MAP_SHARED,
                memory,
                0,
            ))
        };
        let result = (|| {
            if libc::ftruncate(memory, page_bytes as libc::off_t) != 0 {
                return Err(io::Error::last_os_error());
            }
            let alias = map(0, libc::PROT_READ | libc::PROT_WRITE, 0)?;
            std::ptr::copy_nonoverlapping(page as *const u8, alias as *mut u8, page_bytes);
            flush_code(alias, page_bytes);
            map(page, libc::PROT_READ | libc::PROT_EXEC, libc::MAP_FIXED)?;
            Ok(alias)
        })();
        libc::close(memory);
        result
    }
}

fn swap_pages(stores: &mut [Store]) -> io::Result<()> {
    let mask = !(page_bytes() - 1);
    stores.sort_unstable_by_key(|store| store.address);
    stores
        .chunk_by(|a, b| a.address & mask == b.address & mask)
        .try_for_each(|on_one_page| replace_page(on_one_page[0].address & mask, on_one_page))
}

/// Replaces `page` by a private copy with `stores` made.
fn replace_page(page: usize, stores: &[Store]) -> io::Result<()> {
    let page_bytes = page_bytes();
    // SAFETY: as for `make_alias`. The copy is writable only while nothing executes it, executable only after.
    unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let copy = checked_map(libc::mmap(std::ptr::null_mut(), page_bytes, protection, flags, -1, 0))?;
        std::ptr::copy_nonoverlapping(page as *const u8, copy as *mut u8, page_bytes);
        for store in stores {
            super::cell::store(copy + (store.address - page), store.bytes, store.value);
        }
        flush_code(copy, page_bytes);
        let fixed = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        let moved = libc::mprotect(copy as *mut _, page_bytes, libc::PROT_READ | libc::PROT_EXEC) == 0
            && libc::mremap(copy as *mut _, page_bytes, page_bytes, fixed, page as *mut libc::c_void)
                != libc::MAP_FAILED;
        if !moved {
            let error = io::Error::last_os_error();
            libc::munmap(copy as *mut _, page_bytes);
            return Err(error);
        }
    }
    Ok(())
}
