//! One order of a type's members for a whole fleet.
//!
//! [`lineup_advise`] gets the patterns of all recordings as one recording of one program. Its regions are the functions
//! of all services, each with its weight. The result is an order. `lineup advise --order` or `lineup study --order`
//! makes the patch from it and respects the pinned members of the sources.

mod joined;
mod reference;
mod text;
mod weights;

use crate::engine::Engine;
use crate::error::{FleetError, Result};
use joined::{Joined, Key};
use lineup_advise::judge::NoCompiler;
use lineup_advise::options::Options;
use lineup_advise::proposal::{Advice, RegionLines};
use lineup_advise::sources::Sources;
use lineup_advise::usage::Usage;
use lineup_model::line::LineSize;
use lineup_model::region::{Region, RegionId};
use lineup_model::usage::TypeUse;
use reference::{Layout, Layouts, Rebuilt, rebuilt};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
pub use text::{order_file, text};
pub use weights::Weigh;

/// The share of additional lines from which on a service loses.
const LOSS: f64 = 0.01;

/// The number of times that the search raises the losers' weights to find an order without losers.
const ROUNDS: u32 = 8;

/// The factor of each raise.
const RAISED: f64 = 4.0;

/// The question.
#[derive(Clone, PartialEq, Debug)]
pub struct Question {
    /// The type.
    pub type_name: String,
    /// The unit of a function's weight.
    pub weigh: Weigh,
    /// A service matters when it makes at least this share of the fleet's weighted lines.
    pub least_share: f64,
    /// Members that stay where they are.
    pub pins: Vec<String>,
    /// Line size that decides.
    pub line: LineSize,
}

/// The answer.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FleetAdvice {
    /// `lineup.fleet-advice/1`.
    pub schema: &'static str,
    /// The type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// The build whose members the new order arranges.
    pub build: String,
    /// Recordings that it rests on.
    pub recordings: u64,
    /// Line size that decides.
    pub line_bytes: u64,
    /// The unit of a service's weight.
    pub weighted_by: &'static str,
    /// The advice.
    pub answer: Answer,
    /// Gains and losses of each service, in weighted lines.
    pub services: Vec<ServiceLines>,
    /// The data that the advice leaves out.
    pub left_out: Vec<String>,
}

/// The advised action for the type's order.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// A better order: the members in it, and those that move.
    Order {
        /// All members.
        order: Vec<String>,
        /// The members that move.
        moved: Vec<String>,
    },
    /// No allowed order needs fewer lines over all.
    AlreadyGood,
    /// Every found order loses for a service that matters; lines are those of the order that is best over all.
    Refused {
        /// The services that would lose with it.
        losers: Vec<String>,
        /// The losing order.
        order: Vec<String>,
    },
    /// Members may not be moved.
    Held {
        /// The reasons.
        because: Vec<String>,
    },
}

/// A service's need of the type's lines.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ServiceLines {
    /// Its name.
    pub service: String,
    /// Its weight: of all its functions that use the type.
    pub weight: f64,
    /// Lines of the type for each unit of weight, as it lies: the mean of a call where calls are the weight.
    pub before: f64,
    /// The same in the new order.
    pub after: f64,
    /// The same in the order that is best for this service alone.
    pub at_best: f64,
    /// Whether its share of the fleet's lines is large enough to count.
    pub matters: bool,
}

impl ServiceLines {
    /// True when it needs more lines than before.
    pub fn loses(&self) -> bool {
        self.after > self.before * (1.0 + LOSS)
    }

    /// Lines saved for each unit of weight, times the weight.
    pub fn gain(&self) -> f64 {
        self.weight * (self.before - self.after)
    }
}

/// The data that advice is computed from.
struct Ground {
    rebuilt: Rebuilt,
    layout: Layout,
    joined: Joined,
    weights: BTreeMap<Key, f64>,
    options: Options,
    sources: Sources,
}

/// Computes one order for all.
///
/// # Errors
/// When the store knows too little of the type.
pub fn advise(engine: &Engine, question: &Question) -> Result<FleetAdvice> {
    let (build, ground, left_out) = Ground::of(engine, question)?;
    let (answer, services) = ground.answer(question)?;
    Ok(FleetAdvice {
        schema: "lineup.fleet-advice/1",
        type_name: question.type_name.clone(),
        build,
        recordings: ground.joined.recordings,
        line_bytes: question.line.bytes(),
        weighted_by: question.weigh.unit(),
        answer,
        services,
        left_out,
    })
}

impl Ground {
    /// Reads the store: the build whose layout counts, the ground, and the parts left out.
    fn of(engine: &Engine, question: &Question) -> Result<(String, Ground, Vec<String>)> {
        let (type_name, unit) = (&question.type_name, question.weigh.unit());
        let none = |why: String| FleetError::NoAdvice { type_name: type_name.clone(), why };
        let mut layouts = Layouts::of(engine, type_name)?;
        let newest =
            layouts.newest.take().and_then(|build| Some((layouts.by_build.get(&build)?.clone(), build)));
        let (layout, build) = newest.ok_or_else(|| none("no recording in the store used it".into()))?;
        let rebuilt = rebuilt(type_name, &layout)
            .ok_or_else(|| none(format!("a {} of {} is not ordered", layout.kind, layout.machine)))?;
        let mut joined = Joined::of(engine, type_name, &layouts, &layout)?;
        let weights = question.weigh.of_store(engine)?;
        let mut left_out = told(&joined);
        let unweighed = joined.by_key.keys().filter(|key| !weights.contains_key(key));
        left_out.extend(
            unweighed.map(|(service, region)| {
                format!("{region} of {service}: the store does not have its {unit}")
            }),
        );
        joined.by_key.retain(|key, _| weights.contains_key(key));
        if joined.by_key.is_empty() {
            let next = "add recordings with --seconds, or samples and ask with --by time";
            return Err(none(format!("the store has no {unit} of the functions that use it; {next}")));
        }
        let sources = Sources::written_out(&rebuilt.types, [rebuilt.id]);
        let options = options(question, &rebuilt, &layout);
        Ok((build, Ground { rebuilt, layout, joined, weights, options, sources }, left_out))
    }
}

fn told(joined: &Joined) -> Vec<String> {
    let mut told = Vec::new();
    if joined.gone > 0 {
        told.push(format!("{} runs of bytes of members that this build does not have", joined.gone));
    }
    if joined.unplaced > 0 {
        told.push(format!(
            "{} recordings whose layout of the type is unknown, or of another machine",
            joined.unplaced
        ));
    }
    told
}

fn options(question: &Question, rebuilt: &Rebuilt, layout: &Layout) -> Options {
    let pin = |member: &String| {
        let at = layout.members.iter().position(|own| own.name == *member)?;
        let (_, aggregate) = rebuilt.types.aggregate(rebuilt.id)?;
        Some((rebuilt.name.clone(), aggregate.members.get(at)?.name.as_deref()?.to_owned()))
    };
    Options {
        pins: question.pins.iter().filter_map(pin).collect(),
        primary: question.line,
        least_share: 0.0,
        ..Options::default()
    }
}

impl Ground {
    fn answer(&self, question: &Question) -> Result<(Answer, Vec<ServiceLines>)> {
        let best = self.advice(&self.weights)?;
        let Some(proposed) = best.orders.first() else {
            let answer = self.none_proposed(&best);
            return Ok((answer, self.services(None, question)?));
        };
        let services = self.services(Some(&proposed.lines), question)?;
        let order = |advice: &Advice| Answer::Order {
            order: self.names(advice),
            moved: advice.orders.first().map(|order| self.given(&order.moved)).unwrap_or_default(),
        };
        if losers(&services).is_empty() {
            return Ok((order(&best), services));
        }
        let mut weights = self.weights.clone();
        for _ in 0..ROUNDS {
            let next = self.advice(&weights)?;
            let Some(proposed) = next.orders.first() else { break };
            let tried = self.services(Some(&proposed.lines), question)?;
            let losing = losers(&tried);
            if losing.is_empty() && tried.iter().map(ServiceLines::gain).sum::<f64>() > 0.0 {
                return Ok((order(&next), tried));
            }
            for ((service, _), weight) in &mut weights {
                *weight *= if losing.contains(service) { RAISED } else { 1.0 };
            }
        }
        let losers = losers(&services).into_iter().collect();
        Ok((Answer::Refused { losers, order: self.names(&best) }, services))
    }

    fn none_proposed(&self, advice: &Advice) -> Answer {
        let refused = advice.refusals.iter().filter(|refusal| refusal.owner == self.rebuilt.name);
        let because: Vec<String> =
            refused.flat_map(|refusal| &refusal.constraints).map(ToString::to_string).collect();
        match because.is_empty() {
            true => Answer::AlreadyGood,
            false => Answer::Held { because },
        }
    }

    /// All use of the type as of one program, with these weights.
    fn usage(&self, weights: &BTreeMap<Key, f64>) -> Usage {
        let mut usage = Usage::empty(self.rebuilt.abi);
        for (key, used) in &self.joined.by_key {
            let weight = weights.get(key).copied().unwrap_or(0.0);
            if weight <= 0.0 {
                continue;
            }
            let region = RegionId(usage.regions.len() as u16);
            usage.regions.push(Region { weight, ..Region::named(format!("{}: {}", key.0, key.1)) });
            let used_as = BTreeSet::from_iter(Some(self.rebuilt.first).filter(|_| self.layout.first_is_held));
            let patterns = used.patterns.clone();
            usage.types.push(TypeUse { region, ty: self.rebuilt.id, calls: used.calls, patterns, used_as });
        }
        usage
    }

    /// The library's advice for these weights.
    fn advice(&self, weights: &BTreeMap<Key, f64>) -> Result<Advice> {
        let (usage, types) = (self.usage(weights), &self.rebuilt.types);
        Ok(lineup_advise::advise(&usage, types, &self.sources, &self.options, &mut NoCompiler)?)
    }

    /// Lines of each service now, in the order with these lines of regions, and at its own best.
    fn services(&self, lines: Option<&[RegionLines]>, question: &Question) -> Result<Vec<ServiceLines>> {
        let names: BTreeSet<&String> = self.joined.by_key.keys().map(|(service, _)| service).collect();
        let mut all = Vec::new();
        for service in names {
            let own: BTreeMap<Key, f64> = self
                .weights
                .iter()
                .filter(|((of, _), _)| of == service)
                .map(|(key, weight)| (key.clone(), *weight))
                .collect();
            let alone = self.advice(&own)?;
            let at_best = alone.orders.first().map(|order| order.lines.as_slice());
            let (weight, before, best) = self.sum(service, at_best, question);
            let (_, _, after) = self.sum(service, lines, question);
            all.push(ServiceLines {
                service: service.clone(),
                weight,
                before,
                after,
                at_best: best.min(before),
                matters: false,
            });
        }
        let whole: f64 = all.iter().map(|one| one.weight * one.before).sum();
        for one in &mut all {
            one.matters = one.weight * one.before >= question.least_share * whole;
        }
        all.sort_by(|a, b| (b.weight * b.before).total_cmp(&(a.weight * a.before)));
        Ok(all)
    }

    /// The weight of a service, and its lines for each unit of weight, as the type lies and in an order.
    fn sum(&self, service: &str, lines: Option<&[RegionLines]>, question: &Question) -> (f64, f64, f64) {
        let (mut weight, mut before, mut after) = (0.0, 0.0, 0.0);
        let present = self.present();
        for ((of, region), own) in self.weights.iter().filter(|(key, _)| self.joined.by_key.contains_key(key))
        {
            if of != service {
                continue;
            }
            let name = format!("{of}: {region}");
            let of_region = |rows: &[RegionLines]| {
                let is_it = |row: &&RegionLines| {
                    row.region == name
                        && row.line_bytes == question.line.bytes()
                        && row.data_model == self.rebuilt.abi.data_model()
                };
                rows.iter().find(is_it).map(|row| (row.before.unwrap_or(row.after), row.after))
            };
            let now = of_region(&present).map_or(0.0, |(now, _)| now);
            weight += own;
            before += own * now;
            after += own * lines.and_then(of_region).map_or(now, |(_, after)| after);
        }
        (weight, before / weight, after / weight)
    }

    /// Lines of all regions as the type lies.
    fn present(&self) -> Vec<RegionLines> {
        let usage = self.usage(&self.weights);
        lineup_advise::current_lines(&usage, &self.rebuilt.types, &self.rebuilt.name)
    }

    /// Members in the new order, by the names that the store has.
    fn names(&self, advice: &Advice) -> Vec<String> {
        advice.orders.first().map(|order| self.given(&order.new_order)).unwrap_or_default()
    }

    /// The store's names of these members.
    fn given(&self, members: &[String]) -> Vec<String> {
        let Some((_, aggregate)) = self.rebuilt.types.aggregate(self.rebuilt.id) else { return Vec::new() };
        let name = |member: &String| {
            let at = aggregate.members.iter().position(|own| own.name.as_deref() == Some(member));
            at.and_then(|at| self.layout.members.get(at))
                .map_or_else(|| member.clone(), |own| own.name.clone())
        };
        members.iter().map(name).collect()
    }
}

/// The services that matter and lose.
fn losers(services: &[ServiceLines]) -> BTreeSet<String> {
    services.iter().filter(|one| one.matters && one.loses()).map(|one| one.service.clone()).collect()
}
