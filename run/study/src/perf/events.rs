//! The processor's events for memory sampling, as the kernel names them: Intel's PEBS, AMD's IBS, Arm's SPE.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The kernel's folder of devices that count and sample.
pub(crate) const DEVICES: &str = "/sys/bus/event_source/devices";
/// Parts of Intel's processors whose events are named.
const PEBS: [&str; 3] = ["cpu", "cpu_core", "cpu_atom"];
const IBS: &str = "ibs_op";
const SPE: &str = "arm_spe_";

/// An event by its numbers in `struct perf_event_attr`.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Numbers {
    pub(super) kind: u32,
    /// `config`, `config1` and `config2`.
    pub(super) configs: [u64; 3],
}

/// An event that samples the addresses of accesses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct MemoryEvent {
    /// perf's name for it.
    pub(super) name: String,
    pub(super) numbers: Numbers,
    /// An event that must be counted with it: some processors sample loads only so.
    pub(super) beside: Option<Numbers>,
    /// The CPUs that have it, as a list; `None` for all.
    pub(super) cpus: Option<String>,
    /// The levels of precision, from the highest to the lowest that is worth a sample.
    pub(super) precise: &'static [u32],
}

/// The kind of memory sampling that the kernel offers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum MemorySampling {
    /// Intel's: loads and stores.
    Pebs,
    /// AMD's: instructions.
    Ibs,
    /// Arm's: instructions, as a trace.
    Spe,
}

/// The memory sampling below a folder like [`DEVICES`].
pub(crate) fn memory_sampling(devices: &Path) -> Option<MemorySampling> {
    let has_loads = |device: &str| devices.join(device).join("events/mem-loads").exists();
    if PEBS.into_iter().any(has_loads) {
        return Some(MemorySampling::Pebs);
    }
    if devices.join(IBS).exists() {
        return Some(MemorySampling::Ibs);
    }
    let is_spe = |entry: fs::DirEntry| entry.file_name().to_string_lossy().starts_with(SPE);
    fs::read_dir(devices).into_iter().flatten().flatten().any(is_spe).then_some(MemorySampling::Spe)
}

/// The events by which memory is sampled. Loads of fewer cycles than `least_cycles` are left out where the processor
/// can.
///
/// # Errors
/// The reason why there are none, in words.
pub(super) fn memory(devices: &Path, least_cycles: u32) -> Result<Vec<MemoryEvent>, String> {
    match memory_sampling(devices) {
        Some(MemorySampling::Pebs) => {
            let events = PEBS.iter().flat_map(|device| pebs(devices, device, least_cycles));
            some(events.collect(), "the kernel's description of mem-loads is not understood")
        }
        Some(MemorySampling::Ibs) => {
            some(ibs(devices).into_iter().collect(), "the kernel's description of ibs_op is not understood")
        }
        Some(MemorySampling::Spe) => Err(
            "Arm's SPE writes a trace, which is not taken here; `perf mem record` takes one, and `lineup explain` reads it"
                .to_owned(),
        ),
        None => Err(format!(
            "the kernel names no event that samples memory below {}: usual in virtual machines",
            devices.display()
        )),
    }
}

fn some(events: Vec<MemoryEvent>, why: &str) -> Result<Vec<MemoryEvent>, String> {
    if events.is_empty() { Err(why.to_owned()) } else { Ok(events) }
}

fn pebs(devices: &Path, device: &str, least_cycles: u32) -> Vec<MemoryEvent> {
    let own = Device { folder: &devices.join(device) };
    let cpus = fs::read_to_string(own.folder.join("cpus")).ok().map(|list| list.trim().to_owned());
    let latency = [("ldlat", u64::from(least_cycles))];
    let one = |name: &str, spelled: String, more: &[(&str, u64)], beside: Option<Numbers>| {
        Some(MemoryEvent {
            name: spelled,
            numbers: own.named(name, more)?,
            beside,
            cpus: cpus.clone(),
            precise: &[3, 2, 1],
        })
    };
    let beside = own.named("mem-loads-aux", &[]);
    let loads = one("mem-loads", format!("{device}/mem-loads,ldlat={least_cycles}/P"), &latency, beside);
    let stores = one("mem-stores", format!("{device}/mem-stores/P"), &[], None);
    loads.into_iter().chain(stores).collect()
}

fn ibs(devices: &Path) -> Option<MemoryEvent> {
    let own = Device { folder: &devices.join(IBS) };
    let numbers = Numbers { kind: own.kind()?, ..Numbers::default() };
    // It is always precise; older kernels refuse the request for precision.
    Some(MemoryEvent { name: format!("{IBS}//"), numbers, beside: None, cpus: None, precise: &[0] })
}

/// A folder that describes a counting device.
#[derive(Clone, Copy)]
struct Device<'a> {
    folder: &'a Path,
}

impl Device<'_> {
    fn kind(self) -> Option<u32> {
        fs::read_to_string(self.folder.join("type")).ok()?.trim().parse().ok()
    }

    /// An event by its name, with some of its fields set otherwise.
    fn named(self, name: &str, others: &[(&str, u64)]) -> Option<Numbers> {
        let text = fs::read_to_string(self.folder.join("events").join(name)).ok()?;
        let mut fields = terms(text.trim())?;
        fields.extend(others.iter().map(|(name, value)| ((*name).to_owned(), *value)));
        let mut numbers = Numbers { kind: self.kind()?, ..Numbers::default() };
        for (field, value) in fields {
            let format = fs::read_to_string(self.folder.join("format").join(field)).ok()?;
            place(format.trim(), value, &mut numbers.configs)?;
        }
        Some(numbers)
    }
}

/// `event=0xcd,umask=0x1,edge` as fields with their values.
fn terms(text: &str) -> Option<BTreeMap<String, u64>> {
    let term = |term: &str| {
        let (name, value) = term.split_once('=').unwrap_or((term, "1"));
        let value = match value.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => value.parse(),
        };
        Some((name.to_owned(), value.ok()?))
    };
    text.split(',').map(term).collect()
}

/// Puts a value where a format such as `config:0-7,32-35` says, its low bits first.
fn place(format: &str, value: u64, configs: &mut [u64; 3]) -> Option<()> {
    let (word, ranges) = format.split_once(':')?;
    let into = configs.get_mut(["config", "config1", "config2"].iter().position(|name| *name == word)?)?;
    let mut rest = value;
    for range in ranges.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        let bits = last.checked_sub(first)?.checked_add(1).filter(|_| last < 64)?;
        let mask = u64::MAX >> (64 - bits);
        *into = *into & !(mask << first) | (rest & mask) << first;
        rest = rest.checked_shr(bits).unwrap_or(0);
    }
    (rest == 0).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;
    use tempfile::TempDir;

    /// A folder of devices with these files and their content.
    fn devices(files: &[(&str, &str)]) -> (TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, format!("{text}\n")).unwrap();
        }
        let path = folder.path().to_owned();
        (folder, path)
    }

    /// The files of a kernel on an Ice Lake.
    const INTEL: [(&str, &str); 7] = [
        ("cpu/type", "4"),
        ("cpu/events/mem-loads", "event=0xcd,umask=0x1,ldlat=3"),
        ("cpu/events/mem-stores", "event=0xd0,umask=0x82"),
        ("cpu/format/event", "config:0-7"),
        ("cpu/format/umask", "config:8-15"),
        ("cpu/format/ldlat", "config1:0-15"),
        ("software/type", "1"),
    ];

    fn told(event: &MemoryEvent) -> (&str, u32, [u64; 3]) {
        (&event.name, event.numbers.kind, event.numbers.configs)
    }

    #[test]
    fn intels_loads_and_stores_have_the_numbers_that_perf_gives_them() {
        let (_folder, path) = devices(&INTEL);
        let events = memory(&path, 30).unwrap();
        assert_eq!(
            events.iter().map(told).collect::<Vec<_>>(),
            [("cpu/mem-loads,ldlat=30/P", 4, [0x1cd, 30, 0]), ("cpu/mem-stores/P", 4, [0x82d0, 0, 0])]
        );
        assert!(events.iter().all(|event| event.beside.is_none() && event.cpus.is_none()));
    }

    #[test]
    fn a_processor_of_two_kinds_has_events_of_each_on_its_own_cpus_and_loads_with_what_goes_beside_them() {
        let of = |device: &str, kind: &'static str, cpus: &'static str| {
            INTEL[1..6]
                .iter()
                .map(|(path, text)| (path.replace("cpu/", &format!("{device}/")), *text))
                .chain([(format!("{device}/type"), kind), (format!("{device}/cpus"), cpus)])
                .collect::<Vec<_>>()
        };
        let mut files = of("cpu_core", "4", "0-15");
        files.push(("cpu_core/events/mem-loads-aux".to_owned(), "event=0x03,umask=0x82"));
        files.extend(of("cpu_atom", "10", "16-23"));
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        let (_folder, path) = devices(&files);
        let events = memory(&path, 50).unwrap();
        let shown: Vec<_> = events.iter().map(|event| (told(event).0, event.cpus.as_deref())).collect();
        assert_eq!(
            shown,
            [
                ("cpu_core/mem-loads,ldlat=50/P", Some("0-15")),
                ("cpu_core/mem-stores/P", Some("0-15")),
                ("cpu_atom/mem-loads,ldlat=50/P", Some("16-23")),
                ("cpu_atom/mem-stores/P", Some("16-23")),
            ]
        );
        assert_eq!(events[0].beside, Some(Numbers { kind: 4, configs: [0x8203, 0, 0] }));
        assert_eq!(events[2].beside, None);
    }

    #[test]
    fn amds_instructions_are_one_event() {
        let (_folder, path) = devices(&[("ibs_op/type", "11"), ("ibs_fetch/type", "10")]);
        assert_eq!(
            memory(&path, 30).unwrap().iter().map(told).collect::<Vec<_>>(),
            [("ibs_op//", 11, [0; 3])]
        );
    }

    #[test]
    fn why_there_is_none_is_said() {
        let (_folder, path) = devices(&[("software/type", "1")]);
        assert!(memory(&path, 30).unwrap_err().contains("names no event that samples memory below"));
        let (_folder, path) = devices(&[("arm_spe_0/type", "9")]);
        assert!(memory(&path, 30).unwrap_err().contains("a trace, which is not taken here"));
        let (_folder, path) = devices(&[("cpu/type", "4"), ("cpu/events/mem-loads", "event=cd")]);
        assert!(memory(&path, 30).unwrap_err().contains("is not understood"));
    }

    #[test]
    fn values_go_where_the_format_says() {
        let mut configs = [0; 3];
        place("config:0-7,32-35", 0xabc, &mut configs).unwrap();
        place("config1:0-63", u64::MAX, &mut configs).unwrap();
        assert_eq!(configs, [0xa_0000_00bc, u64::MAX, 0]);
        assert_eq!(place("config:0-7", 0x100, &mut configs), None, "it has no room");
        assert_eq!(place("config:7-0", 1, &mut configs), None);
        assert_eq!(place("config9:0-7", 1, &mut configs), None);
        assert_eq!(place("config:0-64", 1, &mut configs), None);
    }
}
