//! The source of an access's data, as reported by the processor.

use perf_event_data as perf;

/// The kind of an access.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Debug)]
pub enum Operation {
    /// Not reported.
    #[default]
    Unknown,
    /// A load.
    Load,
    /// A store.
    Store,
    /// A load and a store at once.
    Both,
    /// A prefetch.
    Prefetch,
    /// A fetch of code.
    Fetch,
}

/// The level of the memory that had the data.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Debug)]
pub enum Level {
    /// Not reported.
    #[default]
    Unknown,
    /// The first level.
    L1,
    /// A line that was on its way to the first level.
    FillBuffer,
    /// The second level.
    L2,
    /// The third level.
    L3,
    /// The fourth level.
    L4,
    /// A cache of unknown level.
    Cache,
    /// A cache of another core, socket or node that the processor reports as remote.
    RemoteCache,
    /// Memory.
    Memory,
    /// Memory of another socket or node.
    RemoteMemory,
    /// Persistent memory.
    Persistent,
    /// Memory behind CXL.
    Cxl,
    /// A device.
    Device,
    /// Memory that is not cached.
    Uncached,
}

/// The answer of other caches about the line.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Debug)]
pub enum Snoop {
    /// Not reported.
    #[default]
    Unknown,
    /// No other was asked.
    None,
    /// No other had it.
    Miss,
    /// Another had it, unchanged.
    Hit,
    /// Another had it and had changed it.
    HitModified,
    /// Another gave it, unchanged.
    Forwarded,
    /// Another CPU's cache supplied it, in an unknown state: the form that Arm's processors report.
    Peer,
}

/// The level of the translation tables that had the address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Debug)]
pub enum Translation {
    /// Not reported.
    #[default]
    Unknown,
    /// In the first table.
    L1,
    /// In the second table.
    L2,
    /// In one of them.
    Hit,
    /// Pages were walked, or the kernel was asked.
    Miss,
}

/// The source of an access's data.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Debug)]
pub struct DataSource {
    /// The kind of access.
    pub operation: Operation,
    /// The level that had it.
    pub level: Level,
    /// True when that level did not have it; the actual source is then unknown.
    pub missed: bool,
    /// The answer of other caches.
    pub snoop: Snoop,
    /// The result of the address translation.
    pub translation: Translation,
    /// A locked instruction.
    pub is_locked: bool,
    /// True for data of another socket or node.
    pub is_remote: bool,
}

impl DataSource {
    /// In the terms of the record.
    pub(crate) fn of(source: perf::DataSource) -> DataSource {
        let old = source.mem_lvl();
        let is_far_cache = old.intersects(perf::MemLevel::REM_CCE1 | perf::MemLevel::REM_CCE2);
        let is_far_memory = old.intersects(perf::MemLevel::REM_RAM1 | perf::MemLevel::REM_RAM2);
        let is_remote = source.mem_remote() || is_far_cache || is_far_memory;
        DataSource {
            operation: operation(source.mem_op()),
            level: level(source, is_remote),
            missed: old.contains(perf::MemLevel::MISS),
            snoop: snoop(source.mem_snoop()),
            translation: translation(source.mem_dtlb()),
            is_locked: source.mem_lock().contains(perf::MemLock::LOCKED),
            is_remote,
        }
    }

    /// True when another CPU's cache had the line and had changed it. A processor's report that another cache had it is
    /// taken for the same.
    pub fn is_hitm(&self) -> bool {
        matches!(self.snoop, Snoop::HitModified | Snoop::Peer)
    }
}

fn operation(op: perf::MemOp) -> Operation {
    let (load, store) = (op.contains(perf::MemOp::LOAD), op.contains(perf::MemOp::STORE));
    match (load, store) {
        (true, true) => Operation::Both,
        (true, false) => Operation::Load,
        (false, true) => Operation::Store,
        _ if op.contains(perf::MemOp::PFETCH) => Operation::Prefetch,
        _ if op.contains(perf::MemOp::EXEC) => Operation::Fetch,
        _ => Operation::Unknown,
    }
}

/// The newer field holds more; files of older machines have only the older one.
fn level(source: perf::DataSource, is_remote: bool) -> Level {
    let near_or_far = |near: Level, far: Level| if is_remote { far } else { near };
    match source.mem_lvl_num().0 {
        1 => near_or_far(Level::L1, Level::RemoteCache),
        2 => near_or_far(Level::L2, Level::RemoteCache),
        3 => near_or_far(Level::L3, Level::RemoteCache),
        4 => near_or_far(Level::L4, Level::RemoteCache),
        8 => Level::Uncached,
        9 => Level::Cxl,
        10 => Level::Device,
        11 => near_or_far(Level::Cache, Level::RemoteCache),
        12 => Level::FillBuffer,
        13 => near_or_far(Level::Memory, Level::RemoteMemory),
        14 => Level::Persistent,
        _ => old_level(source.mem_lvl()),
    }
}

fn old_level(level: perf::MemLevel) -> Level {
    let known = [
        (perf::MemLevel::L1, Level::L1),
        (perf::MemLevel::LFB, Level::FillBuffer),
        (perf::MemLevel::L2, Level::L2),
        (perf::MemLevel::L3, Level::L3),
        (perf::MemLevel::LOC_RAM, Level::Memory),
        (perf::MemLevel::REM_RAM1 | perf::MemLevel::REM_RAM2, Level::RemoteMemory),
        (perf::MemLevel::REM_CCE1 | perf::MemLevel::REM_CCE2, Level::RemoteCache),
        (perf::MemLevel::IO, Level::Device),
        (perf::MemLevel::UNC, Level::Uncached),
    ];
    known.into_iter().find(|(bits, _)| level.intersects(*bits)).map_or(Level::Unknown, |(_, level)| level)
}

fn snoop(snoop: perf::MemSnoop) -> Snoop {
    let known = [
        (perf::MemSnoop::HITM, Snoop::HitModified),
        (perf::MemSnoop::PEER, Snoop::Peer),
        (perf::MemSnoop::FWD, Snoop::Forwarded),
        (perf::MemSnoop::HIT, Snoop::Hit),
        (perf::MemSnoop::MISS, Snoop::Miss),
        (perf::MemSnoop::NONE, Snoop::None),
    ];
    known.into_iter().find(|(bits, _)| snoop.intersects(*bits)).map_or(Snoop::Unknown, |(_, snoop)| snoop)
}

fn translation(tlb: perf::MemDtlb) -> Translation {
    if tlb.intersects(perf::MemDtlb::MISS | perf::MemDtlb::WK | perf::MemDtlb::OS)
        && !tlb.contains(perf::MemDtlb::HIT)
    {
        return Translation::Miss;
    }
    match (tlb.contains(perf::MemDtlb::HIT), tlb.contains(perf::MemDtlb::L1), tlb.contains(perf::MemDtlb::L2))
    {
        (true, true, false) => Translation::L1,
        (true, false, true) => Translation::L2,
        (true, ..) => Translation::Hit,
        _ => Translation::Unknown,
    }
}
