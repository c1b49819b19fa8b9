//! Parses the parts of `/proc/self/maps` that the engine needs.

use crate::machine::{Abi, Entries, Host};
use crate::system::File;
use lineup_recording::native::mappings::{Whose, data_mappings};
use std::ops::Range;

/// A mapping.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Mapping {
    pub(crate) range: Range<u64>,
    /// Code of a file, or of the kernel, that nothing writes to.
    pub(crate) is_fixed_code: bool,
    /// Code, also if it is writable.
    pub(crate) is_code: bool,
    /// It maps a file.
    pub(crate) is_of_file: bool,
    /// The file, or the kernel's name for the memory.
    pub(crate) path: String,
    /// The offset in the file where it begins.
    pub(crate) offset: u64,
}

/// All mappings now, in order of address.
pub(crate) fn read() -> Vec<Mapping> {
    text().lines().filter_map(mapping).collect()
}

/// The mappings that the program may keep data in, with their owners.
pub(crate) fn of_data() -> Vec<(u64, u64, Whose)> {
    data_mappings(&text())
}

fn text() -> String {
    let file = File::open(b"/proc/self/maps\0", libc::O_RDONLY);
    file.map_or_else(String::new, |file| String::from_utf8_lossy(&file.read_all()).into_owned())
}

fn mapping(line: &str) -> Option<Mapping> {
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let permissions = fields.next()?;
    let offset = fields.next()?;
    let path = fields.nth(2).unwrap_or_default().trim_start();
    let address = |text| u64::from_str_radix(text, 16).ok();
    let is_fixed_code = permissions.starts_with("r-x")
        && (path.starts_with('/') && !path.starts_with("/memfd:") || path == "[vdso]");
    Some(Mapping {
        range: address(start)?..address(end)?,
        is_fixed_code,
        is_code: permissions.starts_with('r') && permissions.as_bytes().get(2) == Some(&b'x'),
        is_of_file: path.starts_with('/'),
        path: path.to_owned(),
        offset: address(offset)?,
    })
}

/// The length of code from a mapping on, up to `most`, and whether it is all read-only: a program may have mapped other
/// memory in the middle of its code, and an instruction may begin before that and end in it.
pub(crate) fn code_from(mappings: &[Mapping], first: &Mapping, most: u64) -> (u64, bool) {
    let (mut end, mut is_fixed) = (first.range.end, first.is_fixed_code);
    while end < most
        && let Some(next) = mappings.iter().find(|next| next.range.start == end && next.is_code)
    {
        is_fixed &= next.is_fixed_code;
        end = next.range.end;
    }
    (end.min(most), is_fixed)
}

/// Free addresses for `bytes` that a jump from anywhere in `range` reaches.
pub(crate) fn room_near(mappings: &[Mapping], range: &Range<u64>, bytes: u64) -> Option<u64> {
    // Room is kept for the jumps' own places.
    const REACH: u64 = Host::JUMP_REACH - (1 << 24);
    let lowest = range.end.saturating_sub(REACH).max(1 << 16);
    let highest = range.start.saturating_add(REACH);
    let ends = std::iter::once(lowest).chain(mappings.iter().map(|mapping| mapping.range.end));
    let starts = |end: u64| mappings.iter().map(|mapping| mapping.range.start).find(|start| *start >= end);
    let gaps = ends.map(|end| (end, starts(end).unwrap_or(Host::ADDRESSES_END)));
    let is_inside = |address: u64| mappings.iter().any(|mapping| mapping.range.contains(&address));
    let fits = gaps.filter_map(|(low, high)| {
        let at = if low < range.start {
            high.min(highest).checked_sub(bytes)? & !(Host::page_bytes() - 1)
        } else {
            low.next_multiple_of(Host::page_bytes())
        };
        (at >= low.max(lowest) && at + bytes <= high.min(highest) && !is_inside(at)).then_some(at)
    });
    let fits: Vec<u64> = fits.filter(|at| at + bytes <= Host::ADDRESSES_END).collect();
    // The nearest: a program's heap grows from its end.
    let below = fits.iter().rfind(|at| **at < range.start).copied();
    below.or_else(|| room_above(mappings, range, bytes, highest)).or_else(|| fits.first().copied())
}

fn room_above(mappings: &[Mapping], range: &Range<u64>, bytes: u64, highest: u64) -> Option<u64> {
    let mut low = range.end;
    for mapping in mappings.iter().filter(|mapping| mapping.range.end > range.end) {
        // Far above the program, so that its heap has room to grow.
        let at = (low + (1 << 28)).next_multiple_of(Host::page_bytes());
        if mapping.range.start >= at + bytes && at + bytes <= highest.min(Host::ADDRESSES_END) {
            return Some(at);
        }
        low = mapping.range.end;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_that_may_change_is_told_from_that_of_files() {
        let fixed = |line| mapping(line).is_some_and(|mapping| mapping.is_fixed_code);
        let code = |line| mapping(line).is_some_and(|mapping| mapping.is_code);
        assert!(code("1000-2000 r-xp 00001000 08:01 11    /bin/true"));
        assert!(code("1000-2000 rwxp 00000000 00:00 0"));
        assert!(!code("1000-2000 rw-p 00000000 00:00 0    [heap]"));
        assert!(fixed("1000-2000 r-xp 00001000 08:01 11    /bin/true"));
        assert!(fixed("7000-8000 r-xp 00000000 00:00 0    [vdso]"));
        assert!(!fixed("1000-2000 rwxp 00001000 08:01 11    /bin/true"));
        assert!(!fixed("1000-2000 r-xp 00000000 00:00 0"));
        assert!(!fixed("1000-2000 r-xp 00000000 00:01 9 /memfd:jit (deleted)"));
    }

    #[test]
    fn code_goes_on_in_the_next_mapping_of_code() {
        let lines = [
            "1000-2000 r-xp 00001000 08:01 11    /bin/true",
            "2000-3000 r-xp 00000000 00:00 0",
            "3000-4000 rw-p 00000000 00:00 0",
            "5000-6000 r-xp 00001000 08:01 11    /bin/true",
        ];
        let all: Vec<Mapping> = lines.iter().filter_map(|line| mapping(line)).collect();
        assert_eq!(code_from(&all, &all[0], 0x1800), (0x1800, true));
        assert_eq!(code_from(&all, &all[0], 0x2100), (0x2100, false));
        assert_eq!(code_from(&all, &all[0], 0x3100), (0x3000, false), "data is no code");
        assert_eq!(code_from(&all, &all[3], 0x6100), (0x6000, true));
    }

    fn at(start: u64, end: u64) -> Mapping {
        let (is_fixed_code, is_code, is_of_file) = (false, false, false);
        Mapping { range: start..end, is_fixed_code, is_code, is_of_file, path: String::new(), offset: 0 }
    }

    #[test]
    fn room_is_found_within_reach_of_a_jump() {
        let program = 0x5555_0000_0000..0x5555_0001_0000;
        let mappings = [at(program.start, program.end), at(0x7fff_0000_0000, 0x7fff_0001_0000)];
        let found = room_near(&mappings, &program, 0x10000).unwrap();
        assert!(found.abs_diff(program.end) < 1 << 31 && found.abs_diff(program.start) < 1 << 31);
        let low = 0x40_0000..0x50_0000;
        let found =
            room_near(&[at(0x10000, 0x40_0000), at(low.start, low.end), at(1 << 46, 1 << 47)], &low, 0x10000);
        assert!(found.is_some_and(|found| found >= low.end && found < 1 << 31));
        // The top of the addresses, without room below: the addresses beyond it are invalid.
        let top = 0x7fff_f7d6_4000..0x7fff_f7d6_5000;
        let (stack, kernels) = (at(0x7fff_fffd_e000, 0x7fff_ffff_f000), at(0xffff_ffff_ff60_0000, u64::MAX));
        let crowded = [at(1 << 16, top.start), at(top.start, top.end), stack, kernels];
        assert_eq!(room_near(&crowded, &top, 0x10000), Some(top.end));
    }
}
