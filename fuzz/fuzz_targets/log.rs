//! Any bytes either read as a part of a log or are refused: no panic. The superblocks are a well-formed one, and whatever a
//! recording of these bytes defines.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lineup_recording::log::{Log, LogBlock, LogEntry, LogPart, Packer, plain};
use lineup_recording::native::derived::{Derived, FIRST_DERIVED, Operation, Value};
use lineup_recording::native::superblock::{AccessForm, Part, Reckoned, STACK, Superblock};
use lineup_recording::{Encoder, Event, events_of};

/// String instructions that repeat more often are not followed.
const MOST_TURNS: u64 = 1000;

fuzz_target!(|bytes: &[u8]| {
    let mut log = Log::default();
    for (number, told) in (1..).zip([AccessForm::Plain, AccessForm::Masked, AccessForm::Repeated]) {
        log.learn(&Event::LogBlock(LogBlock { number, superblock: superblock(told) }));
    }
    follow(&mut log, &LogPart { thread: 0, packed: bytes.to_vec() });
    pack(&mut log, bytes);
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

/// Packed or not, the words are equal.
fn pack(log: &mut Log, bytes: &[u8]) {
    let words: Vec<u64> = bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
    let mut packer = Packer::default();
    packer.begin();
    let told = [AccessForm::Plain, AccessForm::Masked, AccessForm::Repeated];
    let shape = |number: u32| Some(superblock(*told.get(number.checked_sub(1)? as usize)?).words());
    let is_packed = packer.add(&words, shape).is_some();
    let mut all = [(1, plain(&words)), (2, packer.finish())].map(|(thread, packed)| {
        let mut entries = 0_u64;
        let mut addresses = 0_u64;
        let read = log.each(&LogPart { thread, packed }, |entry| {
            entries += 1;
            if let LogEntry::Executed(execution) = entry
                && execution.repetitions() < MOST_TURNS
            {
                execution.each_access(|_, address, _| addresses = addresses.rotate_left(1) ^ address);
            }
        });
        (read, entries, addresses)
    });
    if !is_packed {
        all[1] = all[0];
    }
    assert_eq!(all[0], all[1]);
}

fn follow(log: &mut Log, part: &LogPart) {
    let _ = log.each(part, |entry| {
        if let LogEntry::Executed(execution) = entry
            && execution.repetitions() < MOST_TURNS
        {
            assert!(execution.instructions.end <= execution.superblock.instructions(usize::MAX));
            execution.each_access(|_, _, bytes| assert!(bytes > 0));
        }
    });
}

fn superblock(told: AccessForm) -> Superblock {
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
    let first =
        Part { start: 0x1000, lengths: vec![4], accesses: 1, words: 3, stack: STACK, stack_distance: 8 };
    let mut parts = vec![first.clone()];
    if told != AccessForm::Repeated {
        parts.push(Part { start: 0x2000, stack: 2, words: 5, ..first });
    }
    let mut all = Superblock { parts, derived: Vec::new(), accesses: vec![access] };
    if told == AccessForm::Plain {
        let (first, second) = (Value { word: 1, distance: 7 }, Value { word: 2, distance: 0 });
        all.derived.push(Derived { operation: Operation::ShiftSignRight, is_half: true, first, second });
        all.accesses[0].index = FIRST_DERIVED;
    }
    all
}
