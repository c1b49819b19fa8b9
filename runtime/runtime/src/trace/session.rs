//! One run of the tracer: the mapped file and its table of names.

use super::config::{Config, StartError, WhenFull};
use super::names::Names;
use super::region::Region;
use lineup_trace::layout::{Geometry, MAGIC, NAME_BYTES, VERSION, header, mode, name, thread};
use std::ffi::CStr;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed, Ordering::Release};

/// One run of the tracer. Never freed: a probe may hold its address for as long as its thread is not scheduled.
#[derive(Debug)]
pub(super) struct Session {
    /// From 1; marks the indices that regions have cached.
    pub(super) number: u64,
    base: *mut u8,
    file: File,
    pub(super) geometry: Geometry,
    pub(super) modes: u32,
    pub(super) stops_when_full: bool,
    /// Lock records are kept only while this region is open.
    locks_inside: Option<String>,
    /// Its index + 1, once the region has been met.
    locks_inside_index: AtomicU32,
    pub(super) counters: super::counters::SessionCounters,
    /// Texts and kinds.
    names: Names<(Vec<u8>, u32)>,
}

// SAFETY: the mapping is shared memory written through atomics, or by the one thread that owns an area.
unsafe impl Send for Session {}
// SAFETY: as above.
unsafe impl Sync for Session {}

static NUMBERS: AtomicU64 = AtomicU64::new(0);

impl Session {
    /// Creates the file, maps it, writes its header.
    pub(super) fn create(config: &Config) -> Result<Self, StartError> {
        let geometry = Geometry {
            threads: config.threads,
            ring_records: config.ring_records.next_power_of_two(),
            high_water_records: config.high_water_records.next_power_of_two(),
            names: config.names,
            has_histograms: config.modes.bits() & mode::HISTOGRAMS != 0,
        };
        if let Some(what) = geometry.fault() {
            return Err(StartError::Sizes { what });
        }
        let file_error = |source| StartError::File { path: config.path.clone(), source };
        make_way(&config.path).map_err(file_error)?;
        let file = std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&config.path)
            .map_err(file_error)?;
        file.set_len(geometry.file_bytes()).map_err(file_error)?;
        allocate(&file, 0, geometry.area_at(0)).map_err(file_error)?;
        let base = map(&file, geometry.file_bytes()).map_err(file_error)?;
        let number = NUMBERS.fetch_add(1, Relaxed) + 1;
        let session = Self {
            number,
            base,
            file,
            geometry,
            modes: config.modes.bits(),
            stops_when_full: config.when_full == WhenFull::Stop,
            locks_inside: config.locks_inside.clone(),
            locks_inside_index: AtomicU32::new(0),
            counters: super::counters::SessionCounters::negotiate(&config.counters),
            names: Names::new(number),
        };
        session.write_header();
        Ok(session)
    }

    fn write_header(&self) {
        let realtime = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        self.put32(header::VERSION, VERSION);
        self.put32(header::THREADS, self.geometry.threads);
        self.put32(header::RING_RECORDS, self.geometry.ring_records);
        self.put32(header::HIGH_WATER_RECORDS, self.geometry.high_water_records);
        self.put32(header::NAMES, self.geometry.names);
        self.put32(header::STOPS_WHEN_FULL, u32::from(self.stops_when_full));
        self.put32(header::MODES, self.modes);
        self.put32(header::PID, std::process::id());
        self.put32(header::RUNG, self.counters.rung as u32);
        self.put32(header::USES_COUNTER, u32::from(crate::clock::CLOCK.uses_counter()));
        self.put64(header::START_NS, crate::clock::now_ns());
        self.put64(header::START_REALTIME_NS, realtime.map_or(0, |elapsed| elapsed.as_nanos() as u64));
        for (index, text) in self.counters.names().enumerate() {
            let at = header::COUNTER_NAMES + index * header::COUNTER_NAME_BYTES;
            self.put_text(at, text.as_bytes(), header::COUNTER_NAME_BYTES - 1);
        }
        self.put_text(0, &MAGIC, MAGIC.len());
    }

    fn at32(&self, offset: usize) -> &AtomicU32 {
        debug_assert!((offset as u64) < self.geometry.file_bytes());
        // SAFETY: inside the mapping, which is never unmapped; offsets from the layout are aligned.
        unsafe { AtomicU32::from_ptr(self.base.add(offset).cast()) }
    }

    fn at64(&self, offset: usize) -> &AtomicU64 {
        debug_assert!((offset as u64) < self.geometry.file_bytes());
        // SAFETY: as for `at32`.
        unsafe { AtomicU64::from_ptr(self.base.add(offset).cast()) }
    }

    fn put32(&self, offset: usize, value: u32) {
        self.at32(offset).store(value, Relaxed);
    }

    fn put64(&self, offset: usize, value: u64) {
        self.at64(offset).store(value, Relaxed);
    }

    fn put_text(&self, offset: usize, text: &[u8], room: usize) {
        let len = text.len().min(room);
        // SAFETY: the layout has `room` bytes there; nothing else writes them.
        unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), self.base.add(offset), len) };
    }

    /// Counts a probe of a thread without an area.
    pub(super) fn count_without_area(&self) {
        self.at64(header::LOST_WITHOUT_AREA).fetch_add(1, Relaxed);
    }

    /// The index of `region` in the table of names, entered now if it is new; `None` when the table is full.
    #[inline(always)]
    pub(super) fn index_of(&self, region: &Region) -> Option<u16> {
        let name = || {
            // SAFETY: `name` is a terminated string constant, by the promise of the region's maker.
            let text = unsafe { CStr::from_ptr(region.name) }.to_bytes();
            (text[..text.len().min(name::TEXT_BYTES)].to_vec(), region.kind)
        };
        self.names.index_of(&region.cached, name, |(text, _)| self.enter(text, region))
    }

    /// The same where it takes no look at the table.
    #[inline(always)]
    pub(super) fn known_index_of(&self, region: &Region) -> Option<u16> {
        self.names.known_index(&region.cached).flatten()
    }

    /// Claims the next entry of the table and fills it.
    fn enter(&self, text: &[u8], region: &Region) -> Option<u16> {
        let index = self.at32(header::NAMES_CLAIMED).fetch_add(1, Relaxed);
        if index >= self.geometry.names {
            return None;
        }
        if region.kind == 0 && self.locks_inside.as_deref().map(str::as_bytes) == Some(text) {
            self.locks_inside_index.store(index + 1, Relaxed);
        }
        let entry = (self.geometry.names_at() + u64::from(index) * NAME_BYTES) as usize;
        self.put32(entry + name::KIND, region.kind);
        self.put32(entry + name::LENGTH, text.len() as u32);
        self.put32(entry + name::ARMS, region.arms);
        self.put64(entry + name::CODE, region.code as u64);
        self.put64(entry + name::CODE + 8, region.code_bytes as u64);
        self.put64(entry + name::DATA, region.data as u64);
        self.put64(entry + name::DATA + 8, region.data_bytes as u64);
        self.put64(entry + name::GIVE_UP_NS, region.give_up_ns);
        self.put_text(entry + name::TEXT, text, name::TEXT_BYTES);
        self.at32(entry + name::READY).store(1, Release);
        u16::try_from(index).ok()
    }

    /// The region that lock records are limited to: `None` without a limit, `Some(None)` while it has not been met.
    pub(super) fn locks_inside_index(&self) -> Option<Option<u16>> {
        self.locks_inside.as_ref()?;
        let index = self.locks_inside_index.load(Relaxed);
        Some(index.checked_sub(1).map(|index| index as u16))
    }

    /// An area for the calling thread: its address. `None` when all are taken or the disk is full.
    pub(super) fn claim_area(&self) -> Option<*mut u8> {
        let index = self.at32(header::THREADS_CLAIMED).fetch_add(1, Relaxed);
        if index >= self.geometry.threads {
            return None;
        }
        let at = self.geometry.area_at(index);
        // Room on disk now, or a store into the mapping would raise SIGBUS when the disk fills up.
        allocate(&self.file, at, self.geometry.area_bytes()).ok()?;
        // SAFETY: plain calls; the name buffer has the 16 bytes that the system asks for.
        let (tid, own_name) = unsafe {
            let mut own_name = [0u8; 16];
            libc::pthread_getname_np(libc::pthread_self(), own_name.as_mut_ptr().cast(), own_name.len());
            (libc::gettid(), own_name)
        };
        self.put_text(at as usize + thread::NAME, &own_name, own_name.len());
        self.at32(at as usize + thread::TID).store(tid as u32, Release);
        // SAFETY: inside the mapping.
        Some(unsafe { self.base.add(at as usize) })
    }
}

/// The contents of the mapping while nobody writes.
#[cfg(test)]
impl Session {
    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: the whole mapping, which is never unmapped; the caller waited for its writers.
        unsafe { std::slice::from_raw_parts(self.base, self.geometry.file_bytes() as usize) }
    }
}

fn allocate(file: &File, at: u64, bytes: u64) -> std::io::Result<()> {
    // SAFETY: a call on a descriptor of ours.
    match unsafe { libc::posix_fallocate(file.as_raw_fd(), at as libc::off_t, bytes as libc::off_t) } {
        0 => Ok(()),
        code => Err(std::io::Error::from_raw_os_error(code)),
    }
}

fn map(file: &File, bytes: u64) -> std::io::Result<*mut u8> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // Miri maps no files; its tests read memory instead.
    let (flags, descriptor) = match cfg!(miri) {
        true => (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1),
        false => (libc::MAP_SHARED, file.as_raw_fd()),
    };
    // SAFETY: a new mapping of a file of ours, of its full length.
    let base = unsafe { libc::mmap(std::ptr::null_mut(), bytes as usize, protection, flags, descriptor, 0) };
    if base == libc::MAP_FAILED { Err(std::io::Error::last_os_error()) } else { Ok(base.cast()) }
}

/// Removes an earlier trace: a trace that another process still maps keeps its own file. Anything but a plain file
/// stays, so that nobody loses `/dev/null` by naming it.
fn make_way(path: &Path) -> io::Result<()> {
    match path.symlink_metadata() {
        Ok(about) if about.is_file() || about.is_symlink() => std::fs::remove_file(path),
        Ok(_) => Err(io::Error::new(ErrorKind::AlreadyExists, "it is there, and no plain file")),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}
