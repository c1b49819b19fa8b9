use super::*;

/// The code of entries and ends, with a clock that advances by one at each.
struct Thread {
    calls: Box<OpenCalls>,
    slot: Slot,
    words: Box<Words>,
    now: u64,
}

impl Thread {
    fn new() -> Thread {
        let kept = || RememberedCalls {
            calls: 0,
            sum: 0,
            jumped: 0,
            listed: [0; LISTED],
            buckets: [0; timed::BUCKETS],
        };
        let calls = Box::new(OpenCalls {
            open: std::array::from_fn(|_| Open { at: 0, begun: 0, kept: kept() }),
            count: 0,
            remembered: [Remembered::default(); REMEMBERED],
            events: 0,
            inner: 0,
        });
        Thread { calls, slot: [0; slot::WORDS], words: Box::new([0; timed::WORDS]), now: 0 }
    }

    fn enter(&mut self, at: u64) {
        let Thread { calls, slot, words, .. } = self;
        self.now += 1;
        if slot[slot::AT] == 0 && slot[slot::STATE] & !state::COUNTS_ONLY == 0 {
            words[timed::OPEN] += 1;
            slot[slot::AT] = at;
        } else if at < slot[slot::AT] && slot[slot::STATE] & state::COUNTS_ONLY != 0 {
            words[timed::INNER] += 1;
            return;
        } else {
            calls.enter(slot, words, at);
        }
        if slot[slot::AT] == at {
            slot[slot::BEGUN] = self.now;
        }
    }

    fn end(&mut self, at: u64) {
        let Thread { calls, slot, words, .. } = self;
        self.now += 1;
        if slot[slot::AT] == at {
            slot[slot::CYCLES] = self.now - slot[slot::BEGUN];
            slot[slot::AT] = 0;
            words[timed::OPEN] -= 1;
            count(words, slot[slot::BEGUN], slot[slot::CYCLES], false);
            if slot[slot::STATE] & !state::COUNTS_ONLY != 0 {
                calls.ended(slot, words, false);
            }
        } else if slot[slot::STATE] & state::REMEMBERS != 0 || slot[slot::AT] != 0 && at > slot[slot::AT] {
            calls.other_end(slot, words, CallExit { at, now: self.now, jumps: false });
        }
    }

    /// Complete, left or open, and inner calls.
    fn counts(&self) -> (u64, u64, u64) {
        let complete = self.words[timed::FIRST_BUCKET..][..timed::BUCKETS].iter().sum();
        (complete, self.words[timed::LEFT] + self.words[timed::OPEN], self.words[timed::INNER])
    }
}

#[test]
fn calls_below_one_that_was_left_are_timed() {
    let mut thread = Thread::new();
    thread.enter(1000);
    for _ in 0..10_000 {
        thread.enter(900);
        thread.end(900);
    }
    assert_eq!(thread.counts(), (10_000, 1, 0));
    assert_eq!(thread.words[timed::SUM], 10_000);
    // At its place it is known.
    thread.enter(1000);
    thread.end(1000);
    assert_eq!(thread.counts(), (10_001, 1, 0));
    assert_eq!(thread.slot[slot::AT], 0);
}

#[test]
fn calls_inside_one_that_returns_are_part_of_its_time() {
    for inner in [1, 3, LISTED as u64 + 1, 1000] {
        let mut thread = Thread::new();
        for round in 1..=3 {
            thread.enter(1000);
            for _ in 0..inner {
                thread.enter(900);
                thread.enter(800);
                thread.end(800);
                thread.end(900);
            }
            thread.end(1000);
            assert_eq!(thread.counts(), (round, 0, round * 2 * inner));
            assert_eq!(thread.words[timed::SUM], round * (4 * inner + 1));
            assert_eq!(thread.slot[slot::STATE], 0);
        }
        let marks = thread.words[timed::FIRST_MARK..][..timed::MARK_WORDS * timed::MOST_MARKS].to_vec();
        let longest: Vec<u64> =
            marks.chunks(timed::MARK_WORDS).map(|mark| mark[1]).filter(|cycles| *cycles > 0).collect();
        assert_eq!(longest, [4 * inner + 1], "those of inner calls are gone");
    }
}

#[test]
fn of_a_recursion_whose_upper_part_was_left_the_rest_goes_on() {
    let mut thread = Thread::new();
    thread.enter(1000);
    thread.enter(900);
    thread.enter(800);
    // Both inner calls were left, and control is in the first, which caught that.
    thread.enter(850);
    thread.end(850);
    thread.end(1000);
    assert_eq!(thread.counts().0, 1);
    assert_eq!(thread.counts().0 + thread.counts().1 + thread.counts().2, 4);
    assert_eq!(thread.words[timed::OPEN], 0);
}

#[test]
fn the_first_of_a_recursion_is_left_and_what_ended_in_it_stands() {
    let mut thread = Thread::new();
    thread.enter(1000);
    thread.enter(900);
    thread.enter(800);
    thread.end(800);
    thread.end(900);
    thread.enter(1100);
    thread.end(1100);
    assert_eq!(thread.counts(), (2, 1, 1));
}

#[test]
fn calls_on_two_stacks_in_turn_are_complete() {
    let mut thread = Thread::new();
    for _ in 0..5 {
        thread.enter(5000);
        // A coroutine's stack lies lower, and its call waits.
        thread.enter(500);
        thread.end(5000);
        thread.enter(5000);
        thread.end(5000);
        thread.end(500);
    }
    let (complete, left, inner) = thread.counts();
    assert_eq!((complete + inner, left), (15, 0));
}

#[test]
fn calls_of_many_coroutines_in_turn_are_complete() {
    let mut thread = Thread::new();
    for _ in 0..3 {
        (1..=50).for_each(|stack| thread.enter(1000 * stack));
        (1..=50).for_each(|stack| thread.end(1000 * stack));
    }
    let (complete, left, inner) = thread.counts();
    assert_eq!((complete + inner, left), (150, 0));
}

#[test]
fn deep_recursion_is_counted_and_every_call_once() {
    let mut thread = Thread::new();
    let depth = 100;
    let rounds = 3 * BELIEVED_AFTER / depth;
    for _ in 0..rounds {
        (0..depth).for_each(|level| thread.enter(10_000 - 10 * level));
        (0..depth).rev().for_each(|level| thread.end(10_000 - 10 * level));
    }
    assert_eq!(thread.counts(), (rounds, 0, rounds * (depth - 1)));
}

#[test]
fn ever_deeper_calls_that_are_left_count_once_each() {
    let mut thread = Thread::new();
    (0..20).for_each(|level| thread.enter(10_000 - 10 * level));
    thread.enter(20_000);
    thread.end(20_000);
    let (complete, left, inner) = thread.counts();
    assert_eq!((complete, left + inner), (1, 20));
    thread.calls.forget();
    assert!(thread.calls.open.iter().all(|open| open.kept.calls == 0));
}

#[test]
fn buckets_are_those_of_the_code() {
    assert_eq!([0, 31, 32, 33, 63, 64, 65, 66].map(bucket), [0, 31, 32, 33, 63, 64, 64, 65]);
    assert_eq!(bucket(u64::MAX), timed::BUCKETS - 1);
}
