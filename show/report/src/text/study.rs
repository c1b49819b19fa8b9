//! A study as text.

use super::wrap::wrapped;
use super::{Align, Table, Telling, TextStyle};
use crate::study::{
    ConstraintNote, Coverage, Gain, Line, LineDistribution, LineMap, ObjectLines, OutputCheck, ProofReport,
    RegionReport, SavingReport, SharedLine, StudyReport, TimeReport, region_letter,
};
use crate::visible::{many_lines, one_line, shortened};
use lineup_model::figure::{
    NO_ESTIMATE, UNKNOWN, change, factor, is_estimate, level, mean, mean_or_unknown, share, short_time_ns,
    signed, whole,
};
use lineup_prove::detectable_in_words;
use lineup_prove::links::OF_ONE_LINK;
use std::fmt::Write;

/// Longest name in a table for a terminal.
const NAME_CHARACTERS: usize = 60;

/// The study as text for a terminal or a pipe: the first screen, and when all is asked for the rest under headings.
pub fn study_text(report: &StudyReport, telling: Telling) -> String {
    let mut out = Writer { text: String::new(), telling };
    out.first_screen(report);
    if telling.is_full {
        out.rest(report);
    }
    out.text
}

/// The levers of a study that found nothing to record.
pub fn levers_text(report: &StudyReport, telling: Telling) -> String {
    let mut out = Writer { text: String::new(), telling };
    out.levers(report);
    out.text
}

pub(super) struct Writer {
    text: String,
    telling: Telling,
}

impl Writer {
    fn rest(&mut self, report: &StudyReport) {
        self.regions(&report.regions);
        self.contention(report);
        report.maps.iter().for_each(|map| self.map(map));
        self.shared_lines(&report.shared_lines);
        self.proposals(report);
        if !report.side_effects.is_empty() {
            self.heading("Side effects");
            report.side_effects.iter().for_each(|effect| self.line(&format!("- {}", one_line(effect))));
        }
        if let Some(coverage) = &report.coverage {
            self.coverage(coverage);
        }
        if !report.not_observed.is_empty() {
            self.heading("Not observed");
            for one in &report.not_observed {
                self.line(&format!("- {}: {}", one_line(&one.what), one_line(&one.consequence)));
            }
        }
        if !report.commands.is_empty() {
            self.heading("To repeat");
            for command in &report.commands {
                self.unbroken(&format!("  {}    # {}", one_line(&command.text), one_line(&command.purpose)));
            }
        }
    }

    /// True for the full report.
    pub(super) fn is_full(&self) -> bool {
        self.telling.is_full
    }

    /// A sentence; at a terminal broken between words where it is too long.
    pub(super) fn line(&mut self, text: &str) {
        match self.telling.style {
            TextStyle::Terminal { columns } => {
                let indent = if text.trim_start().starts_with("- ") { "  " } else { "" };
                self.unbroken(&wrapped(text, usize::from(columns.max(40)), indent));
            }
            TextStyle::Plain => self.unbroken(text),
        }
    }

    /// True when lines are not broken.
    pub(super) fn is_plain(&self) -> bool {
        self.telling.style == TextStyle::Plain
    }

    /// A writer of the same style that has written nothing.
    pub(super) fn empty(&self) -> Writer {
        Writer { text: String::new(), telling: self.telling }
    }

    /// The number of lines that a sentence takes.
    pub(super) fn height(&self, text: &str) -> usize {
        let mut alone = self.empty();
        alone.line(text);
        alone.height_so_far()
    }

    /// The number of lines written so far.
    pub(super) fn height_so_far(&self) -> usize {
        self.text.lines().count()
    }

    /// A line that stays whole, such as a command.
    pub(super) fn unbroken(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push('\n');
    }

    pub(super) fn heading(&mut self, text: &str) {
        self.unbroken("");
        self.line(text);
    }

    pub(super) fn table(&mut self, table: &Table) {
        self.table_with(table, |text| text);
    }

    /// A table whose text is changed once it is laid out.
    pub(super) fn table_with(&mut self, table: &Table, change: impl FnOnce(String) -> String) {
        self.text.push_str(&change(table.render(self.telling.style)));
    }

    /// A name as long as the style allows.
    fn name(&self, name: &str) -> String {
        match self.telling.style {
            TextStyle::Terminal { .. } => shortened(name, NAME_CHARACTERS),
            TextStyle::Plain => one_line(name).into_owned(),
        }
    }

    pub(super) fn proof(&mut self, proof: &ProofReport) {
        self.heading("Verdict");
        self.line(&one_line(&proof.conclusion));
        self.line(&format!("Effects {}.", one_line(&proof.effects_sentence())));
        match &proof.output {
            OutputCheck::Equal => {
                self.line(&format!("Output and exit status equal in all {} runs.", whole(proof.runs)))
            }
            OutputCheck::NotRepeatable(difference) => {
                self.line(&format!("Output {}: {}", proof.not_repeatable(), one_line(difference)));
            }
        }
        proof
            .calls_within
            .iter()
            .for_each(|within| self.line(&format!("Counted as equal: {}.", one_line(within))));
        if let Some(time) = &proof.time {
            self.line(&time_sentence(time, proof.blocks));
        }
    }

    fn regions(&mut self, regions: &[RegionReport]) {
        if regions.is_empty() {
            return;
        }
        self.heading("Regions");
        let mut table = Table::new([
            ("", Align::Left),
            ("region", Align::Left),
            ("weight", Align::Right),
            ("calls", Align::Right),
            ("abandoned", Align::Right),
            ("calls/s", Align::Right),
            ("instructions", Align::Right),
        ]);
        for (index, region) in regions.iter().enumerate() {
            table.row([
                region_letter(index),
                self.name(&region.name),
                mean(region.weight),
                whole(region.calls_recorded),
                whole(region.calls_abandoned),
                mean_or_unknown(region.calls_per_second),
                mean_or_unknown(region.instructions_per_call.map(|spread| spread.median)),
            ]);
        }
        self.table(&table);
        self.footprints(regions);
        self.call_times(regions);
    }

    /// A row for each number of CPUs.
    pub(super) fn contention(&mut self, report: &StudyReport) {
        let Some(contention) = &report.contention else { return };
        self.heading(&format!("Threads on one CPU and on more, {OF_ONE_LINK}"));
        self.line(&contention.in_words());
        let mut table = Table::new([
            ("", Align::Left),
            ("CPUs", Align::Right),
            ("before", Align::Right),
            ("after", Align::Right),
            ("times as fast", Align::Right),
            ("interval", Align::Left),
            ("verdict", Align::Left),
        ]);
        for (index, region) in report.regions.iter().enumerate() {
            for (cpus, time) in contention.of_region(region.id) {
                let ([before, after], all) = (time.mean_ns(), &time.all_calls);
                table.row([
                    region_letter(index),
                    cpus.to_string(),
                    short_time_ns(before),
                    short_time_ns(after),
                    factor(1.0 / all.ratio),
                    format!("{} to {}", factor(1.0 / all.ratio_high), factor(1.0 / all.ratio_low)),
                    all.verdict.word().to_owned(),
                ]);
            }
        }
        self.table(&table);
    }

    /// A row for each region whose calls were timed.
    fn call_times(&mut self, regions: &[RegionReport]) {
        let timed = regions.iter().enumerate();
        let mut timed = timed.filter_map(|(index, region)| Some((index, region.time.as_ref()?))).peekable();
        if timed.peek().is_none() {
            return;
        }
        self.heading(&format!("Time of a call, callees included, {OF_ONE_LINK}"));
        let mut table = Table::new([
            ("", Align::Left),
            ("calls in a run", Align::Right),
            ("before", Align::Right),
            ("after", Align::Right),
            ("change", Align::Right),
            ("interval", Align::Left),
            ("verdict", Align::Left),
        ]);
        for (index, time) in timed {
            let ([before, after], all) = (time.mean_ns(), &time.all_calls);
            table.row([
                region_letter(index),
                whole(time.calls_per_run),
                short_time_ns(before),
                short_time_ns(after),
                change(all.ratio),
                format!("{} to {}", change(all.ratio_low), change(all.ratio_high)),
                all.verdict.word().to_owned(),
            ]);
        }
        self.table(&table);
    }

    fn footprints(&mut self, regions: &[RegionReport]) {
        self.heading("Lines per call (min / median / max)");
        let mut table = Table::new([
            ("", Align::Left),
            ("lines of", Align::Right),
            ("before", Align::Right),
            ("after", Align::Right),
            ("mean change", Align::Right),
        ]);
        for (index, region) in regions.iter().enumerate() {
            for footprint in &region.footprints {
                let after = footprint.after.as_ref();
                table.row([
                    region_letter(index),
                    format!("{} B {}", footprint.line_bytes, footprint.kind.word()),
                    spread(&footprint.before),
                    after.map_or_else(|| UNKNOWN.into(), spread),
                    signed(after.map(|after| after.mean() - footprint.before.mean())),
                ]);
            }
        }
        self.table(&table);
    }

    fn map(&mut self, map: &LineMap) {
        let declared =
            map.owner.declared_at.as_ref().map_or_else(String::new, |at| format!(" ({})", one_line(at)));
        let name = self.name(&map.owner.name);
        self.heading(&format!("{name}{declared}, {}-byte lines", map.line_bytes));
        for note in &map.notes {
            self.line(&one_line(note));
        }
        self.object("before", map, &map.before);
        if let Some(after) = &map.after {
            self.object("after", map, after);
        }
    }

    fn object(&mut self, when: &str, map: &LineMap, lines: &ObjectLines) {
        let (used, fetched) = lines.used_of_fetched();
        self.line(&format!(
            "{when}: {} bytes, {} of {} lines touched, {} of {} fetched bytes used",
            whole(lines.size_bytes),
            lines.touched_lines(),
            whole(lines.lines.len() as u64 + lines.lines_not_listed),
            whole(used),
            whole(fetched)
        ));
        let mut table = Table::new([
            ("line", Align::Right),
            ("offset", Align::Right),
            ("size", Align::Right),
            ("member", Align::Left),
            ("use", Align::Left),
            ("per call", Align::Left),
        ]);
        for run in lines.lines.chunk_by(|before, line| line.continues(before)) {
            let [line, ..] = run else { continue };
            if line.fetched_bytes == 0 {
                continue;
            }
            if let Some(last) = run.last().filter(|_| run.len() > 1) {
                table.row(self.folded(map, run, line, last));
                continue;
            }
            let used = line.cells.iter().filter(|cell| !cell.uses.is_empty());
            for cell in used {
                table.row([
                    map.owner.kind.line_text(line.index, map.line_bytes),
                    cell.offset.map_or_else(|| UNKNOWN.into(), |offset| map.owner.kind.offset_text(offset)),
                    cell.size_bytes.to_string(),
                    self.name(cell.name.as_deref().unwrap_or(UNKNOWN)),
                    cell.class.word().into(),
                    uses_text(cell),
                ]);
            }
            if !line.cold_riders.is_empty() {
                let riders =
                    line.cold_riders.iter().map(|name| self.name(name)).collect::<Vec<_>>().join(", ");
                table.row([
                    map.owner.kind.line_text(line.index, map.line_bytes),
                    String::new(),
                    String::new(),
                    riders,
                    "cold".into(),
                    String::new(),
                ]);
            }
        }
        if !table.is_empty() {
            self.table(&table);
        }
    }

    /// One row for lines that one member fills.
    fn folded(&self, map: &LineMap, run: &[Line], first: &Line, last: &Line) -> Vec<String> {
        let Some(cell) = first.cells.iter().find(|cell| !cell.uses.is_empty()) else { return Vec::new() };
        let text = |line: &Line| map.owner.kind.line_text(line.index, map.line_bytes);
        let size: u64 = run.iter().flat_map(|line| &line.cells).map(|cell| u64::from(cell.size_bytes)).sum();
        vec![
            format!("{}–{}", text(first), text(last)),
            cell.offset.map_or_else(|| UNKNOWN.into(), |offset| map.owner.kind.offset_text(offset)),
            whole(size),
            self.name(cell.name.as_deref().unwrap_or(UNKNOWN)),
            cell.class.word().into(),
            uses_text(cell),
        ]
    }

    fn shared_lines(&mut self, lines: &[SharedLine]) {
        if lines.is_empty() {
            return;
        }
        self.heading("Lines between threads (* written)");
        let mut table = Table::new([
            ("line at", Align::Right),
            ("touched", Align::Left),
            ("readers", Align::Left),
            ("writers", Align::Left),
            ("true handovers", Align::Right),
            ("false handovers", Align::Right),
        ]);
        let threads = |all: &[u32]| all.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
        for line in lines {
            table.row([
                format!("{:#x}", line.address),
                line.parts.iter().map(|part| self.name(part)).collect::<Vec<_>>().join(", "),
                threads(&line.readers),
                threads(&line.writers),
                whole(line.true_handovers),
                whole(line.false_handovers),
            ]);
        }
        self.table(&table);
    }

    fn proposals(&mut self, report: &StudyReport) {
        for proposal in &report.proposals {
            let target = self.name(&proposal.target);
            self.heading(&format!(
                "Proposal: {} — {target} ({})",
                proposal.kind.words,
                proposal.status.describe()
            ));
            self.line(&one_line(&proposal.summary));
            self.worth(report, &proposal.worth);
            proposal.reasons.iter().for_each(|reason| self.line(&format!("- {}", one_line(reason))));
            proposal.predicted.iter().for_each(|predicted| self.line(&format!("- {}", predicted.in_words())));
            self.gains(report, &proposal.gains);
            if let Some(check) = proposal.check {
                self.line(&format!("  checked: {}", check.describe()));
            }
            proposal.constraints.iter().for_each(|note| self.line(&format!("  obeyed: {}", note_text(note))));
        }
        for refusal in &report.refusals {
            let target = self.name(&refusal.target);
            self.heading(&format!("Refused: {target}"));
            refusal.because.iter().for_each(|note| self.line(&format!("- {}", note_text(note))));
            if !refusal.gains.is_empty() {
                self.line("  lines per call now, and at the least that the hot bytes need:");
                self.gains(report, &refusal.gains);
            }
            if let Some(way_out) = &refusal.way_out {
                self.line(&format!("  {}", one_line(way_out)));
            }
        }
        if !report.already_good.is_empty() {
            let names: Vec<String> = report.already_good.iter().map(|name| self.name(name)).collect();
            self.heading(&format!("Already as good as any allowed order: {}", names.join(", ")));
        }
        if let Some(patch) = &report.patch {
            self.heading(&format!("Patch ({})", one_line(&patch.file)));
            self.text.push_str(&many_lines(&patch.text));
        }
    }

    fn worth(&mut self, report: &StudyReport, worth: &[SavingReport]) {
        for one in worth {
            let region = self.name(report.region_name(one.region));
            self.line(&format!("  {region}: {} per call", one.lines()));
            self.line(&format!("    {}", one.scale()));
        }
    }

    fn gains(&mut self, report: &StudyReport, gains: &[Gain]) {
        let all = self.telling.all_data_models;
        let is_shown = |gain: &&Gain| all || report.shows_model(&gain.data_model);
        for gain in gains.iter().filter(is_shown) {
            let (region, model) = (self.name(report.region_name(gain.region)), one_line(&gain.data_model));
            let (before, after) = (mean_or_unknown(gain.before), mean(gain.after));
            self.line(&format!("  {region}, {model}, {} B lines: {before} → {after}", gain.line_bytes));
        }
    }

    fn coverage(&mut self, coverage: &Coverage) {
        self.heading("Coverage");
        let of = coverage.share.map_or_else(|| UNKNOWN.into(), share);
        let (named, all) = (whole(coverage.named), whole(coverage.accesses));
        self.line(&format!("{of} of the data accesses are named ({named} of {all})."));
        if let Some(off_stack) = coverage.share_off_stack {
            self.line(&format!("Outside the stack: {}.", share(off_stack)));
        }
        if !coverage.by_class.is_empty() {
            let mut table = Table::new([("accesses", Align::Right), ("to", Align::Left)]);
            coverage.by_class.iter().for_each(|one| table.row([whole(one.accesses), one.class.clone()]));
            self.table(&table);
        }
        let mut table = Table::new([("accesses", Align::Right), ("named by", Align::Left)]);
        let without = coverage
            .unnamed_by_function
            .iter()
            .map(|one| (one.accesses, format!("no name, in {}", one.function)));
        let rows = coverage.by_evidence.iter().map(|one| (one.accesses, one.evidence.clone())).chain(without);
        for (accesses, what) in rows {
            let what = self.name(&what);
            table.row([whole(accesses), what]);
        }
        self.table(&table);
    }
}

fn spread(lines: &LineDistribution) -> String {
    format!("{} / {} / {}", whole(lines.min()), whole(lines.median()), whole(lines.max()))
}

/// Loads and stores per call by region, such as `A 64 L 64 S, B 1 L`.
pub(crate) fn uses_text(cell: &crate::study::Cell) -> String {
    let mut text = String::new();
    for one in &cell.uses {
        let separator = if text.is_empty() { "" } else { ", " };
        // Writing to a String cannot fail.
        let _ = write!(text, "{separator}{}", region_letter(one.region));
        if one.loads_per_call > 0.0 {
            let _ = write!(text, " {} L", mean(one.loads_per_call));
        }
        if one.stores_per_call > 0.0 {
            let _ = write!(text, " {} S", mean(one.stores_per_call));
        }
    }
    text
}

/// A constraint in one line.
pub(crate) fn note_text(note: &ConstraintNote) -> String {
    let mut text = one_line(&note.rule).into_owned();
    if !note.names.is_empty() {
        let names: Vec<String> = note.names.iter().map(|name| shortened(name, NAME_CHARACTERS)).collect();
        let _ = write!(text, ": {}", names.join(", "));
    }
    if let Some(at) = &note.at {
        let _ = write!(text, " ({})", one_line(at));
    }
    if let Some(detail) = &note.detail {
        let _ = write!(text, " — {}", one_line(detail));
    }
    text
}

/// Time and its verdict in one sentence.
pub(crate) fn time_sentence(time: &TimeReport, blocks: u64) -> String {
    let seen = detectable_in_words(time.smallest_detectable);
    if !is_estimate(time.ratio_low, time.ratio_high) {
        return format!("Whole-process time, over {} blocks: {NO_ESTIMATE}.", whole(blocks));
    }
    format!(
        "Whole-process time {}, {} interval {} to {}, over {} blocks: {}, {} (margin {}; {}).",
        change(time.ratio),
        level(time.level),
        change(time.ratio_low),
        change(time.ratio_high),
        whole(blocks),
        time.verdict.word(),
        time.links_in_words(),
        level(time.margin),
        seen.strip_prefix("a change of ").unwrap_or(&seen),
    )
}
