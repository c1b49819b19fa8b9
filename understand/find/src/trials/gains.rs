//! The upper bound of each subject's gain: layouts tried on the windows of the run.

use crate::findings::{Evidence, Kind, LargestVariant, Sign, Trial};
use crate::options::Options;
use crate::owner::{self, Owner, Spot};
use crate::recorded::Recorded;
use crate::stalls::attribution::Attribution;
use crate::stalls::counts::FunctionCounts;
use crate::stalls::function_names::{NO_SYMBOL, function_at};
use crate::stalls::window_names::{Naming, Point};
use crate::stalls::window_stalls::Watched;
use crate::trials::cache_configurations::Configuration;
use crate::trials::layouts::{Layout, MOST_WORDS, Moved, Objects, Relaid, WORD_BYTES, count_taken};
use crate::trials::loads_ahead::LoadsAhead;
use crate::trials::packed_code::Packed;
use crate::trials::pieces::{LINK_BYTES, Piece, largest_variant, narrow, pieces, without_holes};
use crate::trials::replay::replay;
use foldhash::{HashMap, HashSet};
use lineup_debuginfo::DebugInfo;
use lineup_explain::catalog::Ty;
use lineup_model::types::Language;
use lineup_recording::{Latency, Window, WindowStep};
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

/// Types for which layouts are tried: those with most stalls.
const MOST_TYPES: usize = 16;
/// Functions, besides the code of the whole program, which holds them all.
const MOST_FUNCTIONS: usize = 3;
/// An order or a split, which are less to edit than the rest, is preferred when it gains at least this share of the
/// best.
const GOOD_ENOUGH: f64 = 0.8;
/// A member is used much when it has at least one access for this number of accesses of the most used one.
const MUCH: u64 = 8;
/// The same for visits, with a stricter limit.
const MORE: u64 = 3;
/// The smallest share of objects in arrays at which a layout by columns is tried.
const LEAST_IN_ARRAYS: f64 = 0.5;

/// The possible gain of one subject.
pub(crate) struct Gain {
    pub(crate) subject: Subject,
    /// The one to go for first, then the best.
    pub(crate) trials: Vec<Trial>,
    /// The first one's gain under each configuration, or under the modelled caches alone when it is below the
    /// threshold.
    pub(crate) gains: Vec<f64>,
    /// Cycles that the subject stalled for in the windows.
    pub(crate) window_cycles: u64,
    pub(crate) evidence: Evidence,
    /// The members' places in the first one.
    pub(crate) moved: Option<Moved>,
    /// The objects' offset in their line, when most share it.
    pub(crate) start_in_line: Option<u64>,
}

impl Gain {
    /// The dependence of the gain on the cache.
    pub(crate) fn sign(&self, configurations: &[Configuration]) -> Sign {
        let losing = self.gains.iter().zip(configurations).filter(|(gain, _)| **gain < 0.0);
        let losing: Vec<String> = losing.map(|(_, one)| one.name.clone()).collect();
        if losing.is_empty() { Sign::Steady } else { Sign::DependsOn(losing) }
    }
}

/// The subject of a layout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Subject {
    Type(Ty),
    /// By number; `None` is the code of the whole program.
    Function(Option<usize>),
}

/// From shares of the stalls in the windows to shares of all stalls.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Scale {
    /// The subject's share of the stalls in the windows.
    in_windows: f64,
    /// The ratio of its share of all stalls to its share in the windows.
    factor: f64,
}

impl Scale {
    /// Scales a gain in the windows to the whole run. The subject's stalls are known of the whole run, and the saved
    /// part of them only of the windows. Savings beyond that are stalls of others, to whom the subject leaves room;
    /// they are not scaled.
    pub(crate) fn of_run(self, gain: f64) -> f64 {
        let own = gain.min(self.in_windows);
        own * self.factor + (gain - own)
    }
}

/// The data that layouts are tried on.
pub(crate) struct Bench<'b> {
    pub(crate) windows: &'b [Window],
    pub(crate) points: &'b [Vec<Point>],
    pub(crate) spots: &'b [Spot],
    pub(crate) watched: &'b Watched,
    pub(crate) configurations: &'b [Configuration],
    pub(crate) latency: Latency,
    pub(crate) line_bytes: u64,
    /// Stalls of the whole run.
    pub(crate) all_cycles: f64,
    /// The smallest reported gain. A layout that gains less is not tried under other caches.
    pub(crate) least_gain: f64,
    /// Stalls in the windows as they were, under the modelled caches.
    pub(crate) base: u64,
    /// Stalls in the windows under each configuration, once they are needed.
    bases: OnceLock<Vec<u64>>,
    ahead: LoadsAhead<'b>,
}

impl<'b> Bench<'b> {
    /// Nothing was tried yet.
    pub(crate) fn new(
        (windows, points): (&'b [Window], &'b [Vec<Point>]),
        spots: &'b [Spot],
        watched: &'b Watched,
        (configurations, line_bytes): (&'b [Configuration], u64),
        options: &Options,
        all_cycles: f64,
    ) -> Self {
        Bench {
            windows,
            points,
            spots,
            watched,
            configurations,
            latency: options.latency,
            line_bytes,
            all_cycles,
            least_gain: options.least_gain,
            base: watched.stall_cycles,
            bases: OnceLock::new(),
            ahead: LoadsAhead::new((windows, points), spots, (configurations, line_bytes), options.latency),
        }
    }

    /// The scale from a subject's savings in the windows to the run, in which it stalls for `subject_cycles`.
    pub(crate) fn scale(&self, subject_cycles: f64, window_cycles: u64) -> Scale {
        let in_windows = window_cycles as f64 / self.base.max(1) as f64;
        let of_run = subject_cycles / self.all_cycles;
        Scale { in_windows, factor: if in_windows > 0.0 { of_run / in_windows } else { 1.0 } }
    }

    fn stalls(&self, configuration: &Configuration, layout: &Layout) -> u64 {
        let outcome = replay(configuration, (self.windows, self.points), layout, |_, _, _| ());
        outcome.cycles(self.latency)
    }

    fn under_each(&self, layout: &Layout) -> Vec<u64> {
        self.configurations.par_iter().map(|configuration| self.stalls(configuration, layout)).collect()
    }

    /// Some layouts under the modelled caches, and the one to go for. `is_worth` says whether a gain in the windows is a
    /// finding.
    fn tried(&self, layouts: Vec<(Kind, Layout)>, is_worth: impl Fn(f64) -> bool) -> Option<LayoutTrials> {
        let usual = self.configurations.first()?;
        let share = |base: u64, stalls: u64| (base as f64 - stalls as f64) / base.max(1) as f64;
        let base = self.base;
        let tried = layouts.into_par_iter().map(|(kind, layout)| {
            let gain = share(base, self.stalls(usual, &layout));
            (Trial { kind, gain }, layout)
        });
        let mut tried: Vec<(Trial, Layout)> = tried.collect();
        tried.sort_by(|(one, _), (other, _)| other.gain.total_cmp(&one.gain));
        // Only the better of two layouts of one kind is kept.
        let mut trials: Vec<Trial> = Vec::new();
        for (trial, _) in &tried {
            if !trials.iter().any(|known| known.kind == trial.kind) {
                trials.push(trial.clone());
            }
        }
        let best = preferred(&trials, is_worth)?;
        trials[..=best].rotate_right(1);
        let (_, best) = tried.into_iter().find(|(trial, _)| *trial == trials[0])?;
        Some(LayoutTrials { trials, best })
    }

    /// The same with loads ahead, where no layout is worth a finding.
    fn with_ahead(&self, ty: Ty, mut tried: LayoutTrials, scale: Scale) -> Best {
        let is_worth = |trial: &Trial| scale.of_run(trial.gain) >= self.least_gain;
        let first = &tried.trials[0];
        let may = first.kind.is_conditional() || !is_worth(first);
        let Some(ahead) = may.then(|| self.ahead.trial(ty)).flatten().filter(is_worth) else {
            return self.under_all(tried, scale);
        };
        if ahead.gain <= first.gain {
            tried.trials.insert(1, ahead);
            return self.under_all(tried, scale);
        }
        tried.trials.insert(0, ahead);
        Best { gains: self.ahead.under_each(ty), trials: tried.trials, moved: None }
    }

    /// The first trial's gain under each configuration, if it is large enough to report, scaled by `scale`. One subject
    /// after the other, because all configurations are tried at a time.
    fn under_all(&self, LayoutTrials { trials, best }: LayoutTrials, scale: Scale) -> Best {
        let share = |base: u64, stalls: u64| (base as f64 - stalls as f64) / base.max(1) as f64;
        let gains = match scale.of_run(trials[0].gain) >= self.least_gain {
            true => {
                let bases = self.bases.get_or_init(|| self.under_each(&Layout::AsIs));
                let gains = bases.iter().zip(self.under_each(&best));
                gains.map(|(base, stalls)| share(*base, stalls)).collect()
            }
            false => vec![trials[0].gain],
        };
        let moved = match best {
            Layout::Objects(relaid) if trials[0].kind != Kind::Columns => Some(relaid.moved()),
            _ => None,
        };
        Best { gains, trials, moved }
    }
}

/// The trials, the preferred one first, with its layout.
struct LayoutTrials {
    trials: Vec<Trial>,
    best: Layout,
}

/// The trials, the preferred one first, with its gains.
struct Best {
    trials: Vec<Trial>,
    gains: Vec<f64>,
    moved: Option<Moved>,
}

/// The one to go for, of trials with the best first. Objects without holes are a bound: another layout may reach it.
/// Smaller members depend on values that are not seen: they are taken only where no other layout is worth a finding.
fn preferred(trials: &[Trial], is_worth: impl Fn(f64) -> bool) -> Option<usize> {
    let first = trials.first()?;
    let best = trials.iter().position(|trial| trial.kind != Kind::Narrow);
    let Some(best) = best.filter(|best| is_worth(trials[*best].gain) || !is_worth(first.gain)) else {
        return Some(0);
    };
    let enough = trials[best].gain * GOOD_ENOUGH;
    let is_enough = |trial: &&Trial| trial.gain >= enough;
    let of = |is_wanted: fn(Kind) -> bool| {
        trials.iter().take_while(is_enough).position(|trial| is_wanted(trial.kind))
    };
    let is_less_to_edit = |kind| matches!(kind, Kind::Order | Kind::Split);
    let is_no_bound = |kind| !matches!(kind, Kind::NoHoles | Kind::Narrow);
    Some(of(is_less_to_edit).or_else(|| of(is_no_bound)).unwrap_or(best))
}

/// The possible gains of the types with most stalls.
pub(crate) fn of_types(bench: &Bench<'_>, naming: &mut Naming<'_>, types: &[(Ty, f64)]) -> Vec<Gain> {
    let stalls = |ty: Ty| bench.watched.owner_cycles.get(&Owner::Type(ty)).copied().unwrap_or_default();
    let types = types.iter().take(MOST_TYPES);
    let known = types.filter_map(|(ty, cycles)| Some((*ty, *cycles, objects(bench, naming, *ty)?)));
    let known: Vec<(Ty, f64, (Objects, Nature))> = known.collect();
    let tried = known.par_iter().map(|(ty, cycles, (objects, nature))| {
        let scale = bench.scale(*cycles, stalls(*ty));
        let tried = bench.tried(layouts(objects, nature), |gain| scale.of_run(gain) >= bench.least_gain)?;
        Some((tried, scale))
    });
    let tried: Vec<Option<(LayoutTrials, Scale)>> = tried.collect();
    let both = known.into_iter().zip(tried);
    let gains = both.filter_map(|((ty, _, (objects, nature)), tried)| {
        let (tried, scale) = tried?;
        let Best { trials, gains, moved } = bench.with_ahead(ty, tried, scale);
        Some(Gain {
            subject: Subject::Type(ty),
            trials,
            gains,
            window_cycles: stalls(ty),
            evidence: evidence(bench, naming, ty, &objects, nature),
            moved,
            start_in_line: objects.start_in_line(bench.line_bytes),
        })
    });
    gains.collect()
}

/// Layouts for the objects of a type.
pub(super) fn layouts(objects: &Objects, nature: &Nature) -> Vec<(Kind, Layout)> {
    let as_layout = |kind, relaid: Option<Relaid>| relaid.map(|relaid| (kind, Layout::Objects(relaid)));
    let columns = (objects.share_in_arrays() >= LEAST_IN_ARRAYS).then(|| objects.by_columns());
    if let Nature::Enum(_) = nature {
        // The room for the address is in the part that stays.
        let boxed = objects.split_linked(|piece| piece == 0, 0);
        return as_layout(Kind::BoxedVariant, boxed).into_iter().collect();
    }
    let (order, apart, link_bytes) = match nature {
        Nature::Rust => (Kind::ReprC, Kind::Boxed, LINK_BYTES),
        Nature::Other | Nature::Enum(_) => (Kind::Order, Kind::Split, objects.link_bytes()),
    };
    let dense = as_layout(Kind::NoHoles, objects.without_holes());
    let bounds = dense.into_iter().chain(as_layout(Kind::Narrow, objects.narrowed()));
    if objects.pieces.len() == 1 {
        return bounds.collect();
    }
    let orders = objects.in_orders_of_use().into_iter().chain(objects.smaller());
    let orders = orders.map(|one| (order, Layout::Objects(one)));
    let parts = hot_parts(objects).into_iter();
    let splits =
        parts.filter_map(|hot| as_layout(apart, objects.split_linked(|piece| hot[piece], link_bytes)));
    orders.chain(splits).chain(as_layout(Kind::Columns, columns)).chain(bounds).collect()
}

/// Ways to choose the pieces that are used much: at all, and by accesses and visits.
fn hot_parts(objects: &Objects) -> BTreeSet<Vec<bool>> {
    let of = |uses: &[u64], times: u64| -> Vec<bool> {
        let most = uses.iter().copied().max().unwrap_or(0);
        uses.iter().map(|uses| *uses > 0 && uses * times > most).collect()
    };
    let at_all = objects.heat.iter().map(|heat| *heat > 0).collect();
    let [by_heat, by_visits] = [of(&objects.heat, MUCH), of(&objects.visits, MUCH)];
    [at_all, by_heat, by_visits, of(&objects.visits, MORE)].into()
}

/// The decider of a type's layout.
pub(super) enum Nature {
    /// The source.
    Other,
    /// Rust's compiler.
    Rust,
    /// Rust's compiler, of an enum with a variant larger than all others.
    Enum(LargestVariant),
}

/// The object that was used last, and which pieces of it since then.
struct Visit {
    base: u64,
    pieces: u128,
}

impl Visit {
    /// Whether a piece has not been used since this object became the current one. Each access to a piece beyond the
    /// 127th counts.
    fn is_first(&mut self, base: u64, piece: usize) -> bool {
        if self.base != base {
            *self = Visit { base, pieces: 0 };
        }
        let own = 1u128.checked_shl(piece as u32).unwrap_or(0);
        let is_first = self.pieces & own == 0;
        self.pieces |= own;
        is_first
    }
}

/// The objects of a type in the windows; `None` where its members cannot be moved, or none was seen.
pub(super) fn objects(bench: &Bench<'_>, naming: &mut Naming<'_>, ty: Ty) -> Option<(Objects, Nature)> {
    let (types, described) = naming.namer.catalog().table(ty)?;
    let size_bytes = types.size_bytes(described.id).filter(|size| *size > 0)?;
    let is_rust = types.get(described.id).is_some_and(|ty| ty.language == Language::Rust);
    let taken = without_holes(types, described.id);
    let (nature, pieces) = match largest_variant(types, described.id) {
        Some(largest) => {
            let stays = Piece { start: 0, end: largest.size_bytes_boxed, align: 8 };
            let boxed = Piece { start: stays.end, end: size_bytes, align: 1 };
            (Nature::Enum(largest), vec![stays, boxed])
        }
        None => {
            // Holes of a union, or of its only member, can go though nothing can be moved.
            let whole = || (!taken.is_empty()).then(|| vec![Piece { start: 0, end: size_bytes, align: 8 }]);
            let pieces = pieces(types, described.id).or_else(whole)?;
            (if is_rust { Nature::Rust } else { Nature::Other }, pieces)
        }
    };
    let narrow = match nature {
        Nature::Enum(_) => Vec::new(),
        Nature::Rust | Nature::Other => narrow(types, described.id, &pieces),
    };
    let is_own: Vec<bool> = bench.spots.iter().map(|spot| spot.owner == Owner::Type(ty)).collect();
    let mut places_object = is_own.clone();
    for (spot, places) in bench.spots.iter().zip(&mut places_object).filter(|(_, own)| **own) {
        // The accessed element of an array may be unknown, and then so is the beginning of its object.
        let field = naming.namer.catalog().field(ty, spot.at, spot.size_bytes);
        *places = field.is_some_and(|field| field.stride_bytes.is_none());
    }
    if !places_object.contains(&true) {
        places_object.clone_from(&is_own);
    }
    let (heat, visits) = (vec![0; pieces.len()], vec![0; pieces.len()]);
    let taken = taken.into_iter().map(|piece| (piece, 0)).collect();
    let words = vec![0; size_bytes.div_ceil(WORD_BYTES).min(MOST_WORDS) as usize];
    let bases = Vec::new();
    let mut objects = Objects { is_own, size_bytes, pieces, heat, visits, words, bases, taken, narrow };
    let mut visit = Visit { base: u64::MAX, pieces: 0 };
    for (window, points) in bench.windows.iter().zip(bench.points) {
        let accesses = window.steps.iter().filter_map(|step| match step {
            WindowStep::Access { address, size_shift, .. } => Some((*address, 1u64 << size_shift)),
            WindowStep::Fetch { .. } => None,
        });
        for ((address, size_bytes), point) in accesses.zip(points) {
            if !objects.is_own[point.spot as usize] {
                continue;
            }
            let offset = u64::from(point.offset);
            let bytes = offset..offset + size_bytes;
            count_taken(&mut objects.taken, bytes.clone());
            if let Some(word) = objects.words.get_mut((offset / WORD_BYTES) as usize) {
                *word += 1;
            }
            let (base, pieces) = (address.wrapping_sub(offset), objects.covered(bytes));
            if !pieces.is_empty() {
                objects.bases.extend(places_object[point.spot as usize].then_some(base));
            }
            for piece in pieces {
                objects.heat[piece] += 1;
                objects.visits[piece] += u64::from(visit.is_first(base, piece));
            }
        }
        objects.bases.sort_unstable();
        objects.bases.dedup();
    }
    (!objects.bases.is_empty()).then_some((objects, nature))
}

pub(super) fn evidence(
    bench: &Bench<'_>,
    naming: &mut Naming<'_>,
    ty: Ty,
    objects: &Objects,
    nature: Nature,
) -> Evidence {
    let mut used: Vec<usize> = (0..objects.pieces.len()).filter(|piece| objects.heat[*piece] > 0).collect();
    let used_bytes: u64 = used.iter().map(|piece| objects.pieces[*piece].size_bytes()).sum();
    used.sort_by_key(|piece| std::cmp::Reverse(objects.heat[*piece]));
    let mut name = |piece: &Piece| {
        let spot = Spot { owner: Owner::Type(ty), at: piece.start, size_bytes: piece.size_bytes() };
        owner::member_name(&mut naming.namer, spot)
    };
    Evidence::Type {
        size_bytes: objects.size_bytes,
        lines: objects.size_bytes.div_ceil(bench.line_bytes),
        lines_needed: used_bytes.div_ceil(bench.line_bytes),
        used_bytes,
        hole_bytes: match objects.taken.as_slice() {
            [] => 0,
            taken => objects.size_bytes - taken.iter().map(|(piece, _)| piece.size_bytes()).sum::<u64>(),
        },
        largest_variant: match nature {
            Nature::Enum(largest) => Some(largest),
            Nature::Rust | Nature::Other => None,
        },
        unused: objects.pieces.len() - used.len(),
        used: used.iter().map(|piece| name(&objects.pieces[*piece])).collect(),
        objects: objects.bases.len() as u64,
        in_arrays: objects.share_in_arrays(),
        used_bytes_per_line: bench.watched.used_per_line.get(&Owner::Type(ty)).copied(),
    }
}

/// The possible gains of the code of the functions with most stalls, and of all code, in files that can be put in
/// another order.
pub(crate) fn of_code(
    bench: &Bench<'_>,
    attribution: &Attribution,
    is_own: impl Fn(&FunctionCounts) -> bool,
    (recorded, debug): (&Recorded, &[Option<DebugInfo>]),
    least_cycles: f64,
) -> Vec<Gain> {
    let cycles = |number: &usize| {
        crate::trials::replay::cycles(attribution.functions[*number].fetch_misses, bench.latency)
    };
    let own = || (0..attribution.functions.len()).filter(|number| is_own(&attribution.functions[*number]));
    let of_all: u64 = own().map(|number| cycles(&number)).sum();
    if of_all == 0 || (of_all as f64) < least_cycles {
        return Vec::new();
    }
    let own_names: HashSet<(&str, &str)> = own()
        .map(|number| &attribution.functions[number])
        .map(|counts| (counts.name.as_str(), counts.image.as_str()))
        .collect();
    let mut fetched = fetched(bench.windows);
    let mut by_function: HashMap<(String, String), BTreeMap<u64, u64>> = HashMap::default();
    fetched.retain(|pc, size_bytes| {
        let function = function_at(recorded, debug, *pc);
        let is_own = own_names.contains(&(function.0.as_str(), function.1.as_str()));
        if is_own {
            by_function.entry(function).or_default().insert(*pc, *size_bytes);
        }
        is_own
    });
    let is_worth = |number: &usize| {
        let has_name = attribution.functions[*number].name != NO_SYMBOL;
        has_name && cycles(number) > 0 && cycles(number) as f64 >= least_cycles
    };
    let mut numbers: Vec<usize> = own().filter(is_worth).collect();
    numbers.sort_by_key(|number| std::cmp::Reverse(cycles(number)));
    let of_function = |number: usize| {
        let counts = &attribution.functions[number];
        Some((Some(number), by_function.get(&(counts.name.clone(), counts.image.clone()))?))
    };
    let subjects = numbers.into_iter().take(MOST_FUNCTIONS).filter_map(of_function);
    let subjects: Vec<_> = std::iter::once((None, &fetched)).chain(subjects).collect();
    let packed = subjects.iter().map(|(number, fetched)| match number {
        Some(_) => Packed::in_place(fetched),
        None => Packed::new(fetched),
    });
    let packed: Vec<Packed> = packed.collect();
    let tried = packed
        .par_iter()
        .map(|packed| bench.tried(vec![(Kind::Code, Layout::Code(packed.clone()))], |_| true));
    let tried: Vec<Option<LayoutTrials>> = tried.collect();
    let gain =
        |(number, fetched): (Option<usize>, &BTreeMap<u64, u64>), packed: &Packed, tried: LayoutTrials| {
            let executed_bytes = packed.size_bytes();
            let evidence = Evidence::Code {
                executed_bytes,
                lines: packed.lines_now(bench.line_bytes),
                lines_needed: executed_bytes.div_ceil(bench.line_bytes),
            };
            let window_cycles = fetched.keys().filter_map(|pc| bench.watched.fetch_cycles.get(pc)).sum();
            let scale = bench.scale(number.map_or(of_all, |number| cycles(&number)) as f64, window_cycles);
            let Best { trials, gains, moved } = bench.under_all(tried, scale);
            let subject = Subject::Function(number);
            Gain { subject, trials, gains, window_cycles, evidence, moved, start_in_line: None }
        };
    let all = subjects.into_iter().zip(&packed).zip(tried);
    all.filter_map(|((subject, packed), tried)| Some(gain(subject, packed, tried?))).collect()
}

/// First byte and size of each fetch in the windows.
fn fetched(windows: &[Window]) -> BTreeMap<u64, u64> {
    let mut fetched: BTreeMap<u64, u64> = BTreeMap::new();
    for step in windows.iter().flat_map(|window| &window.steps) {
        if let WindowStep::Fetch { pc, size_bytes } = *step {
            let size = fetched.entry(pc).or_default();
            *size = (*size).max(u64::from(size_bytes));
        }
    }
    fetched
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_counts_once_while_one_object_is_used() {
        let mut visit = Visit { base: u64::MAX, pieces: 0 };
        let uses = [(0x10, 0), (0x10, 3), (0x10, 0), (0x20, 0), (0x10, 3), (0x10, 200), (0x10, 200)];
        let first = uses.map(|(base, piece)| visit.is_first(base, piece));
        assert_eq!(first, [true, true, false, true, true, true, true]);
    }

    /// A subject that stalls for seven hundredths of the run, and hardly in the windows, does not save all that others
    /// stall for there many times over.
    #[test]
    fn no_more_of_a_subject_is_saved_than_it_stalls_for() {
        let close = |one: f64, other: f64| assert!((one - other).abs() < 1e-12, "{one} {other}");
        let rare = Scale { in_windows: 0.005, factor: 14.0 };
        close(rare.of_run(0.0025), 0.035);
        close(rare.of_run(0.005), 0.07);
        close(rare.of_run(0.02), 0.085);
        close(rare.of_run(-0.01), -0.14);
        let not_seen = Scale { in_windows: 0.0, factor: 1.0 };
        close(not_seen.of_run(0.02), 0.02);
    }
}
