//! Recordings made up call by call.

use lineup_model::abi::Abi;
use lineup_model::access::{Access, AccessKind, CallEnd, ProcessId, ThreadId};
use lineup_model::image::LoadedImage;
use lineup_model::region::{Region, RegionId, Regions};
use lineup_recording::{
    Arm, CallHead, Counts, Encoder, Header, MeasuredCall, Misses, Mode, Recording, SystemSummary, Writer,
    read_all,
};
use lineup_tail::Symbols;

pub(crate) const OUTER: u16 = 0;
pub(crate) const WAKE: u16 = 1;
pub(crate) const SCHEDULE: u16 = 2;
pub(crate) const SPANS: u16 = 3;

const KERNEL: u64 = 0xffff_ffff_8100_0000;
const FUNCTIONS: [&str; 3] = ["timer_entry", "try_to_wake_up", "__schedule"];

/// The address of a function.
pub(crate) fn address(function: &str) -> u64 {
    let index = FUNCTIONS.iter().position(|known| *known == function).unwrap();
    KERNEL + 0x1000 * index as u64
}

pub(crate) fn symbols() -> Symbols {
    Symbols::new(FUNCTIONS.map(|function| (address(function), 0x400, function.to_owned())))
}

/// Accesses of a call by the functions that made them.
pub(crate) struct Kept {
    head: CallHead,
    pub(crate) functions: Vec<&'static str>,
}

#[derive(Default)]
pub(crate) struct Recorded {
    pub(crate) calls: Vec<MeasuredCall>,
    pub(crate) kept: Vec<Kept>,
    pub(crate) caches: Vec<String>,
    pub(crate) instructions: u64,
    clock: u64,
}

/// A call of a region that took so much; where it was is left to the caller.
pub(crate) fn call(region: u16, instructions: u64, code_stall_cycles: u64) -> MeasuredCall {
    MeasuredCall {
        region: RegionId(region),
        cpu: 0,
        sequence: 0,
        begun_at: 0,
        ended_at: instructions,
        from_pc: address("timer_entry") + 0x10,
        to_pc: address("timer_entry") + 0x10,
        end: CallEnd::Returned,
        arm: Arm::Untouched,
        own: Counts {
            instructions,
            code_misses: Misses { l1: code_stall_cycles / 10, l2: 0 },
            code_stall_cycles,
            ..Counts::default()
        },
        interrupts: 0,
        interrupt_instructions: 0,
        switches: 0,
    }
}

impl Recorded {
    pub(crate) fn call(&mut self, region: u16, instructions: u64, code_stall_cycles: u64) {
        self.nested(region, instructions, code_stall_cycles, &[]);
    }

    /// A call with others inside, one after the other: region, instructions, stall cycles.
    pub(crate) fn nested(&mut self, region: u16, instructions: u64, stall: u64, inner: &[(u16, u64, u64)]) {
        let begun_at = self.clock + 10;
        self.clock = begun_at + instructions;
        let sequence = self.calls.iter().filter(|call| call.region.0 == region).count() as u64;
        self.calls.push(MeasuredCall {
            begun_at,
            ended_at: self.clock,
            sequence,
            ..call(region, instructions, stall)
        });
        let mut at = begun_at + 10;
        for (region, instructions, stall) in inner {
            let sequence = self.calls.iter().filter(|call| call.region.0 == *region).count() as u64;
            let ended_at = at + instructions;
            self.calls.push(MeasuredCall {
                begun_at: at,
                ended_at,
                sequence,
                ..call(*region, *instructions, *stall)
            });
            at = ended_at;
        }
    }

    /// Keeps the last outer call: one access by each of these functions.
    pub(crate) fn keep(&mut self, functions: &[&'static str]) {
        let call = self.calls.iter().rev().find(|call| call.region.0 == OUTER).unwrap();
        let head = CallHead {
            region: call.region,
            process: ProcessId(0),
            thread: ThreadId(0),
            sequence: call.sequence,
            entered_at: call.begun_at,
            end: call.end,
            depth: 0,
            instructions: call.own.instructions,
            binding_instructions: 0,
            missed_blocks: 0,
            arguments: None,
        };
        self.kept.push(Kept { head, functions: functions.to_vec() });
    }

    fn header(&self) -> Header {
        let mut header = Header::new(Abi::X86_64, vec!["linux".into()]);
        header.mode = Mode::System;
        header.caches = self.caches.clone();
        let region = |(name, entry): (&str, Option<u64>)| Region {
            name: name.into(),
            weight: 1.0,
            image: "vmlinux".into(),
            entries: entry.into_iter().collect(),
        };
        let regions = [("outer", Some(1)), ("wake", Some(2)), ("schedule", Some(3)), ("irqs-off", None)];
        header.regions = Regions::from_iter(regions.map(region));
        header
    }

    /// The recording's file.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut writer = Writer::new(Vec::new(), &self.header()).unwrap();
        let mut encoder = Encoder::new();
        let image =
            LoadedImage { path: "vmlinux".into(), start: KERNEL, end: u64::MAX, bias: 0, build_id: None };
        encoder.image(&image);
        for kept in &self.kept {
            let access = |function: &&str| Access {
                pc: address(function) + 8,
                address: 0x1000,
                size_bytes: 8,
                kind: AccessKind::Load,
                value: None,
            };
            let accesses: Vec<Access> = kept.functions.iter().map(access).collect();
            encoder.call(&kept.head, &accesses, &[], &[]);
        }
        for calls in self.calls.chunks(100) {
            calls.iter().for_each(|call| encoder.measured(call));
            writer.append(&encoder.seal().unwrap()).unwrap();
        }
        let totals = Counts { instructions: self.instructions, ..Counts::default() };
        encoder.system(&SystemSummary { cpus: vec![totals], complete: true, ..SystemSummary::default() });
        writer.append(&encoder.seal().unwrap()).unwrap();
        writer.into_inner()
    }

    pub(crate) fn recording(&self) -> Recording {
        read_all(&self.bytes()).unwrap()
    }
}
