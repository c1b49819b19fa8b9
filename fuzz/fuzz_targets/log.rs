//! Any bytes either read as a part of a log or are refused: no panic. The superblocks are a well-formed one, and whatever a
//! recording of these bytes defines.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lineup_recording::log::{Entry, Log, LogBlock, LogPart, MOST_PART_WORDS};
use lineup_recording::native::superblock::{Part, Reckoned, STACK, Superblock, Told};
use lineup_recording::{Encoder, Event, events_of};

/// String instructions that repeat more often are not followed.
const MOST_TURNS: u64 = 1000;

fuzz_target!(|bytes: &[u8]| {
    let mut log = Log::default();
    for (number, told) in (1..).zip([Told::Plain, Told::Masked, Told::Repeated]) {
        log.learn(&Event::LogBlock(LogBlock { number, superblock: superblock(told) }));
    }
    let bytes_of_words = bytes.len().min(8 * MOST_PART_WORDS);
    follow(&mut log, &LogPart { thread: 0, words: bytes[..bytes_of_words].to_vec() });
    for event in events_of(bytes) {
        log.learn(&event);
        if let Event::LogBlock(block) = &event {
            let mut encoder = Encoder::new();
            encoder.log_block(block.number, &block.superblock.to_words());
            assert_eq!(events_of(encoder.packed()).next().as_ref(), Some(&event));
        }
        if let Event::LogPart(part) = event {
            follow(&mut log, &part);
        }
    }
});

fn follow(log: &mut Log, part: &LogPart) {
    let _ = log.each(part, |entry| {
        if let Entry::Executed(execution) = entry
            && execution.times() < MOST_TURNS
        {
            assert!(execution.instructions.end <= execution.superblock.instructions(usize::MAX));
            execution.each_access(|_, _, bytes| assert!(bytes > 0));
        }
    });
}

fn superblock(told: Told) -> Superblock {
    let access = Reckoned {
        instruction: 0,
        is_store: false,
        told,
        is_of_thread: true,
        base: 1,
        index: 2,
        scale_shift: 3,
        mask: 1,
        element_bytes: 4,
        size_bytes: 32,
        distance: -8,
    };
    let first = Part {
        start: 0x1000,
        lengths: vec![4],
        accesses: 1,
        words: 3,
        stack: STACK,
        stack_distance: 8,
    };
    let mut parts = vec![first.clone()];
    if told != Told::Repeated {
        parts.push(Part { start: 0x2000, stack: 2, words: 5, ..first });
    }
    Superblock { parts, accesses: vec![access], compares: false }
}
