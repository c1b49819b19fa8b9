//! More bytes than were given.

/// With more bytes behind that follow from the first two alone: few bytes make large values, and one that is changed
/// leaves the others as they were.
pub(crate) fn lengthened(data: &[u8], drawn_bytes: usize) -> Vec<u8> {
    let seed = data.iter().take(2).fold(1, |seed, byte| seed << 8 | u64::from(*byte));
    let next = |state: &u64| {
        // xorshift64 (Marsaglia 2003).
        let state = state ^ state << 13;
        let state = state ^ state >> 7;
        Some(state ^ state << 17)
    };
    let drawn = std::iter::successors(Some(seed), next).map(|state| (state >> 32) as u8);
    data.iter().copied().chain(drawn.take(drawn_bytes)).collect()
}
