//! Pieces of several runs, compared as wholes where the runs of one variant repeat them, else position by position.

use super::compare::{first_unlike, shown};
use super::connections::Piece;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hasher};

/// The pieces of each run of one variant.
pub(super) type PiecesOfRuns<'p> = Vec<Vec<&'p Piece>>;

/// The extent of a comparison that found no difference.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Extent {
    /// Every byte was compared.
    Whole,
    /// All but these positions, in words.
    Without(String),
    /// Nothing: two runs of one variant have nothing in common that has a position.
    Nothing,
}

/// A difference between two variants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Unlike {
    pub(super) how: String,
    /// True when runs of one variant differ elsewhere.
    pub(super) varies: bool,
}

/// The most values that are collected over all positions.
const MOST_VALUES: usize = 1 << 24;

/// The size of the parts that have positions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Grain {
    Bytes,
    Words,
    Lines,
}

/// Compares the pieces of two variants, each of which has one list for each of its runs. The order of a list does not
/// matter.
pub(super) fn judge(variants: [&PiecesOfRuns<'_>; 2]) -> Result<Extent, Unlike> {
    let counted = variants.map(|runs| runs.iter().map(|run| counted(run)).collect::<Vec<_>>());
    let repeat = |same: fn(&Counted, &Counted) -> bool| {
        counted.iter().all(|runs| runs.windows(2).all(|pair| same(&pair[0], &pair[1])))
    };
    let has_same_pieces = |one: &Counted, other: &Counted| one.keys().eq(other.keys());
    let (is_exact, is_set) = (repeat(|one, other| one == other), repeat(has_same_pieces));
    if !is_exact && !is_set {
        return by_position(variants);
    }
    let (Some(before), Some(after)) = (counted[0].first(), counted[1].first()) else {
        return Ok(Extent::Nothing);
    };
    let is_equal = if is_exact { before == after } else { has_same_pieces(before, after) };
    match is_equal {
        true => Ok(Extent::Whole),
        false => Err(Unlike { how: wholes_differ(variants, [before, after]), varies: !is_exact }),
    }
}

type Counted = BTreeMap<[u8; 32], u64>;

fn counted(run: &[&Piece]) -> Counted {
    let mut counted = Counted::new();
    run.iter().for_each(|piece| *counted.entry(piece.fingerprint).or_default() += 1);
    counted
}

/// Shows one piece of each variant that the other has less often.
fn wholes_differ(variants: [&PiecesOfRuns<'_>; 2], [before, after]: [&Counted; 2]) -> String {
    let more_often = |variant: usize, here: &Counted, there: &Counted| {
        let run = variants[variant].first()?;
        let count = |counted: &Counted, piece: &Piece| counted.get(&piece.fingerprint).copied().unwrap_or(0);
        run.iter().find(|piece| count(here, piece) > count(there, piece)).copied()
    };
    match (more_often(0, before, after), more_often(1, after, before)) {
        (Some(one), Some(other)) => pieces_differ(one, other),
        (Some(only), None) => format!("{} occur less often after the change", head(only)),
        (None, Some(only)) => format!("{} occur more often after the change", head(only)),
        (None, None) => "the variants have other ones".into(),
    }
}

fn pieces_differ(one: &Piece, other: &Piece) -> String {
    let sizes = match (one.size_bytes, other.size_bytes) {
        (a, b) if a == b => format!("{a} bytes"),
        (a, b) => format!("{a} bytes against {b}"),
    };
    match first_unlike(&one.bytes, &other.bytes, 0) {
        Some(at) => format!("offset {at}: {} ({sizes})", shown(&one.bytes, &other.bytes, at)),
        None => format!("after offset {} ({sizes})", one.bytes.len().min(other.bytes.len())),
    }
}

fn head(piece: &Piece) -> String {
    let hex: Vec<String> = piece.bytes.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("the {} bytes that begin with {}", piece.size_bytes, hex.join(" "))
}

/// Compares position by position. A position at which two runs of one variant have other values is left out.
fn by_position(variants: [&PiecesOfRuns<'_>; 2]) -> Result<Extent, Unlike> {
    let pieces = || variants.into_iter().flatten().flatten().copied();
    let Some(example) = pieces().next() else { return Ok(Extent::Nothing) };
    let Some(grain) = finest(pieces) else { return Ok(Extent::Nothing) };
    let values = variants.map(|runs| runs.iter().map(|run| values(run, grain)).collect::<Vec<_>>());
    let count = parts(example, grain).len();
    let differs =
        |at: usize| values.iter().any(|runs| runs.windows(2).any(|pair| pair[0].get(at) != pair[1].get(at)));
    let mut is_left_out: Vec<bool> = (0..count).map(differs).collect();
    if grain == Grain::Bytes {
        widen(&mut is_left_out, &example.bytes);
    }
    let left_out: Vec<usize> = (0..count).filter(|at| is_left_out[*at]).collect();
    if left_out.len() == count {
        return Ok(Extent::Nothing);
    }
    let at = |variant: usize, place: usize| values[variant].first().and_then(|run| run.get(place));
    let unlike = (0..count).filter(|place| !is_left_out[*place]).find(|place| at(0, *place) != at(1, *place));
    if let Some(place) = unlike {
        let how = position_differs(variants, grain, place);
        return Err(Unlike { how, varies: true });
    }
    // Runs of one variant that differ must differ somewhere, unless only their combinations do.
    Ok(match left_out.is_empty() {
        true => Extent::Without("which of their parts go together".into()),
        false => Extent::Without(in_words(&left_out, grain, count)),
    })
}

/// The smallest parts of which all pieces have as many.
fn finest<'p, I: Iterator<Item = &'p Piece>>(pieces: impl Fn() -> I) -> Option<Grain> {
    let different: BTreeMap<&[u8; 32], &Piece> = pieces().map(|piece| (&piece.fingerprint, piece)).collect();
    if !different.values().all(|piece| piece.is_whole()) {
        return None;
    }
    [Grain::Bytes, Grain::Words, Grain::Lines].into_iter().find(|grain| {
        let mut counts = different.values().map(|piece| count(piece, *grain));
        let first = counts.next().unwrap_or(0);
        first > 0 && first * different.len() <= MOST_VALUES && counts.all(|count| count == first)
    })
}

fn count(piece: &Piece, grain: Grain) -> usize {
    match grain {
        Grain::Bytes => piece.bytes.len(),
        Grain::Words | Grain::Lines => parts(piece, grain).len(),
    }
}

/// The parts of a piece, as numbers that are equal for equal parts.
fn parts(piece: &Piece, grain: Grain) -> Vec<u64> {
    match grain {
        Grain::Bytes => piece.bytes.iter().map(|byte| u64::from(*byte)).collect(),
        Grain::Words => words(&piece.bytes).map(hashed).collect(),
        Grain::Lines => piece.bytes.split_inclusive(|byte| *byte == b'\n').map(hashed).collect(),
    }
}

/// Letters and digits that follow each other, and every other byte alone.
pub(super) fn words(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.chunk_by(|one, other| one.is_ascii_alphanumeric() && other.is_ascii_alphanumeric())
}

fn hashed(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}

/// The values at each position in one run.
fn values(run: &[&Piece], grain: Grain) -> Vec<BTreeSet<u64>> {
    let different: BTreeMap<&[u8; 32], &Piece> =
        run.iter().map(|piece| (&piece.fingerprint, *piece)).collect();
    let mut values: Vec<BTreeSet<u64>> = Vec::new();
    for piece in different.values() {
        let parts = parts(piece, grain);
        values.resize_with(parts.len().max(values.len()), BTreeSet::new);
        values.iter_mut().zip(parts).for_each(|(values, part)| {
            values.insert(part);
        });
    }
    values
}

/// Leaves out all of a number, an id or a time of which some characters differ from run to run: the others may be alike
/// by chance.
fn widen(is_left_out: &mut [bool], example: &[u8]) {
    let belongs = |at: usize| match example.get(at) {
        Some(byte) if byte.is_ascii_alphanumeric() => true,
        Some(b':' | b'.' | b'-') => {
            let is_digit = |at: Option<usize>| {
                at.and_then(|at| example.get(at)).is_some_and(|byte| byte.is_ascii_hexdigit())
            };
            is_digit(at.checked_sub(1)) && is_digit(Some(at + 1))
        }
        _ => false,
    };
    let mut from = 0;
    while from < is_left_out.len() {
        let to = (from..is_left_out.len()).find(|at| !belongs(*at)).unwrap_or(is_left_out.len());
        if let Some(word) = is_left_out.get_mut(from..to)
            && word.iter().any(|left_out| *left_out)
        {
            word.fill(true);
        }
        from = to + 1;
    }
}

fn position_differs(variants: [&PiecesOfRuns<'_>; 2], grain: Grain, place: usize) -> String {
    let first = |variant: usize| variants[variant].first().and_then(|run| run.first()).copied();
    let (Some(one), Some(other)) = (first(0), first(1)) else { return String::new() };
    match grain {
        Grain::Bytes if one.bytes.get(place) != other.bytes.get(place) => {
            format!("offset {place}: {} ({} bytes)", shown(&one.bytes, &other.bytes, place), one.size_bytes)
        }
        Grain::Bytes => format!("other values at offset {place} ({} bytes)", one.size_bytes),
        Grain::Words | Grain::Lines => {
            let name = if grain == Grain::Words { "word" } else { "line" };
            let text = |piece: &Piece| {
                let part = match grain {
                    Grain::Words => words(&piece.bytes).nth(place),
                    _ => piece.bytes.split(|byte| *byte == b'\n').nth(place),
                };
                part.unwrap_or_default().escape_ascii().to_string().chars().take(60).collect::<String>()
            };
            format!("{name} {}: `{}` against `{}`", place + 1, text(one), text(other))
        }
    }
}

/// The most ranges that are named.
const NAMED_RANGES: usize = 4;

/// Positions in words, such as `bytes 6 to 17 and 30 of 44`.
fn in_words(left_out: &[usize], grain: Grain, count: usize) -> String {
    // Bytes are counted from 0, as offsets are.
    let (name, first) = match grain {
        Grain::Bytes => ("byte", 0),
        Grain::Words => ("word", 1),
        Grain::Lines => ("line", 1),
    };
    let ranges = left_out.chunk_by(|one, other| one + 1 == *other).filter_map(|range| {
        let (from, to) = (range.first()? + first, range.last()? + first);
        Some(if from == to { from.to_string() } else { format!("{from} to {to}") })
    });
    let mut ranges: Vec<String> = ranges.collect();
    let plural = if left_out.len() == 1 { "" } else { "s" };
    if ranges.len() > NAMED_RANGES {
        ranges.truncate(NAMED_RANGES);
        return format!("{} {name}{plural} of {count}, the first at {}", left_out.len(), ranges.join(", "));
    }
    let last = ranges.pop().unwrap_or_default();
    let list = if ranges.is_empty() { last } else { format!("{} and {last}", ranges.join(", ")) };
    format!("{name}{plural} {list} of {count}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(before: &[&[&str]], after: &[&[&str]]) -> Result<Extent, Unlike> {
        let pieces = |runs: &[&[&str]]| -> Vec<Vec<Piece>> {
            runs.iter().map(|run| run.iter().map(|text| Piece::of(text.as_bytes())).collect()).collect()
        };
        let all = [pieces(before), pieces(after)];
        let [before, after] = all
            .each_ref()
            .map(|runs| runs.iter().map(|run| run.iter().collect()).collect::<PiecesOfRuns<'_>>());
        judge([&before, &after])
    }

    fn without(words: &str) -> Result<Extent, Unlike> {
        Ok(Extent::Without(words.into()))
    }

    #[test]
    fn answers_that_repeat_are_compared_as_wholes_in_any_order() {
        assert_eq!(judged(&[&["1", "2"], &["2", "1"]], &[&["1", "2"], &["1", "2"]]), Ok(Extent::Whole));
        let found = judged(&[&["1", "2"], &["2", "1"]], &[&["1", "3"], &["1", "3"]]).unwrap_err();
        assert_eq!((found.how.as_str(), found.varies), ("offset 0: 32 against 33 (1 bytes)", false));
    }

    #[test]
    fn how_often_an_answer_occurs_counts_only_where_runs_of_one_variant_repeat_it() {
        let often = ["ok", "ok", "no"];
        let rare = ["ok", "no"];
        assert_eq!(judged(&[&often, &rare], &[&rare, &rare]), Ok(Extent::Whole));
        assert!(judged(&[&rare, &rare], &[&often, &often]).is_err());
    }

    #[test]
    fn an_id_is_left_out_by_its_place_and_the_bytes_next_to_it_are_compared() {
        let before: [&[&str]; 2] = [&["id 5a10 v 7\n"], &["id 5b33 v 7\n"]];
        assert_eq!(judged(&before, &[&["id 5c20 v 7\n"], &["id 5099 v 7\n"]]), without("bytes 3 to 6 of 12"));
        let found = judged(&before, &[&["id 5c20 v 8\n"], &["id 5099 v 8\n"]]).unwrap_err();
        assert_eq!(found.how, "offset 10: 37 0a against 38 0a (12 bytes)");
        assert!(found.varies);
    }

    #[test]
    fn answers_of_other_lengths_are_compared_by_words_or_lines() {
        let before: [&[&str]; 2] = [&["n 9 v 7"], &["n 10 v 7"]];
        assert_eq!(judged(&before, &[&["n 11 v 7"], &["n 120 v 7"]]), without("word 3 of 7"));
        let found = judged(&before, &[&["n 11 v 8"], &["n 120 v 8"]]).unwrap_err();
        assert_eq!(found.how, "word 7: `7` against `8`");
        let before: [&[&str]; 2] = [&["a\nx\nb\n"], &["a\nx y z\nb\n"]];
        assert_eq!(judged(&before, &before), without("line 2 of 3"));
    }

    #[test]
    fn answers_without_anything_in_common_are_not_compared() {
        assert_eq!(judged(&[&["1"], &["2 3"]], &[&["4"], &["5"]]), Ok(Extent::Nothing));
        assert_eq!(judged(&[&["17"], &["29"]], &[&["17"], &["17"]]), Ok(Extent::Nothing));
    }
}
