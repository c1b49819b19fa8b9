//! One recording of a whole system, ready to be analysed: the nesting of calls, and the treatment before them.

use crate::symbols::{SymbolisedAddress, Symbols};
use lineup_model::access::{Call, CallEnd};
use lineup_model::region::{Region, RegionId, Regions};
use lineup_recording::{Arm, MeasuredCall, Mode, Recording};
use serde::Serialize;
use std::collections::HashMap;

/// A call with the treatment before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Measured {
    /// The call.
    pub call: MeasuredCall,
    /// Its own arm or, where that is [`Arm::Untouched`], the one of the call right around it.
    pub arm: Arm,
}

impl Measured {
    /// True when it returned: calls that were abandoned or cut off by the end of the recording are in no distribution.
    pub fn returned(&self) -> bool {
        self.call.end == CallEnd::Returned
    }
}

/// A recording's facts about itself.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Facts {
    /// Its label.
    pub label: String,
    /// The command that was recorded.
    pub command: Vec<String>,
    /// The machine.
    pub machine: String,
    /// The emulator, as it names itself.
    pub emulator: String,
    /// Specifications of the caches modelled.
    pub caches: Vec<String>,
    /// Virtual CPUs; 0 when the recording was cut off.
    pub cpus: usize,
    /// Instructions executed while it was recorded; `None` when the recording was cut off.
    pub instructions: Option<u64>,
    /// Hardware interrupts; `None` when the recording was cut off.
    pub interrupts: Option<u64>,
    /// The number of these that came while the tracked state said off: 0 when spans with interrupts off are exact.
    pub interrupts_while_off: Option<u64>,
    /// The number of times the kernel showed another flag than the tracked one: 0 when spans with interrupts off are
    /// exact.
    pub failed_flag_checks: Option<u64>,
    /// The number of times the flag was unknown. The recording lacks the spans that this cut.
    pub flag_lost: Option<u64>,
    /// Task switches; `None` when the recording was cut off.
    pub switches: Option<u64>,
    /// True when the recording's end was reached.
    pub is_complete: bool,
    /// The reason and the place where the file stops being readable; `None` when it is whole.
    pub damage: Option<String>,
    /// True when functions have names.
    pub has_symbols: bool,
}

/// A recording with its calls in order.
pub struct Run {
    /// Its facts about itself.
    pub facts: Facts,
    /// Its regions.
    pub regions: Regions,
    /// Calls and spans, by CPU and then by beginning, outer before inner.
    pub measured: Vec<Measured>,
    /// Functions of the kernel.
    pub symbols: Symbols,
    /// For each of `measured`, the call right around it; `None` for the outermost, for spans, and where a task
    /// switch leaves it open.
    parents: Vec<Option<usize>>,
    kept: HashMap<(RegionId, u64), Call>,
    kernel_start: u64,
}

/// True for a recording that [`Run`] accepts.
pub fn is_system(recording: &Recording) -> bool {
    recording.header.mode == Mode::System
}

impl Run {
    /// A recording under a label. Symbols are runtime addresses.
    pub fn new(label: impl Into<String>, recording: Recording, symbols: Symbols) -> Run {
        let facts = facts(label.into(), &recording, &symbols);
        let regions = recording.header.regions.clone();
        let mut calls = recording.measured;
        calls.sort_by_key(|call| (call.cpu, call.begun_at, std::cmp::Reverse(call.ended_at), call.region));
        let is_span = |call: &MeasuredCall| regions.get(call.region).is_none_or(Region::is_span);
        let (parents, arms) = nest(&calls, is_span);
        let measured = calls.into_iter().zip(arms).map(|(call, arm)| Measured { call, arm }).collect();
        let kept = recording.calls.into_iter().map(|call| ((call.region, call.sequence), call)).collect();
        let kernel_start = recording.images.first().map_or(0, |image| image.start);
        Run { facts, regions, measured, symbols, parents, kept, kernel_start }
    }

    /// The first region of that name.
    pub fn region(&self, name: &str) -> Option<RegionId> {
        self.regions.id_of(name)
    }

    /// Calls of a region with their positions in `measured`.
    pub fn calls(&self, region: RegionId) -> impl Iterator<Item = (usize, &Measured)> {
        let of_region = move |measured: &&Measured| measured.call.region == region;
        self.measured.iter().enumerate().filter(move |(_, measured)| of_region(measured))
    }

    /// The accesses and code of a call, when they were kept.
    pub fn kept(&self, call: &MeasuredCall) -> Option<&Call> {
        self.kept.get(&(call.region, call.sequence))
    }

    /// Calls of a region whose accesses were kept.
    pub fn kept_calls(&self, region: RegionId) -> usize {
        self.kept.keys().filter(|(of, _)| *of == region).count()
    }

    /// Calls inside a call or span, with their depth below it, in order.
    pub fn inside(&self, position: usize) -> Vec<(usize, usize)> {
        let Some(outer) = self.measured.get(position) else { return Vec::new() };
        let is_span = self.is_span(position);
        let mut depths: HashMap<usize, usize> = HashMap::from([(position, 0)]);
        let mut found = Vec::new();
        for inner in self.window(position) {
            if self.is_span(inner) {
                continue;
            }
            let parent = self.parents.get(inner).copied().flatten();
            let depth = match parent.and_then(|parent| depths.get(&parent)) {
                Some(depth) => depth + 1,
                None if is_span && self.measured[inner].call.ended_at <= outer.call.ended_at => 1,
                None => continue,
            };
            depths.insert(inner, depth);
            found.push((inner, depth));
        }
        found
    }

    /// The entries of `measured` that began while a call or span ran on its CPU.
    fn window(&self, position: usize) -> impl Iterator<Item = usize> {
        let outer = self.measured.get(position).map(|measured| measured.call);
        let after = self.measured.iter().enumerate();
        // A span begins with the instruction before an inner call's entry; equal beginnings may stand on either side.
        let begin = outer.map_or(0, |outer| {
            self.measured.partition_point(|m| (m.call.cpu, m.call.begun_at) < (outer.cpu, outer.begun_at))
        });
        let inner = after.skip(begin).take_while(move |(_, inner)| {
            outer.is_some_and(|outer| inner.call.cpu == outer.cpu && inner.call.begun_at < outer.ended_at)
        });
        inner.map(|(index, _)| index).filter(move |index| *index != position)
    }

    fn is_span(&self, position: usize) -> bool {
        let region = self.measured.get(position).and_then(|measured| self.regions.get(measured.call.region));
        region.is_some_and(Region::is_span)
    }

    /// The place of an address; addresses below the kernel's are `user mode`.
    pub fn place(&self, address: u64) -> SymbolisedAddress {
        if address < self.kernel_start {
            return SymbolisedAddress { address, function: Some("user mode".to_owned()), offset_bytes: 0 };
        }
        self.symbols.place(address)
    }
}

fn facts(label: String, recording: &Recording, symbols: &Symbols) -> Facts {
    let header = &recording.header;
    let system = recording.system.as_ref();
    Facts {
        label,
        command: header.command.clone(),
        machine: header.abi.machine.to_string(),
        emulator: header.emulator.clone(),
        caches: header.caches.clone(),
        cpus: system.map_or(0, |system| system.cpus.len()),
        instructions: system.map(|system| system.cpus.iter().map(|cpu| cpu.instructions).sum()),
        interrupts: system.map(|system| system.interrupts),
        interrupts_while_off: system.map(|system| system.interrupts_while_off),
        failed_flag_checks: system.map(|system| system.flag.failed_checks),
        flag_lost: system.map(|system| system.flag.lost),
        switches: system.map(|system| system.switches),
        is_complete: system.is_some_and(|system| system.complete),
        damage: recording.damage.as_ref().map(ToString::to_string),
        has_symbols: !symbols.is_empty(),
    }
}

/// For each call the one right around it, and the treatment before it.
fn nest(calls: &[MeasuredCall], is_span: impl Fn(&MeasuredCall) -> bool) -> (Vec<Option<usize>>, Vec<Arm>) {
    let parents = Nesting::new(calls).parents(is_span);
    let mut arms: Vec<Arm> = Vec::with_capacity(calls.len());
    for (call, parent) in calls.iter().zip(&parents) {
        let outer = parent.and_then(|parent| arms.get(parent)).copied().unwrap_or_default();
        arms.push(if call.arm == Arm::Untouched { outer } else { call.arm });
    }
    (parents, arms)
}

/// Finds the innermost call around each call by time, where that is certain. While a task is switched away, calls of
/// other tasks run within the time of its open ones. A function that switches tasks is recognised by its calls, of
/// which half or more are switched away. Within such a call's time, the running code belongs to no call around it.
struct Nesting<'a> {
    calls: &'a [MeasuredCall],
    /// By region, whether it switches tasks.
    switches: Vec<bool>,
}

impl<'a> Nesting<'a> {
    fn new(calls: &'a [MeasuredCall]) -> Self {
        let mut counts: Vec<(usize, usize)> = Vec::new();
        for call in calls {
            let region = usize::from(call.region.0);
            if counts.len() <= region {
                counts.resize(region + 1, (0, 0));
            }
            counts[region].0 += 1;
            counts[region].1 += usize::from(call.switches > 0);
        }
        let switches = counts.into_iter().map(|(all, away)| away > 0 && 2 * away >= all).collect();
        Nesting { calls, switches }
    }

    /// True for a call that switched its task away.
    fn is_away(&self, index: usize) -> bool {
        let call = &self.calls[index];
        call.switches > 0 && self.switches.get(usize::from(call.region.0)).copied().unwrap_or(false)
    }

    /// True when a call ends no later than another that began before it.
    fn ends_within(&self, inner: usize, outer: usize) -> bool {
        self.calls[inner].ended_at <= self.calls[outer].ended_at
    }

    /// For each call the one right around it; `None` for spans, for the outermost, and where it is not certain.
    fn parents(&self, is_span: impl Fn(&MeasuredCall) -> bool) -> Vec<Option<usize>> {
        let around: Vec<Vec<usize>> = self.around(is_span);
        let mut has_switch = vec![false; self.calls.len()];
        for (index, around) in around.iter().enumerate().filter(|(index, _)| self.is_away(*index)) {
            around
                .iter()
                .filter(|outer| self.ends_within(index, **outer))
                .for_each(|outer| has_switch[*outer] = true);
        }
        let parent = |(index, around): (usize, &Vec<usize>)| {
            let holds = |outer: &usize| self.ends_within(index, *outer);
            let away: Vec<usize> =
                around.iter().copied().filter(holds).filter(|outer| self.is_away(*outer)).collect();
            let outer = around.iter().rev().copied().filter(holds).find(|outer| !self.is_away(*outer))?;
            let is_elsewhere = away.iter().any(|away| *away > outer && self.ends_within(*away, outer));
            let is_open = self.calls[outer].switches > 0 && !has_switch[outer];
            (!is_elsewhere && !is_open).then_some(outer)
        };
        around.iter().enumerate().map(parent).collect()
    }

    /// For each call the calls that were open on its CPU when it began, outer ones first.
    fn around(&self, is_span: impl Fn(&MeasuredCall) -> bool) -> Vec<Vec<usize>> {
        let mut open: Vec<usize> = Vec::new();
        let mut around = Vec::with_capacity(self.calls.len());
        for (index, call) in self.calls.iter().enumerate() {
            if is_span(call) {
                around.push(Vec::new());
                continue;
            }
            open.retain(|outer| {
                self.calls[*outer].cpu == call.cpu && self.calls[*outer].ended_at > call.begun_at
            });
            around.push(open.clone());
            open.push(index);
        }
        around
    }
}

/// Calls of a region that returned, of one arm.
pub fn of_arm(run: &Run, region: RegionId, arm: Arm) -> Vec<&Measured> {
    let calls = run.calls(region).map(|(_, measured)| measured);
    calls.filter(|measured| measured.returned() && measured.arm == arm).collect()
}
