//! Orders in which accesses of threads may happen.
//!
//! The model replays three orders of the same accesses: the recorded one; one with as few changes between threads as
//! possible; and one that changes to another thread whenever that makes it wait. The last two keep each thread's own
//! order, and keep calls apart that did not overlap. They also keep the order of every two accesses of the same bytes,
//! one of them a store: every load reads its recorded value. So the program could have run in each order. They are
//! found step by step: an order with still fewer or still more waits may exist.

use crate::model::{Access, Lines, Model, Outcome};
use std::collections::HashMap;

/// An access with its time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timed {
    /// The access.
    pub access: Access,
    /// When, by a clock of all threads; never less than that of the thread's access before.
    pub at: u64,
}

/// A call, whose accesses follow each other in its thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// The thread.
    pub thread: u16,
    /// Number of its first access in the thread.
    pub first: usize,
    /// Number after its last.
    pub end: usize,
    /// The start of the call.
    pub began_at: u64,
    /// The end of the call.
    pub ended_at: u64,
}

/// A place in the order: a thread and the number of an access in it.
type AccessPosition = (u16, usize);

/// Accesses, and the order between them that must hold.
///
/// Every access that must precede another is earlier by time. So the earliest remaining access never has to wait, and
/// every order terminates.
#[derive(Debug)]
pub struct Orders {
    threads: Vec<Vec<Timed>>,
    /// By thread, the accesses of other threads that must precede each of its accesses.
    after: Vec<Requirements>,
}

/// The accesses of other threads that must precede those of one thread.
#[derive(Default, Debug)]
struct Requirements {
    /// The index in the list at which each access's part begins; the last is the list's length.
    firsts: Vec<usize>,
    list: Vec<AccessPosition>,
}

impl Requirements {
    /// Takes pairs of an access's number and an access that must precede it, for `accesses` accesses.
    fn new(mut pairs: Vec<(usize, AccessPosition)>, accesses: usize) -> Requirements {
        pairs.sort_unstable();
        let mut firsts = Vec::with_capacity(accesses + 1);
        for (position, (number, _)) in pairs.iter().enumerate() {
            while firsts.len() <= *number {
                firsts.push(position);
            }
        }
        firsts.resize(accesses + 1, pairs.len());
        Requirements { firsts, list: pairs.into_iter().map(|(_, place)| place).collect() }
    }

    fn of(&self, number: usize) -> &[AccessPosition] {
        match (self.firsts.get(number), self.firsts.get(number + 1)) {
            (Some(from), Some(to)) => &self.list[*from..*to],
            _ => &[],
        }
    }
}

/// Every address where it was recorded.
fn as_it_lies(address: u64) -> u64 {
    address
}

/// The last uses of a byte.
#[derive(Default)]
struct LastUses {
    store: Option<AccessPosition>,
    /// Loads since, the last of each thread.
    loads: Vec<AccessPosition>,
}

impl Orders {
    /// The accesses of each thread in its own order, with its calls. Clocks of processors may differ by a little: an
    /// access is taken to happen no earlier than the one before, and a call to last as long as its accesses.
    pub fn new(mut threads: Vec<Vec<Timed>>, spans: &[Span]) -> Orders {
        for timed in &mut threads {
            let mut latest = 0;
            for one in timed {
                latest = latest.max(one.at);
                one.at = latest;
            }
        }
        let lasting = |span: &Span| {
            let own = threads.get(usize::from(span.thread))?.get(span.first..span.end)?;
            let (first, last) = (own.first()?, own.last()?);
            let (began_at, ended_at) = (span.began_at.min(first.at), span.ended_at.max(last.at));
            Some(Span { began_at, ended_at, ..*span })
        };
        let spans: Vec<Span> = spans.iter().filter_map(lasting).collect();
        let mut orders = Orders { threads, after: Vec::new() };
        let mut pairs = vec![Vec::new(); orders.threads.len()];
        orders.keep_calls_apart(&spans, &mut pairs);
        orders.keep_values(&mut pairs);
        let accesses = orders.threads.iter().map(Vec::len);
        orders.after =
            pairs.into_iter().zip(accesses).map(|(own, all)| Requirements::new(own, all)).collect();
        orders
    }

    /// The recorded order.
    pub fn recorded(&self, lines: Lines) -> Outcome {
        self.recorded_at(lines, &as_it_lies)
    }

    /// The same with every access at another address: as if some data lay elsewhere.
    pub fn recorded_at(&self, lines: Lines, place: &dyn Fn(u64) -> u64) -> Outcome {
        let mut model = self.model(lines);
        for (thread, number) in self.by_time() {
            model.access(&self.placed(usize::from(thread), number, place));
        }
        model.finish()
    }

    /// An order with few changes between threads: each runs as far as it can.
    pub fn fewest(&self, lines: Lines) -> Outcome {
        self.fewest_at(lines, &as_it_lies)
    }

    /// The same with every access at another address. The bytes as recorded still define the order.
    pub fn fewest_at(&self, lines: Lines, place: &dyn Fn(u64) -> u64) -> Outcome {
        let mut model = self.model(lines);
        let mut done = vec![0; self.threads.len()];
        let mut next = self.unfinished(&done);
        while let Some(thread) = next {
            match self.waits_for(thread, &done) {
                Some(other) => next = Some(other),
                None => {
                    self.go_on(thread, &mut done, (&mut model, place));
                    let is_over = done[usize::from(thread)] == self.threads[usize::from(thread)].len();
                    next = if is_over { self.unfinished(&done) } else { Some(thread) };
                }
            }
        }
        model.finish()
    }

    /// An order with many waits: it switches to a thread that has to wait for a line whenever such a thread may
    /// proceed.
    pub fn most(&self, lines: Lines) -> Outcome {
        self.most_at(lines, &as_it_lies)
    }

    /// The same with every access at another address. The bytes as recorded still define the order.
    pub fn most_at(&self, lines: Lines, place: &dyn Fn(u64) -> u64) -> Outcome {
        let mut model = self.model(lines);
        let mut done = vec![0; self.threads.len()];
        let mut last = 0;
        loop {
            let after_last = (0..self.threads.len()).map(|step| (last + 1 + step) % self.threads.len());
            let can_go_on = |thread: &usize| {
                done[*thread] < self.threads[*thread].len() && self.waits_for(*thread as u16, &done).is_none()
            };
            let mut candidates = after_last.filter(can_go_on).peekable();
            let Some(first) = candidates.peek().copied() else { break };
            let waits = |thread: &usize| model.would_wait(&self.placed(*thread, done[*thread], place));
            last = candidates.find(waits).unwrap_or(first);
            self.go_on(last as u16, &mut done, (&mut model, place));
        }
        model.finish()
    }

    fn model(&self, lines: Lines) -> Model {
        Model::new(lines, self.threads.len() as u16)
    }

    fn go_on(&self, thread: u16, done: &mut [usize], (model, place): (&mut Model, &dyn Fn(u64) -> u64)) {
        let number = &mut done[usize::from(thread)];
        model.access(&self.placed(usize::from(thread), *number, place));
        *number += 1;
    }

    /// An access, where its first byte would lie.
    fn placed(&self, thread: usize, number: usize, place: &dyn Fn(u64) -> u64) -> Access {
        let access = self.threads[thread][number].access;
        Access { address: place(access.address), ..access }
    }

    fn unfinished(&self, done: &[usize]) -> Option<u16> {
        self.threads.iter().zip(done).position(|(all, done)| *done < all.len()).map(|thread| thread as u16)
    }

    /// A thread that must proceed before this one's next access.
    fn waits_for(&self, thread: u16, done: &[usize]) -> Option<u16> {
        let before = self.after.get(usize::from(thread))?.of(done[usize::from(thread)]);
        before.iter().find(|(other, number)| done[usize::from(*other)] <= *number).map(|(other, _)| *other)
    }

    /// All accesses, by time; of two at one time that of the lower thread first.
    fn by_time(&self) -> Vec<AccessPosition> {
        let mut places: Vec<(u64, AccessPosition)> = Vec::new();
        for (thread, all) in self.threads.iter().enumerate() {
            places.extend(all.iter().enumerate().map(|(number, timed)| (timed.at, (thread as u16, number))));
        }
        places.sort_unstable();
        places.into_iter().map(|(_, place)| place).collect()
    }

    /// `pairs` holds, for each thread, the number of an access and an access that must precede it.
    fn keep_calls_apart(&self, spans: &[Span], pairs: &mut [Vec<(usize, AccessPosition)>]) {
        let mut ends: Vec<&Span> = spans.iter().collect();
        let mut begins = ends.clone();
        ends.sort_by_key(|span| span.ended_at);
        begins.sort_by_key(|span| span.began_at);
        let mut ended = ends.into_iter().peekable();
        let mut last: Vec<Option<AccessPosition>> = vec![None; self.threads.len()];
        for span in begins {
            while let Some(over) = ended.next_if(|over| over.ended_at < span.began_at) {
                let known = &mut last[usize::from(over.thread)];
                *known = (*known).max(Some((over.thread, over.end - 1)));
            }
            let others = last.iter().flatten().filter(|(thread, _)| *thread != span.thread);
            pairs[usize::from(span.thread)].extend(others.map(|place| (span.first, *place)));
        }
    }

    /// See [`Orders::keep_calls_apart`].
    fn keep_values(&self, pairs: &mut [Vec<(usize, AccessPosition)>]) {
        let mut bytes: HashMap<u64, LastUses> = HashMap::new();
        // For each thread, the last access of each other thread that is known to precede it.
        let mut waited = vec![vec![None; self.threads.len()]; self.threads.len()];
        for place in self.by_time() {
            let (thread, number) = (usize::from(place.0), place.1);
            let access = self.threads[thread][number].access;
            for byte in (0..u64::from(access.size_bytes)).map(|byte| access.address.wrapping_add(byte)) {
                let uses = bytes.entry(byte).or_default();
                let loads = if access.kind.writes() { uses.loads.as_slice() } else { &[] };
                for &(other, before) in uses.store.iter().chain(loads) {
                    let known: &mut Option<usize> = &mut waited[thread][usize::from(other)];
                    if usize::from(other) != thread && *known < Some(before) {
                        *known = Some(before);
                        pairs[thread].push((number, (other, before)));
                    }
                }
                if access.kind.writes() {
                    (uses.store, uses.loads) = (Some(place), Vec::new());
                } else {
                    uses.loads.retain(|(other, _)| *other != place.0);
                    uses.loads.push(place);
                }
            }
        }
    }
}
