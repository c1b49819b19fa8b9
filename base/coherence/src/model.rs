//! The protocol and its counters.

use std::collections::{BTreeMap, HashMap};

/// The effect of an access on its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// Reads them.
    Load,
    /// Writes them.
    Store,
    /// Reads and writes them with one instruction.
    Update,
}

impl Kind {
    /// True when it writes.
    pub fn writes(self) -> bool {
        self != Kind::Load
    }
}

/// An access of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    /// The thread, counted from 0.
    pub thread: u16,
    /// Address of the first byte.
    pub address: u64,
    /// Size in bytes; an access of size 0 touches nothing.
    pub size_bytes: u32,
    /// Its effect on its bytes.
    pub kind: Kind,
    /// The caller's identifier of the access.
    pub tag: u32,
}

/// The division of memory into lines, and the capacity of a cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lines {
    bytes: u64,
    moved_by: u64,
    cache: Option<(u64, usize)>,
}

impl Lines {
    /// Lines of this many bytes, at most 128, rounded up to a power of two; caches hold all of them.
    pub fn of(bytes: u64) -> Lines {
        Lines { bytes: bytes.clamp(1, 128).next_power_of_two(), moved_by: 0, cache: None }
    }

    /// The same lines, with every address moved up by this many bytes.
    pub fn moved_by(self, bytes: u64) -> Lines {
        Lines { moved_by: bytes, ..self }
    }

    /// Caches with this many sets and ways. Each set evicts its least recently used line first.
    pub fn in_caches(self, sets: u64, ways: usize) -> Lines {
        Lines { cache: Some((sets.max(1), ways.max(1))), ..self }
    }

    /// The lines that an access touches, each with a bit for every byte of it.
    fn touched(self, access: &Access) -> impl Iterator<Item = (u64, u128)> {
        let start = access.address.wrapping_add(self.moved_by);
        let end = start.saturating_add(u64::from(access.size_bytes));
        let bytes = self.bytes;
        let lines = if start < end { start / bytes..(end - 1) / bytes + 1 } else { 0..0 };
        lines.map(move |line| {
            let first = start.max(line * bytes) - line * bytes;
            let length = end.min((line + 1).saturating_mul(bytes)) - line * bytes - first;
            (line, (u128::MAX >> (128 - length)) << first)
        })
    }
}

/// The counts of a line.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Line {
    /// Copies that a store took away.
    pub invalidations: u64,
    /// Misses that another cache served, since it had changed the line.
    pub transfers: u64,
    /// Misses of threads that had never had the line while another thread had it or had written it.
    pub first_misses: u64,
    /// Misses on a line that was taken away, of bytes that others wrote.
    pub misses_true: u64,
    /// The same, of other bytes of the line.
    pub misses_false: u64,
    /// Stores to a line that others shared, of bytes that one of them had used.
    pub upgrades_true: u64,
    /// The same, of other bytes of the line.
    pub upgrades_false: u64,
}

/// Two tags. The first is that of the store that took a line away. The second is that of the access that needed it
/// again, or of the last use by the thread that it was taken from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Pair {
    /// Number of the line.
    pub line: u64,
    /// The store's thread.
    pub writer: u16,
    /// The store's tag.
    pub writer_tag: u32,
    /// The other thread.
    pub other: u16,
    /// Its tag.
    pub other_tag: u32,
}

/// Misses and upgrades between a pair.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PairCounts {
    /// Misses on bytes that both threads use.
    pub of_same_bytes: u64,
    /// Misses on bytes that share only the line.
    pub of_line_alone: u64,
    /// Of the first: misses whose own access needed no byte that another thread had written. Only a later access to the
    /// line did.
    pub of_same_bytes_later: u64,
}

/// All counts.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Outcome {
    /// By number of the line: its address, divided by its bytes. Lines of one thread alone count nothing.
    pub lines: BTreeMap<u64, Line>,
    /// By pair.
    pub pairs: BTreeMap<Pair, PairCounts>,
    /// By the tag of the access that waited.
    pub waits: BTreeMap<u32, PairCounts>,
}

impl Outcome {
    /// Misses and upgrades of bytes that others wrote or used, and of lines alone.
    pub fn events(&self) -> (u64, u64) {
        self.lines.values().fold((0, 0), |(of_bytes, of_lines), line| {
            let (own_bytes, own_lines) = line.events();
            (of_bytes + own_bytes, of_lines + own_lines)
        })
    }
}

impl Outcome {
    /// The pairs of a line.
    pub fn pairs_of(&self, line: u64) -> impl Iterator<Item = (&Pair, &PairCounts)> {
        let first = Pair { line, writer: 0, writer_tag: 0, other: 0, other_tag: 0 };
        let last =
            Pair { line, writer: u16::MAX, writer_tag: u32::MAX, other: u16::MAX, other_tag: u32::MAX };
        self.pairs.range(first..=last)
    }
}

impl Line {
    /// Misses and upgrades of bytes that others wrote or used, and of the line alone.
    pub fn events(&self) -> (u64, u64) {
        (self.misses_true + self.upgrades_true, self.misses_false + self.upgrades_false)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum State {
    #[default]
    Invalid,
    Shared,
    Exclusive,
    Modified,
}

/// A thread's side of a line.
#[derive(Clone, Copy, Default, Debug)]
struct Side {
    state: State,
    has_had: bool,
    /// The store that took it away: its thread and tag. `None` when it was not taken, or had to give way to other
    /// lines.
    taken_by: Option<(u16, u32)>,
    /// Bytes that others wrote since the thread last needed such bytes.
    unseen: u128,
    /// Bytes used since the line arrived.
    used: u128,
    /// Tag of the last use.
    last_tag: u32,
    /// A miss not yet classified as true or false.
    open: Option<Pair>,
    /// Whether the access that missed needed bytes that others wrote.
    needed_at_once: bool,
}

#[derive(Debug)]
struct Shared {
    sides: Vec<Side>,
    /// Bytes that the thread with the modified line is known to the others to have written.
    told: u128,
    counts: Line,
}

/// The caches.
#[derive(Debug)]
pub struct Model {
    lines: Lines,
    threads: usize,
    shared: HashMap<u64, Shared>,
    /// By thread and set: lines, the most recently used last.
    recent: HashMap<(u16, u64), Vec<u64>>,
    waited: Waited,
}

/// Waits by who took part.
#[derive(Default, Debug)]
struct Waited {
    pairs: BTreeMap<Pair, PairCounts>,
    /// By the tag of the access that waited.
    by_tag: BTreeMap<u32, PairCounts>,
}

impl Waited {
    fn add(&mut self, pair: Pair, tag: u32, (is_of_same_bytes, is_later): (bool, bool)) {
        for counts in [self.pairs.entry(pair).or_default(), self.by_tag.entry(tag).or_default()] {
            counts.of_same_bytes += u64::from(is_of_same_bytes);
            counts.of_line_alone += u64::from(!is_of_same_bytes);
            counts.of_same_bytes_later += u64::from(is_of_same_bytes && is_later);
        }
    }
}

impl Model {
    /// Empty caches for this many threads.
    pub fn new(lines: Lines, threads: u16) -> Model {
        let threads = usize::from(threads);
        Model { lines, threads, shared: HashMap::new(), recent: HashMap::new(), waited: Waited::default() }
    }

    /// Adds an access. An access of a thread outside the model is ignored.
    pub fn access(&mut self, access: &Access) {
        if usize::from(access.thread) >= self.threads {
            return;
        }
        for (line, bytes) in self.lines.touched(access) {
            self.make_room(access.thread, line);
            let threads = self.threads;
            let shared = self.shared.entry(line).or_insert_with(|| Shared {
                sides: vec![Side::default(); threads],
                told: 0,
                counts: Line::default(),
            });
            shared.access(line, bytes, access, &mut self.waited);
        }
    }

    /// True when the access would now wait for another cache.
    pub fn would_wait(&self, access: &Access) -> bool {
        self.lines.touched(access).any(|(line, _)| {
            let Some(shared) = self.shared.get(&line) else { return false };
            let own = usize::from(access.thread);
            let mut others = shared.sides.iter().enumerate().filter(|(thread, _)| *thread != own);
            let state = shared.sides.get(own).map_or(State::Invalid, |side| side.state);
            match (state, access.kind.writes()) {
                (State::Invalid, _) | (State::Shared, true) => {
                    others.any(|(_, side)| side.state != State::Invalid)
                }
                _ => false,
            }
        })
    }

    /// The counts of all.
    pub fn finish(mut self) -> Outcome {
        let mut outcome = Outcome::default();
        for (line, mut shared) in self.shared {
            for side in &mut shared.sides {
                settle(side, false, &mut shared.counts, &mut self.waited);
            }
            if shared.counts != Line::default() {
                outcome.lines.insert(line, shared.counts);
            }
        }
        (outcome.pairs, outcome.waits) = (self.waited.pairs, self.waited.by_tag);
        outcome
    }

    /// The line becomes the thread's most recent one; where its set is full another leaves.
    fn make_room(&mut self, thread: u16, line: u64) {
        let Some((sets, ways)) = self.lines.cache else { return };
        let set = self.recent.entry((thread, line % sets)).or_default();
        set.retain(|known| *known != line);
        set.push(line);
        if set.len() <= ways {
            return;
        }
        let shared = &self.shared;
        let is_there = |line: &u64| {
            let side = shared.get(line).and_then(|shared| shared.sides.get(usize::from(thread)));
            side.is_some_and(|side| side.state != State::Invalid)
        };
        // An invalidated line has left its place free.
        let place = set[..ways].iter().position(|line| !is_there(line)).unwrap_or_default();
        let gone = set.remove(place);
        if let Some(shared) = self.shared.get_mut(&gone)
            && let Some(side) = shared.sides.get_mut(usize::from(thread))
            && side.state != State::Invalid
        {
            settle(side, false, &mut shared.counts, &mut self.waited);
            (side.state, side.taken_by, side.used) = (State::Invalid, None, 0);
        }
    }
}

/// Classifies an open miss.
fn settle(side: &mut Side, is_true: bool, counts: &mut Line, waited: &mut Waited) {
    let Some(pair) = side.open.take() else { return };
    counts.misses_true += u64::from(is_true);
    counts.misses_false += u64::from(!is_true);
    waited.add(pair, pair.other_tag, (is_true, !side.needed_at_once));
}

impl Shared {
    fn access(&mut self, line: u64, bytes: u128, access: &Access, waited: &mut Waited) {
        let own = usize::from(access.thread);
        match (self.sides[own].state, access.kind.writes()) {
            (State::Invalid, writes) => {
                self.sides[own].needed_at_once = self.sides[own].unseen & bytes != 0;
                self.miss(line, access, writes, waited);
            }
            (State::Shared, true) => self.upgrade(line, bytes, access, waited),
            _ => {}
        }
        let side = &mut self.sides[own];
        if side.unseen & bytes != 0 {
            settle(side, true, &mut self.counts, waited);
            side.unseen = 0;
        }
        side.has_had = true;
        side.used |= bytes;
        side.last_tag = access.tag;
        if access.kind.writes() {
            self.write(own, bytes);
        }
    }

    /// The thread has the line alone now, and has written.
    fn write(&mut self, own: usize, bytes: u128) {
        if self.sides[own].state != State::Modified {
            self.sides[own].state = State::Modified;
            self.told = 0;
        }
        if bytes & !self.told == 0 {
            return;
        }
        self.told |= bytes;
        for (thread, side) in self.sides.iter_mut().enumerate() {
            if thread != own && side.has_had {
                side.unseen |= bytes;
            }
        }
    }

    fn miss(&mut self, line: u64, access: &Access, writes: bool, waited: &mut Waited) {
        let own = usize::from(access.thread);
        let is_held = self.sides.iter().any(|side| side.state != State::Invalid);
        let is_known = self.sides.iter().any(|side| side.has_had);
        self.counts.transfers += u64::from(self.sides.iter().any(|side| side.state == State::Modified));
        let side = &mut self.sides[own];
        if !side.has_had {
            self.counts.first_misses += u64::from(is_known);
        }
        side.open = side.taken_by.take().map(|(writer, writer_tag)| Pair {
            line,
            writer,
            writer_tag,
            other: access.thread,
            other_tag: access.tag,
        });
        side.used = 0;
        side.state = if is_held { State::Shared } else { State::Exclusive };
        if writes {
            self.take(access, waited);
        } else {
            for side in &mut self.sides {
                if matches!(side.state, State::Modified | State::Exclusive) && is_held {
                    side.state = State::Shared;
                }
            }
        }
    }

    /// A store to a line that others may have, too.
    fn upgrade(&mut self, line: u64, bytes: u128, access: &Access, waited: &mut Waited) {
        let own = usize::from(access.thread);
        let others = self.sides.iter().enumerate().filter(|(thread, _)| *thread != own);
        let mut holders = others.filter(|(_, side)| side.state != State::Invalid).peekable();
        // Of several holders, the one that used the same bytes.
        let first = holders.peek().copied();
        let same = holders.find(|(_, side)| side.used & bytes != 0);
        let Some((other, side)) = same.or(first) else { return };
        let pair = Pair {
            line,
            writer: access.thread,
            writer_tag: access.tag,
            other: other as u16,
            other_tag: side.last_tag,
        };
        let is_true = same.is_some();
        self.counts.upgrades_true += u64::from(is_true);
        self.counts.upgrades_false += u64::from(!is_true);
        waited.add(pair, access.tag, (is_true, false));
        self.take(access, waited);
    }

    /// All other copies go.
    fn take(&mut self, access: &Access, waited: &mut Waited) {
        for (thread, side) in self.sides.iter_mut().enumerate() {
            if thread != usize::from(access.thread) && side.state != State::Invalid {
                settle(side, false, &mut self.counts, waited);
                (side.state, side.taken_by, side.used) =
                    (State::Invalid, Some((access.thread, access.tag)), 0);
                self.counts.invalidations += 1;
            }
        }
    }
}
