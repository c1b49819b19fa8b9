//! The first screen.

use super::parts::{
    self, ONE_THREAD, SAMPLES, Shape, coverage_line, function_name, no_names, no_registers, notes, rows,
    unnamed_line,
};
use lineup_explain::Explanation;
use lineup_explain::explanation::{LineUse, RegionExplanation, SharedLine};
use lineup_explain::quantiles::Quantiles;
use lineup_model::figure::counted;
use lineup_report::text::{Align, Table, TextStyle};
use lineup_report::visible::{self, one_line};
use std::collections::BTreeMap;

/// Lines of the first screen.
const SCREEN: usize = 40;

/// Characters of a row before the names.
const FIGURES: usize = 43;

/// A type's name is not cut to less.
const LEAST_NAME: usize = 12;

/// More regions than this get a row each.
const MAX_REGIONS: usize = 3;

/// Functions with unnamed accesses that are shown per region.
const MAX_UNNAMED: usize = 2;

/// Lines passed between threads that are shown.
const MAX_SHARED: usize = 3;

pub(crate) fn lines(explanation: &Explanation, shape: Shape) -> Vec<String> {
    let mut threads = threads(explanation);
    threads.extend((!explanation.tells.whole_calls).then(|| SAMPLES.to_owned()));
    threads.extend(no_registers(explanation));
    let end = "All of it: --full. One region: --region NAME.".to_owned();
    let first = no_names(explanation);
    let room = SCREEN.saturating_sub(threads.len() + 1 + usize::from(first.is_some()));
    let mut out = match explanation.regions.len() > MAX_REGIONS {
        true => overview(explanation, room),
        false => regions(explanation, room, shape),
    };
    out.truncate(room);
    out.extend(threads);
    out.push(end);
    first.into_iter().chain(out).map(|line| shortened(line, shape.columns)).collect()
}

/// A line cut to the width of the terminal, so that no word continues in the next line.
fn shortened(line: String, columns: Option<usize>) -> String {
    let Some(columns) = columns.filter(|columns| line.chars().count() > *columns) else { return line };
    line.chars().take(columns.saturating_sub(1)).chain(['…']).collect()
}

/// A row for each of many regions.
fn overview(explanation: &Explanation, room: usize) -> Vec<String> {
    let mut table = Table::new([
        ("calls", Align::Right),
        ("named", Align::Right),
        ("data lines", Align::Right),
        ("code lines", Align::Right),
        ("region", Align::Left),
    ]);
    let mut regions: Vec<&RegionExplanation> = explanation.regions.iter().collect();
    regions.sort_by_key(|region| std::cmp::Reverse(region.calls));
    let shown = room.saturating_sub(3).min(regions.len());
    for region in regions.iter().take(shown) {
        let of_size = region.lines.iter().find(|lines| lines.line_bytes == explanation.line_bytes);
        let median = |quantiles: Option<Quantiles>| {
            quantiles.map_or("not observed".to_owned(), |quantiles| quantiles.median.to_string())
        };
        table.row([
            region.calls.to_string(),
            parts::percent(region.coverage.named),
            median(of_size.and_then(|lines| lines.data)),
            median(of_size.and_then(|lines| lines.code)),
            function_name(&region.name),
        ]);
    }
    let bytes = explanation.line_bytes;
    let mut out =
        vec![format!("{} regions; lines of {bytes} bytes that the median call needs", regions.len())];
    out.extend(table.render(TextStyle::Plain).lines().map(|line| format!("  {line}")));
    if shown < regions.len() {
        out.push(format!("  and {} more with fewer calls", regions.len() - shown));
    }
    out
}

fn regions(explanation: &Explanation, room: usize, shape: Shape) -> Vec<String> {
    let heads: Vec<Vec<String>> =
        explanation.regions.iter().map(|region| head(region, explanation.line_bytes)).collect();
    // Each region also has two lines over its table, one for the rows that are left out, and an empty one.
    let taken: usize = heads.iter().map(|head| head.len() + 4).sum();
    let share = room.saturating_sub(taken) / heads.len().max(1);
    let mut out = Vec::new();
    for (head, region) in heads.into_iter().zip(&explanation.regions) {
        out.extend(head);
        let most = shape.top.unwrap_or(share).max(1);
        out.extend(map(&region.map, explanation.line_bytes, most, name_characters(shape.columns)));
        out.push(String::new());
    }
    out
}

fn head(region: &RegionExplanation, line_bytes: u64) -> Vec<String> {
    let mut out =
        vec![format!("{}: {} explained", function_name(&region.name), counted(region.calls, "call"))];
    out.extend(notes(region));
    out.push(coverage_line(&region.coverage));
    out.extend(region.unnamed.iter().take(MAX_UNNAMED).map(unnamed_line));
    for of_size in region.lines.iter().filter(|lines| lines.line_bytes == line_bytes) {
        for (what, quantiles) in [("data", &of_size.data), ("code", &of_size.code)] {
            let Some(Quantiles { min, median, p99, max, mean }) = quantiles else { continue };
            out.push(format!(
                "  {what} lines a call: median {median}, from {min} to {max}, 99 % at most {p99}, mean {mean:.2}"
            ));
        }
    }
    for misses in &region.misses {
        let (misses_per_call, pressure) = (misses.misses_per_call, misses.pressure_bytes);
        let cache = &misses.cache;
        out.push(format!(
            "  {cache}: {misses_per_call:.2} misses a call after {pressure} bytes of other data"
        ));
    }
    out
}

/// Lines with the same accesses: those of an array, or of objects at several places in their lines.
struct Group {
    place: String,
    names: String,
    lines: u64,
    needed: f64,
    loads: f64,
    stores: f64,
    bytes_used: f64,
}

fn groups(map: &[LineUse], name_characters: usize) -> Vec<Group> {
    let mut places: BTreeMap<(String, String), usize> = BTreeMap::new();
    let mut groups: Vec<Group> = Vec::new();
    for line in map {
        let names = rows(&line.parts).iter().map(|row| row.label()).collect::<Vec<_>>().join(", ");
        let is_array = line.parts.iter().all(|part| part.name.contains("[]"));
        let place = match &line.type_name {
            Some(name) if is_array => visible::shortened(name, name_characters),
            Some(name) => format!("{} line {}", visible::shortened(name, name_characters), line.line),
            None => "variables".to_owned(),
        };
        let index = *places.entry((place.clone(), names.clone())).or_insert(groups.len());
        if index == groups.len() {
            let (lines, needed, loads, stores, bytes_used) = (0, 0.0, 0.0, 0.0, 0.0);
            groups.push(Group { place, names, lines, needed, loads, stores, bytes_used });
        }
        let Some(group) = groups.get_mut(index) else { continue };
        group.lines += 1;
        group.needed += line.needed_per_call;
        group.loads += line.loads_per_call;
        group.stores += line.stores_per_call;
        group.bytes_used += line.bytes_used * line.needed_per_call;
    }
    groups.sort_by(|a, b| b.needed.total_cmp(&a.needed));
    groups
}

/// Characters for the name of a type: half of the line's rest after the figures, so that members are visible too.
fn name_characters(columns: Option<usize>) -> usize {
    columns.map_or(usize::MAX, |columns| (columns.saturating_sub(FIGURES) / 2).max(LEAST_NAME))
}

fn map(map: &[LineUse], line_bytes: u64, most: usize, name_characters: usize) -> Vec<String> {
    let groups = groups(map, name_characters);
    let shown = most.min(groups.len());
    let mut table = Table::new([
        ("needed", Align::Right),
        ("loads", Align::Right),
        ("stores", Align::Right),
        ("bytes used", Align::Right),
        ("lines", Align::Right),
        ("touched data", Align::Left),
    ]);
    for group in groups.iter().take(shown) {
        table.row([
            format!("{:.2}", group.needed),
            format!("{:.2}", group.loads),
            format!("{:.2}", group.stores),
            format!("{:.1}", group.bytes_used / group.needed.max(f64::MIN_POSITIVE)),
            group.lines.to_string(),
            format!("{}: {}", group.place, group.names),
        ]);
    }
    let mut out =
        vec![format!("  lines of {line_bytes} bytes, with their uses per call ({} in all)", map.len())];
    out.extend(table.render(TextStyle::Plain).lines().map(|line| format!("  {line}")));
    if shown < groups.len() {
        out.push(format!("  and {} rows more", groups.len() - shown));
    }
    out
}

/// The lines that pass between threads, in short.
fn threads(explanation: &Explanation) -> Vec<String> {
    if explanation.threads < 2 {
        return vec![ONE_THREAD.to_owned()];
    }
    let all = &explanation.shared_lines;
    let mut out = vec![format!("{} lines pass between {} threads", all.len(), explanation.threads)];
    out.extend(all.iter().take(MAX_SHARED).map(|line: &SharedLine| {
        let (same, alone) = (line.true_handovers, line.false_handovers);
        format!(
            "  {same} times the same bytes, {alone} times the line alone: {}",
            one_line(&line.parts.join(", "))
        )
    }));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use lineup_explain::explanation::{Coverage, PartUse, Tells};
    use lineup_explain::threads::Of;

    fn region(lines: u64) -> RegionExplanation {
        RegionExplanation {
            id: lineup_model::region::RegionId(0),
            name: "_ZN3app3runEi".to_owned(),
            weight: 1.0,
            calls: 5,
            unfinished: 1,
            abandoned: 1,
            missed_blocks: 1,
            calls_per_second: Some(2.0),
            instructions: None,
            lines: Vec::new(),
            coverage: Coverage::default(),
            unnamed: Vec::new(),
            map: (0..lines).map(|number| line(Some("T"), number, &["a"])).collect(),
            code: Vec::new(),
            misses: Vec::new(),
            folded_patterns: 1,
        }
    }

    #[test]
    fn the_first_screen_has_forty_lines_at_most_however_much_there_is() {
        for (regions, threads) in [(1, 1), (3, 1), (3, 4), (200, 1), (200, 2)] {
            let explanation = Explanation {
                between: None,
                schema: "lineup.explain/1",
                tells: Tells {
                    whole_calls: true,
                    values: true,
                    memory: true,
                    registers: true,
                    of: Of::Threads,
                },
                line_bytes: 64,
                coverage: Coverage::default(),
                regions: (0..regions).map(|_| region(100)).collect(),
                shared_lines: Vec::new(),
                threads,
                usage: Vec::new(),
            };
            let shape = Shape { is_full: false, top: None, columns: Some(80) };
            let shown = lines(&explanation, shape);
            assert!(shown.len() <= SCREEN, "{regions} regions: {} lines", shown.len());
            assert!(shown.iter().any(|line| line.contains("app::run(int)")) && shown.len() > 20, "{shown:?}");
            assert!(shown.iter().all(|line| line.chars().count() <= 80), "{shown:?}");
            assert_eq!(shown.iter().any(|line| line.starts_with("One thread")), threads == 1);
        }
    }

    /// A word that is longer than a line stays whole.
    #[test]
    fn in_full_no_line_is_longer_than_the_terminal_but_for_a_long_word() {
        let mut region = region(3);
        let long = "market::book::a_very_long_structure_name_for_an_order_in_the_book<long>".repeat(2);
        region.map.push(line(Some(&long), 0, &["one_member_of_it"; 20]));
        let explanation = Explanation {
            between: None,
            schema: "lineup.explain/1",
            tells: Tells { whole_calls: false, values: true, memory: true, registers: true, of: Of::Threads },
            line_bytes: 64,
            coverage: Coverage::default(),
            regions: vec![region],
            shared_lines: Vec::new(),
            threads: 1,
            usage: Vec::new(),
        };
        let text =
            super::super::view::text(&explanation, Shape { is_full: true, top: None, columns: Some(80) });
        let fits = |line: &str| line.chars().count() <= 80 || line.contains(&long);
        assert!(text.lines().all(fits), "{text}");
        let plain = super::super::view::text(&explanation, Shape { is_full: true, top: None, columns: None });
        assert!(plain.split_whitespace().eq(text.split_whitespace()), "{text}");
        assert!(plain.lines().count() < text.lines().count(), "{plain}");
    }

    fn line(type_name: Option<&str>, number: u64, names: &[&str]) -> LineUse {
        let part = |(index, name): (usize, &&str)| PartUse {
            name: (*name).to_owned(),
            offset: index as u64 * 4,
            size_bytes: 4,
            loads_per_call: 1.0,
            stores_per_call: 0.0,
        };
        LineUse {
            type_name: type_name.map(str::to_owned),
            base_in_line: type_name.map(|_| 0),
            line: number,
            needed_per_call: 1.0,
            loads_per_call: 1.0,
            stores_per_call: 0.0,
            bytes_used: 4.0,
            parts: names.iter().enumerate().map(part).collect(),
            cold: Vec::new(),
            is_shared: false,
        }
    }

    #[test]
    fn lines_of_one_array_are_one_row() {
        let mut all: Vec<LineUse> =
            (0..64).map(|number| line(Some("table"), number, &["slots[]"; 16])).collect();
        all.push(line(Some("table"), 64, &["count"]));
        let found: Vec<(u64, String, String)> =
            groups(&all, 80).into_iter().map(|group| (group.lines, group.place, group.names)).collect();
        let expected = [(64, "table", "slots[] (16 elements)"), (1, "table line 64", "count")];
        assert_eq!(found, expected.map(|(lines, place, names)| (lines, place.to_owned(), names.to_owned())));
    }

    #[test]
    fn beside_a_long_name_the_members_are_still_seen() {
        let name = "market::book::a_very_long_structure_name_for_an_order_in_the_book<long>";
        let all = [line(Some(name), 0, &["price"])];
        let columns = 80;
        let shown = map(&all, 64, 1, name_characters(Some(columns)));
        let row = shown.last().expect("a row");
        assert!(row.contains("market::book") && row.ends_with("line 0: price"), "{row}");
        assert!(row.chars().count() <= columns, "{row}");
    }

    #[test]
    fn a_line_is_cut_at_the_terminals_edge() {
        assert_eq!(shortened("a line of words".into(), Some(9)), "a line o…");
        assert_eq!(shortened("a line".into(), Some(9)), "a line");
        assert_eq!(shortened("a line of words".into(), None), "a line of words");
    }
}
