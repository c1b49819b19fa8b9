//! From a recording to findings.

use crate::error::FindError;
use crate::findings::{Bursts, Evidence, Finding, Findings, Kind, MemberMap, NoFinding, Sample, Trial};
use crate::hand_findings::{AllocationPair, ParallelArrays, StackObject};
use crate::options::Options;
use crate::owner::Owner;
use crate::recorded::Recorded;
use crate::stalls::allocation_sites::Sites;
use crate::stalls::attribution::Attribution;
use crate::stalls::bursts;
use crate::stalls::clock::Clock;
use crate::stalls::counts::FunctionCounts;
use crate::stalls::page_stalls::{HugePages, PageStalls};
use crate::stalls::run_alone::RunAlone;
use crate::stalls::time_shares::TimeShares;
use crate::stalls::window_names::{Naming, Point};
use crate::stalls::window_stalls::Watched;
use crate::stalls::work_contexts;
use crate::tables::allocation_pairs;
use crate::tables::clock_contradictions;
use crate::tables::footprints::{self, Judged};
use crate::tables::manual_edits;
use crate::tables::member_map::member_map;
use crate::tables::parallel_arrays;
use crate::tables::stack_objects;
use crate::tables::stall_tables::coverage;
use crate::tables::without_finding;
use crate::threads::contention::Between;
use crate::time_findings::Footprint;
use crate::trials::cache_configurations::{Configuration, configurations};
use crate::trials::gains::{self, Bench, Gain, Subject};
use crate::trials::line_demand;
use crate::trials::placement_kinds::Placements;
use crate::trials::placements;
use crate::trials::replay::cycles;
use crate::work::Work;
use lineup_cache::{CacheLevel, CacheSpec};
use lineup_debuginfo::DebugInfo;
use lineup_model::Library;
use lineup_model::types::Language;
use std::path::Path;

/// Huge pages that save a smaller part of the modelled cycles are no finding: touching pages costs them too.
const LEAST_OF_PAGES: f64 = 0.05;

/// Works out the findings. `debug` holds the debug info of each of the recording's images, `program` is the path of the
/// one whose functions can be studied, `clock` the samples of a run at its own speed.
///
/// # Errors
/// When the recording holds no windows, or the disassembler fails.
pub fn work_out(
    recorded: &Recorded,
    debug: &[Option<DebugInfo>],
    program: &str,
    clock: Option<&Clock>,
    options: &Options,
) -> Result<Findings, FindError> {
    if recorded.windows.is_empty() {
        return Err(FindError::NoWindows);
    }
    let specs: Vec<CacheSpec> =
        recorded.header.caches.iter().map(|text| text.parse()).collect::<Result<_, _>>()?;
    let configurations = configurations(&specs);
    let mut naming = Naming::of(recorded, debug)?;
    let usual = &configurations[0];
    let sites = Sites::of(recorded, debug);
    let watched =
        Watched::of(recorded, &naming, &sites, usual, line_bytes(&specs, CacheLevel::L1d), options.latency);
    let attribution = Attribution::of(
        recorded,
        debug,
        &mut naming,
        &watched,
        (options.latency, line_bytes(&specs, CacheLevel::L1i)),
        clock,
    )?;
    let bursts = options.bursts.clone().map(|taken| {
        let caches = (usual, specs.as_slice());
        let shares = bursts::shares(recorded, &mut naming, &attribution, caches, options.latency);
        Bursts { taken, shares }
    });
    let between = match options.next {
        // Bursts of different threads begin at different times.
        None if bursts.is_none() => between(recorded, &mut naming, line_bytes(&specs, CacheLevel::L1d)),
        _ => Between::default(),
    };
    let times = TimeShares::of(&attribution, options.latency);
    let (sites, watched) = (&sites, &watched);
    let mut work = Work { recorded, options, program, attribution, times, naming, sites, watched, between };
    let (points, spots) = (std::mem::take(&mut work.naming.points), work.naming.spots.clone());
    let windows = (recorded.windows.as_slice(), points.as_slice());
    let all_cycles = (work.stalls().cycles() as f64).max(1.0);
    let caches = (configurations.as_slice(), line_bytes(&specs, CacheLevel::L1d));
    let bench = Bench::new(windows, &spots, watched, caches, options, all_cycles);
    // A subject cannot gain more than it stalls for, except for the room that it leaves to others.
    let least_cycles = work.stalls().cycles() as f64 * options.least_gain;
    let types = work.types_by_stalls(least_cycles);
    let mut gains = gains::of_types(&bench, &mut work.naming, &types);
    let own_code = |counts: &FunctionCounts| work.can_be_region(counts);
    gains.extend(gains::of_code(&bench, &work.attribution, own_code, (recorded, debug), least_cycles));
    let lost = clock.map_or(0, |clock| clock.lost);
    let placements =
        work.placements(bench.configurations, clock.map(|clock| clock.alone).unwrap_or_default());
    let huge_pages = work.huge_pages();
    let types = work.types_by_time();
    let is_entry = |pc: u64| is_entry(recorded, debug, pc);
    let naming = (&mut work.naming, &work.attribution);
    let demands = line_demand::of_types(&bench, naming, &work.times, is_entry, &types);
    let judged = work.footprints(&bench, &types, demands);
    let habits = options.next.is_none().then(|| work.habits(&points, bench.line_bytes, all_cycles));
    let mut findings = work.findings(&bench, gains, judged);
    if let Some((pairs, stack_objects, arrays)) = habits {
        findings.allocation_pairs = pairs;
        findings.stack_objects = stack_objects;
        let is_grouped = |name: &String| arrays.iter().any(|group| group.names.contains(name));
        findings.without_finding.retain(|one| !is_grouped(&one.name));
        findings.parallel_arrays = arrays;
    }
    findings.placements = placements;
    findings.huge_pages =
        huge_pages.filter(|_| findings.placements.as_ref().is_none_or(|all| all.best().is_none()));
    findings.bursts = bursts;
    findings.contexts = work_contexts::stalls(recorded, debug, options.latency, all_cycles);
    findings.clock_event = clock.filter(|_| findings.clock_samples.is_some()).map(|clock| clock.event);
    findings.notes.extend((lost > 0).then(|| format!("{lost} samples by the clock were lost")));
    Ok(findings)
}

type Habits = (Vec<AllocationPair>, Vec<StackObject>, Vec<ParallelArrays>);

/// Whether a function begins at a runtime address.
fn is_entry(recorded: &Recorded, debug: &[Option<DebugInfo>], pc: u64) -> bool {
    let symbol = recorded.place_of(pc).and_then(|(image, link)| {
        debug.get(image)?.as_ref()?.symbol_at(link).map(|symbol| symbol.address == link)
    });
    symbol.unwrap_or(false)
}

/// Contention between threads of a program.
fn between(recorded: &Recorded, naming: &mut Naming<'_>, line_bytes: u64) -> Between {
    let mut between = Between::of(&recorded.windows, &naming.object_points, &naming.spots, line_bytes);
    between.leave_out_little(&mut naming.namer);
    between
}

/// Bytes of a line of a level.
fn line_bytes(specs: &[CacheSpec], level: CacheLevel) -> u64 {
    let spec = specs.iter().rfind(|spec| spec.level() == level);
    spec.map_or(64, |spec| spec.line().bytes())
}

/// The footprints, the largest bound first, and the reasons why other types have none.
fn parted(judged: Vec<Judged>) -> (Vec<Footprint>, Vec<(String, NoFinding)>) {
    let (mut footprints, mut reasons) = (Vec::new(), Vec::new());
    for Judged { name, outcome, .. } in judged {
        match outcome {
            Ok(footprint) => footprints.push(footprint),
            Err(reason) => reasons.push((name, reason)),
        }
    }
    footprints.sort_by(|one: &Footprint, other| other.bound.total_cmp(&one.bound));
    (footprints, reasons)
}

/// A change that depends on values or addresses that nobody sees is no finding where another layout saves lines.
fn leave_out_conditional(found: &mut Vec<Finding>, footprints: &[Footprint]) {
    found.retain(|finding| {
        let has_other = footprints.iter().any(|one| Some(&one.subject) == finding.subject.as_ref());
        finding.kind.is_of_threads() || !finding.kind.is_conditional() || !has_other
    });
}

impl Work<'_, '_> {
    /// Habits that a person changes by hand.
    fn habits(&mut self, points: &[Vec<Point>], line_bytes: u64, all_cycles: f64) -> Habits {
        let (recorded, seen, latency) = (self.recorded, self.watched.accesses, self.options.latency);
        let naming = &mut self.naming;
        let arrays = parallel_arrays::groups(
            recorded,
            (&mut *naming, points),
            &self.attribution,
            (seen, line_bytes),
            (latency, all_cycles),
        );
        let pairs = allocation_pairs::pairs(recorded, self.sites, seen, latency, all_cycles);
        (pairs, stack_objects::objects(recorded, naming, &self.attribution, seen), arrays)
    }

    /// Instructions that the run executed.
    fn instructions(&self) -> u64 {
        self.attribution.functions.iter().map(|counts| counts.instructions).sum()
    }

    /// Other placements of the heap's small objects.
    fn placements(&self, configurations: &[Configuration], alone: RunAlone) -> Option<Placements> {
        let prices = (self.options.latency, self.options.page_costs);
        let run = placements::WholeRun {
            instructions: &self.recorded.instructions,
            code_cycles: self.stalls().code_cycles,
            executed: self.instructions(),
            alone,
            first_touches: self.counts_pages().then(|| self.all_pages().first_touches),
            heap: self.sites.heap_bytes(placements::MOST_SMALL_BYTES, placements::class_bytes),
        };
        let bench = placements::Bench::of(&self.recorded.windows, &self.recorded.objects, prices, run)?;
        let live_objects = self.sites.live_small_objects(placements::MOST_SMALL_BYTES);
        bench.tried(configurations, self.options.least_gain, live_objects, || self.next_of_placement())
    }

    /// Huge pages, where pages take much of the modelled cycles.
    fn huge_pages(&self) -> Option<HugePages> {
        let costs = &self.options.page_costs;
        let pages = self.counts_pages().then(|| PageStalls::of(self.all_pages(), costs))?;
        let all = (self.instructions() + self.stalls().cycles() + pages.stall_cycles).max(1) as f64;
        let [share, gain] =
            [pages.stall_cycles, pages.saved_by_huge_pages(costs)].map(|cycles| cycles as f64 / all);
        (gain >= LEAST_OF_PAGES.max(self.options.least_gain)).then(|| HugePages {
            share,
            gain,
            next: self.next_of_placement(),
        })
    }

    fn findings(mut self, bench: &Bench<'_>, gains: Vec<Gain>, judged: Vec<Judged>) -> Findings {
        let (stalls, all_cycles) = (self.stalls(), bench.all_cycles);
        let owners = self.owners(all_cycles);
        let functions = self.functions(all_cycles);
        let allocation_sites = self.allocation_sites(all_cycles);
        let (gains, of_libraries) = self.changeable(gains);
        let mut found: Vec<Finding> =
            gains.into_iter().filter_map(|gain| self.finding(bench, gain)).collect();
        let locks = self.lock_waits();
        found.extend(self.fights(all_cycles));
        found.extend(self.shared_words(&locks, all_cycles));
        let subject = |finding: &Finding| Some((finding.subject.clone()?, finding.kind, finding.gain));
        let tried: Vec<_> = found.iter().filter_map(subject).collect();
        // A subject without a gain is no finding under any threshold.
        found.retain(|finding| finding.gain > 0.0);
        for finding in &mut found {
            finding.clock = clock_contradictions::contradiction(finding, &owners, &functions);
        }
        let all = found.len();
        found.retain(|finding| finding.gain.max(finding.gain_by_time()) >= self.options.least_gain);
        let below_threshold = all - found.len();
        let weighed = |finding: &Finding| finding.gain_by_time() * finding.kind.weight();
        found.sort_by(|one, other| weighed(other).total_cmp(&weighed(one)));
        found.truncate(self.options.most_findings);
        let by_hand: Vec<(String, Option<String>)> =
            judged.iter().map(|one| (one.name.clone(), one.by_hand.clone())).collect();
        let (footprints, mut reasons) = parted(judged);
        leave_out_conditional(&mut found, &footprints);
        reasons.extend(of_libraries);
        for (owner, tally) in self.by_owner() {
            let Owner::Type(ty) = owner else { continue };
            let name = self.naming.namer.catalog().name(ty);
            let is_known = tried.iter().any(|(known, ..)| *known == name)
                || reasons.iter().any(|(known, _)| *known == name);
            if tally.accesses > 0.0 && !is_known {
                reasons.push((name, self.not_tried(ty)));
            }
        }
        let shown = (found.as_slice(), footprints.as_slice());
        let of_cycles = stalls.cycles() as f64 / self.modelled_cycles();
        let mut without_finding =
            without_finding::without_finding(&owners, &tried, &reasons, shown, of_cycles);
        for one in &mut without_finding {
            one.by_hand =
                by_hand.iter().find(|(name, _)| *name == one.name).and_then(|(_, edit)| edit.clone());
        }
        let (header, latency) = (&self.recorded.header, self.options.latency);
        let mut findings = Findings {
            schema: "lineup.find/1",
            command: header.command.clone(),
            recorder: header.emulator.clone(),
            caches: header.caches.clone(),
            l2_cycles: latency.l2_cycles,
            memory_cycles: latency.memory_cycles,
            instructions: self.instructions(),
            stalls,
            pages: self.counts_pages().then(|| PageStalls::of(self.all_pages(), &self.options.page_costs)),
            page_costs: self.options.page_costs,
            coverage: coverage(&owners, stalls, (self.main_lack(), self.undescribed_cycles())),
            sample: Sample {
                windows: self.recorded.windows.len() as u64,
                // An access of a repeated string instruction may be two in a window: sizes are powers of two there.
                accesses: self.watched.accesses.min(self.of_accesses()),
                of_accesses: self.of_accesses(),
                stall_cycles: bench.base,
            },
            configurations: bench.configurations.iter().map(|one| one.name.clone()).collect(),
            findings: found,
            footprints,
            ranking: Vec::new(),
            allocation_pairs: Vec::new(),
            stack_objects: Vec::new(),
            parallel_arrays: Vec::new(),
            locks,
            below_threshold,
            time_source: self.times.source,
            without_finding,
            owners,
            allocation_sites,
            placements: None,
            huge_pages: None,
            between_threads: self.between_threads(),
            contexts: None,
            functions,
            stacks: self.stacks(),
            clock_samples: (self.samples() > 0).then(|| self.samples()),
            clock_event: None,
            bursts: None,
            forked: self.forked(),
            notes: self.notes(all_cycles),
        };
        findings.ranking = footprints::ranking(&findings);
        findings
    }

    /// Gains of what the user can change, and the reason why each type of a library has no finding.
    fn changeable(&mut self, gains: Vec<Gain>) -> (Vec<Gain>, Vec<(String, NoFinding)>) {
        let (mut own, mut of_libraries) = (Vec::new(), Vec::new());
        for gain in gains {
            match (gain.subject, self.library(gain.subject)) {
                (_, None | Some(Library::Outside(..))) | (Subject::Function(_), _) => own.push(gain),
                (Subject::Type(ty), Some(library)) => {
                    let declared_in = library.to_string();
                    of_libraries
                        .push((self.naming.namer.catalog().name(ty), NoFinding::OfLibrary { declared_in }));
                }
            }
        }
        (own, of_libraries)
    }

    fn finding(&mut self, bench: &Bench<'_>, gain: Gain) -> Option<Finding> {
        let all_cycles = bench.all_cycles;
        let sign = gain.sign(bench.configurations);
        let best = gain.trials.first()?.clone();
        let (subject, stalls, functions) = match gain.subject {
            Subject::Type(ty) => {
                let tallies = self.by_owner();
                let own = tallies.iter().find(|(owner, _)| *owner == Owner::Type(ty))?;
                let functions = self.regions_of(Owner::Type(ty));
                let name = self.naming.namer.catalog().name(ty);
                (Some(name), own.1.cycles(self.options.latency), functions)
            }
            Subject::Function(Some(number)) => {
                let counts = &self.attribution.functions[number];
                let functions = self.can_be_region(counts).then(|| counts.name.clone()).into_iter().collect();
                (
                    Some(counts.name.clone()),
                    cycles(counts.fetch_misses, self.options.latency) as f64,
                    functions,
                )
            }
            Subject::Function(None) => (None, self.own_code_cycles(), Vec::new()),
        };
        let scale = bench.scale(stalls, gain.window_cycles);
        // The address of one function's code is luck as well: the function saves no more than the lines that it does
        // not need.
        let avoidable = match (gain.subject, &gain.evidence) {
            (Subject::Function(Some(_)), Evidence::Code { lines, lines_needed, .. }) => {
                1.0 - *lines_needed as f64 / (*lines).max(1) as f64
            }
            _ => 1.0,
        };
        // An upper bound is of the subject's own stalls: room that it leaves to others is not promised.
        let most = stalls / all_cycles * avoidable;
        let scaled = |gain: f64| scale.of_run(gain).min(most);
        let trials = gain.trials.iter().map(|trial| Trial { gain: scaled(trial.gain), ..*trial }).collect();
        let map = match gain.subject {
            Subject::Type(ty) => {
                let moved = (gain.moved.as_ref(), gain.start_in_line);
                member_map(&mut self.naming, &self.attribution, ty, moved, bench.line_bytes)
            }
            Subject::Function(_) => None,
        };
        let is_worth_it = |trial: &&Trial| scaled(trial.gain) >= self.options.least_gain;
        let worth: Vec<Kind> = gain.trials.iter().filter(is_worth_it).map(|trial| trial.kind).collect();
        let what = (best.kind, &gain.evidence, map.as_ref());
        let (by_hand, next, instead) =
            self.edit_and_next((gain.subject, subject.as_deref()), what, &worth, &functions);
        let is_written = self.is_written(best.kind, gain.subject) && !best.kind.is_conditional();
        Some(Finding {
            next,
            by_hand,
            is_written,
            instead,
            subject,
            kind: best.kind,
            stalls: stalls / all_cycles,
            gain: scaled(best.gain),
            gains: gain.gains.iter().map(|gain| scaled(*gain)).collect(),
            sign,
            evidence: gain.evidence,
            trials,
            functions,
            map,
            clock: None,
        })
    }

    /// The edit of a layout in words, and the next command, where layouts of these kinds are worth it.
    pub(crate) fn edit_and_next(
        &mut self,
        (subject, name): (Subject, Option<&str>),
        (kind, evidence, map): (Kind, &Evidence, Option<&MemberMap>),
        worth: &[Kind],
        functions: &[String],
    ) -> (Option<String>, String, Option<Kind>) {
        let library = self.library(subject);
        let is_written = self.is_written(kind, subject);
        let made = [Kind::Split, Kind::Order, Kind::Boxed].into_iter();
        let instead =
            made.filter(|other| *other != kind && worth.contains(other)).find(|other| match other {
                Kind::Order => !self.is_of_template(subject),
                other => self.is_written(*other, subject),
            });
        let by_hand = match (&library, name) {
            (Some(library), Some(name)) => Some(manual_edits::of_library(name, library)),
            (_, Some(name)) if kind == Kind::Order && self.is_of_template(subject) => {
                Some(manual_edits::order_of_template(name, map))
            }
            (_, Some(_)) if kind == Kind::Narrow => self.smaller_members(subject, is_written),
            (_, Some(name)) if kind == Kind::Prefetch => {
                let smaller =
                    worth.contains(&Kind::Narrow).then(|| self.smaller_members(subject, false)).flatten();
                Some(manual_edits::ahead(name, is_written, smaller))
            }
            (_, Some(name)) if self.options.next.is_none() => {
                let edit = manual_edits::edit(name, (kind, is_written), evidence, map);
                edit.map(|edit| edit + manual_edits::instead(is_written, instead))
            }
            _ => None,
        };
        let next = match library {
            None if by_hand.is_none() || instead.is_some() || is_written => self.next(kind, functions),
            _ => String::new(),
        };
        (by_hand, next, instead)
    }

    /// Whether a study writes an edit of this kind in the language of a type.
    fn is_written(&mut self, kind: Kind, subject: Subject) -> bool {
        match kind {
            Kind::Split => {
                self.is_in(subject, &[Language::C, Language::Cpp]) && !self.is_of_template(subject)
            }
            Kind::Prefetch => self.is_in(subject, &[Language::C, Language::Cpp]),
            Kind::Columns | Kind::Narrow => self.is_in(subject, &[Language::C]),
            kind => kind == Kind::Boxed,
        }
    }

    /// Whether a type is made by a template of C++, which a study leaves as it is.
    pub(crate) fn is_of_template(&mut self, subject: Subject) -> bool {
        let Subject::Type(ty) = subject else { return false };
        self.is_in(subject, &[Language::Cpp]) && self.naming.namer.catalog().name(ty).contains('<')
    }

    /// Whether a type is of one of these languages.
    fn is_in(&mut self, subject: Subject, languages: &[Language]) -> bool {
        let Subject::Type(ty) = subject else { return false };
        let known = self.naming.namer.catalog().table(ty);
        let ty = known.and_then(|(types, described)| types.get(described.id));
        ty.is_some_and(|ty| languages.contains(&ty.language))
    }

    /// The library of a type that the program's own sources do not declare.
    pub(crate) fn library(&mut self, subject: Subject) -> Option<Library> {
        let Subject::Type(ty) = subject else { return None };
        if self.options.next.is_some() {
            return None;
        }
        let (types, described) = self.naming.namer.catalog().table(ty)?;
        let image = self.recorded.images.get(described.image).map(|image| image.path.as_str());
        let ty = types.get(described.id)?;
        Library::of(ty, image.filter(|path| *path != self.program)).or_else(|| {
            let folder = self.options.again.source.as_ref()?;
            let file = Path::new(&*ty.declared_at.as_ref()?.file);
            let is_outside =
                file.is_absolute() && file.exists() && !file.canonicalize().ok()?.starts_with(folder);
            is_outside.then(|| Library::Outside(file.display().to_string(), folder.display().to_string()))
        })
    }
}
