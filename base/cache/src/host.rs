//! The caches of the host, from its kernel's description.

use crate::spec::{CacheLevel, CacheSpec, parse_bytes};
use lineup_model::line::LineSize;

/// The text of the files in one `/sys/devices/system/cpu/cpu0/cache/index*` folder.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct HostCache {
    /// `level`
    pub level: String,
    /// `type`
    pub kind: String,
    /// `size`
    pub size: String,
    /// `ways_of_associativity`
    pub ways: String,
    /// `coherency_line_size`
    pub line: String,
}

/// The caches that can be modelled among those a host describes: first level and second level, in that order. Caches
/// with a missing, zero or odd value are left out.
pub fn host_specs(folders: &[HostCache]) -> Vec<CacheSpec> {
    let mut specs: Vec<CacheSpec> = folders.iter().filter_map(spec_of).collect();
    specs.sort_by_key(|spec| spec.level());
    specs.dedup_by_key(|spec| spec.level());
    specs
}

fn spec_of(folder: &HostCache) -> Option<CacheSpec> {
    let level = match (folder.level.trim(), folder.kind.trim()) {
        ("1", "Instruction") => CacheLevel::L1i,
        ("1", "Data") => CacheLevel::L1d,
        ("2", "Unified") => CacheLevel::L2,
        _ => return None,
    };
    let line = LineSize::new(folder.line.trim().parse().ok()?)?;
    CacheSpec::new(level, parse_bytes(folder.size.trim())?, folder.ways.trim().parse().ok()?, line).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(level: &str, kind: &str, size: &str, ways: &str) -> HostCache {
        HostCache {
            level: format!("{level}\n"),
            kind: format!("{kind}\n"),
            size: format!("{size}\n"),
            ways: format!("{ways}\n"),
            line: "64\n".into(),
        }
    }

    #[test]
    fn a_server_core_is_understood() {
        let host = [
            folder("1", "Data", "48K", "12"),
            folder("1", "Instruction", "32K", "8"),
            folder("2", "Unified", "1024K", "16"),
            folder("3", "Unified", "32768K", "16"),
        ];
        let specs: Vec<String> = host_specs(&host).iter().map(CacheSpec::to_string).collect();
        assert_eq!(specs, ["l1i=32K,8,64", "l1d=48K,12,64", "l2=1M,16,64"]);
    }

    #[test]
    fn what_a_virtual_machine_leaves_blank_is_left_out() {
        assert_eq!(host_specs(&[folder("1", "Data", "", "0"), folder("2", "Unified", "64K", "0")]), []);
    }
}
