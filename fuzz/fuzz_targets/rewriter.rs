//! Any text, any type name, any order: the rewriter refuses or permutes, and never loses a member.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lineup_advise::rewrite::{reorder, units};
use lineup_advise::sources::Sources;

fuzz_target!(|input: (bool, u64, &str)| {
    let (is_cpp, seed, text) = input;
    let path = if is_cpp { "a.cc" } else { "a.c" };
    let sources = Sources::new([(path.to_string(), text.to_string())]);
    let Ok(before) = units(&sources, "s") else { return };
    let identity: Vec<usize> = (0..before.len()).collect();
    let (_, same) = reorder(&sources, "s", &identity).expect("the identity is allowed");
    assert_eq!(same, text);
    let mut order = identity;
    order.sort_by_key(|&unit| (unit as u64 + 1).wrapping_mul(seed | 1).rotate_left(17));
    let Ok((_, new)) = reorder(&sources, "s", &order) else { return };
    let mut expected: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let mut found: Vec<u8> = new.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    expected.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, expected, "no byte is lost");
    // Two runs of bit-fields that have become neighbours are read as one unit, and a comment may be read
    // as the neighbour's: what the units say together, in order, is what counts.
    if let Ok(after) = units(&Sources::new([(path.to_string(), new)]), "s")
        && after.len() == before.len()
    {
        let permuted: String = order.iter().map(|&unit| before[unit].as_str()).collect();
        assert_eq!(after.concat(), permuted);
    }
});
