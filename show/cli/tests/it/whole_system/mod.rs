//! Recordings of whole systems, made here.

use lineup_model::abi::Abi;
use lineup_model::access::CallEnd;
use lineup_model::image::LoadedImage;
use lineup_model::region::{Region, RegionId, Regions};
use lineup_recording::{Arm, Counts, Encoder, Header, MeasuredCall, Misses, Mode, SystemSummary, Writer};

const KERNEL: u64 = 0xffff_ffff_8100_0000;

fn region(name: &str, entries: Vec<u64>) -> Region {
    Region { name: name.into(), weight: 1.0, image: "vmlinux".into(), entries }
}

/// A recording of this many calls in blocks of 50.
pub(crate) fn recording(mode: Mode, calls: u64) -> Vec<u8> {
    let mut header = Header::new(Abi::X86_64, vec!["linux".into()]);
    header.mode = mode;
    header.caches = vec!["l1i=32K,8,64".into()];
    header.regions = Regions::from_iter([region("timer", vec![KERNEL]), region("irqs-off", vec![])]);
    let mut writer = Writer::new(Vec::new(), &header).unwrap();
    let mut encoder = Encoder::new();
    encoder.image(&LoadedImage {
        path: "/nonexistent/vmlinux".into(),
        start: KERNEL,
        end: u64::MAX,
        bias: 0,
        build_id: None,
    });
    for number in 0..calls {
        let stall = number * 7 % 40 * 14;
        let call = MeasuredCall {
            region: RegionId(0),
            cpu: 0,
            sequence: number,
            begun_at: number * 5000,
            ended_at: number * 5000 + 1000,
            from_pc: KERNEL + 4,
            to_pc: KERNEL + 4,
            end: CallEnd::Returned,
            arm: Arm::ALL[number as usize % 3],
            own: Counts {
                instructions: 1000,
                code_misses: Misses { l1: stall / 14, l2: 0 },
                code_stall_cycles: stall,
                ..Counts::default()
            },
            interrupts: 0,
            interrupt_instructions: 0,
            switches: 0,
        };
        encoder.measured(&call);
        encoder.measured(&MeasuredCall { region: RegionId(1), ..call });
        if number % 50 == 49 {
            writer.append(&encoder.seal().unwrap()).unwrap();
        }
    }
    encoder.system(&SystemSummary {
        cpus: vec![Counts::default()],
        complete: true,
        ..SystemSummary::default()
    });
    writer.append(&encoder.seal().unwrap()).unwrap();
    writer.into_inner()
}
