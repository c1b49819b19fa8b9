//! The comparison of connections: each answer under what the client asked.
//!
//! Nothing is known about a protocol. Where all runs have the same clients, an answer belongs to its place in a
//! connection that got these bytes. Where a client spreads its requests over connections as it likes, an answer belongs
//! to its request, and where it asks other things in each run, to the request without its numbers.

use super::connections::{Connection, Piece, StreamTotal};
use super::difference::{EffectDifference, NotCompared};
use super::positions::{Extent, PiecesOfRuns, Unlike, judge, words};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};

/// The extent of a comparison of connections.
#[derive(Default)]
pub(super) struct Agreed {
    pub(super) compared: Vec<String>,
    pub(super) not_compared: Vec<NotCompared>,
}

/// The connections of each run of one variant.
type Runs<'c> = Vec<&'c [Connection]>;

/// Counts may differ between the variants by this many times the largest difference between two runs of one variant.
const TIMES_THE_SPREAD: u64 = 3;

/// The most exchanges of a run that are compared place by place.
const MOST_PLACES: usize = 1 << 17;

/// Compares the connections of two variants.
///
/// # Errors
/// The first difference.
pub(super) fn agree(variants: [Runs<'_>; 2]) -> Result<Agreed, EffectDifference> {
    let all = || variants.iter().flatten().copied();
    let mut agreed = Agreed::default();
    if all().all(<[Connection]>::is_empty) {
        return Ok(agreed);
    }
    let spread = spread_of(&sizes(&variants)).map_err(|unlike| named("number of connections", unlike))?;
    if spread > 0 {
        agreed.leave_out("number of connections", may_differ(spread));
    }
    let is_small = |run: &[Connection]| {
        let exchanges: usize = run.iter().map(|connection| connection.exchanges.len()).sum();
        exchanges <= MOST_PLACES && run.iter().all(|connection| connection.further == 0)
    };
    let is_by_place = all().all(is_small) && has_same(all(), asked_in_exchanges);
    let is_by_stream = !is_by_place && has_same(all(), |connection| connection.received);
    let streams: Option<[Vec<Vec<Piece>>; 2]> = is_by_stream
        .then(|| variants.each_ref().map(|runs| runs.iter().map(|run| answers_of(run)).collect()));
    if !is_by_stream && all().flatten().any(|connection| connection.further > 0) {
        agreed.leave_out("exchanges on connections", "those beyond the first million of a run".into());
    }
    let (groups, keyed) = match &streams {
        Some(streams) => (by_stream(&variants, streams), "by all that each client sent"),
        None if is_by_place => (by_exchange(&variants), "each by its place in what a client asked"),
        None => (by_request(&variants), "by request, on any connection"),
    };
    agreed.compare(
        &groups,
        keyed,
        variants.first().and_then(|runs| runs.first()).map_or(0, |run| run.len()),
    )?;
    let settings = Group {
        label: String::new(),
        runs: variants
            .map(|runs| runs.into_iter().map(|run| run.iter().map(|one| &*one.settings).collect()).collect()),
    };
    agreed.take_in("other calls on connections", settings.judged())?;
    Ok(agreed)
}

impl Agreed {
    fn leave_out(&mut self, effect: &str, share: String) {
        self.not_compared.push(NotCompared { effect: effect.to_owned(), share });
    }

    fn take_in(&mut self, effect: &str, found: Result<Extent, Unlike>) -> Result<(), EffectDifference> {
        match found.map_err(|unlike| named(effect, unlike))? {
            Extent::Whole => self.compared.push(effect.to_owned()),
            Extent::Without(share) => {
                self.compared.push(effect.to_owned());
                self.leave_out(effect, share);
            }
            Extent::Nothing => self.leave_out(effect, "all of it".into()),
        }
        Ok(())
    }

    fn compare(
        &mut self,
        groups: &BTreeMap<GroupKey, Group<'_>>,
        keyed: &str,
        connections: usize,
    ) -> Result<(), EffectDifference> {
        let (mut compared, mut rare, mut all, mut largest_spread) = (0, 0, 0, 0);
        // By the part that is left out: the requests, and one of them.
        let mut left_out: BTreeMap<String, (u64, &str)> = BTreeMap::new();
        for group in groups.values() {
            let in_first = group.runs[0].first().map_or(0, Vec::len) as u64;
            all += in_first;
            match group.presence() {
                Presence::Always => {}
                Presence::Sometimes => {
                    rare += 1;
                    continue;
                }
                Presence::OneVariant => {
                    let how = "only one variant gets such a request".to_owned();
                    return Err(named(&format!("request {}", group.label), Unlike { how, varies: rare > 0 }));
                }
            }
            let effect = format!("answers to {}", group.label);
            let spread = spread_of(&sizes(&group.runs))
                .map_err(|unlike| named(&format!("number of {effect}"), unlike))?;
            largest_spread = largest_spread.max(spread);
            match group.judged().map_err(|unlike| named(&effect, unlike))? {
                Extent::Whole => compared += in_first,
                Extent::Without(share) => {
                    compared += in_first;
                    left_out.entry(share).or_insert((0, &group.label)).0 += 1;
                }
                Extent::Nothing => left_out.entry("all of it".into()).or_insert((0, &group.label)).0 += 1,
            }
        }
        self.compared.push(format!("{compared} of {all} answers on {connections} connections, {keyed}"));
        for (share, (requests, example)) in left_out {
            let more =
                if requests > 1 { format!(" and {} more requests", requests - 1) } else { String::new() };
            self.leave_out(&format!("answers to {example}{more}"), share);
        }
        if rare > 0 {
            self.leave_out("answers to requests that only some runs get", format!("{rare} such requests"));
        }
        if largest_spread > 0 {
            self.leave_out("numbers of requests of each kind", may_differ(largest_spread));
        }
        Ok(())
    }
}

fn named(effect: &str, unlike: Unlike) -> EffectDifference {
    EffectDifference { effect: effect.to_owned(), how: unlike.how, varies: unlike.varies }
}

fn may_differ(spread: u64) -> String {
    format!(
        "{spread} apart between two runs of one variant, so up to {} count as equal",
        TIMES_THE_SPREAD * spread
    )
}

/// The number of things in each run of both variants.
fn sizes<T>(variants: &[Vec<impl AsRef<[T]>>; 2]) -> [Vec<u64>; 2] {
    variants.each_ref().map(|runs| runs.iter().map(|run| run.as_ref().len() as u64).collect())
}

/// The largest difference between two runs of one variant.
///
/// # Errors
/// When the variants differ by more than that allows.
fn spread_of(counts: &[Vec<u64>; 2]) -> Result<u64, Unlike> {
    let [before, after] = counts.each_ref().map(|runs| {
        let (least, most) = (runs.iter().min().copied(), runs.iter().max().copied());
        (least.unwrap_or(0), most.unwrap_or(0))
    });
    let spread = (before.1 - before.0).max(after.1 - after.0);
    let apart = before.0.saturating_sub(after.1).max(after.0.saturating_sub(before.1));
    match apart > TIMES_THE_SPREAD * spread {
        true => {
            let how =
                format!("{} to {} before the change, {} to {} after", before.0, before.1, after.0, after.1);
            let how = if spread == 0 { format!("{} against {}", before.0, after.0) } else { how };
            Err(Unlike { how, varies: spread > 0 })
        }
        false => Ok(spread),
    }
}

/// The answers to one request, by run.
struct Group<'p> {
    label: String,
    runs: [PiecesOfRuns<'p>; 2],
}

enum Presence {
    Always,
    Sometimes,
    OneVariant,
}

impl<'p> Group<'p> {
    fn new(variants: &[Runs<'_>; 2], label: String) -> Self {
        Group { label, runs: variants.each_ref().map(|runs| vec![Vec::new(); runs.len()]) }
    }

    fn presence(&self) -> Presence {
        let all = self.runs.each_ref().map(|runs| runs.iter().all(|run| !run.is_empty()));
        let none = self.runs.each_ref().map(|runs| runs.iter().all(Vec::is_empty));
        match (all, none) {
            ([true, true], _) => Presence::Always,
            ([true, false], [_, true]) | ([false, true], [true, _]) => Presence::OneVariant,
            _ => Presence::Sometimes,
        }
    }

    fn judged(&self) -> Result<Extent, Unlike> {
        let [before, after] = &self.runs;
        judge([before, after])
    }
}

/// A fingerprint of what was asked, and the place of the exchange in a connection.
type GroupKey = ([u8; 32], usize);

type Groups<'p> = BTreeMap<GroupKey, Group<'p>>;

/// True when all runs have the same connections by this property, in any order.
fn has_same<'c, T: Ord>(
    mut runs: impl Iterator<Item = &'c [Connection]>,
    property: impl Fn(&'c Connection) -> T,
) -> bool {
    let mut sorted = |run: &'c [Connection]| {
        let mut values: Vec<T> = run.iter().map(&property).collect();
        values.sort();
        values
    };
    let Some(first) = runs.next().map(&mut sorted) else { return true };
    runs.all(|run| sorted(run) == first)
}

/// All requests of a connection, in the exchanges in which they came.
fn asked_in_exchanges(connection: &Connection) -> [u8; 32] {
    let mut all = Sha256::new();
    connection.exchanges.iter().for_each(|exchange| all.update(exchange.request.fingerprint));
    all.update(connection.further.to_le_bytes());
    all.finalize().into()
}

/// Hands over every connection with the positions of its variant and run.
fn each<'c>(variants: &[Runs<'c>; 2], mut take: impl FnMut(usize, usize, &'c Connection)) {
    for (variant, runs) in variants.iter().enumerate() {
        for (run, connections) in runs.iter().enumerate() {
            connections.iter().for_each(|connection| take(variant, run, connection));
        }
    }
}

fn by_exchange<'c>(variants: &[Runs<'c>; 2]) -> Groups<'c> {
    let mut groups = Groups::new();
    each(variants, |variant, run, connection| {
        let asked = asked_in_exchanges(connection);
        for (place, exchange) in connection.exchanges.iter().enumerate() {
            let new = || Group::new(variants, shown_request(&exchange.request));
            let group = groups.entry((asked, place)).or_insert_with(new);
            group.runs[variant][run].push(&exchange.answer);
        }
    });
    groups
}

/// All that each connection of a run was sent.
fn answers_of(run: &[Connection]) -> Vec<Piece> {
    let stream = |connection: &Connection| {
        let answers = || connection.exchanges.iter().map(|exchange| &exchange.answer);
        let is_whole = connection.further == 0 && answers().all(|answer| answer.is_whole());
        let StreamTotal { size_bytes, fingerprint } = connection.sent;
        let bytes = answers().flat_map(|answer| &answer.bytes).copied();
        Piece { bytes: if is_whole { bytes.collect() } else { Vec::new() }, size_bytes, fingerprint }
    };
    run.iter().map(stream).collect()
}

fn by_stream<'p>(variants: &[Runs<'_>; 2], streams: &'p [Vec<Vec<Piece>>; 2]) -> Groups<'p> {
    let mut groups = Groups::new();
    for (variant, runs) in variants.iter().enumerate() {
        for (run, connections) in runs.iter().enumerate() {
            for (connection, stream) in connections.iter().zip(&streams[variant][run]) {
                let first = connection.exchanges.first().map(|exchange| shown_request(&exchange.request));
                let new = || Group::new(variants, first.unwrap_or_default() + " and what followed");
                let group = groups.entry((connection.received.fingerprint, 0)).or_insert_with(new);
                group.runs[variant][run].push(stream);
            }
        }
    }
    groups
}

fn by_request<'c>(variants: &[Runs<'c>; 2]) -> Groups<'c> {
    let varying = varying_shapes(variants);
    let mut groups = Groups::new();
    each(variants, |variant, run, connection| {
        for exchange in &connection.exchanges {
            let shape = shape(&exchange.request);
            let key = match varying.contains(&shape) {
                true => (hashed(&shape), 1),
                false => (exchange.request.fingerprint, 0),
            };
            let label = || match key.1 {
                1 => format!("requests of the form {}", shown(&shape)),
                _ => shown_request(&exchange.request),
            };
            let group = groups.entry(key).or_insert_with(|| Group::new(variants, label()));
            group.runs[variant][run].push(&exchange.answer);
        }
    });
    groups
}

/// The forms of requests of which two runs of one variant have other ones.
fn varying_shapes(variants: &[Runs<'_>; 2]) -> BTreeSet<Vec<u8>> {
    let mut seen: BTreeMap<[u8; 32], (&Piece, [BTreeSet<usize>; 2])> = BTreeMap::new();
    each(variants, |variant, run, connection| {
        for request in connection.exchanges.iter().map(|exchange| &*exchange.request) {
            let (_, runs) = seen.entry(request.fingerprint).or_insert((request, Default::default()));
            runs[variant].insert(run);
        }
    });
    let differs = |(_, runs): &&(&Piece, [BTreeSet<usize>; 2])| {
        runs.iter().zip(variants).any(|(seen, runs)| !seen.is_empty() && seen.len() < runs.len())
    };
    seen.values().filter(differs).map(|(request, _)| shape(request)).collect()
}

/// A request without its numbers: each word with a digit in it counts as the same.
fn shape(request: &Piece) -> Vec<u8> {
    if !request.is_whole() {
        return b"more than is kept".to_vec();
    }
    let words = words(&request.bytes);
    let words = words.map(|word| if word.iter().any(u8::is_ascii_digit) { b"#" } else { word });
    words.flatten().copied().collect()
}

fn hashed(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// The most characters of a request that are shown.
const SHOWN_CHARACTERS: usize = 48;

fn shown(bytes: &[u8]) -> String {
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    // The first line of some protocols only says how long the next ones are.
    let text = if line.len() < 4 { bytes } else { line };
    let text = text.escape_ascii().to_string();
    let short: String = text.chars().take(SHOWN_CHARACTERS).collect();
    format!("`{short}{}`", if short.len() < text.len() { "…" } else { "" })
}

fn shown_request(request: &Piece) -> String {
    match request.size_bytes {
        0 => "a new connection".to_owned(),
        _ => shown(&request.bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_differ_by_more_than_runs_of_one_variant_do_are_a_difference() {
        assert_eq!(spread_of(&[vec![100, 100], vec![100, 100]]), Ok(0));
        assert_eq!(spread_of(&[vec![100, 104], vec![110, 112]]), Ok(4));
        let found = spread_of(&[vec![100, 100], vec![99, 99]]).unwrap_err();
        assert_eq!((found.how.as_str(), found.varies), ("100 against 99", false));
        let found = spread_of(&[vec![100, 102], vec![110, 111]]).unwrap_err();
        assert_eq!(found.how, "100 to 102 before the change, 110 to 111 after");
    }

    #[test]
    fn a_requests_form_has_no_numbers() {
        assert_eq!(shape(&Piece::of(b"SET key:0012 v\r\n")), b"SET key:# v\r\n");
        assert_eq!(shown(b"GET /x HTTP/1.1\r\nHost: a\r\n"), "`GET /x HTTP/1.1`");
        assert_eq!(shown(b"*1\r\n$4\r\nPING\r\n"), "`*1\\r\\n$4\\r\\nPING\\r\\n`");
    }
}
