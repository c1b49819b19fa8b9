//! The most important facts on one screen: the verdict, the comparison, the needs of the regions before and after, the
//! patch in short, and the next commands.

use super::screen::SCREEN_LINES;
use super::study::{Writer, note_text};
use super::{Align, Table};
use crate::study::{CYCLES, SOURCES, WEIGHTS};
use crate::study::{
    CallTime, Footprint, LineKind, Patch, Proposal, ProposalStatus, Refusal, RegionReport, StudyReport,
    region_letter,
};
use crate::visible::{one_line, shortened};
use lineup_model::figure::{
    NO_ESTIMATE, UNKNOWN, change, estimated, factor, is_estimate, mean, mean_or_unknown, share, whole,
};
use lineup_model::first_names;
use lineup_prove::links::OF_ONE_LINK;

/// Regions, proposals and other things that are listed before the rest is counted.
const MOST_REGIONS: usize = 4;
const MOST_PROPOSALS: usize = 2;
const MOST_TIMED: usize = 2;
const MOST_NAMES: usize = 2;
/// With a smaller share of named accesses, nothing is said of the types that calls use.
const LEAST_NAMED: f64 = 0.5;
/// Types whose reasons are shown in one list, and further ones that are named.
const MOST_REASONS: usize = 6;
const MOST_NAMED: usize = 4;

/// The most sentences on side effects, and their length in characters.
const MOST_EFFECTS: usize = 2;
const EFFECT_CHARACTERS: usize = 150;

/// Longest reason, on a terminal and elsewhere.
const REASON_CHARACTERS: usize = 200;
const PLAIN_CHARACTERS: usize = 500;

/// Longest name.
const NAME_CHARACTERS: usize = 40;

/// Longest name in a list of names.
const LISTED_CHARACTERS: usize = 22;
/// Characters shown of a sentence that stands in a list.
const SENTENCE_CHARACTERS: usize = 44;

/// Candidates of a lever and refusals that are shown.
const MOST_DETAILS: usize = 6;

/// Stands for a blank at which a name is not broken.
const UNBROKEN: &str = "\u{a0}";

/// A function's name without its parameters: `a::f` of `a::f(int (*)(long)) const`.
fn without_parameters(name: &str) -> &str {
    let mut depth = 0_usize;
    for (at, character) in name.char_indices().rev() {
        match character {
            ')' => depth += 1,
            '(' if depth == 1 => return name.get(..at).filter(|name| !name.is_empty()).unwrap_or(name),
            '(' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    name
}

impl Writer {
    pub(super) fn first_screen(&mut self, report: &StudyReport) {
        self.line(&format!("Study of {}", shortened(&report.title, 60)));
        self.levers(report);
        match (&report.proof, &report.not_proven) {
            (Some(proof), not_proven) => {
                self.proof(proof);
                self.call_times_in_short(report);
                self.contention_in_short(report);
                if let Some(reason) = not_proven {
                    self.line(&format!("Not proven: {}.", one_line(reason)));
                }
            }
            (None, Some(reason)) => self.line(&format!("Not proven: {}.", one_line(reason))),
            // Levers that were compared stand above.
            (None, None) if !report.levers.is_empty() => {
                self.line("No two layouts were compared: what follows is of the layout alone.");
            }
            (None, None) => self.line("No two variants were compared: nothing here is proven."),
        }
        for (name, title) in [(SOURCES, "Sources"), (WEIGHTS, "Weights")] {
            for fact in report.setting.iter().filter(|fact| fact.name == name) {
                self.line(&format!("{title} {}", shortened(&fact.value, 100)));
            }
        }
        if let Some(certificate) = &report.certificate {
            self.line(&format!("Certificate: {}.", shortened(&certificate.sentence(), PLAIN_CHARACTERS)));
        }
        match &report.code {
            Some(code) => self.code(code),
            None => self.changes(report),
        }
        if let Some(guest) = &report.guest {
            self.guest(guest);
        }
        if report.code.is_none() {
            self.patch_in_short(report);
        }
        self.seen(report);
        self.next(report);
    }

    /// The answer, a row for each lever, and the ways to use those that gain.
    pub(super) fn levers(&mut self, report: &StudyReport) {
        let Some(answer) = report.answer() else { return };
        self.line(&answer);
        let mut table = Table::new([("lever", Align::Left), ("time", Align::Right), ("result", Align::Left)]);
        for lever in &report.levers {
            let time = lever.time_in_words();
            // The time has a column of its own.
            let result = shortened(&lever.result.replacen(&format!(": {time}"), "", 1), PLAIN_CHARACTERS);
            table.row([lever.lever.replace(' ', UNBROKEN), time, result]);
        }
        self.table_with(&table, |text| text.replace(UNBROKEN, " "));
        let gains = report.levers.iter().filter(|lever| lever.is_gain);
        for action in gains.filter_map(|lever| lever.actions.first()) {
            self.unbroken(&format!("  {}    # {}", one_line(&action.text), one_line(&action.purpose)));
        }
        for lever in report.levers.iter().filter(|lever| !lever.details.is_empty()) {
            for detail in lever.details.iter().take(MOST_DETAILS) {
                self.line(&format!("- {}", shortened(&one_line(detail), PLAIN_CHARACTERS)));
            }
            if let more @ 1.. = lever.details.len().saturating_sub(MOST_DETAILS) {
                self.line(&format!("- {more} more on {} in the page and in the JSON", lever.lever));
            }
        }
        for fact in report.setting.iter().filter(|fact| fact.name == CYCLES) {
            self.line(&format!("Of the modelled cycles {}.", one_line(&fact.value)));
        }
    }

    /// The line size that decides, a row for each region.
    fn changes(&mut self, report: &StudyReport) {
        if report.regions.is_empty() {
            return;
        }
        self.heading(&format!("Data lines of {} bytes per call", report.line_bytes));
        let footprints = || report.regions.iter().flat_map(|region| &region.footprints);
        let has_after = footprints().any(|one| one.after.is_some());
        let has_misses = report.regions.iter().any(|region| !region.misses.is_empty());
        let mut columns = vec![("region", Align::Left), ("lines", Align::Right)];
        columns.extend(has_after.then_some(("change", Align::Right)));
        columns.extend(has_misses.then_some(("modelled misses", Align::Right)));
        columns.push(("calls/s", Align::Right));
        let mut table = Table::new(columns);
        for (index, region) in report.regions.iter().enumerate().take(MOST_REGIONS) {
            let name = format!(
                "{} {}",
                region_letter(index),
                shortened(without_parameters(&region.name), NAME_CHARACTERS)
            );
            let mut row = vec![name.replace(' ', UNBROKEN)];
            row.extend(lines(region, report.line_bytes, has_after));
            row.extend(has_misses.then(|| misses(region)));
            row.push(mean_or_unknown(region.calls_per_second));
            table.row(row);
        }
        self.table_with(&table, |text| text.replace(UNBROKEN, " "));
        let more = report.regions.len().saturating_sub(MOST_REGIONS);
        if more > 0 {
            self.line(&format!("and {more} more regions"));
        }
    }

    /// The change of the calls' times, in a sentence.
    fn call_times_in_short(&mut self, report: &StudyReport) {
        let timed = report.regions.iter().enumerate().filter_map(|(index, region)| {
            let all = &region.time.as_ref()?.all_calls;
            let figures = estimated(all.ratio, [all.ratio_low, all.ratio_high]);
            let verdict = match is_estimate(all.ratio_low, all.ratio_high) {
                true => format!(" {}", all.verdict.word()),
                false => String::new(),
            };
            Some(format!("{} {figures}{verdict}", region_letter(index)))
        });
        let timed: Vec<String> = timed.collect();
        let more = timed.len().saturating_sub(MOST_TIMED);
        let more = if more > 0 { format!("; and {more} more regions") } else { String::new() };
        if let Some(first) = timed.get(..MOST_TIMED.min(timed.len())).filter(|first| !first.is_empty()) {
            self.line(&format!("Time of calls, {OF_ONE_LINK}: {}{more}.", first.join("; ")));
        }
    }

    /// The speed-up of the first region's calls, by CPUs.
    fn contention_in_short(&mut self, report: &StudyReport) {
        let first = report.contention.as_ref().zip(report.regions.first());
        let Some((contention, region)) = first else { return };
        let points = contention.of_region(region.id);
        let what = match contention.of_whole_runs {
            true => "Whole runs".to_owned(),
            false => format!("Calls of {}", region_letter(0)),
        };
        let point = |(cpus, time): &(usize, &CallTime)| {
            let all = &time.all_calls;
            let (low, high) = (factor(1.0 / all.ratio_high), factor(1.0 / all.ratio_low));
            let cpus = if *cpus == 1 { "1 CPU".to_owned() } else { format!("{cpus} CPUs") };
            match is_estimate(all.ratio_low, all.ratio_high) {
                true => format!("{cpus} {} [{low}, {high}] {}", factor(1.0 / all.ratio), all.verdict.word()),
                false => format!("{cpus} {NO_ESTIMATE}"),
            }
        };
        let points: Vec<String> = points.iter().map(point).collect();
        if !points.is_empty() {
            self.line(&format!("{what}, times as fast as before, {OF_ONE_LINK}: {}.", points.join("; ")));
        }
    }

    fn patch_in_short(&mut self, report: &StudyReport) {
        let (made, told): (Vec<&Proposal>, Vec<&Proposal>) =
            report.proposals.iter().partition(|one| one.status == ProposalStatus::InPatch);
        match &report.patch {
            Some(patch) => self.heading(&format!("Patch: {}", extent(patch))),
            None => self.heading("No patch: nothing is changed"),
        }
        for proposal in made.iter().take(MOST_PROPOSALS) {
            let target = shortened(&proposal.target, NAME_CHARACTERS);
            self.line(&format!("- {} — {target}: {}", proposal.kind.words, in_short(report, proposal)));
        }
        let more = made.len().saturating_sub(MOST_PROPOSALS);
        if more > 0 {
            self.line(&format!("- and {more} more"));
        }
        // For a type that the patch changes, the parts that stay the same are listed.
        let is_made = |target: &str| made.iter().any(|one| one.target == target);
        let left = told.iter().map(|one| (&*one.target, left_to_do(one)));
        let refused = report.refusals.iter().map(|one| (&*one.target, why_refused(one)));
        let (of_made, told): (Vec<Reasoned<'_>>, Vec<Reasoned<'_>>) = left.partition(|one| is_made(one.0));
        let (refused_of_made, refused): (Vec<Reasoned<'_>>, Vec<Reasoned<'_>>) =
            refused.partition(|one| is_made(one.0));
        let lists = [
            ("Changed in part; the patch leaves unchanged", [of_made, refused_of_made].concat()),
            ("Not in the patch, for you to decide", told),
            ("Refused", refused),
        ];
        let lists: Vec<_> = lists.into_iter().filter(|(_, all)| !all.is_empty()).collect();
        let end = self.height_of_end(report);
        let names: usize = lists.iter().map(|(title, all)| self.height(&names_alone(title, all))).sum();
        let effects = self.effects(report, end + names);
        let mut below = end + names + effects.iter().map(|effect| self.height(effect)).sum::<usize>();
        if !made.is_empty() {
            self.measured(report, below);
        }
        for (title, all) in &lists {
            below = below.saturating_sub(self.height(&names_alone(title, all)));
            self.reasons(title, all, below);
        }
        if report.patch.is_none() && report.proposals.is_empty() && report.refusals.is_empty() {
            self.line(&nothing_to_change(report));
        }
        effects.iter().for_each(|effect| self.line(effect));
    }

    /// Side effects that fit on the screen above this many lines.
    fn effects(&self, report: &StudyReport, below: usize) -> Vec<String> {
        let mut room = self.room(below);
        let effects = report.side_effects.iter().take(MOST_EFFECTS);
        let fitting = effects.map(|effect| shortened(effect, EFFECT_CHARACTERS)).take_while(|effect| {
            let height = self.height(effect);
            let fits = height <= room;
            room = room.saturating_sub(height);
            fits
        });
        fitting.collect()
    }

    /// Lines of coverage and of the next commands.
    fn height_of_end(&self, report: &StudyReport) -> usize {
        let mut end = self.empty();
        end.seen(report);
        end.next(report);
        end.height_so_far()
    }

    /// The whole patch's effect on lines of data, where it was recorded and there is room above the lines below.
    fn measured(&mut self, report: &StudyReport, below: usize) {
        let regions = report.regions.iter().enumerate().take(MOST_TIMED);
        let measured = regions.filter_map(|(index, region)| {
            let decides = |one: &&Footprint| {
                one.kind == LineKind::Data && one.line_bytes == report.line_bytes && one.after.is_some()
            };
            region.footprints.iter().find(decides)?;
            let lines = lines(region, report.line_bytes, true).into_iter().next()?;
            Some(format!("{} {lines}", region_letter(index)))
        });
        let measured: Vec<String> = measured.collect();
        if !measured.is_empty() {
            let line = format!("  recorded with the whole patch, lines per call: {}", measured.join("; "));
            if self.height(&line) <= self.room(below) {
                self.line(&line);
            }
        }
    }

    /// Types with the reason why each stays the same, as far as there is room above the lines below; else their names.
    fn reasons(&mut self, title: &str, all: &[Reasoned<'_>], below: usize) {
        let characters = if self.is_plain() { PLAIN_CHARACTERS } else { REASON_CHARACTERS };
        let told = |(target, why): &Reasoned<'_>| {
            format!("- {}: {}", shortened(target, NAME_CHARACTERS), shortened(why, characters))
        };
        let room = self.room(below);
        let mut height = self.height(&format!("{title}:"));
        let mut fitting = 0;
        for (at, one) in all.iter().enumerate().take(MOST_REASONS) {
            height += self.height(&told(one));
            let rest = all
                .get(at + 1..)
                .filter(|more| !more.is_empty())
                .map_or(0, |more| self.height(&rest_of(more)));
            if height + rest <= room {
                fitting = at + 1;
            }
        }
        let (shown, more) = all.split_at(fitting);
        if shown.is_empty() {
            self.line(&names_alone(title, more));
            return;
        }
        self.line(&format!("{title}:"));
        shown.iter().for_each(|one| self.line(&told(one)));
        if !more.is_empty() {
            self.line(&rest_of(more));
        }
    }

    /// The number of lines that the first screen has left above this many.
    fn room(&self, below: usize) -> usize {
        SCREEN_LINES.saturating_sub(below + self.height_so_far())
    }

    fn seen(&mut self, report: &StudyReport) {
        self.line("");
        if let Some(named) = report.coverage.as_ref().and_then(|coverage| coverage.share) {
            self.line(&format!("{} of the data accesses are named.", share(named)));
        }
        if !report.not_observed.is_empty() {
            self.line(&format!(
                "Not observed: {}",
                sentences(report.not_observed.iter().map(|one| one.what.as_str()))
            ));
        }
    }

    /// The next commands, or the one that repeats the study.
    fn next(&mut self, report: &StudyReport) {
        let mut commands: Vec<_> = report.commands.iter().skip(1).take(2).collect();
        if commands.is_empty() {
            commands.extend(report.commands.first());
        }
        if !commands.is_empty() {
            self.heading("Next");
        }
        for command in commands {
            self.unbroken(&format!("  {}    # {}", one_line(&command.text), one_line(&command.purpose)));
        }
    }
}

/// A type or variable, and the reason why it stays the same.
type Reasoned<'r> = (&'r str, String);

/// Types without their reasons.
fn names_alone(title: &str, all: &[Reasoned<'_>]) -> String {
    format!("{title}: {}", listed(all.iter().map(|one| one.0)))
}

/// The types whose reasons are not shown.
fn rest_of(more: &[Reasoned<'_>]) -> String {
    let names: Vec<String> = more.iter().map(|one| shortened(one.0, LISTED_CHARACTERS)).collect();
    format!("- reasons with --full: {}", first_names(&names, MOST_NAMED))
}

/// A proposal that is left to the user.
fn left_to_do(proposal: &Proposal) -> String {
    format!("{}: {}", proposal.kind.words, proposal.summary)
}

fn why_refused(refusal: &Refusal) -> String {
    let reasons: Vec<String> = refusal.because.iter().map(note_text).collect();
    reasons.join("; ")
}

/// The reason why there is nothing to list.
fn nothing_to_change(report: &StudyReport) -> String {
    if report.already_good.is_empty() {
        let named = report.coverage.as_ref().and_then(|coverage| coverage.share);
        if let Some(named) = named.filter(|named| *named < LEAST_NAMED) {
            return format!(
                "{} of the data accesses have a name: the types and variables that the recorded calls use are \
                 not known.",
                share(named)
            );
        }
        return "The recorded calls use no type of several members and no variables that could lie elsewhere.".to_owned();
    }
    let names = report.already_good.iter().map(|name| shortened(name, LISTED_CHARACTERS));
    let names: Vec<String> = names.collect();
    format!(
        "No order of their members needs fewer lines in these calls: {}.",
        first_names(&names, MOST_NAMED)
    )
}

/// Cells of a region: lines, and when there is a changed program their change.
fn lines(region: &RegionReport, line_bytes: u32, has_after: bool) -> Vec<String> {
    let decides = |one: &&Footprint| one.kind == LineKind::Data && one.line_bytes == line_bytes;
    let found = region.footprints.iter().find(decides);
    let before = found.map(|one| one.before.mean());
    if !has_after {
        return vec![mean_or_unknown(before)];
    }
    let after = found.and_then(|one| one.after.as_ref()).map(|after| after.mean());
    let ratio = before.zip(after).filter(|(before, _)| *before > 0.0).map(|(before, after)| after / before);
    vec![
        format!("{} → {}", mean_or_unknown(before), mean_or_unknown(after)),
        ratio.map_or_else(|| UNKNOWN.into(), change),
    ]
}

/// Misses at the greatest pressure that was modelled.
fn misses(region: &RegionReport) -> String {
    match region.misses.iter().max_by_key(|one| one.pressure_bytes) {
        None => UNKNOWN.into(),
        Some(one) => match one.after {
            Some(after) => format!("{} → {}", mean(one.before), mean(after)),
            None => mean(one.before),
        },
    }
}

/// `fix.patch, 2 files, +10 −8 lines`.
fn extent(patch: &Patch) -> String {
    let count = |start: &str, not: &str| {
        let is_counted = |line: &&str| line.starts_with(start) && !line.starts_with(not);
        whole(patch.text.lines().filter(is_counted).count() as u64)
    };
    let files = patch.text.lines().filter(|line| line.starts_with("+++ ")).count();
    let word = if files == 1 { "file" } else { "files" };
    let (added, removed) = (count("+", "+++"), count("-", "---"));
    format!("{}, {files} {word}, +{added} −{removed} lines", one_line(&patch.file))
}

/// A proposal's greatest saving, and the type's size; its summary when no figure is known.
fn in_short(report: &StudyReport, proposal: &Proposal) -> String {
    let Some(best) = proposal.worth.first() else { return shortened(&proposal.summary, 80) };
    let size = proposal.sizes.iter().find(|size| report.shows_model(&size.data_model));
    let size = size.filter(|size| size.before_bytes != size.after_bytes);
    let size = size.map_or_else(String::new, |size| {
        format!("; {} → {} bytes", whole(size.before_bytes), whole(size.after_bytes))
    });
    let region = region_letter(best.region);
    format!("predicted of it alone: {} per call of {region}{size}", best.lines())
}

/// Texts as long as a sentence: each whole or up to the end of a word.
fn sentences<'a>(all: impl ExactSizeIterator<Item = &'a str>) -> String {
    let more = all.len().saturating_sub(MOST_NAMES);
    let first: Vec<String> =
        all.take(MOST_NAMES).map(|text| up_to_a_word(text, SENTENCE_CHARACTERS)).collect();
    match more {
        0 => first.join(", "),
        more => format!("{}, and {more} more", first.join(", ")),
    }
}

/// A text of at most this many characters, else as many of its words as fit, and `…`.
fn up_to_a_word(text: &str, most: usize) -> String {
    let text = one_line(text);
    if text.chars().count() <= most {
        return text.into_owned();
    }
    let mut shown = String::new();
    for word in text.split(' ') {
        if shown.chars().count() + word.chars().count() + 3 > most {
            break;
        }
        shown.push_str(word);
        shown.push(' ');
    }
    if shown.is_empty() { shortened(&text, most) } else { shown + "…" }
}

fn listed<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    let (more, most) = match names.len() {
        1 => (0, 2 * LISTED_CHARACTERS),
        all => (all.saturating_sub(MOST_NAMES), LISTED_CHARACTERS),
    };
    let first: Vec<String> = names.take(MOST_NAMES).map(|name| shortened(name, most)).collect();
    match more {
        0 => first.join(", "),
        more => format!("{}, and {more} more", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_in_a_list_ends_with_a_word() {
        let all = ["2 processes were started by the program and were not recorded", "calls of f", "signals"];
        let shown = sentences(all.into_iter());
        assert_eq!(shown, "2 processes were started by the program …, calls of f, and 1 more");
    }

    #[test]
    fn a_function_is_named_without_what_it_takes() {
        for (name, short) in [
            ("main", "main"),
            ("a::f(int (*)(long)) const", "a::f"),
            ("a::operator()(int)", "a::operator()"),
            ("(anonymous namespace)::f(int)", "(anonymous namespace)::f"),
            ("f)", "f)"),
        ] {
            assert_eq!(without_parameters(name), short);
        }
    }
}
