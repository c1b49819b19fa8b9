//! Findings from samples, in words.

use crate::sampled::findings::{SampledData, SampledEvent};
use lineup_explain::name::Class;
use lineup_samples::Ending;
use lineup_samples::data_source::{DataSource, Level, Operation, Snoop};
use lineup_samples::tally::{EventTally, Tally};

pub(super) fn event(event: &EventTally) -> SampledEvent {
    let has = event.carries;
    let words = [
        (has.address, "addresses"),
        (has.weight, "weights"),
        (has.data_source, "data sources"),
        (has.physical_address, "physical addresses"),
        (has.registers, "registers"),
        (has.call_chain, "call chains"),
        (has.branches, "branches"),
        (has.cpu, "CPUs"),
        (has.time, "times"),
    ];
    SampledEvent {
        name: event.name.clone(),
        carries: words.into_iter().filter(|(is_so, _)| *is_so).map(|(_, word)| word).collect(),
        samples: event.sum.samples,
        period: event.sum.period,
        weight: event.sum.weight,
        in_kernel: event.in_kernel,
        precise: event.precise,
    }
}

/// The source of data: `load, L3, changed by another CPU`.
pub(super) fn source(source: DataSource) -> String {
    let operation = match source.operation {
        Operation::Unknown => "access",
        Operation::Load => "load",
        Operation::Store => "store",
        Operation::Both => "load and store",
        Operation::Prefetch => "prefetch",
        Operation::Fetch => "fetch",
    };
    let level = match source.level {
        Level::Unknown => "not said from where",
        Level::L1 => "L1",
        Level::FillBuffer => "line on its way",
        Level::L2 => "L2",
        Level::L3 => "L3",
        Level::L4 => "L4",
        Level::Cache => "a cache",
        Level::RemoteCache => "a remote cache",
        Level::Memory => "memory",
        Level::RemoteMemory => "remote memory",
        Level::Persistent => "persistent memory",
        Level::Cxl => "CXL memory",
        Level::Device => "a device",
        Level::Uncached => "uncached memory",
    };
    let missed = if source.missed { "not in " } else { "" };
    let snoop = match source.snoop {
        Snoop::HitModified => ", changed by another CPU",
        Snoop::Hit => ", in another cache",
        Snoop::Forwarded => ", given by another cache",
        Snoop::Peer => ", given by another CPU",
        Snoop::Unknown | Snoop::None | Snoop::Miss => "",
    };
    let is_told = matches!(source.level, Level::RemoteCache | Level::RemoteMemory);
    let remote = if source.is_remote && !is_told { ", of another socket" } else { "" };
    format!("{operation}, {missed}{level}{snoop}{remote}")
}

/// Further notes.
pub(super) fn notes(tally: &Tally, data: &[SampledData]) -> Vec<String> {
    let mut notes = Vec::new();
    if let Ending::CutOff { after_bytes } = tally.ending {
        notes.push(format!(
            "the file ends early: it was read up to its last whole record, {after_bytes} bytes into its records"
        ));
    }
    let counted = [
        (tally.lost_records, "records were lost: the kernel had no room for them"),
        (tally.lost_samples, "samples were lost: the processor had no room for them"),
        (tally.throttled, "times the kernel stopped sampling, since samples came too fast"),
        (tally.unreadable, "records are too short for what they should hold, and were left out"),
        (tally.out_of_order, "records came too late to be put in the order of time"),
        (tally.folded, "samples are reported without their address: there were too many places"),
        (tally.folded_lines, "loads of lines between CPUs are not reported: there were too many lines"),
        (
            tally.chains.folded,
            "samples are reported without their callers: there were too many chains of calls",
        ),
        (tally.cut_parts, "parts of traces had no room for all: samples were lost there"),
        (tally.collided_parts, "parts of traces lack samples that came while another one was taken"),
        (
            tally.unreadable_traced,
            "records of traces have no end or say of no instruction, and were left out",
        ),
        (
            tally.guessed_threads,
            "samples of traces do not name their thread: it is taken to be the one that ran when they were written down",
        ),
        (tally.skipped_auxiliary_bytes, "bytes of traces are not decoded"),
    ];
    notes.extend(
        counted.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")),
    );
    let has_accesses = tally.events.iter().any(|event| event.carries.address && event.sum.samples > 0);
    if tally.worked_out > 0 {
        notes.push(format!(
            "{} samples have no address, and registers: theirs was worked out. It is what the instruction accesses at \
             which the program was found, not what it had waited for, and their shares are not those of accesses",
            tally.worked_out
        ));
    } else if !has_accesses {
        notes.push(
            "no event carries addresses: functions are reported, types and members are not. `lineup record --perf` and \
             `perf mem record`, where the processor has precise memory events, record them"
                .to_owned(),
        );
    }
    let imprecise = tally.events.iter().filter(|event| event.carries.address);
    let imprecise: u64 = imprecise.map(|event| event.sum.samples - event.precise).sum();
    if imprecise > 0 {
        notes.push(format!(
            "{imprecise} samples with addresses are not marked as precise: their instruction may be one behind the access"
        ));
    }
    if data.iter().any(|one| one.kind == Class::Member) {
        notes.push(
            "samples are single accesses: which members a call touches together they do not say; a recording does"
                .to_owned(),
        );
    }
    notes
}
