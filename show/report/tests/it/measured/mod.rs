//! An invented recording of a whole system, with hostile names.

use lineup_model::abi::Abi;
use lineup_model::access::CallEnd;
use lineup_model::image::LoadedImage;
use lineup_model::region::{Region, RegionId, Regions};
use lineup_recording::{
    Arm, Counts, Encoder, Header, MeasuredCall, Misses, Mode, SystemSummary, Writer, read_all,
};
use lineup_tail::{Run, Symbols};

/// A name that would act if it were not shown as text.
pub(crate) const HOSTILE: &str = "<script>alert(1)</script>\u{1b}[2J\u{202e}\"'&";

const KERNEL: u64 = 0xffff_ffff_8100_0000;

fn call(region: u16, number: u64) -> MeasuredCall {
    let begun_at = number * 5000 + u64::from(region == 0) * 10;
    let tail = if number.is_multiple_of(10) { 1500 } else { 0 };
    MeasuredCall {
        region: RegionId(region),
        cpu: 0,
        sequence: number,
        begun_at,
        ended_at: begun_at + 3000 + tail + u64::from(region == 1) * 100,
        from_pc: KERNEL + 0x10,
        to_pc: KERNEL + 0x20,
        end: CallEnd::Returned,
        arm: Arm::Untouched,
        own: Counts {
            instructions: 1000 + tail,
            code_misses: Misses { l1: number * 7 % 40, l2: 0 },
            code_stall_cycles: number * 7 % 40 * 14,
            ..Counts::default()
        },
        interrupts: 0,
        interrupt_instructions: 0,
        switches: 0,
    }
}

/// A run of 120 calls and as many spans. With `arms`, the interventions before calls alternate.
pub(crate) fn run(label: &str, caches: &[&str], arms: bool) -> Run {
    let mut header = Header::new(Abi::X86_64, vec![HOSTILE.into()]);
    header.mode = Mode::System;
    header.caches = caches.iter().map(|&spec| spec.to_owned()).collect();
    let region = |name: &str, entries: Vec<u64>| Region {
        name: name.into(),
        weight: 1.0,
        image: HOSTILE.into(),
        entries,
    };
    header.regions = Regions::from_iter([region(HOSTILE, vec![1]), region("irqs-off", vec![])]);
    let mut writer = Writer::new(Vec::new(), &header).unwrap();
    let mut encoder = Encoder::new();
    encoder.image(&LoadedImage {
        path: HOSTILE.into(),
        start: KERNEL,
        end: u64::MAX,
        bias: 0,
        build_id: None,
    });
    for number in 0..120 {
        let arm = if arms { Arm::ALL[number as usize % 3] } else { Arm::Untouched };
        encoder.measured(&MeasuredCall { arm, ..call(0, number) });
        encoder.measured(&call(1, number));
    }
    let totals = Counts { instructions: 1, ..Counts::default() };
    encoder.system(&SystemSummary { cpus: vec![totals], complete: true, ..SystemSummary::default() });
    writer.append(&encoder.seal().unwrap()).unwrap();
    let recording = read_all(&writer.into_inner()).unwrap();
    Run::new(label, recording, Symbols::new([(KERNEL, 0x1000, HOSTILE.to_owned())]))
}
