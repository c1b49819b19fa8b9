//! The model against a textbook implementation, on random traces.

use lineup_coherence::{Access, Kind, Line, Lines, Model, Orders, Span, Timed};
use std::collections::BTreeMap;

/// Numbers that are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum State {
    Modified,
    Exclusive,
    Shared,
    Invalid,
}

/// A cache of every thread and the bare protocol. It counts the invalidated copies of each line.
struct Reference {
    line_bytes: u64,
    ways: Option<usize>,
    caches: Vec<BTreeMap<u64, State>>,
    recent: Vec<Vec<u64>>,
    invalidations: BTreeMap<u64, u64>,
    /// The access number, thread and line of each miss. `gone` holds the same for each copy that left a cache, and true
    /// when a store took it away. Together they classify a miss.
    misses: Vec<(usize, usize, u64)>,
    gone: Vec<(usize, usize, u64, bool)>,
}

impl Reference {
    fn new(threads: usize, line_bytes: u64, ways: Option<usize>) -> Reference {
        Reference {
            line_bytes,
            ways,
            caches: vec![BTreeMap::new(); threads],
            recent: vec![Vec::new(); threads],
            invalidations: BTreeMap::new(),
            misses: Vec::new(),
            gone: Vec::new(),
        }
    }

    fn state(&self, thread: usize, line: u64) -> State {
        self.caches[thread].get(&line).copied().unwrap_or(State::Invalid)
    }

    fn lines(&self, access: &Access) -> Vec<u64> {
        let last = access.address + u64::from(access.size_bytes) - 1;
        (access.address / self.line_bytes..=last / self.line_bytes).collect()
    }

    fn access(&mut self, at: usize, access: &Access) {
        for line in self.lines(access) {
            let own = usize::from(access.thread);
            self.evict(at, own, line);
            if self.state(own, line) == State::Invalid {
                self.misses.push((at, own, line));
            }
            if access.kind == Kind::Load {
                self.load(own, line);
            } else {
                self.store(at, own, line);
            }
        }
    }

    fn load(&mut self, own: usize, line: u64) {
        if self.state(own, line) != State::Invalid {
            return;
        }
        let mut is_held = false;
        for cache in &mut self.caches {
            if let Some(state) = cache.get_mut(&line).filter(|state| **state != State::Invalid) {
                *state = State::Shared;
                is_held = true;
            }
        }
        self.caches[own].insert(line, if is_held { State::Shared } else { State::Exclusive });
    }

    fn store(&mut self, at: usize, own: usize, line: u64) {
        for other in (0..self.caches.len()).filter(|other| *other != own) {
            if self.state(other, line) != State::Invalid {
                self.caches[other].insert(line, State::Invalid);
                *self.invalidations.entry(line).or_default() += 1;
                self.gone.push((at, other, line, true));
            }
        }
        self.caches[own].insert(line, State::Modified);
    }

    fn evict(&mut self, at: usize, own: usize, line: u64) {
        let Some(ways) = self.ways else { return };
        let caches = &self.caches[own];
        self.recent[own].retain(|known| *known != line && caches.get(known) != Some(&State::Invalid));
        if self.recent[own].len() == ways {
            let gone = self.recent[own].remove(0);
            self.caches[own].insert(gone, State::Invalid);
            self.gone.push((at, own, gone, false));
        }
        self.recent[own].push(line);
    }

    /// Misses on lines that were taken away: how many for bytes that another thread wrote, and how many not.
    fn kinds(&self, trace: &[Access]) -> (u64, u64) {
        let (mut of_bytes, mut of_line) = (0, 0);
        // The last time at which a thread had everything that others had written to a line.
        let mut informed: BTreeMap<(usize, u64), usize> = BTreeMap::new();
        for &(at, thread, line) in &self.misses {
            let is_of = |gone: &&(usize, usize, u64, bool)| gone.1 == thread && gone.2 == line;
            // An access that evicts a line may be the one that missed.
            let before = self.gone.iter().filter(is_of).rfind(|gone| gone.0 < at);
            let end = self.gone.iter().filter(is_of).find(|gone| gone.0 >= at).map_or(trace.len(), |g| g.0);
            let Some(since) = informed.get(&(thread, line)).copied() else {
                informed.insert((thread, line), at);
                continue;
            };
            let written = |byte: u64, until: usize| {
                let by_other = |access: &Access| {
                    usize::from(access.thread) != thread
                        && access.kind != Kind::Load
                        && bytes(access).contains(&byte)
                };
                trace[since..until].iter().any(by_other)
            };
            let own = (at..end.max(at + 1)).filter(|number| usize::from(trace[*number].thread) == thread);
            let on_line = |byte: &u64| byte / self.line_bytes == line;
            let needs =
                |number: &usize| bytes(&trace[*number]).filter(on_line).any(|byte| written(byte, *number));
            let needed = own.clone().find(needs);
            if let Some(number) = needed {
                informed.insert((thread, line), number);
            }
            if before.is_some_and(|gone| gone.3) {
                *(if needed.is_some() { &mut of_bytes } else { &mut of_line }) += 1;
            }
        }
        (of_bytes, of_line)
    }
}

fn bytes(access: &Access) -> std::ops::Range<u64> {
    access.address..access.address + u64::from(access.size_bytes)
}

fn trace(numbers: &mut Numbers, threads: u64, lines: u64) -> Vec<Access> {
    let length = 20 + numbers.below(200);
    let access = |number| Access {
        thread: numbers.below(threads) as u16,
        address: 0x1000 + numbers.below(lines * 64),
        size_bytes: [1, 4, 8, 16][numbers.below(4) as usize],
        kind: [Kind::Load, Kind::Store, Kind::Update][numbers.below(3) as usize],
        tag: number as u32,
    };
    (0..length).map(access).collect()
}

#[test]
fn invalidations_and_kinds_of_misses_are_those_of_the_reference_on_a_thousand_traces() {
    let mut numbers = Numbers(14);
    let (mut invalidations, mut of_bytes, mut of_line) = (0, 0, 0);
    for round in 0..1000 {
        let threads = 2 + numbers.below(4);
        let lines = 1 + numbers.below(4);
        let line_bytes = [64, 128][round % 2];
        let ways = [None, Some(2)][(round / 2) % 2];
        let mut trace = trace(&mut numbers, threads, lines);
        if ways.is_some() {
            // The reference identifies the cause of an eviction by the access, so each access must lie on one line.
            trace
                .iter_mut()
                .for_each(|access| access.address -= access.address % u64::from(access.size_bytes));
        }
        let mut reference = Reference::new(threads as usize, line_bytes, ways);
        trace.iter().enumerate().for_each(|(at, access)| reference.access(at, access));
        let shape = Lines::of(line_bytes);
        let mut model = Model::new(ways.map_or(shape, |ways| shape.in_caches(1, ways)), threads as u16);
        trace.iter().for_each(|access| model.access(access));
        let outcome = model.finish();
        let counted: BTreeMap<u64, u64> =
            outcome.lines.iter().map(|(line, of)| (*line, of.invalidations)).collect();
        let counted: BTreeMap<u64, u64> = counted.into_iter().filter(|(_, count)| *count > 0).collect();
        assert_eq!(counted, reference.invalidations, "round {round}");
        let sum = |part: fn(&Line) -> u64| outcome.lines.values().map(part).sum::<u64>();
        let kinds = (sum(|line| line.misses_true), sum(|line| line.misses_false));
        assert_eq!(kinds, reference.kinds(&trace), "round {round}");
        let of_pairs: u64 = outcome.pairs.values().map(|pair| pair.of_same_bytes + pair.of_line_alone).sum();
        let (same, alone) = outcome.events();
        assert_eq!(of_pairs, same + alone, "round {round}");
        invalidations += counted.values().sum::<u64>();
        (of_bytes, of_line) = (of_bytes + kinds.0, of_line + kinds.1);
    }
    assert!(invalidations > 10_000 && of_bytes > 1_000 && of_line > 1_000, "the traces share lines");
}

/// Each thread's accesses at times, in one call.
fn orders(threads: &[Vec<(u64, u64, Kind)>]) -> Orders {
    let timed = |thread: usize, (at, address, kind): (u64, u64, Kind)| Timed {
        access: Access { thread: thread as u16, address, size_bytes: 8, kind, tag: 0 },
        at,
    };
    let all: Vec<Vec<Timed>> = threads
        .iter()
        .enumerate()
        .map(|(thread, accesses)| accesses.iter().map(|access| timed(thread, *access)).collect())
        .collect();
    let spans: Vec<Span> = all
        .iter()
        .enumerate()
        .map(|(thread, accesses)| Span {
            thread: thread as u16,
            first: 0,
            end: accesses.len(),
            began_at: accesses.first().map_or(0, |first| first.at),
            ended_at: accesses.last().map_or(0, |last| last.at),
        })
        .collect();
    Orders::new(all, &spans)
}

fn misses_of_line(outcome: &lineup_coherence::Outcome) -> (u64, u64) {
    outcome.events()
}

#[test]
fn neighbours_that_overlap_may_run_one_after_the_other_or_in_turns() {
    let counter = |address: u64, first: u64| -> Vec<_> {
        (0..10).map(|turn| (first + 100 * (turn / 5) + turn, address, Kind::Update)).collect()
    };
    // In the recorded order they change three times.
    let orders = orders(&[counter(0x1000, 0), counter(0x1008, 50)]);
    assert_eq!(misses_of_line(&orders.fewest(Lines::of(64))), (0, 0));
    assert_eq!(misses_of_line(&orders.recorded(Lines::of(64))), (0, 2));
    assert_eq!(misses_of_line(&orders.most(Lines::of(64))), (0, 18));
    // On lines of their own nothing is to be waited for in any order.
    let apart = self::orders(&[counter(0x1000, 0), counter(0x1040, 50)]);
    assert_eq!(misses_of_line(&apart.most(Lines::of(64))), (0, 0));
    assert_eq!(misses_of_line(&apart.most(Lines::of(128))), (0, 18));
    assert_eq!(misses_of_line(&apart.most(Lines::of(64).moved_by(8))), (0, 0));
}

#[test]
fn calls_that_did_not_overlap_and_values_that_were_found_hold_the_order() {
    let counter = |address: u64, first: u64| -> Vec<_> {
        (0..10).map(|turn| (first + turn, address, Kind::Update)).collect()
    };
    let apart = orders(&[counter(0x1000, 0), counter(0x1008, 50)]);
    assert_eq!(misses_of_line(&apart.most(Lines::of(64))), (0, 0));
    // One counter: every order is the recorded one, so that all numbers found are the same.
    let shared: Vec<Vec<_>> = (0..2)
        .map(|thread| (0..10).map(|turn| (2 * turn + thread, 0x1000, Kind::Update)).collect())
        .collect();
    let orders = orders(&shared);
    for outcome in [Orders::recorded, Orders::fewest, Orders::most].map(|of| of(&orders, Lines::of(64))) {
        assert_eq!(misses_of_line(&outcome), (18, 0));
    }
}

/// The end of a call is an estimate where its times do not determine it. The next call of the thread then begins before
/// the accesses of the call before are taken to have happened, and a call of another thread lies between.
#[test]
fn orders_end_where_a_call_is_taken_to_last_longer_than_it_did() {
    let at = |thread, at| Timed {
        access: Access { thread, address: 0x1000, size_bytes: 8, kind: Kind::Update, tag: 0 },
        at,
    };
    let span = |thread, first, began_at, ended_at| Span { thread, first, end: first + 1, began_at, ended_at };
    let rounds = 50;
    let (mut own, mut others, mut spans) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds {
        let now = 10_000 * round as u64;
        own.extend([at(0, now + 1000), at(0, now + 520)]);
        others.push(at(1, now + 650));
        spans.extend([
            span(0, 2 * round, now, now + 1000),
            span(0, 2 * round + 1, now + 500, now + 550),
            span(1, round, now + 600, now + 700),
        ]);
    }
    let orders = Orders::new(vec![own, others], &spans);
    let lines = Lines::of(64);
    let recorded = orders.recorded(lines).events();
    // All threads add to one number, so every order is the recorded one. A line's first use takes it from nobody.
    assert_eq!(recorded, (2 * rounds as u64 - 2, 0));
    assert_eq!((orders.fewest(lines).events(), orders.most(lines).events()), (recorded, recorded));
}
