//! The processor's counter of loads that found their line modified in another core's cache, which `perf c2c` uses.

/// Models of Intel's family 6 whose event 0xd2 with unit mask 4 counts retired loads whose line another core's cache
/// had modified: `MEM_LOAD_UOPS_LLC_HIT_RETIRED.XSNP_HITM` from Sandy Bridge on, `MEM_LOAD_L3_HIT_RETIRED.XSNP_HITM`
/// from Skylake on, `MEM_LOAD_L3_HIT_RETIRED.XSNP_FWD` from Ice Lake on, as Intel's lists of events have them. From Ice
/// Lake on it also counts lines that the other cache had alone and unchanged. Processors with two kinds of cores are
/// left out: a raw event names the counters of one kind.
const INTEL_MODELS: &[u32] = &[
    0x2a, 0x2d, // Sandy Bridge
    0x3a, 0x3e, // Ivy Bridge
    0x3c, 0x3f, 0x45, 0x46, // Haswell
    0x3d, 0x47, 0x4f, 0x56, // Broadwell
    0x4e, 0x5e, 0x8e, 0x9e, 0xa5, 0xa6, 0x55, // Skylake and Cascade Lake
    0x7d, 0x7e, 0xa7, 0x6a, 0x6c, // Ice Lake
    0x8c, 0x8d, // Tiger Lake
    0x8f, 0xcf, // Sapphire Rapids, Emerald Rapids
];

/// The event of this machine's processor, in the form that [`crate::perf::counters::parse`] reads; `None` where none is
/// known. AMD's events count lines from other caches together with those of the third level.
pub fn event() -> Option<&'static str> {
    event_of(&std::fs::read_to_string("/proc/cpuinfo").ok()?)
}

/// The same of a processor that the kernel describes so.
fn event_of(cpuinfo: &str) -> Option<&'static str> {
    let field = |name: &str| {
        let mut fields = cpuinfo.lines().filter_map(|line| line.split_once(':'));
        fields.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim())
    };
    let is_known = field("vendor_id") == Some("GenuineIntel")
        && field("cpu family") == Some("6")
        && field("model")?.parse().is_ok_and(|model| INTEL_MODELS.contains(&model));
    is_known.then_some("r4d2")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpuinfo(vendor: &str, family: u32, model: u32) -> String {
        format!(
            "processor\t: 0\nvendor_id\t: {vendor}\ncpu family\t: {family}\nmodel\t\t: {model}\nmodel name\t: A\n"
        )
    }

    #[test]
    fn processors_whose_event_is_known_have_one_and_no_other() {
        assert_eq!(event_of(&cpuinfo("GenuineIntel", 6, 0x55)), Some("r4d2"), "Skylake");
        assert_eq!(event_of(&cpuinfo("GenuineIntel", 6, 0x8f)), Some("r4d2"), "Sapphire Rapids");
        assert_eq!(event_of(&cpuinfo("GenuineIntel", 6, 0x97)), None, "two kinds of cores");
        assert_eq!(event_of(&cpuinfo("AuthenticAMD", 25, 0x55)), None);
        assert_eq!(event_of(&cpuinfo("GenuineIntel", 15, 0x55)), None);
        assert_eq!(event_of("processor\t: 0\nCPU implementer\t: 0x41\n"), None, "Arm");
    }

    #[test]
    fn the_event_is_one_that_counters_read() {
        let event = event_of(&cpuinfo("GenuineIntel", 6, 0x55)).expect("an event");
        assert!(crate::perf::counters::parse(event).is_ok());
    }
}
