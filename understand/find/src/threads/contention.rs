//! Contention between threads for cache lines, from the windows of the run.
//!
//! Windows carry no times. Windows of different threads that began one after the other are taken to have run side by
//! side, all at one pace. That is a bound more than a measurement: `lineup threads` reads the clock.
//!
//! Short threads may be recorded one after the other although they run at once at other times: that depends on the
//! number of CPUs and on their other work. Two threads with stacks at different places were there at one time, since a
//! thread that ended gives its stack to the next one. Their windows are taken to have run side by side as well. The
//! first thread is left out of that: its work before it starts others precedes theirs.

use crate::owner::{Owner, Spot};
use crate::stalls::window_names::Point;
use foldhash::HashMap;
use lineup_coherence::{Access, Kind, Lines, Orders, Outcome, Pair, Span, Timed};
use lineup_explain::namer::Namer;
use lineup_explain::threads::is_of_system;
use lineup_recording::{Window, WindowStep};
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// Fewer waits for a line alone in the windows are nothing to act on: data that is handed over once makes some.
pub(crate) const LEAST_WAITS: u64 = 100;

/// Waits in the windows.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Waits {
    /// For bytes that another thread wrote or used.
    pub(crate) of_same_bytes: u64,
    /// For other bytes of the line: no thread needed the other's bytes.
    pub(crate) of_line_alone: u64,
}

impl Waits {
    /// Both.
    pub(crate) fn all(self) -> u64 {
        self.of_same_bytes + self.of_line_alone
    }

    /// The sum.
    pub(crate) fn plus(mut self, other: Waits) -> Waits {
        self.add(other.of_same_bytes, other.of_line_alone);
        self
    }

    fn add(&mut self, of_same_bytes: u64, of_line_alone: u64) {
        self.of_same_bytes += of_same_bytes;
        self.of_line_alone += of_line_alone;
    }
}

/// Waits of threads for each other's lines.
#[derive(Default, Debug)]
pub(crate) struct Between {
    /// Threads that have windows.
    pub(crate) threads: usize,
    /// On all lines.
    pub(crate) all: Waits,
    /// By the spot of the access that waited.
    pub(crate) by_spot: HashMap<u32, Waits>,
    /// By the instruction that waited, and its spot.
    pub(crate) by_use: HashMap<(u64, u32), Waits>,
    /// Words that threads wait for since they need the bytes, by their spot.
    pub(crate) words: BTreeMap<u32, Word>,
    /// Lines of false sharing, by the owners of the bytes on them.
    pub(crate) fights: BTreeMap<Fighters, Fight>,
    /// Some threads were recorded one after the other, and are taken to run side by side.
    pub(crate) is_of_threads_in_turn: bool,
}

/// The owners of the bytes on a line of false sharing.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Fighters {
    /// The owners, each once.
    pub(crate) owners: Vec<Owner>,
    /// They are of one object.
    pub(crate) of_one_object: bool,
}

/// The waits for such lines.
#[derive(Default, Debug)]
pub(crate) struct Fight {
    pub(crate) waits: Waits,
    /// Lines, by their number.
    pub(crate) lines: BTreeSet<u64>,
    /// Threads that waited.
    pub(crate) threads: BTreeSet<u32>,
    /// By spot: waits for the line alone.
    pub(crate) spots: BTreeMap<u32, u64>,
    /// By the instruction that waited: waits for the line alone.
    pub(crate) pcs: BTreeMap<u64, u64>,
}

/// The waits for the bytes of a word that another thread wrote or used.
#[derive(Default, Debug)]
pub(crate) struct Word {
    /// All.
    pub(crate) waits: u64,
    /// The threads that wrote it before another one waited.
    pub(crate) writers: BTreeSet<u32>,
    /// The threads that waited.
    pub(crate) waiting: BTreeSet<u32>,
    /// By the instruction that wrote it last on its line: the waits.
    pub(crate) written_by: BTreeMap<u64, u64>,
    /// By the instruction that waited.
    pub(crate) awaited_by: BTreeMap<u64, u64>,
    /// The waits after an instruction that read and wrote it.
    pub(crate) of_updates: u64,
}

/// An access that several threads' lines are used by.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Use {
    pc: u64,
    spot: u32,
    /// The address of its object.
    base: u64,
}

/// Windows of different threads that are taken to have run side by side.
type Round<'w> = Vec<(&'w Window, &'w [Point])>;

/// The outcome of one round.
struct Played {
    outcome: Outcome,
    uses: Vec<Use>,
    threads: Vec<u32>,
    /// The numbers of the uses that read and write.
    updates: BTreeSet<u32>,
}

impl Between {
    /// Plays all rounds; nothing when there is one thread alone.
    pub(crate) fn of(windows: &[Window], points: &[Vec<Point>], spots: &[Spot], line_bytes: u64) -> Between {
        let threads: BTreeSet<u32> = windows.iter().map(|window| window.thread).collect();
        let mut between = Between { threads: threads.len(), ..Between::default() };
        if threads.len() > 1 {
            let (rounds, is_of_threads_in_turn) = rounds(windows, points, spots);
            between.is_of_threads_in_turn = is_of_threads_in_turn;
            let played: Vec<Played> = rounds.par_iter().map(|round| play(round, line_bytes)).collect();
            played.iter().for_each(|one| between.add(one, spots));
        }
        between
    }

    fn add(&mut self, played: &Played, spots: &[Spot]) {
        let (of_same_bytes, of_line_alone) = played.outcome.events();
        self.all.add(of_same_bytes, of_line_alone);
        for (tag, counts) in &played.outcome.waits {
            let Use { pc, spot, .. } = played.uses[*tag as usize];
            for waits in [self.by_spot.entry(spot).or_default(), self.by_use.entry((pc, spot)).or_default()] {
                waits.add(counts.of_same_bytes, counts.of_line_alone);
            }
        }
        for (pair, counts) in played.outcome.pairs.iter().filter(|(_, counts)| counts.of_same_bytes > 0) {
            self.add_word(pair, counts.of_same_bytes, played);
        }
        for number in played.outcome.lines.keys() {
            self.add_line(*number, played, spots);
        }
    }

    /// Waits for bytes that both threads need.
    fn add_word(&mut self, pair: &Pair, waits: u64, played: &Played) {
        let [written, awaited] = [pair.writer_tag, pair.other_tag].map(|tag| played.uses[tag as usize]);
        let [writer, waiting] = [pair.writer, pair.other].map(|one| played.threads[usize::from(one)]);
        let word = self.words.entry(awaited.spot).or_default();
        word.waits += waits;
        word.writers.insert(writer);
        word.waiting.insert(waiting);
        *word.awaited_by.entry(awaited.pc).or_default() += waits;
        // The line's last write may be to a word beside it, such as its lock.
        if written.spot == awaited.spot {
            *word.written_by.entry(written.pc).or_default() += waits;
            word.of_updates += if played.updates.contains(&pair.writer_tag) { waits } else { 0 };
        }
    }

    /// A line, when it is under contention.
    fn add_line(&mut self, number: u64, played: &Played, spots: &[Spot]) {
        let used = |tag: u32| played.uses[tag as usize];
        let owner = |tag: u32| spots[used(tag).spot as usize].owner;
        let mut by_fighters: BTreeMap<Fighters, u64> = BTreeMap::new();
        for (pair, counts) in played.outcome.pairs_of(number).filter(|(_, counts)| counts.of_line_alone > 0) {
            let tags = [pair.writer_tag, pair.other_tag];
            let mut owners = tags.map(owner).to_vec();
            owners.sort();
            owners.dedup();
            let [one, other] = tags.map(|tag| used(tag).base);
            let fighters = Fighters { of_one_object: owners.len() == 1 && one == other, owners };
            *by_fighters.entry(fighters).or_default() += counts.of_line_alone;
        }
        let Some((fighters, _)) = by_fighters.into_iter().max_by_key(|(_, waits)| *waits) else { return };
        let fight = self.fights.entry(fighters).or_default();
        fight.lines.insert(number);
        for (pair, counts) in played.outcome.pairs_of(number) {
            fight.waits.add(counts.of_same_bytes, counts.of_line_alone);
            if counts.of_line_alone > 0 {
                fight.threads.extend([pair.writer, pair.other].map(|one| played.threads[usize::from(one)]));
                for tag in [pair.writer_tag, pair.other_tag] {
                    *fight.spots.entry(used(tag).spot).or_default() += counts.of_line_alone;
                    *fight.pcs.entry(used(tag).pc).or_default() += counts.of_line_alone;
                }
            }
        }
    }

    /// Leaves out data that nobody can part, and contention that is too small. The former are members of the system's
    /// own types, such as a lock's word and its owner.
    pub(crate) fn leave_out_little(&mut self, namer: &mut Namer<'_>) {
        let mut is_fixed = |fighters: &Fighters| match fighters.owners[..] {
            [Owner::Type(ty)] => fighters.of_one_object && is_of_system(ty, namer),
            _ => false,
        };
        self.fights.retain(|fighters, fight| {
            fight.waits.of_line_alone >= LEAST_WAITS && fight.threads.len() > 1 && !is_fixed(fighters)
        });
    }
}

impl Fighters {
    /// True when all of it is in objects of one type, or in variables: data that the source can part.
    pub(crate) fn are_declared(&self) -> bool {
        match &self.owners[..] {
            [Owner::Type(_)] => true,
            all => all.iter().all(|owner| matches!(owner, Owner::Variable(..))),
        }
    }
}

/// The windows in which a thread was seen, and the place of its stack.
#[derive(Clone, Copy)]
struct Life {
    first: u64,
    last: u64,
    /// The first and the last byte that was accessed; `None` when none was.
    stack: Option<(u64, u64)>,
}

impl Life {
    /// Whether two threads were seen at the same time: the first window of each is older than the last of the other.
    fn overlaps(&self, other: &Life) -> bool {
        self.first < other.last && other.first < self.last
    }

    /// Whether both had stacks at different places, and so existed at one time.
    fn is_beside(&self, other: &Life) -> bool {
        let apart = |(one, other): ((u64, u64), (u64, u64))| one.1 < other.0 || other.1 < one.0;
        self.stack.zip(other.stack).is_some_and(apart)
    }
}

fn lives(windows: &[Window], points: &[Vec<Point>], spots: &[Spot]) -> HashMap<u32, Life> {
    let mut lives: HashMap<u32, Life> = HashMap::default();
    for (window, points) in windows.iter().zip(points) {
        let new = Life { first: window.number, last: window.number, stack: None };
        let life = lives.entry(window.thread).or_insert(new);
        life.last = window.number;
        for (_, _, access, point) in accesses(window, points) {
            if spots.get(point.spot as usize).is_some_and(|spot| spot.owner == Owner::Stack) {
                let (least, most) = life.stack.unwrap_or((access.address, access.address));
                life.stack = Some((least.min(access.address), most.max(access.address)));
            }
        }
    }
    lives
}

/// Windows in the order of their beginnings. A round lasts while its windows belong to different threads that lived at
/// the same time. Windows of threads that lived then without being seen together join the rounds of the others from the
/// first on. The second value says whether such windows exist.
fn rounds<'w>(windows: &'w [Window], points: &'w [Vec<Point>], spots: &[Spot]) -> (Vec<Round<'w>>, bool) {
    let lives = lives(windows, points, spots);
    let initial = windows.first().map(|window| window.thread);
    let live_together = |one: u32, other: u32| one != other && lives[&one].overlaps(&lives[&other]);
    // A thread that was seen together with others meets only those.
    let may_live_together = |one: u32, other: u32| {
        let are_started = Some(one) != initial && Some(other) != initial;
        let were_seen = live_together(one, other);
        one != other && are_started && !were_seen && lives[&one].is_beside(&lives[&other])
    };
    let mut rounds: Vec<Round<'w>> = Vec::new();
    // By thread, the number of the round after that of its last window.
    let mut next: HashMap<u32, usize> = HashMap::default();
    let mut are_in_turn = false;
    for (window, points) in windows.iter().zip(points) {
        let thread = window.thread;
        let fits = |round: &Round<'_>, together: &dyn Fn(u32, u32) -> bool| {
            round.iter().all(|(other, _)| together(other.thread, thread))
        };
        let from = next.get(&thread).copied().unwrap_or(0);
        let last = rounds.len().checked_sub(1).filter(|last| fits(&rounds[*last], &live_together));
        let earlier = || (from..rounds.len()).find(|round| fits(&rounds[*round], &may_live_together));
        let number = match last.map(|last| (last, false)).or_else(|| Some((earlier()?, true))) {
            Some((number, is_in_turn)) => {
                are_in_turn |= is_in_turn;
                rounds[number].push((window, points));
                number
            }
            None => {
                rounds.push(vec![(window, points)]);
                rounds.len() - 1
            }
        };
        next.insert(thread, number + 1);
    }
    rounds.retain(|round| round.len() > 1);
    (rounds, are_in_turn)
}

/// The windows of a round through the caches of their threads.
fn play(round: &Round<'_>, line_bytes: u64) -> Played {
    let shared = shared_lines(round, line_bytes);
    let mut played = Played {
        outcome: Outcome::default(),
        uses: Vec::new(),
        threads: round.iter().map(|(window, _)| window.thread).collect(),
        updates: BTreeSet::new(),
    };
    if shared.is_empty() {
        return played;
    }
    let mut tags: HashMap<Use, u32> = HashMap::default();
    let (mut threads, mut spans) = (Vec::new(), Vec::new());
    for (thread, (window, points)) in (0u16..).zip(round) {
        let mut own: Vec<Timed> = Vec::new();
        for (at, pc, access, point) in accesses(window, points) {
            if !lines(&access, line_bytes).any(|line| shared.contains(&line)) {
                continue;
            }
            let before = own.last_mut().filter(|before| {
                let tag = before.access.tag as usize;
                access.kind == Kind::Store && before.access.kind == Kind::Load && played.uses[tag].pc == pc
            });
            if let Some(before) = before.filter(|before| before.access.address == access.address) {
                before.access.kind = Kind::Update;
                played.updates.insert(before.access.tag);
                continue;
            }
            let base = access.address.wrapping_sub(u64::from(point.offset));
            let tag = *tags.entry(Use { pc, spot: point.spot, base }).or_insert_with_key(|used| {
                played.uses.push(*used);
                played.uses.len() as u32 - 1
            });
            // A sum takes one instruction that reads and writes, or a load, and a store behind it.
            let is_read = own.last().is_some_and(|before| {
                before.access.kind == Kind::Load && before.access.address == access.address
            });
            if is_read && access.kind == Kind::Store {
                played.updates.insert(tag);
            }
            own.push(Timed { access: Access { thread, tag, ..access }, at });
        }
        let ended_at = window.steps.len() as u64;
        spans.push(Span { thread, first: 0, end: own.len(), began_at: 0, ended_at });
        threads.push(own);
    }
    played.outcome = Orders::new(threads, &spans).recorded(Lines::of(line_bytes));
    played
}

/// Lines that several threads use in a round, and one writes.
fn shared_lines(round: &Round<'_>, line_bytes: u64) -> BTreeSet<u64> {
    struct Users {
        first: usize,
        is_shared: bool,
        is_written: bool,
    }
    let mut users: HashMap<u64, Users> = HashMap::default();
    for (thread, (window, points)) in round.iter().enumerate() {
        for (_, _, access, _) in accesses(window, points) {
            for line in lines(&access, line_bytes) {
                let known =
                    users.entry(line).or_insert(Users { first: thread, is_shared: false, is_written: false });
                known.is_shared |= known.first != thread;
                known.is_written |= access.kind.writes();
            }
        }
    }
    users.into_iter().filter(|(_, one)| one.is_shared && one.is_written).map(|(line, _)| line).collect()
}

/// The accesses of a window, with the number of their step, and their instruction. The thread and the tag are not set
/// yet.
fn accesses<'w>(
    window: &'w Window,
    points: &'w [Point],
) -> impl Iterator<Item = (u64, u64, Access, Point)> + 'w {
    let steps = (0u64..).zip(&window.steps).filter_map(|(at, step)| match *step {
        WindowStep::Access { pc, address, size_shift, is_store } => {
            let kind = if is_store { Kind::Store } else { Kind::Load };
            Some((at, pc, Access { thread: 0, address, size_bytes: 1 << size_shift, kind, tag: 0 }))
        }
        WindowStep::Fetch { .. } => None,
    });
    steps.zip(points).map(|((at, pc, access), point)| (at, pc, access, *point))
}

fn lines(access: &Access, line_bytes: u64) -> std::ops::RangeInclusive<u64> {
    let last = access.address.saturating_add(u64::from(access.size_bytes) - 1);
    access.address / line_bytes..=last / line_bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A window of increments: address and bytes of each.
    fn window(number: u64, thread: u32, addresses: &[u64]) -> (Window, Vec<Point>) {
        let step = |address: &u64| {
            [false, true].map(|is_store| WindowStep::Access {
                pc: 0x40_0000,
                address: *address,
                size_shift: 3,
                is_store,
            })
        };
        let steps: Vec<WindowStep> = addresses.iter().flat_map(step).collect();
        let points = addresses.iter().flat_map(|address| {
            let offset = (address % 16) as u32;
            [Point { spot: offset / 8, offset, site: 0 }; 2]
        });
        let points = points.collect();
        (Window { number, thread, steps, ..Window::default() }, points)
    }

    fn between(all: &[(Window, Vec<Point>)]) -> Between {
        let (windows, points): (Vec<Window>, Vec<Vec<Point>>) = all.iter().cloned().unzip();
        let spot = |owner, at| Spot { owner, at, size_bytes: 8 };
        let spots = [spot(Owner::ThreadHead, 0), spot(Owner::ThreadHead, 8), spot(Owner::Stack, 0)];
        Between::of(&windows, &points, &spots, 64)
    }

    /// The same window with an access of the thread's stack.
    fn with_stack((mut window, mut points): (Window, Vec<Point>), address: u64) -> (Window, Vec<Point>) {
        window.steps.push(WindowStep::Access { pc: 0x40_0008, address, size_shift: 3, is_store: true });
        points.push(Point { spot: 2, offset: 0, site: 0 });
        (window, points)
    }

    #[test]
    fn members_that_different_threads_add_to_are_a_fight_and_lines_of_their_own_are_none() {
        let turns = |other: u64| -> Vec<_> {
            (0..4)
                .map(|turn| window(turn, 4 + 3 * (turn as u32 % 2), &[0x1000 + turn % 2 * other; 200]))
                .collect()
        };
        let found = between(&turns(8));
        assert_eq!((found.threads, found.all.of_same_bytes, found.fights.len()), (2, 0, 1));
        let (fighters, fight) = found.fights.first_key_value().expect("a fight");
        assert!(fighters.of_one_object && fight.waits.of_line_alone > 780, "{fight:?}");
        assert_eq!((fight.lines.len(), &fight.threads), (1, &BTreeSet::from([4, 7])));
        assert!(found.by_spot[&0].of_line_alone > 380 && found.by_spot[&1].of_line_alone > 380);
        let apart = between(&turns(0x48));
        assert_eq!((apart.all, apart.fights.len()), (Waits::default(), 0));
    }

    #[test]
    fn threads_that_were_there_at_one_time_are_taken_to_run_side_by_side_however_they_were_recorded() {
        let of = |number, thread: u32, stack| {
            let address = 0x1000 + 8 * u64::from(thread % 2);
            with_stack(window(number, thread, &[address; 200]), stack)
        };
        let start = || of(0, 0, 0x7000);
        // Recorded in turns, by chance in part, and one after the other.
        let in_order = |threads: [u32; 6]| {
            let stack = |thread: u32| 0x9000 + 0x1000 * u64::from(thread);
            let windows = (1..).zip(threads).map(|(number, thread)| of(number, thread, stack(thread)));
            between(&std::iter::once(start()).chain(windows).collect::<Vec<_>>())
        };
        for (threads, in_turn) in
            [([1, 2, 1, 2, 1, 2], false), ([1, 1, 2, 1, 2, 2], false), ([1, 1, 1, 2, 2, 2], true)]
        {
            let found = in_order(threads);
            let (fighters, fight) = found.fights.first_key_value().expect("a fight");
            assert!(fighters.of_one_object && fight.waits.of_line_alone > 700, "{threads:?}: {fight:?}");
            assert_eq!(found.is_of_threads_in_turn, in_turn, "{threads:?}");
        }
        // A thread that ended gave its stack to the next: they never met. The first thread does not meet those it
        // starts either.
        let reused =
            [of(0, 0, 0x7000), of(1, 1, 0x9000), of(2, 1, 0x9010), of(3, 2, 0x9008), of(4, 2, 0x9000)];
        assert_eq!(between(&reused).all, Waits::default());
        let started = [of(0, 0, 0x7000), of(1, 0, 0x7000), of(2, 1, 0x9000), of(3, 1, 0x9000)];
        assert_eq!(between(&started).all, Waits::default());
    }

    /// Both threads need a counter to which both add.
    #[test]
    fn a_counter_of_both_is_no_fight_for_a_line_alone() {
        let turn = |number| window(number, number as u32 % 2, &[0x1000; 200]);
        let found = between(&(0..4).map(turn).collect::<Vec<_>>());
        assert!(found.all.of_same_bytes > 780 && found.all.of_line_alone == 0, "{found:?}");
        assert!(found.fights.is_empty());
    }

    /// One thread after the other, or one alone.
    #[test]
    fn threads_that_run_one_after_the_other_do_not_fight() {
        let turn = |number| window(number, u32::from(number > 4), &[0x1000 + 8 * u64::from(number > 4); 200]);
        let found = between(&(0..10).map(turn).collect::<Vec<_>>());
        assert_eq!((found.threads, found.all), (2, Waits::default()));
        let alone = between(&[window(0, 0, &[0x1000; 200]), window(1, 0, &[0x1008; 200])]);
        assert_eq!((alone.threads, alone.all), (1, Waits::default()));
    }
}
