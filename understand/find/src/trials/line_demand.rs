//! The lines that functions touch of a type's objects, as they are and laid anew, whether they stall or not.
//!
//! A line is counted once in each call of a function, for the accesses that its own code makes until it is called
//! again. Where the windows have few calls, it is counted once in each window.

use crate::findings::{Evidence, Kind};
use crate::owner::Owner;
use crate::stalls::attribution::Attribution;
use crate::stalls::counts::FunctionNumber;
use crate::stalls::time_shares::TimeShares;
use crate::stalls::window_names::{Naming, Point};
use crate::time_findings::Stretch;
use crate::trials::gains::{Bench, Nature, evidence, layouts, objects};
use crate::trials::layouts::{Layout, Moved, Objects};
use foldhash::HashMap;
use lineup_explain::catalog::Ty;
use lineup_recording::WindowStep;
use rayon::prelude::*;

/// Accesses in the windows that are looked at, about: of more, every second window or fewer.
const MOST_ACCESSES: u64 = 1 << 20;
/// Fewer calls say nothing of a call.
const LEAST_CALLS: usize = 8;
/// A function with a smaller part of a type's time does not decide on its layout.
const LEAST_OF_TYPE: f64 = 0.05;
/// Functions of a type that are looked at.
const MOST_FUNCTIONS: usize = 8;
/// A layout with which one of them touches more lines than this is none.
const MOST_GROWTH: f64 = 1.02;
/// The part of an object that a split leaves at most.
const MOST_OF_SPLIT: f64 = 0.75;
/// Ranks of members stand above the numbers of their accesses.
const RANK_SHIFT: u32 = 48;
/// A layout that is less to edit is preferred when it has this part of the best bound.
const GOOD_ENOUGH: f64 = 0.8;

/// Lines that one function touches.
pub(crate) struct Lines {
    pub(crate) function: FunctionNumber,
    /// The share of the time that its accesses to the type have.
    pub(crate) time: f64,
    pub(crate) per: Stretch,
    pub(crate) stretches: u64,
    /// In one stretch, on average.
    pub(crate) now: f64,
    /// With the best layout; the same where there is none.
    pub(crate) after: f64,
}

impl Lines {
    /// The part of its time in proportion to its saved lines.
    pub(crate) fn bound(&self) -> f64 {
        self.time * (1.0 - self.after / self.now)
    }
}

/// The lines that functions touch of one type.
pub(crate) struct Demand {
    pub(crate) ty: Ty,
    /// Most time first; empty where the windows have none.
    pub(crate) functions: Vec<Lines>,
    /// The layout that touches fewest, if any touches fewer.
    pub(crate) kind: Option<Kind>,
    pub(crate) moved: Option<Moved>,
    /// The share of accesses that cross the end of a line.
    pub(crate) split_accesses: f64,
    pub(crate) evidence: Evidence,
    pub(crate) start_in_line: Option<u64>,
    /// Whether `malloc` puts its objects side by side.
    pub(crate) is_of_malloc: bool,
}

impl Demand {
    /// The part of the time in proportion to the lines saved.
    pub(crate) fn bound(&self) -> f64 {
        self.functions.iter().map(Lines::bound).sum()
    }

    /// The function that saves most; where none does, the one with most time.
    pub(crate) fn first(&self) -> Option<&Lines> {
        let best = self.functions.iter().filter(|lines| lines.bound() > 0.0);
        best.max_by(|one, other| one.bound().total_cmp(&other.bound())).or(self.functions.first())
    }
}

/// One access.
struct Use {
    /// Both count from 1; call 0 is one that had begun before its window.
    call: u32,
    window: u32,
    address: u64,
    point: Point,
    size_bytes: u64,
}

impl Use {
    fn stretch(&self, per: Stretch) -> u32 {
        match per {
            Stretch::Call => self.call,
            Stretch::Window => self.window,
        }
    }
}

type Uses = HashMap<FunctionNumber, Vec<Use>>;

/// The lines of each type; those without objects in the windows, or with one member alone, are left out. `is_entry` says
/// whether a function begins at an address.
pub(crate) fn of_types(
    bench: &Bench<'_>,
    (naming, attribution): (&mut Naming<'_>, &Attribution),
    times: &TimeShares,
    is_entry: impl Fn(u64) -> bool,
    types: &[Ty],
) -> Vec<Demand> {
    let known = types.iter().filter_map(|ty| Some((*ty, objects(bench, naming, *ty)?)));
    let known: Vec<(Ty, (Objects, Nature))> = known.collect();
    let types: Vec<Ty> = known.iter().map(|(ty, _)| *ty).collect();
    let uses = uses(bench, attribution, is_entry, &types);
    let demands = known.into_par_iter().zip(uses).map(|((ty, (objects, nature)), uses)| {
        let (functions, best) = best(bench, times.functions(Owner::Type(ty)), &uses, &objects, &nature);
        (ty, objects, nature, functions, best, split_accesses(&uses, bench.line_bytes))
    });
    let demands: Vec<_> = demands.collect();
    let mut all = Vec::new();
    for (ty, objects, nature, functions, best, split_accesses) in demands {
        let (kind, moved) = best.map_or((None, None), |(kind, moved)| (Some(kind), moved));
        let start_in_line = objects.start_in_line(bench.line_bytes);
        let evidence = evidence(bench, naming, ty, &objects, nature);
        let is_of_malloc = objects.are_of_malloc();
        all.push(Demand {
            ty,
            functions,
            kind,
            moved,
            split_accesses,
            evidence,
            start_in_line,
            is_of_malloc,
        });
    }
    all
}

/// The accesses to each type, by function.
fn uses(
    bench: &Bench<'_>,
    attribution: &Attribution,
    is_entry: impl Fn(u64) -> bool,
    types: &[Ty],
) -> Vec<Uses> {
    let slot = |owner: Owner| types.iter().position(|ty| owner == Owner::Type(*ty));
    let slots: Vec<Option<usize>> = bench.spots.iter().map(|spot| slot(spot.owner)).collect();
    let mut uses: Vec<Uses> = types.iter().map(|_| Uses::default()).collect();
    let mut entries: HashMap<u64, Option<FunctionNumber>> = HashMap::default();
    let mut calls: HashMap<FunctionNumber, u32> = HashMap::default();
    let every = bench.watched.accesses.div_ceil(MOST_ACCESSES).max(1) as usize;
    for (window, (steps, points)) in (1..).zip(bench.windows.iter().zip(bench.points)).step_by(every) {
        let mut points = points.iter();
        let mut under_way: HashMap<FunctionNumber, u32> = HashMap::default();
        for step in &steps.steps {
            match *step {
                WindowStep::Fetch { pc, .. } => {
                    let entered = entries.entry(pc);
                    let entered =
                        entered.or_insert_with(|| attribution.number_of(pc).filter(|_| is_entry(pc)));
                    if let Some(function) = *entered {
                        let call = calls.entry(function).or_default();
                        *call += 1;
                        under_way.insert(function, *call);
                    }
                }
                WindowStep::Access { pc, address, size_shift, .. } => {
                    let Some(point) = points.next() else { break };
                    let Some(slot) = slots[point.spot as usize] else { continue };
                    let Some(function) = attribution.number_of(pc) else { continue };
                    let call = under_way.get(&function).copied().unwrap_or_default();
                    let size_bytes = 1 << size_shift;
                    let own = Use { call, window, address, point: *point, size_bytes };
                    uses[slot].entry(function).or_default().push(own);
                }
            }
        }
    }
    uses
}

/// The lines that each function touches now and with the best layout, and that layout.
fn best(
    bench: &Bench<'_>,
    functions: &[(FunctionNumber, f64)],
    uses: &Uses,
    objects: &Objects,
    nature: &Nature,
) -> (Vec<Lines>, Option<(Kind, Option<Moved>)>) {
    let all: f64 = functions.iter().map(|(_, time)| time).sum();
    let much = functions.iter().filter(|(_, time)| *time >= LEAST_OF_TYPE * all).take(MOST_FUNCTIONS);
    let seen = much.filter_map(|(function, time)| Some((*function, *time, uses.get(function)?.as_slice())));
    let seen: Vec<(FunctionNumber, f64, &[Use])> = seen.collect();
    let line_bytes = bench.line_bytes;
    let mut lines: Vec<Lines> = Vec::new();
    for (function, time, own) in &seen {
        let per = stretch(own);
        let (stretches, now) = touched(own, per, &Layout::AsIs, line_bytes);
        lines.push(Lines { function: *function, time: *time, per, stretches, now, after: now });
    }
    let by_function = order_by_function(objects, nature, &seen);
    // Smaller members are tried for stalls alone.
    let moved = layouts(objects, nature).into_iter().filter(|(kind, _)| *kind != Kind::Narrow);
    let layouts = moved.chain(by_function);
    let layouts = layouts.filter(|(kind, layout)| is_worth_trying(*kind, layout, objects));
    let trials = layouts.filter_map(|(kind, layout)| {
        let after =
            seen.iter().zip(&lines).map(|((.., own), now)| touched(own, now.per, &layout, line_bytes).1);
        let after: Vec<f64> = after.collect();
        let bound = lines.iter().zip(&after).map(|(now, after)| now.time * (1.0 - after / now.now));
        let bound: f64 = bound.sum();
        let grows = lines.iter().zip(&after).any(|(now, after)| *after > MOST_GROWTH * now.now);
        (bound > 0.0 && !grows).then_some((bound, kind, layout, after))
    });
    let mut trials: Vec<_> = trials.collect();
    trials.sort_by(|(one, ..), (other, ..)| other.total_cmp(one));
    let enough = trials.first().map_or(0.0, |(bound, ..)| bound * GOOD_ENOUGH);
    let of = |is_wanted: fn(Kind) -> bool| {
        trials.iter().position(|(bound, kind, ..)| is_wanted(*kind) && *bound >= enough)
    };
    let chosen = of(|kind| kind == Kind::Order).or_else(|| of(|kind| kind == Kind::Split));
    let chosen = chosen.or_else(|| of(|kind| kind != Kind::NoHoles)).unwrap_or(0);
    let best = trials.into_iter().nth(chosen).map(|(_, kind, layout, after)| {
        lines.iter_mut().zip(after).for_each(|(lines, after)| lines.after = after);
        let moved = match layout {
            Layout::Objects(relaid) if kind != Kind::Columns => Some(relaid.moved()),
            _ => None,
        };
        (kind, moved)
    });
    (lines, best)
}

/// Members by the functions that use them: those of the function with most time first, and between the members of two
/// functions those that both use. The reflected binary code of their sets is that order.
fn order_by_function(
    objects: &Objects,
    nature: &Nature,
    seen: &[(FunctionNumber, f64, &[Use])],
) -> Option<(Kind, Layout)> {
    let mut users = vec![0u64; objects.pieces.len()];
    for (rank, (.., own)) in seen.iter().enumerate() {
        let own = own.iter().flat_map(|own| {
            let offset = u64::from(own.point.offset);
            objects.covered(offset..offset + own.size_bytes)
        });
        own.for_each(|piece| users[piece] |= 1 << (MOST_FUNCTIONS - 1 - rank));
    }
    let rank = |set: u64| (0..MOST_FUNCTIONS).fold(0, |rank, shift| rank ^ (set >> shift));
    let heat = objects.heat.iter().map(|heat| (*heat).min((1 << RANK_SHIFT) - 1));
    let uses: Vec<u64> =
        users.iter().zip(heat).map(|(set, heat)| (rank(*set) << RANK_SHIFT) | heat).collect();
    let kind = match nature {
        Nature::Other => Kind::Order,
        Nature::Rust => Kind::ReprC,
        Nature::Enum(_) => return None,
    };
    objects.in_order_of(&uses).map(|relaid| (kind, Layout::Objects(relaid)))
}

/// Whether a split leaves a smaller object. One that leaves nearly all of it saves lines by where its parts begin alone.
fn is_worth_trying(kind: Kind, layout: &Layout, objects: &Objects) -> bool {
    match layout {
        Layout::Objects(relaid) if matches!(kind, Kind::Split | Kind::Boxed | Kind::BoxedVariant) => {
            relaid.moved().size_bytes as f64 <= MOST_OF_SPLIT * objects.size_bytes as f64
        }
        _ => true,
    }
}

/// Calls, if the windows have enough of them.
fn stretch(uses: &[Use]) -> Stretch {
    let in_calls = uses.iter().filter(|own| own.call > 0).count();
    let new = uses.windows(2).filter(|pair| pair[1].call > 0 && pair[0].call != pair[1].call).count();
    if new >= LEAST_CALLS && 2 * in_calls >= uses.len() { Stretch::Call } else { Stretch::Window }
}

/// Stretches, and the mean number of different lines in one.
fn touched(uses: &[Use], per: Stretch, layout: &Layout, line_bytes: u64) -> (u64, f64) {
    let mut last: HashMap<u64, u32> = HashMap::default();
    let (mut stretches, mut lines, mut before) = (0, 0u64, 0);
    for own in uses {
        let stretch = own.stretch(per);
        if stretch == 0 {
            continue;
        }
        stretches += u64::from(stretch != before);
        before = stretch;
        layout.each_part((own.address, own.size_bytes), own.point, |first, size_bytes| {
            for line in first / line_bytes..=(first + (size_bytes - 1)) / line_bytes {
                lines += u64::from(last.insert(line, stretch) != Some(stretch));
            }
        });
    }
    (stretches, lines as f64 / (stretches as f64).max(1.0))
}

/// The share of accesses that cross the end of a line.
fn split_accesses(uses: &Uses, line_bytes: u64) -> f64 {
    let crosses = |own: &&Use| own.address % line_bytes + own.size_bytes > line_bytes;
    let all: usize = uses.values().map(Vec::len).sum();
    let crossing: usize = uses.values().map(|own| own.iter().filter(crosses).count()).sum();
    crossing as f64 / (all as f64).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(call: u32, window: u32, address: u64) -> Use {
        Use { call, window, address, point: Point::default(), size_bytes: 8 }
    }

    #[test]
    fn a_line_counts_once_a_call_and_an_access_that_crosses_its_end_twice() {
        let uses =
            [used(0, 1, 0), used(1, 1, 0), used(1, 1, 8), used(1, 1, 60), used(2, 2, 0), used(2, 2, 0)];
        assert_eq!(touched(&uses, Stretch::Call, &Layout::AsIs, 64), (2, 1.5));
        assert_eq!(touched(&uses, Stretch::Window, &Layout::AsIs, 64), (2, 1.5));
        let all = Uses::from_iter([(0, uses.into())]);
        assert!((split_accesses(&all, 64) - 1.0 / 6.0).abs() < 1e-12);
    }

    #[test]
    fn lines_are_counted_in_calls_where_the_windows_have_some() {
        let calls: Vec<Use> = (1..20).flat_map(|call| [used(call, 1, 0), used(call, 1, 8)]).collect();
        assert_eq!(stretch(&calls), Stretch::Call);
        let one: Vec<Use> = (0..20).map(|at| used(1, 1, 8 * at)).collect();
        assert_eq!(stretch(&one), Stretch::Window);
        // Most accesses belong to a call that had begun before.
        let before = (0..80).map(|at| used(0, 1, 8 * at));
        assert_eq!(stretch(&before.chain(calls).collect::<Vec<_>>()), Stretch::Window);
    }
}
