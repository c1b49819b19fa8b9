//! Kinds of work, recognised by the functions that do it. Functions that are not recognised appear only in the list of
//! functions.

use super::functions::{Functions, Ran};
use super::split::{Split, mean, means};
use crate::metric::Metric;
use crate::run::Run;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

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

    /// The class that a function belongs to. Suffixes that compilers append to a function's name (`.isra.0`, `.part.0`,
    /// `.cold`) are ignored.
    pub fn of_function(name: &str) -> Option<Class> {
        let plain = name.split('.').next().unwrap_or(name);
        Class::ALL.into_iter().find(|class| class.functions().contains(&plain))
    }
}

/// A kind of work seen in the tail.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ClassFound {
    /// The class.
    pub class: Class,
    /// Kept calls of the tail that did it; for contention all calls of the tail that spun.
    pub tail_calls: usize,
    /// Other such calls that did it.
    pub usual_calls: usize,
    /// Instructions spent spinning per call of the tail, mean, over all of them; 0 but for contention.
    pub spin_instructions_per_tail_call: f64,
    /// Instructions by which the tail's calls that did it exceed the mean of usual calls, mean; their other work counts
    /// too.
    pub excess_instructions_per_call: f64,
    /// The functions it is known by, as they ran in the tail's calls; empty when spinning is the only sign.
    pub functions: Vec<String>,
}

/// The kinds of work that calls of the tail did at least twice as often as others, and the number of kept calls of the
/// tail with none.
pub(crate) fn classify(run: &Run, split: &Split, functions: &Functions) -> (Vec<ClassFound>, usize) {
    let tail = Classes::of_calls(run, &functions.kept_tail);
    let usual = Classes::of_calls(run, &functions.kept_usual);
    let mut found: Vec<ClassFound> =
        Class::ALL.into_iter().filter_map(|class| found(run, split, class, &tail, &usual)).collect();
    found.sort_by_key(|class| (std::cmp::Reverse(class.tail_calls), class.class));
    let is_known =
        |ran: &BTreeMap<Class, Vec<usize>>| found.iter().any(|known| ran.contains_key(&known.class));
    let unclassified =
        tail.0.iter().filter(|(position, ran)| !is_known(ran) && !spun(run, *position)).count();
    (found, unclassified)
}

/// Calls by position, each with the functions of every class that ran in it.
struct Classes(Vec<(usize, BTreeMap<Class, Vec<usize>>)>);

impl Classes {
    fn of_calls(run: &Run, kept: &[(usize, Ran)]) -> Self {
        let classes_of = |ran: &Ran| {
            let mut classes: BTreeMap<Class, Vec<usize>> = BTreeMap::new();
            for function in ran.keys() {
                if let Some(class) = Class::of_function(run.symbols.name(*function)) {
                    classes.entry(class).or_default().push(*function);
                }
            }
            classes
        };
        Self(kept.iter().map(|(position, ran)| (*position, classes_of(ran))).collect())
    }

    /// The calls in which a function of `class` ran.
    fn with(&self, class: Class) -> Vec<usize> {
        self.0.iter().filter(|(_, ran)| ran.contains_key(&class)).map(|(position, _)| *position).collect()
    }

    /// The names of the functions of `class`, each once.
    fn names(&self, run: &Run, class: Class) -> Vec<String> {
        let functions = self.0.iter().filter_map(|(_, ran)| ran.get(&class)).flatten();
        let names: BTreeSet<&str> = functions.map(|function| run.symbols.name(*function)).collect();
        names.into_iter().map(str::to_owned).collect()
    }
}

/// `class`, if it was at least twice as frequent in the tail as in usual calls. Contention is counted in every call,
/// by its spinning; the others in calls whose code was kept.
fn found(run: &Run, split: &Split, class: Class, tail: &Classes, usual: &Classes) -> Option<ClassFound> {
    let is_contention = class == Class::Contention;
    let spinning = |calls: &[usize]| calls.iter().copied().filter(|call| spun(run, *call)).collect();
    let (did, usual_did, all_tail, all_usual): (Vec<usize>, Vec<usize>, usize, usize) = if is_contention {
        (spinning(&split.tail), spinning(&split.usual), split.tail.len(), split.usual.len())
    } else {
        (tail.with(class), usual.with(class), tail.0.len(), usual.0.len())
    };
    let share = |calls: &[usize], all: usize| calls.len() as f64 / all.max(1) as f64;
    if did.is_empty() || share(&did, all_tail) < 2.0 * share(&usual_did, all_usual) {
        return None;
    }
    let instructions = |calls: &[usize]| mean(run, calls, |measured| measured.call.own.instructions as f64);
    let spin = || means(run, split, Metric::SpinInstructions).tail;
    Some(ClassFound {
        excess_instructions_per_call: instructions(&did) - instructions(&split.usual),
        class,
        tail_calls: did.len(),
        usual_calls: usual_did.len(),
        spin_instructions_per_tail_call: if is_contention { spin() } else { 0.0 },
        functions: tail.names(run, class),
    })
}

/// True when the call spent instructions spinning.
fn spun(run: &Run, position: usize) -> bool {
    run.measured[position].call.own.spin_instructions > 0
}
