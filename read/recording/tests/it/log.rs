//! A recording with a log: cut-off, damaged and skipped parts.

use lineup_model::abi::Abi;
use lineup_recording::log::{Log, LogBlock, LogEntry, LogPart, Packer, plain};
use lineup_recording::native::derived::{Derived, FIRST_DERIVED, MOST_DERIVED, Operation, Value};
use lineup_recording::native::record;
use lineup_recording::native::superblock::{AccessForm, NUMBER_BITS, Part, Reckoned, STACK, Superblock};
use lineup_recording::{Encoder, Event, Header, Mode, Reader, Summary, Writer, read_all};

const BLOCK: u32 = 17;

/// Of a whole program: no other recording has a log.
fn header() -> Header {
    let mut header = Header::new(Abi::X86_64, vec!["./p".into()]);
    header.mode = Mode::WholeProgram;
    header
}

/// Two instructions in two parts, a load and a store at the same place.
fn superblock() -> Superblock {
    let access = |instruction, is_store| Reckoned {
        instruction,
        is_store,
        told: AccessForm::Plain,
        is_of_thread: false,
        base: 1,
        index: 0,
        scale_shift: 0,
        mask: 0,
        element_bytes: 0,
        size_bytes: 4,
        distance: 8,
    };
    let part = |start, accesses| Part {
        start,
        lengths: vec![3],
        accesses,
        words: 2,
        stack: STACK,
        stack_distance: -8,
    };
    Superblock {
        parts: vec![part(0x40_1000, 1), part(0x40_2000, 2)],
        derived: Vec::new(),
        accesses: vec![access(0, false), access(1, true)],
    }
}

/// Words of a thread whose addresses jump about, from the part that it leaves the superblock with.
fn words(thread: u64, part: u64) -> Vec<u64> {
    let jump = |turn: u64| (thread << 32 | part << 24 | turn).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (0..12).flat_map(|turn| [u64::from(BLOCK) | (turn & 1) << NUMBER_BITS, jump(turn)]).collect()
}

/// Words as the part of a log that is packed; `None` where they are malformed.
fn packed(words: &[u64]) -> Option<Vec<u8>> {
    let mut packer = Packer::default();
    let mut pack = |words: &[u64]| {
        packer.begin();
        packer.add(words, |number| (number == BLOCK).then(|| superblock().words()))?;
        Some(packer.finish())
    };
    let first = pack(words)?;
    // Nothing is left of earlier packing.
    pack(&words[..0])?;
    assert_eq!(pack(words).as_ref(), Some(&first));
    Some(first)
}

/// Three parts of each of two threads, and where the blocks of the file end.
fn file() -> (Vec<u8>, Vec<usize>) {
    let mut writer = Writer::new(Vec::new(), &header()).unwrap();
    let mut ends = Vec::new();
    let mut encoder = Encoder::new();
    encoder.log_block(BLOCK, &superblock().to_words());
    writer.append(&encoder.seal().unwrap()).unwrap();
    let mut bytes = writer.into_inner();
    for (part, thread) in [(0, 0), (0, 1), (1, 1), (1, 0), (2, 0), (2, 1)] {
        encoder.log_part(thread, &packed(&words(thread, part)).unwrap());
        bytes.extend(encoder.seal().unwrap());
        ends.push(bytes.len());
    }
    encoder.log_part(LogPart::END.thread, &LogPart::END.packed);
    encoder.summary(&Summary { threads: 2, ..Summary::default() });
    bytes.extend(encoder.seal().unwrap());
    ends.push(bytes.len());
    (bytes, ends)
}

/// The accesses in each part, its thread first; and whether the last one stands there.
fn read(bytes: &[u8]) -> (Vec<(u64, Vec<Access>)>, bool) {
    let Ok(reader) = Reader::new(bytes) else { return (Vec::new(), false) };
    let (mut log, mut parts, mut is_whole) = (Log::default(), Vec::new(), false);
    for event in reader {
        log.learn(&event);
        let Event::LogPart(part) = event else { continue };
        is_whole |= part == LogPart::END;
        let mut accesses = Vec::new();
        log.each(&part, |entry| accesses.extend(accesses_of(entry))).expect("a whole part");
        parts.push((part.thread, accesses));
    }
    (parts, is_whole)
}

/// The instruction, whether it stores, and where.
type Access = (u8, bool, u64);

fn accesses_of(entry: LogEntry<'_>) -> Vec<Access> {
    let LogEntry::Executed(execution) = entry else { return Vec::new() };
    let mut all = Vec::new();
    execution.each_access(|access, address, _| all.push((access.instruction, access.is_store, address)));
    all
}

/// The accesses that the words of a part give.
fn expected(thread: u64, part: u64) -> Vec<Access> {
    let words = words(thread, part);
    let all = words.chunks_exact(2).flat_map(|record| {
        let address = record[1].wrapping_add(8);
        let both = [(0, false, address), (1, true, address)];
        both.into_iter().take(1 + (record[0] >> NUMBER_BITS) as usize)
    });
    all.collect()
}

/// The accesses that the words of one thread give, packed or not.
fn followed(words: &[u64]) -> Option<Vec<Access>> {
    let follow = |packed: Vec<u8>| {
        let mut log = Log::default();
        log.learn(&Event::LogBlock(LogBlock { number: BLOCK, superblock: superblock() }));
        let mut all = Vec::new();
        log.each(&LogPart { thread: 0, packed }, |entry| all.extend(accesses_of(entry)))?;
        Some(all)
    };
    let all = follow(plain(words));
    if let Some(packed) = packed(words) {
        assert_eq!(follow(packed.clone()), all);
        assert_eq!(follow(packed[..packed.len() - 1].to_vec()), None);
        assert_eq!(follow([&packed[..], &[0]].concat()), None);
    }
    all
}

#[test]
fn what_foretells_itself_takes_no_room() {
    let head = u64::from(BLOCK) | 1 << NUMBER_BITS;
    let address = |turn: u64| 0x7000_0000 + 3 * turn;
    let words: Vec<u64> = (0..4000).flat_map(|turn| [head, address(turn)]).collect();
    // A bit for the record, four for the word's length, and its difference.
    let packed = packed(&words).unwrap();
    assert!((6500..6600).contains(&packed.len()), "{}", packed.len());
    let found = followed(&words).unwrap();
    let expected = (0..4000).flat_map(|turn| [(0, false, address(turn) + 8), (1, true, address(turn) + 8)]);
    assert_eq!(found, expected.collect::<Vec<Access>>());
}

#[test]
fn words_of_any_length_are_packed_and_unpacked() {
    let head = u64::from(BLOCK);
    let words: Vec<u64> = (0..64).flat_map(|bit| [head, 1 << bit, head, u64::MAX >> bit, head, 0]).collect();
    let found = followed(&words).unwrap();
    let addresses: Vec<u64> = found.iter().map(|access| access.2).collect();
    let expected = words.chunks_exact(2).map(|record| record[1].wrapping_add(8));
    assert_eq!(addresses, expected.collect::<Vec<u64>>());
    assert!(packed(&words).is_some() && packed(&[head | 1 << 40, 1]).is_none());
}

/// A handler runs between the two instructions, and executes the first itself.
#[test]
fn what_a_signal_interrupted_counts_once() {
    let special = |kind: u32| u64::from(kind) << 32;
    let whole = u64::from(BLOCK) | 1 << NUMBER_BITS;
    let first = [special(record::INTERRUPTED), u64::from(BLOCK) | 1 << 32, 2, 0x7000, whole, 0x100];
    let handler = [special(record::STACK), 0x6000, u64::from(BLOCK), 0x200];
    let rest = [special(record::RESUMED), 1, 0x7000, whole, 0x100];
    let all = [&first[..], &handler, &rest].concat();
    let expected = [(0, false, 0x108), (0, false, 0x208), (1, true, 0x108)];
    assert_eq!(followed(&all).unwrap(), expected);
    // It does not return.
    let left = [&first[..], &handler, &[whole, 0x300]].concat();
    assert_eq!(followed(&left).unwrap(), [&expected[..2], &[(0, false, 0x308), (1, true, 0x308)]].concat());
    // No superblock was interrupted there.
    assert_eq!(followed(&rest), None);
    assert_eq!(followed(&[special(record::INTERRUPTED), u64::from(BLOCK) | 3 << 32, 2, 0, whole, 1]), None);
}

#[test]
fn a_record_without_all_its_words_is_malformed() {
    assert_eq!(followed(&[u64::from(BLOCK)]), None);
    assert_eq!(followed(&[u64::from(BLOCK) | 2 << NUMBER_BITS, 1]), None);
    assert_eq!(followed(&[u64::from(BLOCK) + 1, 1]), None);
    assert_eq!(followed(&[u64::from(u32::MAX) << 32, 1]), None);
}

#[test]
fn threads_are_read_in_their_order() {
    let (bytes, _) = file();
    let (parts, is_whole) = read(&bytes);
    let expected = [(0, 0), (1, 0), (1, 1), (0, 1), (0, 2), (1, 2)];
    let expected: Vec<_> =
        expected.iter().map(|(thread, part)| (*thread, self::expected(*thread, *part))).collect();
    assert_eq!(parts[..6], expected);
    assert!(is_whole);
}

#[test]
fn a_log_cut_at_any_byte_gives_the_whole_parts_before_the_cut() {
    let (bytes, ends) = file();
    let (all, _) = read(&bytes);
    for cut in 0..bytes.len() {
        let (parts, is_whole) = read(&bytes[..cut]);
        let whole = ends.iter().filter(|end| **end <= cut).count();
        assert_eq!(parts, all[..whole], "{cut}");
        assert!(!is_whole, "{cut}");
    }
}

#[test]
fn a_changed_byte_is_damage_and_never_something_else() {
    let (bytes, ends) = file();
    let (all, _) = read(&bytes);
    for at in ends[0]..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 0x41;
        let (parts, _) = read(&changed);
        assert!(all.starts_with(&parts) && parts.len() < all.len(), "{at}");
    }
}

/// The counts behind a log are found without unpacking it.
#[test]
fn a_log_may_be_passed_over() {
    let (bytes, ends) = file();
    let without = |bytes: &[u8]| Reader::new(std::io::Cursor::new(bytes.to_vec())).unwrap().without_log();
    let reader = without(&bytes);
    let events: Vec<Event> = reader.collect();
    let parts: Vec<&LogPart> = events.iter().filter_map(LogPart::of).collect();
    assert_eq!(parts, [&LogPart::END]);
    assert!(matches!(events.last(), Some(Event::Summary(summary)) if summary.threads == 2));
    assert_eq!(read_all(&bytes).unwrap().summary.map(|summary| summary.threads), Some(2));
    // The reader notices a cut at any place.
    for cut in ends[0] + 1..ends[1] {
        let mut reader = without(&bytes[..cut]);
        reader.by_ref().for_each(drop);
        assert_eq!((reader.good_bytes(), reader.damage().is_some()), (ends[0] as u64, true));
    }
    let mut reader = without(&bytes[..ends[1]]);
    reader.by_ref().for_each(drop);
    assert_eq!((reader.good_bytes(), reader.damage()), (ends[1] as u64, None));
}

/// Inconsistent words are no superblock.
#[test]
fn a_superblock_that_cannot_be_is_damage() {
    let changed = |change: fn(&mut Superblock)| {
        let mut own = superblock();
        change(&mut own);
        let mut writer = Writer::new(Vec::new(), &header()).unwrap();
        let mut encoder = Encoder::new();
        encoder.log_block(BLOCK, &own.to_words());
        writer.append(&encoder.seal().unwrap()).unwrap();
        let bytes = writer.into_inner();
        let mut reader = Reader::new(bytes.as_slice()).unwrap();
        (reader.by_ref().count(), reader.damage().is_some())
    };
    assert_eq!(changed(|_| {}), (1, false));
    assert_eq!(changed(|own| own.parts[0].lengths = vec![6, 0]), (0, true));
    assert_eq!(changed(|own| own.parts[1].start = u64::MAX - 2), (0, true));
    assert_eq!(changed(|own| own.parts[1].words = 1), (0, true));
    assert_eq!(changed(|own| own.parts[1].accesses = 3), (0, true));
    assert_eq!(changed(|own| own.parts[0].stack = 2), (0, true));
    assert_eq!(changed(|own| own.accesses[0].instruction = 1), (0, true));
    assert_eq!(changed(|own| own.accesses[0].index = 2), (0, true));
    assert_eq!(changed(|own| own.accesses[0].size_bytes = 0), (0, true));
    assert_eq!(changed(|own| own.accesses[0].told = AccessForm::Masked), (0, true));
    assert_eq!(changed(|own| own.accesses[1].told = AccessForm::Repeated), (0, true));
    assert_eq!(changed(|own| own.parts.clear()), (0, true));
    assert_eq!(changed(|own| own.derived = vec![mask(1)]), (1, false));
    assert_eq!(changed(|own| own.derived = vec![mask(1); MOST_DERIVED]), (1, false));
    assert_eq!(changed(|own| own.derived = vec![mask(1); MOST_DERIVED + 1]), (0, true));
    // From a word that no record has, from itself, and from a value derived later.
    assert_eq!(changed(|own| own.derived = vec![mask(2)]), (0, true));
    assert_eq!(changed(|own| own.derived = vec![mask(FIRST_DERIVED)]), (0, true));
    assert_eq!(changed(|own| own.derived = vec![mask(FIRST_DERIVED - 1), mask(1)]), (0, true));
    assert_eq!(changed(|own| own.accesses[0].base = FIRST_DERIVED), (0, true));
    // From a word that is missing in records which end with its part.
    assert_eq!(
        changed(|own| {
            own.parts[0].words = 1;
            own.accesses[0].base = FIRST_DERIVED;
            own.derived = vec![mask(1)];
        }),
        (0, true)
    );
}

/// The lower four bits of a word plus 8.
fn mask(word: u8) -> Derived {
    let (first, second) = (Value { word, distance: 8 }, Value::constant(15));
    Derived { operation: Operation::And, is_half: false, first, second }
}

/// The second follows from the first, which follows from a word.
#[test]
fn values_are_worked_out_of_words() {
    let mut own = superblock();
    let first = Value { word: FIRST_DERIVED, distance: 1 };
    let second = Value { word: STACK, distance: -4 };
    let told = own.to_words();
    assert_eq!(Superblock::read_words(|number| told.get(number).copied()), Some(own.words()));
    own.derived = vec![mask(1), Derived { operation: Operation::Multiply, is_half: true, first, second }];
    (own.accesses[0].base, own.accesses[1].base) = (FIRST_DERIVED, FIRST_DERIVED - 1);
    let mut log = Log::default();
    log.learn(&Event::LogBlock(LogBlock { number: BLOCK, superblock: own }));
    let words = [u64::from(record::STACK) << 32, 0x1_0000_0006, u64::from(BLOCK) | 1 << NUMBER_BITS, 0x103];
    let mut all = Vec::new();
    let part = LogPart { thread: 0, packed: plain(&words) };
    log.each(&part, |entry| all.extend(accesses_of(entry))).unwrap();
    assert_eq!(all, [(0, false, 0xb + 8), (1, true, 0xc * 2 + 8)]);
}

#[test]
fn operations_are_those_of_the_processor() {
    let (low, high) = (0x8000_00f0_u64, 0xffff_ffff_8000_00f0_u64);
    for (operation, second, whole, half) in [
        (Operation::Add, 0x8000_0000, 0x1_0000_00f0, 0xf0),
        (Operation::Subtract, 0x8000_00f1, u64::MAX, 0xffff_ffff),
        (Operation::And, 0x80, 0x80, 0x80),
        (Operation::Or, 0xf, 0x8000_00ff, 0x8000_00ff),
        (Operation::Xor, low, 0, 0),
        (Operation::ShiftLeft, 33, 0x8000_00f0 << 33, 0x1e0),
        (Operation::ShiftRight, 4, 0x800_000f, 0x800_000f),
        (Operation::ShiftSignRight, 4, 0x800_000f, 0xf800_000f),
        (Operation::Multiply, 2, 0x1_0000_01e0, 0x1e0),
        (Operation::ExtendSign, 8, 0xffff_ffff_ffff_fff0, 0xffff_fff0),
        (Operation::ExtendSign, 32, high, low),
    ] {
        assert_eq!(operation.of(false, low, second), whole, "{operation:?}");
        // The upper half does not matter.
        assert_eq!(operation.of(true, high, second), half, "{operation:?} of 32 bits");
    }
    assert_eq!(Operation::ShiftSignRight.of(false, high, 4), 0xffff_ffff_f800_000f);
    // No file makes a shift that cannot be.
    assert_eq!(Operation::ExtendSign.of(false, 1, 0), u64::MAX);
    assert_eq!(Operation::ExtendSign.of(true, low, 200), low);
}
