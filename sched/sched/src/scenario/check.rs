//! Checks of a scenario before its simulation.

use super::{Group, Pattern, ROOT, Scenario, Span, TaskSet, Topology, Tunables};
use crate::error::Error;
use crate::weights::{MAX_SHARES, MIN_SHARES, nice_weight};
use std::collections::HashMap;

/// The most CPUs a scenario may have.
const MAX_CPUS: usize = 1 << 16;
/// The most tasks.
const MAX_TASKS: usize = 10_000_000;
/// The most queues: groups, the root among them, times CPUs.
const MAX_QUEUES: usize = 1 << 24;
/// The longest run and the longest span of a pattern: a hundred days.
const MAX_TIME_NS: u64 = 100 * 86_400 * 1_000_000_000;
/// The deepest nesting of groups.
const MAX_DEPTH: usize = 32;

impl Scenario {
    /// Checks that the scenario can be simulated, and names the first value that prevents it.
    ///
    /// # Errors
    /// [`Error::Scenario`] for the first value found out of range.
    pub fn check(&self) -> Result<(), Error> {
        self.topology.check()?;
        self.tunables.check()?;
        within("time", self.time_ns, 1, MAX_TIME_NS)?;
        within("warmup", self.warmup_ns, 0, MAX_TIME_NS)?;
        self.check_groups()?;
        self.check_overflow()
    }

    fn check_groups(&self) -> Result<(), Error> {
        if self.tasks() == 0 {
            return Err(Error::scenario("groups", "there is no task; give at least one group tasks"));
        }
        if self.tasks() > MAX_TASKS {
            return Err(Error::scenario("tasks", format!("more than {MAX_TASKS} tasks")));
        }
        if (self.groups.len() + 1).saturating_mul(self.topology.cpus) > MAX_QUEUES {
            return Err(Error::scenario("groups", format!("groups times CPUs exceed {MAX_QUEUES}")));
        }
        let mut by_name = HashMap::new();
        for (at, group) in self.groups.iter().enumerate() {
            if by_name.insert(group.name.as_str(), at).is_some() {
                return Err(Error::scenario(field(group, "name"), "another group has this name"));
            }
            group.check()?;
        }
        self.groups.iter().try_for_each(|group| self.check_ancestors(group, &by_name))
    }

    fn check_ancestors(&self, group: &Group, by_name: &HashMap<&str, usize>) -> Result<(), Error> {
        let mut path = vec![group.name.as_str()];
        let mut at = group;
        while at.parent != ROOT && at.name != ROOT {
            let Some(&parent) = by_name.get(at.parent.as_str()) else {
                let reason = format!("no group is named `{}`", at.parent);
                return Err(Error::scenario(field(at, "parent"), reason));
            };
            at = &self.groups[parent];
            if path.contains(&at.name.as_str()) {
                path.push(&at.name);
                let reason = format!("the groups form a circle: {}", path.join(" in "));
                return Err(Error::scenario(field(group, "parent"), reason));
            }
            path.push(&at.name);
            if path.len() > MAX_DEPTH {
                let reason = format!("groups are nested more than {MAX_DEPTH} deep");
                return Err(Error::scenario(field(group, "parent"), reason));
            }
        }
        Ok(())
    }

    /// The largest products of balancing are a load times [`super::FULL_POWER`] times the number of CPUs,
    /// and a group's shares times its load. Both must fit into 63 bits.
    fn check_overflow(&self) -> Result<(), Error> {
        let bits = self.resolution.bits();
        let load = self.groups.iter().flat_map(|group| &group.tasks).fold(0_u128, |sum, tasks| {
            sum + tasks.count as u128 * u128::from(nice_weight(tasks.nice).unwrap_or(0))
        }) << bits;
        let shares = self.groups.iter().map(|group| group.shares).max().unwrap_or(0);
        let by_power = load * (1 << 20);
        let by_shares = load * (u128::from(shares) << bits);
        if by_power.max(by_shares) >= 1 << 63 {
            let reason = format!(
                "at {bits} extra bits the weights of all tasks times the largest shares ({shares}) exceed 63 \
                 bits; use fewer bits, fewer tasks or smaller shares"
            );
            return Err(Error::scenario("resolution", reason));
        }
        Ok(())
    }
}

impl Topology {
    fn check(&self) -> Result<(), Error> {
        within("cpus", self.cpus as u64, 1, MAX_CPUS as u64)?;
        let mut smaller = 1;
        for &span in &self.domains {
            if span <= smaller {
                let reason = format!("{span} follows {smaller}; sizes must grow and start above one CPU");
                return Err(Error::scenario("domains", reason));
            }
            if span % smaller != 0 {
                let reason = format!("{span} is no multiple of {smaller}, so domains would overlap");
                return Err(Error::scenario("domains", reason));
            }
            smaller = span;
        }
        if smaller != self.cpus {
            let reason = format!("the largest domain has {smaller} CPUs, the machine {}", self.cpus);
            return Err(Error::scenario("domains", reason));
        }
        Ok(())
    }
}

impl Tunables {
    fn check(&self) -> Result<(), Error> {
        const SECOND_NS: u64 = 1_000_000_000;
        within("hz", self.hz, 1, 100_000)?;
        within("latency", self.latency_ns, 1, SECOND_NS)?;
        within("min-granularity", self.min_granularity_ns, 1, SECOND_NS)?;
        within("wakeup-granularity", self.wakeup_granularity_ns, 0, SECOND_NS)?;
        within("migration-cost", self.migration_cost_ns, 0, SECOND_NS)?;
        within("shares-window", self.shares_window_ns, 1, SECOND_NS)?;
        within("smt-core-power", self.smt_core_power, 1, 1 << 16)?;
        within("busy-factor", self.busy_factor, 1, 1 << 16)?;
        within("clock-check", self.clock_check_ns, 1, SECOND_NS)?;
        if self.imbalance_percent.is_empty() {
            return Err(Error::scenario("imbalance-percent", "the list is empty"));
        }
        self.imbalance_percent.iter().try_for_each(|&percent| within("imbalance-percent", percent, 100, 1000))
    }
}

impl Group {
    fn check(&self) -> Result<(), Error> {
        if self.name.is_empty() {
            return Err(Error::scenario("group", "a group needs a name"));
        }
        within(field(self, "shares"), self.shares, MIN_SHARES, MAX_SHARES)?;
        self.tasks.iter().try_for_each(|tasks| self.check_tasks(tasks))
    }

    fn check_tasks(&self, tasks: &TaskSet) -> Result<(), Error> {
        if nice_weight(tasks.nice).is_none() {
            return Err(Error::scenario(field(self, "nice"), format!("{} is not in -20 to 19", tasks.nice)));
        }
        match &tasks.pattern {
            Pattern::Always => Ok(()),
            Pattern::Random { busy, sleep } => {
                self.check_span("busy", *busy)?;
                self.check_span("sleep", *sleep)
            }
            Pattern::Script(steps) if steps.is_empty() => {
                Err(Error::scenario(field(self, "script"), "a script needs at least one step"))
            }
            Pattern::Script(steps) => steps.iter().try_for_each(|&(busy_ns, sleep_ns)| {
                self.check_span("script", Span::Fixed(busy_ns))?;
                self.check_span("script", Span::Fixed(sleep_ns))
            }),
        }
    }

    fn check_span(&self, name: &str, span: Span) -> Result<(), Error> {
        if let Span::Uniform { low, high } = span
            && low > high
        {
            return Err(Error::scenario(field(self, name), "the span ends before it starts"));
        }
        within(field(self, name), span.greatest_ns(), 1, MAX_TIME_NS)
    }
}

/// The path of a group's value, as errors and the file parser's line table spell it.
pub(super) fn field(group: &Group, name: &str) -> String {
    format!("group {}: {name}", group.name)
}

fn within(field: impl Into<String>, value: u64, least: u64, greatest: u64) -> Result<(), Error> {
    if (least..=greatest).contains(&value) {
        return Ok(());
    }
    Err(Error::scenario(field, format!("{value} is not in {least} to {greatest}")))
}
