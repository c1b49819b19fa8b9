//! Stalls of a kernel by the work they were for: tasks, and the interrupts of each CPU.

use crate::findings::{ContextStalls, Stalls};
use crate::recorded::Recorded;
use crate::stalls::function_names::function_at;
use crate::trials::replay::cycles;
use lineup_debuginfo::DebugInfo;
use lineup_recording::{Context, ContextKind, KernelTask, Latency, Misses};
use std::collections::BTreeMap;

/// The largest number of functions listed for each.
const MOST_FUNCTIONS: usize = 5;

/// Stalls by context, most first; `None` where none was recorded.
pub(crate) fn stalls(
    recorded: &Recorded,
    debug: &[Option<DebugInfo>],
    latency: Latency,
    all_cycles: f64,
) -> Option<Vec<ContextStalls>> {
    let tasks: BTreeMap<u32, &KernelTask> = recorded.tasks.iter().map(|task| (task.number, task)).collect();
    let of = |context: &Context| {
        let task = context.task.and_then(|number| tasks.get(&number));
        let mut functions: BTreeMap<String, Stalls> = BTreeMap::new();
        let mut add = |all: &[(u64, Misses)], is_code: bool| {
            for (pc, misses) in all {
                let (name, _) = function_at(recorded, debug, *pc);
                let stalls = functions.entry(name).or_default();
                let part = if is_code { &mut stalls.code_cycles } else { &mut stalls.data_cycles };
                *part += cycles(*misses, latency);
            }
        };
        add(&context.code, true);
        add(&context.data, false);
        let stalls = functions.values().fold(Stalls::default(), |sum, own| Stalls {
            code_cycles: sum.code_cycles + own.code_cycles,
            data_cycles: sum.data_cycles + own.data_cycles,
        });
        ContextStalls {
            cpu: context.cpu,
            is_interrupt: context.kind == ContextKind::Interrupt,
            task: task.filter(|task| task.pid.is_some()).map(|task| task.name.clone()),
            pid: task.and_then(|task| task.pid),
            stack: task.map(|task| format!("{:#x}", task.stack)),
            stalls,
            share: stalls.cycles() as f64 / all_cycles,
            functions: most(functions, stalls.cycles()),
        }
    };
    let mut all: Vec<ContextStalls> = recorded.contexts.iter().map(of).collect();
    all.retain(|context| context.stalls.cycles() > 0);
    all.sort_by(|one, other| {
        let order = other.stalls.cycles().cmp(&one.stalls.cycles());
        order.then_with(|| (one.cpu, one.pid, &one.stack).cmp(&(other.cpu, other.pid, &other.stack)))
    });
    (!all.is_empty()).then_some(all)
}

/// The functions that stall most, with their shares in the context's stalls.
fn most(functions: BTreeMap<String, Stalls>, of_all: u64) -> Vec<(String, f64)> {
    let share = |stalls: Stalls| stalls.cycles() as f64 / of_all.max(1) as f64;
    let mut all: Vec<(String, f64)> =
        functions.into_iter().map(|(name, stalls)| (name, share(stalls))).collect();
    all.sort_by(|(one, share), (other, more)| more.total_cmp(share).then_with(|| one.cmp(other)));
    all.truncate(MOST_FUNCTIONS);
    all
}
