//! Types of which a layout touches fewer lines, and the reasons why others have no such layout.

use crate::findings::{Evidence, Finding, Findings, Kind, NoFinding};
use crate::owner::Owner;
use crate::tables::manual_edits;
use crate::tables::member_map::member_map;
use crate::time_findings::{Footprint, FunctionLines, Ranked};
use crate::trials::gains::{Bench, Subject};
use crate::trials::line_demand::{Demand, Lines};
use crate::trials::pieces::{Wide, pieces};
use crate::work::Work;
use lineup_coherence::WAIT_CYCLES;
use lineup_explain::catalog::Ty;
use lineup_model::Library;

/// Types that layouts are tried of: those with most time.
const MOST_TYPES: usize = 8;
/// A type with a smaller share of the time is not one of them.
const LEAST_TIME: f64 = 0.01;
/// A type with this share of the time gets a word on edits by hand.
const MUCH_TIME: f64 = 0.05;
/// Saved lines of one stretch that are worth an edit.
const LEAST_LINES: f64 = 0.5;
/// Up to this many lines a stretch uses one.
const ONE_LINE: f64 = 1.05;
/// A type is full when its used members have this share of its bytes.
const FULL: f64 = 0.9;
/// Functions named.
const MOST_FUNCTIONS: usize = 3;
/// A function with a smaller part of a type's time is not worth a look.
const LEAST_OF_TYPE: f64 = 0.1;

/// The footprint of a type, or the reason why there is no better one.
pub(crate) struct Judged {
    pub(crate) name: String,
    pub(crate) outcome: Result<Footprint, NoFinding>,
    /// The change that a person may make, of a type of the program with much time.
    pub(crate) by_hand: Option<String>,
}

impl Work<'_, '_> {
    /// The types with most time.
    pub(crate) fn types_by_time(&self) -> Vec<Ty> {
        let types = self.times.owners().into_iter().filter_map(|(owner, time)| match owner {
            Owner::Type(ty) if time >= LEAST_TIME => Some(ty),
            _ => None,
        });
        types.take(MOST_TYPES).collect()
    }

    /// A word on each of these types; `demands` has those whose members can be moved.
    pub(crate) fn footprints(
        &mut self,
        bench: &Bench<'_>,
        types: &[Ty],
        demands: Vec<Demand>,
    ) -> Vec<Judged> {
        let mut demands = demands;
        let mut all = Vec::new();
        for ty in types {
            let name = self.naming.namer.catalog().name(*ty);
            let demand = demands.iter().position(|demand| demand.ty == *ty).map(|at| demands.swap_remove(at));
            let by_hand = self.smaller_by_hand(*ty, demand.as_ref());
            let outcome = match (self.library(Subject::Type(*ty)), demand) {
                (Some(Library::Allocator), _) => Err(NoFinding::Allocator),
                (Some(library), _) => Err(NoFinding::OfLibrary { declared_in: library.to_string() }),
                (None, Some(demand)) => self.footprint(bench, &name, demand),
                (None, None) => Err(self.not_tried(*ty)),
            };
            all.push(Judged { name, outcome, by_hand });
        }
        all
    }

    /// The reason why no layout of a type was tried.
    pub(crate) fn not_tried(&mut self, ty: Ty) -> NoFinding {
        let table = self.naming.namer.catalog().table(ty);
        match table.and_then(|(types, described)| pieces(types, described.id)) {
            Some(_) => NoFinding::NotInWindows,
            None => NoFinding::NothingToMove,
        }
    }

    /// The members that may be smaller, and the size from which on `malloc` takes less: values are not seen.
    fn smaller_by_hand(&mut self, ty: Ty, demand: Option<&Demand>) -> Option<String> {
        if self.times.of_owner(Owner::Type(ty)) < MUCH_TIME || self.library(Subject::Type(ty)).is_some() {
            return None;
        }
        let (types, described) = self.naming.namer.catalog().table(ty)?;
        let size_bytes = types.size_bytes(described.id)?;
        let is_of_malloc = demand.is_some_and(|demand| demand.is_of_malloc);
        manual_edits::smaller(size_bytes, Wide::of(types, described.id), is_of_malloc)
    }

    /// The same for a finding of that kind.
    pub(crate) fn smaller_members(&mut self, subject: Subject, is_written: bool) -> Option<String> {
        let Subject::Type(ty) = subject else { return None };
        let (types, described) = self.naming.namer.catalog().table(ty)?;
        let size_bytes = types.size_bytes(described.id)?;
        let words = manual_edits::smaller(size_bytes, Wide::of(types, described.id), false)?;
        let by_study = "; lineup study makes integers smaller where the sources bound their values";
        Some(words + if is_written { by_study } else { "" })
    }

    fn footprint(&mut self, bench: &Bench<'_>, name: &str, demand: Demand) -> Result<Footprint, NoFinding> {
        let Some(first) = demand.first() else { return Err(NoFinding::NothingToMove) };
        let saves = first.now - first.after;
        let kind = demand.kind.filter(|_| saves >= LEAST_LINES && demand.bound() >= self.options.least_gain);
        let Some(kind) = kind else { return Err(self.why_none(&demand, first)) };
        let functions = self.regions_by_time(demand.ty);
        let moved = (demand.moved.as_ref(), demand.start_in_line);
        let map = member_map(&mut self.naming, &self.attribution, demand.ty, moved, bench.line_bytes);
        let subject = Subject::Type(demand.ty);
        let what = (kind, &demand.evidence, map.as_ref());
        let (by_hand, next, _) = self.edit_and_next((subject, Some(name)), what, &[kind], &functions);
        Ok(Footprint {
            subject: name.to_owned(),
            kind,
            time: self.times.of_owner(Owner::Type(demand.ty)),
            bound: demand.bound(),
            lines: demand.functions.iter().map(|lines| self.named(lines)).collect(),
            split_accesses: demand.split_accesses,
            evidence: demand.evidence,
            functions,
            next,
            by_hand,
            map,
        })
    }

    fn named(&self, lines: &Lines) -> FunctionLines {
        FunctionLines {
            function: self.attribution.functions[lines.function].name.clone(),
            time: lines.time,
            per: lines.per,
            stretches: lines.stretches,
            lines: lines.now,
            lines_after: lines.after,
        }
    }

    fn why_none(&self, demand: &Demand, first: &Lines) -> NoFinding {
        let function = self.attribution.functions[first.function].name.clone();
        if first.now <= ONE_LINE {
            return NoFinding::OneLine { function, per: first.per };
        }
        if let Some(layout) = demand.kind.filter(|_| first.after < first.now) {
            let (lines, lines_after) = (first.now, first.after);
            return NoFinding::FewLines { function, per: first.per, layout, lines, lines_after };
        }
        match &demand.evidence {
            Evidence::Type { size_bytes, used_bytes, .. }
                if *used_bytes as f64 >= FULL * *size_bytes as f64 =>
            {
                NoFinding::Full { size_bytes: *size_bytes }
            }
            _ => NoFinding::NoFewerLines { function, per: first.per, lines: first.now },
        }
    }

    /// The functions with most of a type's time that can be regions.
    fn regions_by_time(&self, ty: Ty) -> Vec<String> {
        let functions = self.times.functions(Owner::Type(ty));
        let all: f64 = functions.iter().map(|(_, time)| time).sum();
        let much = functions.iter().filter(|(_, time)| *time >= LEAST_OF_TYPE * all);
        let counts = much.map(|(function, _)| &self.attribution.functions[*function]);
        let mut names: Vec<String> =
            counts.filter(|counts| self.can_be_region(counts)).map(|counts| counts.name.clone()).collect();
        if names.len() > 1 {
            // It is called once: its work is better studied in the functions that it calls.
            names.retain(|name| name != "main");
        }
        names.truncate(MOST_FUNCTIONS);
        names
    }
}

/// Findings and footprints together, those with the largest bound in time first: of stalls, as a share of the modelled
/// cycles. A type that has both is in it once, as a finding, at the larger bound.
pub(crate) fn ranking(findings: &Findings) -> Vec<Ranked> {
    let waits = findings.between_threads.map_or(0.0, |between| between.waits.all() * WAIT_CYCLES);
    let of_pages = findings.pages.map_or(0, |pages| pages.stall_cycles);
    let stalls = findings.stalls.cycles();
    let all = (findings.instructions + stalls + of_pages) as f64 + waits;
    let bound = |finding: &Finding| {
        let base = if finding.kind.is_of_threads() { stalls as f64 + waits } else { stalls as f64 };
        let of_lines = findings.footprint_of(finding).map_or(0.0, |footprint| footprint.bound);
        (finding.gain_by_time() * base / all.max(1.0)).max(of_lines)
    };
    let of_stalls = findings.findings.iter().map(bound).zip((0..).map(Ranked::Findings));
    let alone = findings.footprints.iter().zip((0..).map(Ranked::Footprints));
    let alone = alone.filter(|(one, _)| {
        !findings.findings.iter().any(|finding| finding.subject.as_ref() == Some(&one.subject))
    });
    let alone = alone.map(|(one, place)| (one.bound, place));
    let mut ranked: Vec<(f64, Ranked)> = of_stalls.chain(alone).collect();
    let kind = |place: &Ranked| match *place {
        Ranked::Findings(index) => findings.findings[index].kind,
        Ranked::Footprints(index) => findings.footprints[index].kind,
    };
    // All code holds that of each function: there is no more to gain from both.
    let all_code = |finding: &Finding| finding.kind == Kind::Code && finding.subject.is_none();
    let has_all_code = findings.findings.iter().any(all_code);
    let is_part = |place: &Ranked| match *place {
        Ranked::Findings(index) => {
            has_all_code && kind(place) == Kind::Code && !all_code(&findings.findings[index])
        }
        Ranked::Footprints(_) => false,
    };
    let weighed = |(bound, place): &(f64, Ranked)| bound * kind(place).weight();
    // Where bounds are equal, the findings keep their order.
    ranked.sort_by(|one, other| {
        is_part(&one.1).cmp(&is_part(&other.1)).then(weighed(other).total_cmp(&weighed(one)))
    });
    ranked.into_iter().map(|(_, place)| place).collect()
}
