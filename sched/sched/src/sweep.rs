//! Scenarios varied along one or two axes.

use crate::error::Error;
use crate::experiment::Variant;
use crate::report::Report;
use crate::scenario::{Scenario, Topology, parse_domains};
use serde::Serialize;

/// Something to vary, with its values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Axis {
    /// The shares of every group.
    Shares(Vec<u64>),
    /// The number of tasks of every set.
    Tasks(Vec<usize>),
    /// The domains, which also give the number of CPUs.
    Domains(Vec<Vec<usize>>),
}

impl std::str::FromStr for Axis {
    type Err = Error;

    /// `shares=2,64,1024`, `tasks=20,50`, or `domains=2,8,16;4,16`.
    fn from_str(text: &str) -> Result<Self, Error> {
        let (name, values) =
            text.split_once('=').ok_or_else(|| Error::text(text, "write AXIS=VALUE,VALUE"))?;
        let bad = || Error::text(text, "the values must be whole numbers");
        match name {
            "shares" => values
                .split(',')
                .map(|value| value.parse().map_err(|_| bad()))
                .collect::<Result<_, _>>()
                .map(Self::Shares),
            "tasks" => values
                .split(',')
                .map(|value| value.parse().map_err(|_| bad()))
                .collect::<Result<_, _>>()
                .map(Self::Tasks),
            "domains" => values.split(';').map(parse_domains).collect::<Result<_, _>>().map(Self::Domains),
            _ => Err(Error::text(text, "the axes are shares, tasks and domains")),
        }
    }
}

impl Axis {
    /// Its name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Shares(_) => "shares",
            Self::Tasks(_) => "tasks",
            Self::Domains(_) => "domains",
        }
    }

    /// Its values as text, in order.
    pub fn values(&self) -> Vec<String> {
        match self {
            Self::Shares(values) => values.iter().map(ToString::to_string).collect(),
            Self::Tasks(values) => values.iter().map(ToString::to_string).collect(),
            Self::Domains(values) => values
                .iter()
                .map(|spans| spans.iter().map(ToString::to_string).collect::<Vec<_>>().join(","))
                .collect(),
        }
    }

    /// `scenario` with the axis' value at `at`.
    fn applied(&self, scenario: &Scenario, at: usize) -> Scenario {
        let mut scenario = scenario.clone();
        match self {
            Self::Shares(values) => scenario.groups.iter_mut().for_each(|group| group.shares = values[at]),
            Self::Tasks(values) => {
                let sets = scenario.groups.iter_mut().flat_map(|group| &mut group.tasks);
                sets.for_each(|set| set.count = values[at]);
            }
            Self::Domains(values) => {
                let cpus = values[at].last().copied().unwrap_or(0);
                scenario.topology = Topology::new(cpus, &values[at]);
            }
        }
        scenario
    }
}

/// The document `lineup.sched-sweep/1`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SweepReport {
    /// `lineup.sched-sweep/1`.
    pub schema: &'static str,
    /// The columns' axis and values.
    pub x: AxisReport,
    /// The rows' axis and values; one empty value if there is one axis only.
    pub y: AxisReport,
    /// The variants at every point, such as `R = 0` and `R = 10`.
    pub variants: Vec<String>,
    /// The points, row by row.
    pub cells: Vec<Cell>,
}

/// An axis and its values.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct AxisReport {
    /// The varied value.
    pub name: &'static str,
    /// Its values.
    pub values: Vec<String>,
}

/// One point of a sweep.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Cell {
    /// Column.
    pub x: usize,
    /// Row.
    pub y: usize,
    /// The results of every variant there.
    pub report: Report,
}

/// The grid of a sweep: for each point the variants with its values applied.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Grid {
    x: Axis,
    y: Option<Axis>,
    names: Vec<String>,
    /// Column, row, variants.
    pub points: Vec<(usize, usize, Vec<Variant>)>,
}

impl Grid {
    /// All points of `x` by `y`.
    ///
    /// # Errors
    /// The error of [`Scenario::check`] for a point.
    pub fn new(variants: &[Variant], x: Axis, y: Option<Axis>) -> Result<Self, Error> {
        let rows = y.as_ref().map_or(1, |y| y.values().len());
        let mut points = Vec::new();
        for row in 0..rows {
            for column in 0..x.values().len() {
                let at_point = |variant: &Variant| {
                    let scenario = x.applied(&variant.scenario, column);
                    let scenario = y.as_ref().map_or_else(|| scenario.clone(), |y| y.applied(&scenario, row));
                    Variant { name: variant.name.clone(), scenario }
                };
                let variants: Vec<Variant> = variants.iter().map(at_point).collect();
                variants.iter().try_for_each(|variant| variant.scenario.check())?;
                points.push((column, row, variants));
            }
        }
        let names = variants.iter().map(|variant| variant.name.clone()).collect();
        Ok(Self { x, y, names, points })
    }

    /// Sums up, given each point's report in the order of [`Grid::points`].
    pub fn report(&self, reports: Vec<Report>) -> SweepReport {
        let axis = |axis: &Axis| AxisReport { name: axis.name(), values: axis.values() };
        let none = AxisReport { name: "", values: vec![String::new()] };
        let cells = self.points.iter().zip(reports);
        SweepReport {
            schema: "lineup.sched-sweep/1",
            x: axis(&self.x),
            y: self.y.as_ref().map_or(none, axis),
            variants: self.names.clone(),
            cells: cells.map(|((x, y, _), report)| Cell { x: *x, y: *y, report }).collect(),
        }
    }
}
