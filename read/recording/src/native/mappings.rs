//! The owner of each mapping of a process, by the text of `/proc/self/maps`.

/// The owner of a mapping's memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Whose {
    /// Others may read or write it as well, or it is a device.
    Shared,
    /// The process's own: without a file, or the data of a file with code.
    Private,
}

struct Mapping<'a> {
    start: u64,
    end: u64,
    permissions: &'a str,
    path: &'a str,
}

fn mapping(line: &str) -> Option<Mapping<'_>> {
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let permissions = fields.next()?;
    let path = fields.nth(3).unwrap_or_default().trim_start();
    let address = |text| u64::from_str_radix(text, 16).ok();
    Some(Mapping { start: address(start)?, end: address(end)?, permissions, path })
}

/// The mappings that a process may keep data in, by owner; neighbouring mappings of one owner are merged. Left out are
/// private mappings of other files, whose layout their format gives, mappings that the system's own files share for
/// reading, and the recorder's own memory.
pub fn data_mappings(text: &str) -> Vec<(u64, u64, Whose)> {
    let all = || text.lines().filter_map(mapping);
    let has_code =
        |path: &str| all().any(|mapping| mapping.path == path && mapping.permissions.contains('x'));
    let whose = |mapping: &Mapping<'_>| {
        let Mapping { permissions, path, .. } = *mapping;
        let is_writable = permissions.contains('w');
        let is_systems = ["/usr/", "/lib", "/etc/"].iter().any(|folder| path.starts_with(folder));
        let is_shared = permissions.ends_with('s') && (is_writable || !is_systems);
        let is_own = matches!(path, "" | "[heap]" | "[stack]") || path.starts_with("[anon");
        match () {
            () if is_shared || path.starts_with("/dev/") => Some(Whose::Shared),
            () if is_writable && (is_own || path.starts_with('/') && has_code(path)) => Some(Whose::Private),
            () => None,
        }
    };
    let mut found: Vec<(u64, u64, Whose)> = Vec::new();
    for mapping in all().filter(|mapping| !mapping.path.starts_with("/memfd:lineup-")) {
        let Some(whose) = whose(&mapping) else { continue };
        match found.last_mut().filter(|(_, end, before)| (*end, *before) == (mapping.start, whose)) {
            Some(last) => last.1 = mapping.end,
            None => found.push((mapping.start, mapping.end, whose)),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_the_process_is_told_from_what_others_share_and_from_devices() {
        let text = "\
00400000-00401000 r-xp 00000000 08:01 11 /home/u/prog
00403000-00404000 rw-p 00002000 08:01 11 /home/u/prog
00404000-00405000 rw-p 00000000 00:00 0
00500000-00521000 rw-p 00000000 00:00 0                          [heap]
7f0000000000-7f0000001000 rw-p 00000000 08:01 22                 /home/u/format.dat
7f0000002000-7f0000003000 rw-s 00000000 00:01 33                 /dev/shm/protocol
7f0000004000-7f0000005000 rw-s 00000000 00:01 34                 /dev/zero (deleted)
7f0000006000-7f0000007000 rw-p 00000000 00:06 35                 /dev/mem
7f0000008000-7f0000009000 r--s 00000000 08:01 36                 /home/u/status
7f0000009000-7f000000a000 rw-s 00000000 00:01 38                 /memfd:lineup-engine (deleted)
7f000000a000-7f000000b000 r--s 00000000 08:01 37                 /usr/lib/gconv/gconv-modules.cache
7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0                  [stack]
7ffc00100000-7ffc00104000 r--p 00000000 00:00 0                  [vvar]
";
        let starts = |whose| -> Vec<u64> {
            data_mappings(text).into_iter().filter(|found| found.2 == whose).map(|found| found.0).collect()
        };
        assert_eq!(starts(Whose::Private), [0x40_3000, 0x50_0000, 0x7ffc_0000_0000]);
        let shared = [0x7f00_0000_2000, 0x7f00_0000_4000, 0x7f00_0000_6000, 0x7f00_0000_8000];
        assert_eq!(starts(Whose::Shared), shared);
    }
}
