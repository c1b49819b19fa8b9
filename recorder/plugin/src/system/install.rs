//! Loading the recorder of a whole system.

use super::begin;
use super::cpus::MAX_CPUS;
use super::shared::{Region, SYSTEM, System};
use super::stream::Stream;
use super::tasks::Tasks;
use super::windows::Windows;
use crate::ffi::Api;
use crate::output::Output;
use crate::recorder::profile_of;
use crate::unwatched::Unwatched;
use lineup_cache::{CacheSpec, Directory};
use lineup_model::machine::CodeMachine;
use lineup_model::region::RegionId;
use lineup_recording::Mode;
use lineup_recording::plan::Plan;
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// Opens the output and watches for the marker.
pub(crate) fn install(api: Api, machine: CodeMachine, plan: Plan) -> Result<(), String> {
    let kernel =
        plan.system.clone().ok_or("the plan says nothing of the kernel; use `lineup record --kernel`")?;
    if kernel.cpus as usize > MAX_CPUS {
        return Err(format!("{} virtual CPUs: at most {MAX_CPUS} are recorded", kernel.cpus));
    }
    let caches =
        plan.header.caches.iter().map(|text| text.parse().map_err(|error| format!("{text}: {error}")));
    let caches = caches.collect::<Result<Vec<CacheSpec>, String>>()?;
    let profile = (plan.header.mode == Mode::WholeProgram).then(|| profile_of(&plan)).transpose()?;
    let output = Output::create(&plan.output, &plan.header)
        .map_err(|error| format!("cannot write the recording {}: {error}", plan.output))?;
    let system = System {
        api,
        machine,
        line_bytes: caches.iter().map(|spec| spec.line().bytes()).min().unwrap_or(64),
        programs: programs_apart(&api, &caches, kernel.cpus),
        entries: entries_of(&plan),
        directory: (kernel.cpus > 1 && !caches.is_empty()).then(Directory::empty),
        stream: (kernel.stream_steps > 0).then(|| Stream::new(kernel.cpus, kernel.stream_steps)),
        flag_saves: kernel.flag_saves.iter().copied().collect(),
        caches,
        output,
        profile,
        sites: Mutex::default(),
        stacks: Mutex::default(),
        away: Mutex::default(),
        tasks: Tasks::new(kernel.task_struct.clone()),
        contexts: (0..kernel.cpus.max(1)).map(|_| Mutex::default()).collect(),
        suspended: Mutex::default(),
        regions: plan.header.regions.iter().map(|_| Region::new(&plan.header)).collect(),
        windows: Windows::default(),
        clock: AtomicU64::new(0),
        begun: AtomicBool::new(false),
        is_over: AtomicBool::new(false),
        kernel,
        plan,
    };
    SYSTEM.set(system).map_err(|_| "the plugin was loaded twice".to_string())?;
    begin::watch_for_marker(&api);
    Ok(())
}

/// Without caches, programs matter by the count of their instructions alone, which the emulator keeps by itself: for
/// each virtual CPU, or where there is but one.
fn programs_apart(api: &Api, caches: &[CacheSpec], cpus: u32) -> Option<Unwatched> {
    let counts = caches.is_empty().then(|| Unwatched::new(api));
    counts.filter(|counts| counts.is_per_cpu() || cpus <= 1)
}

/// Regions by the addresses of their entries.
fn entries_of(plan: &Plan) -> HashMap<u64, u16> {
    let regions = plan.header.regions.iter().map(|(RegionId(index), region)| (index, region));
    regions.flat_map(|(number, region)| region.entries.iter().map(move |entry| (*entry, number))).collect()
}
