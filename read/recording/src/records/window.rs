//! Windows of a whole program's run: parts of one thread's stream that hold every fetch and access, with the contents
//! of the modelled caches when the window began.

use crate::varint::{Cursor, put, put_delta};

/// A part of a window. The parts of one window come in their order.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Window {
    /// The window's number: numbers grow with the time at which windows began.
    pub number: u64,
    /// The thread, or CPU, whose it is: numbers of their own, from 0.
    pub thread: u32,
    /// The contents of the caches, with the first part.
    pub resident: Option<Resident>,
    /// The steps.
    pub steps: Vec<WindowStep>,
    /// For each access among the steps, the number of the site that allocated the accessed memory, 0 where none did.
    /// Empty when that was not recorded.
    pub sites: Vec<u32>,
}

/// First addresses of the lines that each modelled cache held; of each set, the one used longest ago first.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Resident {
    /// In the first level for instructions.
    pub l1i: Vec<u64>,
    /// In the first level for data.
    pub l1d: Vec<u64>,
    /// In the second level.
    pub l2: Vec<u64>,
}

/// One thing that happened in a window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WindowStep {
    /// Code was fetched.
    Fetch {
        /// Runtime address of the first byte.
        pc: u64,
        /// Bytes, all on one line.
        size_bytes: u32,
    },
    /// Data was loaded or stored.
    Access {
        /// Runtime address of the instruction.
        pc: u64,
        /// Runtime address of the first byte.
        address: u64,
        /// Two to this power is the number of bytes.
        size_shift: u8,
        /// It stores.
        is_store: bool,
    },
}

const IS_ACCESS: u8 = 1;
const IS_STORE: u8 = 2;
const SIZE_AT: u8 = 2;
const MOST_SIZE_SHIFT: u8 = 12;

/// Packs a window's part.
pub(crate) fn put_window(out: &mut Vec<u8>, window: &Window) {
    put(out, window.number);
    put(out, u64::from(window.thread));
    out.push(u8::from(window.resident.is_some()));
    if let Some(Resident { l1i, l1d, l2 }) = &window.resident {
        for lines in [l1i, l1d, l2] {
            put(out, lines.len() as u64);
            let mut last = 0;
            for line in lines {
                put_delta(out, last, *line);
                last = *line;
            }
        }
    }
    put(out, window.steps.len() as u64);
    let (mut last_pc, mut last_address) = (0, 0);
    for step in &window.steps {
        match *step {
            WindowStep::Fetch { pc, size_bytes } => {
                out.push(0);
                put_delta(out, last_pc, pc);
                put(out, u64::from(size_bytes));
                last_pc = pc;
            }
            WindowStep::Access { pc, address, size_shift, is_store } => {
                out.push(flags(size_shift, is_store));
                put_delta(out, last_pc, pc);
                put_delta(out, last_address, address);
                (last_pc, last_address) = (pc, address);
            }
        }
    }
    let runs = || window.sites.chunk_by(|one, next| one == next);
    put(out, runs().count() as u64);
    for run in runs() {
        put(out, run.len() as u64);
        put(out, u64::from(run[0]));
    }
}

fn flags(size_shift: u8, is_store: bool) -> u8 {
    let store = if is_store { IS_STORE } else { 0 };
    IS_ACCESS | store | (size_shift.min(MOST_SIZE_SHIFT) << SIZE_AT)
}

/// Reads [`put_window`] back.
pub(crate) fn window(cursor: &mut Cursor<'_>) -> Option<Window> {
    let number = cursor.int()?;
    let thread = u32::try_from(cursor.int()?).ok()?;
    let resident = match cursor.byte()? {
        0 => None,
        1 => Some(Resident { l1i: lines(cursor)?, l1d: lines(cursor)?, l2: lines(cursor)? }),
        _ => return None,
    };
    let count = cursor.count(3)?;
    let (mut last_pc, mut last_address) = (0, 0);
    let mut steps = Vec::with_capacity(count);
    for _ in 0..count {
        let kind = cursor.byte()?;
        last_pc = cursor.delta(last_pc)?;
        steps.push(match kind {
            0 => WindowStep::Fetch { pc: last_pc, size_bytes: u32::try_from(cursor.int()?).ok()? },
            _ if kind & IS_ACCESS != 0 && kind >> SIZE_AT <= MOST_SIZE_SHIFT => {
                last_address = cursor.delta(last_address)?;
                let (size_shift, is_store) = (kind >> SIZE_AT, kind & IS_STORE != 0);
                WindowStep::Access { pc: last_pc, address: last_address, size_shift, is_store }
            }
            _ => return None,
        });
    }
    let accesses = steps.iter().filter(|step| matches!(step, WindowStep::Access { .. })).count();
    Some(Window { number, thread, resident, steps, sites: sites(cursor, accesses)? })
}

/// The sites of a window's accesses: all of them, or none.
fn sites(cursor: &mut Cursor<'_>, accesses: usize) -> Option<Vec<u32>> {
    let mut sites = Vec::new();
    for _ in 0..cursor.count(2)? {
        let length =
            usize::try_from(cursor.int()?).ok().filter(|length| *length <= accesses - sites.len())?;
        let site = u32::try_from(cursor.int()?).ok()?;
        sites.extend(std::iter::repeat_n(site, length));
    }
    (sites.is_empty() || sites.len() == accesses).then_some(sites)
}

fn lines(cursor: &mut Cursor<'_>) -> Option<Vec<u64>> {
    let mut last = 0;
    (0..cursor.count(1)?)
        .map(|_| {
            last = cursor.delta(last)?;
            Some(last)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Window {
        let access = |address, size_shift, is_store| WindowStep::Access {
            pc: 0x40_1000,
            address,
            size_shift,
            is_store,
        };
        Window {
            number: 640,
            thread: 3,
            resident: Some(Resident { l1i: vec![0x40_1000], l1d: vec![u64::MAX - 63, 0], l2: Vec::new() }),
            steps: vec![
                WindowStep::Fetch { pc: 0x40_0fc0, size_bytes: 64 },
                access(u64::MAX - 7, 3, true),
                access(0, 12, false),
                access(0x7fff_ffff_0000, 0, false),
            ],
            sites: vec![7, 7, 0],
        }
    }

    #[test]
    fn a_window_reads_back_and_damage_is_noticed() {
        let mut out = Vec::new();
        put_window(&mut out, &example());
        put_window(&mut out, &Window { number: 640, ..Window::default() });
        let mut cursor = Cursor::new(&out);
        assert_eq!(window(&mut cursor), Some(example()));
        assert_eq!(window(&mut cursor), Some(Window { number: 640, ..Window::default() }));
        let mut alone = Vec::new();
        put_window(&mut alone, &example());
        for end in 0..alone.len() {
            assert_eq!(window(&mut Cursor::new(&alone[..end])), None, "{end}");
        }
        let bad_kind = [0, 0, 0, 1, 2, 0, 0];
        assert_eq!(window(&mut Cursor::new(&bad_kind)), None);
    }
}
