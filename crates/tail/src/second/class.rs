//! Kinds of work, recognised by the functions that do it. What is not recognised is left to the list of functions.

use super::Split;
use super::functions::Functions;
use crate::metric::Metric;
use crate::run::Run;
use serde::Serialize;
use std::collections::BTreeMap;

/// A kind of work that makes a call execute more instructions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Waiting for a lock that another holds.
    Contention,
    /// Timers besides the tick that expired.
    MoreTimers,
    /// Soft interrupts that ran when the interrupt returned.
    Softirq,
    /// A task was woken.
    WakeUp,
    /// The scheduler chose another task.
    Reschedule,
    /// Tasks were moved between CPUs, or it was tried.
    LoadBalance,
    /// Callbacks after a grace period.
    Rcu,
    /// The clock and the load averages were brought up to date.
    Timekeeping,
}

impl Class {
    /// All.
    pub const ALL: [Class; 8] = [
        Class::Contention,
        Class::MoreTimers,
        Class::Softirq,
        Class::WakeUp,
        Class::Reschedule,
        Class::LoadBalance,
        Class::Rcu,
        Class::Timekeeping,
    ];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Class::Contention => "lock contention",
            Class::MoreTimers => "more timers",
            Class::Softirq => "soft interrupts",
            Class::WakeUp => "wake-up of a task",
            Class::Reschedule => "rescheduling",
            Class::LoadBalance => "load balancing",
            Class::Rcu => "RCU",
            Class::Timekeeping => "timekeeping",
        }
    }

    /// Functions of the kernel that do nothing else.
    fn functions(self) -> &'static [&'static str] {
        match self {
            Class::Contention => &[
                "native_queued_spin_lock_slowpath",
                "queued_spin_lock_slowpath",
                "__pv_queued_spin_lock_slowpath",
                "queued_read_lock_slowpath",
                "queued_write_lock_slowpath",
                "rt_spin_lock_slowlock",
                "rt_spin_lock_slowlock_locked",
                "rtlock_slowlock_locked",
                "rt_mutex_slowlock",
                "osq_lock",
                "mutex_spin_on_owner",
                "rwsem_spin_on_owner",
            ],
            Class::MoreTimers => &[
                "call_timer_fn",
                "expire_timers",
                "hrtimer_wakeup",
                "hrtimer_run_softirq",
                "posix_timer_fn",
                "it_real_fn",
                "process_timeout",
                "delayed_work_timer_fn",
                "timerfd_tmrproc",
                "watchdog_timer_fn",
                "sched_rt_period_timer",
                "dl_task_timer",
                "perf_mux_hrtimer_handler",
            ],
            Class::Softirq => {
                &["__do_softirq", "handle_softirqs", "do_softirq_own_stack", "__softirqentry_text_start"]
            }
            Class::WakeUp => {
                &["try_to_wake_up", "ttwu_do_activate", "ttwu_queue_wakelist", "wakeup_softirqd"]
            }
            Class::Reschedule => {
                &["__schedule", "preempt_schedule_irq", "pick_next_task_fair", "pick_next_task"]
            }
            Class::LoadBalance => {
                &["load_balance", "rebalance_domains", "run_rebalance_domains", "newidle_balance"]
            }
            Class::Rcu => {
                &["rcu_core", "rcu_core_si", "rcu_do_batch", "note_gp_changes", "rcu_report_qs_rnp"]
            }
            Class::Timekeeping => {
                &["update_wall_time", "timekeeping_advance", "timekeeping_update", "calc_global_load"]
            }
        }
    }

    /// The class that a function belongs to. What compilers append to a function's name (`.isra.0`, `.part.0`, `.cold`)
    /// does not matter.
    pub fn of_function(name: &str) -> Option<Class> {
        let plain = name.split('.').next().unwrap_or(name);
        Class::ALL.into_iter().find(|class| class.functions().contains(&plain))
    }
}

/// A kind of work seen in the tail.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ClassFound {
    /// Which.
    pub class: Class,
    /// Kept calls of the tail that did it; for contention all calls of the tail that spun.
    pub tail_calls: usize,
    /// Other such calls that did it.
    pub usual_calls: usize,
    /// Instructions spent spinning per call of the tail, mean, over all of them; 0 but for contention.
    pub spin_instructions_per_tail_call: f64,
    /// Instructions by which the tail's calls that did it exceed the mean of usual calls, mean; what else they did counts
    /// too.
    pub excess_instructions_per_call: f64,
    /// The functions it is known by, as they ran in the tail's calls; empty when spinning alone tells.
    pub functions: Vec<String>,
}

/// The kinds of work that calls of the tail did at least twice as often as others, and the number of kept calls of the
/// tail with none.
pub(crate) fn classify(run: &Run, split: &Split, functions: &Functions) -> (Vec<ClassFound>, usize) {
    let spun = |position: usize| run.measured[position].call.own.spin_instructions > 0;
    let classes_of = |ran: &BTreeMap<usize, (u64, u64)>| -> BTreeMap<Class, Vec<usize>> {
        let mut classes: BTreeMap<Class, Vec<usize>> = BTreeMap::new();
        for function in ran.keys() {
            if let Some(class) = Class::of_function(run.symbols.name(*function)) {
                classes.entry(class).or_default().push(*function);
            }
        }
        classes
    };
    let tail: Vec<_> = functions.kept_tail.iter().map(|(_, ran)| classes_of(ran)).collect();
    let usual: Vec<_> = functions.kept_usual.iter().map(|(_, ran)| classes_of(ran)).collect();
    let mut found: Vec<ClassFound> = Class::ALL
        .into_iter()
        .filter_map(|class| {
            let of = |calls: &[BTreeMap<Class, Vec<usize>>]| {
                calls.iter().filter(|classes| classes.contains_key(&class)).count()
            };
            let did =
                functions.kept_tail.iter().zip(&tail).filter(|(_, classes)| classes.contains_key(&class));
            let mut did: Vec<usize> = did.map(|((position, _), _)| *position).collect();
            let (mut tail_calls, mut usual_calls) = (of(&tail), of(&usual));
            let (mut all_tail, mut all_usual) = (tail.len(), usual.len());
            let mut spin = 0.0;
            if class == Class::Contention {
                (tail_calls, usual_calls) = (spinning(run, &split.tail), spinning(run, &split.usual));
                (all_tail, all_usual) = (split.tail.len(), split.usual.len());
                did = split.tail.iter().copied().filter(|position| spun(*position)).collect();
                spin = super::means(run, split, Metric::SpinInstructions).tail;
            }
            let share = |calls: usize, all: usize| calls as f64 / all.max(1) as f64;
            let is_telling =
                tail_calls > 0 && share(tail_calls, all_tail) >= 2.0 * share(usual_calls, all_usual);
            let mut names: Vec<String> = tail
                .iter()
                .filter_map(|classes| classes.get(&class))
                .flatten()
                .map(|function| run.symbols.name(*function).to_owned())
                .collect();
            names.sort();
            names.dedup();
            let instructions = |positions: &[usize]| {
                super::mean(run, positions, |measured| measured.call.own.instructions as f64)
            };
            is_telling.then(|| ClassFound {
                excess_instructions_per_call: instructions(&did) - instructions(&split.usual),
                class,
                tail_calls,
                usual_calls,
                spin_instructions_per_tail_call: spin,
                functions: names,
            })
        })
        .collect();
    found.sort_by_key(|class| (std::cmp::Reverse(class.tail_calls), class.class));
    let is_known =
        |classes: &BTreeMap<Class, Vec<usize>>| found.iter().any(|known| classes.contains_key(&known.class));
    let unclassified = functions.kept_tail.iter().zip(&tail);
    let unclassified =
        unclassified.filter(|((position, _), classes)| !is_known(classes) && !spun(*position)).count();
    (found, unclassified)
}

/// Calls that spent instructions spinning.
fn spinning(run: &Run, positions: &[usize]) -> usize {
    let spun = |position: &&usize| run.measured[**position].call.own.spin_instructions > 0;
    positions.iter().filter(spun).count()
}
