//! Performance counters of the calling thread, by the best way that the machine allows.
//!
//! The ladder: hardware counters read by an instruction; hardware counters read by one system call for the group;
//! software events of the kernel, when asked for; none.

use super::config::CounterChoice;
use crate::cancel::NotCancelled;
use lineup_trace::Rung;
use lineup_trace::layout::COUNTERS;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering::Acquire, Ordering::Relaxed};

/// A counter: its name, and the kernel's type and configuration.
type Counter = (&'static str, u32, u64);

const HARDWARE: u32 = 0;
const SOFTWARE: u32 = 1;
const CACHE: u32 = 3;
/// Cache configuration: identity, operation (read) and result (miss).
const fn read_misses(cache: u64) -> u64 {
    cache | 1 << 16
}

const HARDWARE_SET: [Counter; COUNTERS] = [
    ("cycles", HARDWARE, 0),
    ("instructions", HARDWARE, 1),
    ("l1i_read_misses", CACHE, read_misses(1)),
    ("l1d_read_misses", CACHE, read_misses(0)),
];
const SOFTWARE_SET: [Counter; 3] =
    [("page_faults", SOFTWARE, 2), ("context_switches", SOFTWARE, 3), ("cpu_migrations", SOFTWARE, 4)];

/// The counters that a session reads, and the way.
#[derive(Debug)]
pub(super) struct SessionCounters {
    pub(super) rung: Rung,
    set: &'static [Counter],
}

impl SessionCounters {
    /// The best rung for `choice` that opens on this thread.
    pub(super) fn negotiate(choice: &CounterChoice) -> Self {
        let none = Self { rung: Rung::TimeOnly, set: &[] };
        match choice {
            CounterChoice::None => none,
            CounterChoice::Software => match Group::open(&SOFTWARE_SET) {
                Some(_) => Self { rung: Rung::SoftwareEvents, set: &SOFTWARE_SET },
                None => none,
            },
            CounterChoice::Hardware => match Group::open(&HARDWARE_SET) {
                Some(group) if group.is_readable_by_instruction() => {
                    Self { rung: Rung::Rdpmc, set: &HARDWARE_SET }
                }
                Some(_) => Self { rung: Rung::GroupedRead, set: &HARDWARE_SET },
                None => none,
            },
        }
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.set.iter().map(|(name, _, _)| *name)
    }

    /// The counters of the calling thread.
    pub(super) fn open_group(&self) -> Option<Group> {
        if self.set.is_empty() { None } else { Group::open(self.set) }
    }
}

/// The start of the kernel's `perf_event_attr`, version 0: 64 bytes, all we set.
#[repr(C)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    config1: u64,
}

/// The start of the page that the kernel shares for each counter.
#[repr(C)]
struct SharedPage {
    version: u32,
    compat_version: u32,
    lock: AtomicU32,
    index: AtomicU32,
    offset: AtomicI64,
    time_enabled: u64,
    time_running: u64,
    capabilities: u64,
    width: u16,
}

/// A group of counters on the thread that opened it.
#[derive(Debug)]
pub(super) struct Group {
    files: Vec<OwnedFd>,
    pages: Vec<*mut SharedPage>,
}

impl Group {
    /// `None` when the machine or the system does not offer all of `set`.
    fn open(set: &[Counter]) -> Option<Self> {
        let mut group = Self { files: Vec::new(), pages: Vec::new() };
        for (_, kind, config) in set {
            let leader = group.files.first().map_or(-1, AsRawFd::as_raw_fd);
            let file = open_counter(*kind, *config, leader)?;
            if *kind != SOFTWARE {
                group.pages.push(map_page(&file)?);
            }
            group.files.push(file);
        }
        Some(group)
    }

    fn is_readable_by_instruction(&self) -> bool {
        const CAN_READ_BY_USER: u64 = 1 << 2;
        // SAFETY: pages stay mapped as long as the group lives.
        let can = |page: &*mut SharedPage| unsafe { (**page).capabilities & CAN_READ_BY_USER != 0 };
        cfg!(target_arch = "x86_64") && !self.pages.is_empty() && self.pages.iter().all(can)
    }

    /// The counters' present values; zero for missing counters.
    pub(super) fn read(&self) -> [u64; COUNTERS] {
        self.read_by_instruction().unwrap_or_else(|| self.read_by_call())
    }

    /// Differences to `before`, saturated.
    pub(super) fn since(&self, before: &[u64; COUNTERS]) -> [u32; COUNTERS] {
        let now = self.read();
        std::array::from_fn(|index| {
            u32::try_from(now[index].saturating_sub(before[index])).unwrap_or(u32::MAX)
        })
    }

    fn read_by_instruction(&self) -> Option<[u64; COUNTERS]> {
        if !self.is_readable_by_instruction() {
            return None;
        }
        let mut values = [0; COUNTERS];
        for (value, page) in values.iter_mut().zip(&self.pages) {
            // SAFETY: pages stay mapped as long as the group lives; the kernel writes them under their lock word.
            *value = read_page(unsafe { &**page })?;
        }
        Some(values)
    }

    /// One system call for the whole group: the count of counters, then their values.
    fn read_by_call(&self) -> [u64; COUNTERS] {
        let _whole = NotCancelled::begin();
        let mut words = [0u64; 1 + COUNTERS];
        let leader = self.files.first().map_or(-1, AsRawFd::as_raw_fd);
        // SAFETY: the buffer has room for every counter of a group of at most four.
        unsafe { libc::read(leader, words.as_mut_ptr().cast(), size_of_val(&words)) };
        [words[1], words[2], words[3], words[4]]
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for page in &self.pages {
            // SAFETY: mapped by `map_page`, used by this group alone.
            unsafe { libc::munmap((*page).cast(), page_bytes()) };
        }
    }
}

fn page_bytes() -> usize {
    // SAFETY: reads a constant.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}

fn open_counter(kind: u32, config: u64, leader: i32) -> Option<OwnedFd> {
    const GROUP: u64 = 1 << 3;
    const EXCLUDE_KERNEL: u64 = 1 << 5;
    const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
    const CLOSE_ON_EXEC: libc::c_ulong = 8;
    let exclude = if kind == SOFTWARE { 0 } else { EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR };
    let attributes = Attributes {
        kind,
        size: size_of::<Attributes>() as u32,
        config,
        sample_period: 0,
        sample_type: 0,
        read_format: GROUP,
        flags: exclude,
        wakeup_events: 0,
        breakpoint_type: 0,
        config1: 0,
    };
    // SAFETY: the attributes are valid for their stated size; the descriptor returned is ours.
    unsafe {
        let file = libc::syscall(libc::SYS_perf_event_open, &attributes, 0, -1, leader, CLOSE_ON_EXEC);
        (file >= 0).then(|| OwnedFd::from_raw_fd(file as i32))
    }
}

fn map_page(file: &OwnedFd) -> Option<*mut SharedPage> {
    let flags = libc::MAP_SHARED;
    // SAFETY: a new mapping of the counter's own page.
    let page = unsafe {
        libc::mmap(std::ptr::null_mut(), page_bytes(), libc::PROT_READ, flags, file.as_raw_fd(), 0)
    };
    (page != libc::MAP_FAILED).then_some(page.cast())
}

#[cfg(target_arch = "x86_64")]
fn read_page(page: &SharedPage) -> Option<u64> {
    loop {
        let lock = page.lock.load(Acquire);
        let index = page.index.load(Relaxed);
        let mut value = page.offset.load(Relaxed);
        if index == 0 {
            return None;
        }
        let unused = 64 - u32::from(page.width).clamp(1, 64);
        let (low, high): (u32, u32);
        // SAFETY: the kernel reports that user code may read this counter, and its index.
        unsafe {
            std::arch::asm!("rdpmc", in("ecx") index - 1, out("eax") low, out("edx") high,
                options(nostack, preserves_flags, nomem));
        }
        let raw = (u64::from(high) << 32 | u64::from(low)) as i64;
        value = value.wrapping_add(raw << unused >> unused);
        std::sync::atomic::fence(Acquire);
        if page.lock.load(Relaxed) == lock {
            return Some(value as u64);
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn read_page(page: &SharedPage) -> Option<u64> {
    let _ = (page.lock.load(Acquire), page.index.load(Relaxed), page.offset.load(Relaxed), page.width);
    None
}
