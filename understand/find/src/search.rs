//! From a recording to findings.

use crate::error::FindError;
use crate::findings::{Bursts, BurstsTaken, Evidence, Finding, Findings, Kind, Sample, Stalls, Trial};
use crate::owner::Owner;
use crate::recorded::Recorded;
use crate::stalls::allocation_sites::Sites;
use crate::stalls::attribution::{Attribution, FunctionCounts, Tally};
use crate::stalls::bursts;
use crate::stalls::clock::Clock;
use crate::stalls::page_stalls::{PageCosts, PageStalls};
use crate::stalls::window_names::Naming;
use crate::stalls::window_stalls::Watched;
use crate::stalls::work_contexts;
use crate::tables::clock_contradictions;
use crate::tables::manual_edits;
use crate::tables::member_map::member_map;
use crate::tables::stall_tables::coverage;
use crate::tables::without_finding;
use crate::threads::contention::Between;
use crate::trials::cache_configurations::{Configuration, configurations};
use crate::trials::gains;
use crate::trials::gains::{Bench, Gain, Subject};
use crate::trials::placements;
use crate::trials::placements::Placements;
use crate::trials::replay::cycles;
use foldhash::HashMap;
use lineup_cache::{CacheLevel, CacheSpec};
use lineup_debuginfo::DebugInfo;
use lineup_explain::catalog::Ty;
use lineup_model::Library;
use lineup_model::abi::Machine;
use lineup_model::types::Language;
use lineup_recording::{Latency, PageCounts};
use std::path::{Path, PathBuf};

/// The options of the search.
#[derive(Clone, Debug)]
pub struct Options {
    /// Findings that gain less than this share of all modelled stalls are left out.
    pub least_gain: f64,
    /// Findings at most.
    pub most_findings: usize,
    /// The costs of misses.
    pub latency: Latency,
    /// The costs of pages.
    pub page_costs: PageCosts,
    /// The next command of a finding in a kernel; `None` for a program that `lineup study` can build.
    pub next: Option<NextWords>,
    /// The words with which a finding's next command runs the program.
    pub again: Again,
    /// How bursts were taken, when the recording is of these.
    pub bursts: Option<BurstsTaken>,
}

/// The functions that the next command records for a finding that names none.
const HOTTEST: usize = 5;

/// The command that a finding in a kernel leads to.
#[derive(Clone, Default, Debug)]
pub struct NextWords {
    /// Its words up to the functions.
    pub first: Vec<String>,
    /// The words in place of functions where a finding has none that can be recorded.
    pub without_functions: Vec<String>,
}

/// Words of commands that run a program again as it was recorded.
#[derive(Clone, Default, Debug)]
pub struct Again {
    /// Options of every command that runs it, such as `--drive` with its line.
    pub run: Vec<String>,
    /// Options of the recorder: `--engine` and `--cache`.
    pub recorder: Vec<String>,
    /// Other options of `lineup record`: additions to the environment, which a study takes as part of its command.
    pub environment: Vec<String>,
    /// Other options of `lineup study`: the folder of the sources, and the build command.
    pub build: Vec<String>,
    /// The program and its arguments as `lineup study` takes them; empty when as they were recorded.
    pub studied: Vec<String>,
    /// The folder of the sources, where it is known.
    pub source: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            least_gain: 0.01,
            most_findings: 10,
            latency: Latency::default(),
            page_costs: PageCosts::default(),
            next: None,
            again: Again::default(),
            bursts: None,
        }
    }
}

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
    let mut work =
        Work { recorded, options, program, attribution, naming, sites: &sites, watched: &watched, between };
    let (points, spots) = (std::mem::take(&mut work.naming.points), work.naming.spots.clone());
    let windows = (recorded.windows.as_slice(), points.as_slice());
    let all_cycles = (work.stalls().cycles() as f64).max(1.0);
    let caches = (configurations.as_slice(), line_bytes(&specs, CacheLevel::L1d));
    let bench = Bench::new(windows, &spots, &watched, caches, options, all_cycles);
    // A subject cannot gain more than it stalls for, except for the room that it leaves to others.
    let least_cycles = work.stalls().cycles() as f64 * options.least_gain;
    let types = work.types_by_stalls(least_cycles);
    let mut gains = gains::of_types(&bench, &mut work.naming, &types);
    let own_code = |counts: &FunctionCounts| work.can_be_region(counts);
    gains.extend(gains::of_code(&bench, &work.attribution, own_code, (recorded, debug), least_cycles));
    let lost = clock.map_or(0, |clock| clock.lost);
    let placements = work.placements(bench.configurations);
    let mut findings = work.findings(&bench, gains);
    findings.placements = placements;
    findings.bursts = bursts;
    findings.contexts = work_contexts::stalls(recorded, debug, options.latency, all_cycles);
    findings.clock_event = clock.filter(|_| findings.clock_samples.is_some()).map(|clock| clock.event);
    findings.notes.extend((lost > 0).then(|| format!("{lost} samples by the clock were lost")));
    Ok(findings)
}

/// Contention between threads of a program.
fn between(recorded: &Recorded, naming: &mut Naming<'_>, line_bytes: u64) -> Between {
    let mut between = Between::of(&recorded.windows, &naming.points, &naming.spots, line_bytes);
    between.leave_out_little(&mut naming.namer);
    between
}

/// Bytes of a line of a level.
fn line_bytes(specs: &[CacheSpec], level: CacheLevel) -> u64 {
    let spec = specs.iter().rfind(|spec| spec.level() == level);
    spec.map_or(64, |spec| spec.line().bytes())
}

/// Everything known so far.
pub(crate) struct Work<'w, 'a> {
    pub(crate) recorded: &'w Recorded,
    pub(crate) options: &'w Options,
    pub(crate) program: &'w str,
    pub(crate) attribution: Attribution,
    pub(crate) naming: Naming<'a>,
    pub(crate) sites: &'w Sites,
    pub(crate) watched: &'w Watched,
    pub(crate) between: Between,
}

impl Work<'_, '_> {
    pub(crate) fn stalls(&self) -> Stalls {
        let of = |counts: &FunctionCounts| self.of_function(counts);
        self.attribution.functions.iter().map(of).fold(Stalls::default(), |sum, own| Stalls {
            code_cycles: sum.code_cycles + own.code_cycles,
            data_cycles: sum.data_cycles + own.data_cycles,
        })
    }

    /// Accesses of the whole run.
    pub(crate) fn of_accesses(&self) -> u64 {
        self.recorded.instructions.iter().map(|counts| counts.loads + counts.stores).sum()
    }

    /// Whether the recorder counts pages.
    pub(crate) fn counts_pages(&self) -> bool {
        !self.recorded.pages.is_empty()
    }

    /// The pages of the whole run.
    fn all_pages(&self) -> PageCounts {
        self.recorded.pages.values().fold(PageCounts::default(), |mut sum, own| {
            sum += *own;
            sum
        })
    }

    /// Other placements of the heap's small objects.
    fn placements(&self, configurations: &[Configuration]) -> Option<Placements> {
        let prices = (self.options.latency, self.options.page_costs);
        let run = placements::WholeRun {
            instructions: &self.recorded.instructions,
            code_cycles: self.stalls().code_cycles,
        };
        let bench = placements::Bench::of(&self.recorded.windows, &self.recorded.objects, prices, run)?;
        let live_objects = self.sites.live_small_objects(placements::MOST_SMALL_BYTES);
        bench.tried(configurations, self.options.least_gain, live_objects, || self.next_of_placement())
    }

    /// The command that tries placements.
    fn next_of_placement(&self) -> String {
        let again = &self.options.again;
        let command = &self.recorded.header.command;
        let command = if again.studied.is_empty() { command } else { &again.studied };
        let first = ["lineup", "study", "--placement"].into_iter();
        let own = again.run.iter().map(String::as_str).chain(["--"]);
        shell_words::join(first.chain(own).chain(command.iter().map(String::as_str)))
    }

    /// Samples by the clock.
    pub(crate) fn samples(&self) -> u64 {
        self.attribution.functions.iter().map(|counts| counts.samples).sum()
    }

    pub(crate) fn of_function(&self, counts: &FunctionCounts) -> Stalls {
        Stalls {
            code_cycles: cycles(counts.fetch_misses, self.options.latency),
            data_cycles: cycles(counts.access_misses, self.options.latency),
        }
    }

    /// Tallies of all owners.
    pub(crate) fn by_owner(&self) -> Vec<(Owner, Tally)> {
        let mut sums: HashMap<Owner, Tally> = HashMap::default();
        let mut spots: Vec<(&u32, &Tally)> = self.attribution.spots.iter().collect();
        spots.sort_by_key(|(spot, _)| **spot);
        for (spot, tally) in spots {
            sums.entry(self.naming.spots[*spot as usize].owner).or_default().add(*tally);
        }
        sums.into_iter().collect()
    }

    /// Types that stall for at least this number of cycles, most stalls first.
    fn types_by_stalls(&self, least_cycles: f64) -> Vec<(Ty, f64)> {
        let types = self.by_owner().into_iter().filter_map(|(owner, tally)| match owner {
            Owner::Type(ty) => Some((ty, tally.cycles(self.options.latency))),
            _ => None,
        });
        let mut types: Vec<(Ty, f64)> =
            types.filter(|(_, cycles)| *cycles > 0.0 && *cycles >= least_cycles).collect();
        types.sort_by(|(one, stalls), (other, more)| more.total_cmp(stalls).then(one.cmp(other)));
        types
    }

    fn findings(mut self, bench: &Bench<'_>, gains: Vec<Gain>) -> Findings {
        let (stalls, all_cycles) = (self.stalls(), bench.all_cycles);
        let owners = self.owners(all_cycles);
        let functions = self.functions(all_cycles);
        let allocation_sites = self.allocation_sites(all_cycles);
        let mut found: Vec<Finding> =
            gains.into_iter().filter_map(|gain| self.finding(bench, gain)).collect();
        found.extend(self.fights(all_cycles));
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
        found.sort_by(|one, other| other.gain_by_time().total_cmp(&one.gain_by_time()));
        found.truncate(self.options.most_findings);
        let without_finding = without_finding::without_finding(&owners, &tried, &found);
        let (header, latency) = (&self.recorded.header, self.options.latency);
        Findings {
            schema: "lineup.find/1",
            command: header.command.clone(),
            recorder: header.emulator.clone(),
            caches: header.caches.clone(),
            l2_cycles: latency.l2_cycles,
            memory_cycles: latency.memory_cycles,
            instructions: self.attribution.functions.iter().map(|counts| counts.instructions).sum(),
            stalls,
            pages: self.counts_pages().then(|| PageStalls::of(self.all_pages(), &self.options.page_costs)),
            page_costs: self.options.page_costs,
            coverage: coverage(&owners, stalls),
            sample: Sample {
                windows: self.recorded.windows.len() as u64,
                accesses: self.watched.accesses,
                of_accesses: self.of_accesses(),
                stall_cycles: bench.base,
            },
            configurations: bench.configurations.iter().map(|one| one.name.clone()).collect(),
            findings: found,
            below_threshold,
            without_finding,
            owners,
            allocation_sites,
            placements: None,
            between_threads: self.between_threads(),
            contexts: None,
            functions,
            stacks: self.stacks(),
            clock_samples: (self.samples() > 0).then(|| self.samples()),
            clock_event: None,
            bursts: None,
            notes: self.notes(all_cycles),
        }
    }

    fn finding(&mut self, bench: &Bench<'_>, gain: Gain) -> Option<Finding> {
        let all_cycles = bench.all_cycles;
        let sign = gain.sign(bench.configurations);
        let best = gain.trials.first()?.clone();
        let library = self.library(gain.subject);
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
            Subject::Type(ty) => member_map(&mut self.naming, &self.attribution, ty, &gain, bench.line_bytes),
            Subject::Function(_) => None,
        };
        let is_worth_it = |trial: &Trial| scaled(trial.gain) >= self.options.least_gain;
        let has_order = gain.trials.iter().any(|trial| trial.kind == Kind::Order && is_worth_it(trial));
        let is_written = best.kind == Kind::Split && self.is_of_cpp(gain.subject);
        let by_hand = match (&library, &subject) {
            (Some(library), Some(name)) => Some(manual_edits::of_library(name, library)),
            (_, Some(name)) if self.options.next.is_none() => {
                let kind = (best.kind, is_written);
                manual_edits::edit(name, kind, &gain.evidence, map.as_ref()).map(|edit| match has_order {
                    true if is_written => format!("{edit}; else it orders the members"),
                    true => format!("{edit}; lineup study orders the members instead"),
                    false => edit,
                })
            }
            _ => None,
        };
        Some(Finding {
            next: match library {
                None if by_hand.is_none() || has_order || is_written => self.next(best.kind, &functions),
                _ => String::new(),
            },
            by_hand,
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

    /// Cycles for which the code stalled that a study can put in another order: a library's is not the program's to
    /// change.
    fn own_code_cycles(&self) -> f64 {
        let own = self.attribution.functions.iter().filter(|counts| self.can_be_region(counts));
        own.map(|counts| self.of_function(counts).code_cycles as f64).sum()
    }

    /// Whether the next command takes a function: one of the program, or of a kernel's module.
    pub(crate) fn can_be_region(&self, counts: &FunctionCounts) -> bool {
        let mut modules = self.recorded.modules.keys().filter_map(|index| self.recorded.images.get(*index));
        counts.image == self.program || modules.any(|module| counts.image == module.path)
    }

    /// The functions that stall most for code, of those that can be recorded: a finding on all code names none itself.
    fn hottest(&self) -> Vec<String> {
        let cycles = |counts: &&FunctionCounts| self.of_function(counts).code_cycles;
        let mut all: Vec<&FunctionCounts> =
            self.attribution.functions.iter().filter(|counts| self.can_be_region(counts)).collect();
        all.sort_by_key(|counts| (std::cmp::Reverse(cycles(counts)), counts.name.clone()));
        all.iter().take(HOTTEST).map(|counts| counts.name.clone()).collect()
    }

    /// The command to go on with.
    pub(crate) fn next(&self, kind: Kind, functions: &[String]) -> String {
        let command = &self.recorded.header.command;
        let again = &self.options.again;
        let regions = functions.iter().flat_map(|name| ["--region".to_owned(), name.clone()]);
        let regions: Vec<String> = regions.collect();
        let join = |first: &[&str], own: &[String], command: &[String]| {
            let first = first.iter().map(|word| (*word).to_owned());
            let own = own.iter().chain(&regions).cloned().chain(["--".to_owned()]);
            shell_words::join(first.chain(own).chain(command.iter().cloned()).collect::<Vec<String>>())
        };
        let study = |option: &'static [&'static str]| {
            let own = [again.build.as_slice(), &again.recorder, &again.run].concat();
            let command = if again.studied.is_empty() { command } else { &again.studied };
            join(&[&["lineup", "study"], option].concat(), &own, command)
        };
        if let Some(next) = &self.options.next {
            let hottest =
                || self.hottest().into_iter().flat_map(|name| ["--region".to_owned(), name]).collect();
            let regions: Vec<String> = if regions.is_empty() { hottest() } else { regions };
            let regions = if regions.is_empty() { &next.without_functions } else { &regions };
            return shell_words::join(next.first.iter().chain(regions));
        }
        match kind {
            Kind::Code if self.recorded.header.abi.machine == Machine::X86_64 => study(&["--code"]),
            Kind::Code => {
                let with = |first: String| shell_words::join([first].iter().chain(command.iter().skip(1)));
                let program = command.first().map_or("", String::as_str);
                let both = [with(program.to_owned()), with(format!("{program}.profiled"))];
                shell_words::join(["lineup", "compare"].into_iter().chain(both.iter().map(String::as_str)))
            }
            _ if functions.is_empty() => {
                let own = [again.recorder.as_slice(), &again.environment, &again.run].concat();
                join(&["lineup", "record", "--whole-program"], &own, command)
            }
            Kind::OwnLines => study(&["--allow-growth"]),
            // For the others the study orders the members; changes that gain more are made by hand.
            Kind::Order | Kind::Split | Kind::Columns | Kind::ReprC | Kind::Boxed | Kind::BoxedVariant => {
                study(&[])
            }
        }
    }

    /// The command that records these functions, and shows the contention between threads in them.
    pub(crate) fn next_of_threads(&self, functions: &[String]) -> String {
        let again = &self.options.again;
        let regions = functions.iter().flat_map(|name| ["--region", name.as_str()]);
        let own = again.environment.iter().chain(&again.run).map(String::as_str).chain(regions).chain(["--"]);
        let first = ["lineup", "record", "--engine", "native", "--out", "threads.rec"].into_iter();
        let command = self.recorded.header.command.iter().map(String::as_str);
        format!("{} && lineup threads threads.rec", shell_words::join(first.chain(own).chain(command)))
    }

    /// Whether C++ declares a type.
    fn is_of_cpp(&mut self, subject: Subject) -> bool {
        let Subject::Type(ty) = subject else { return false };
        let known = self.naming.namer.catalog().table(ty);
        let ty = known.and_then(|(types, described)| types.get(described.id));
        ty.is_some_and(|ty| ty.language == Language::Cpp)
    }

    /// The library of a type that the program's own sources do not declare.
    fn library(&mut self, subject: Subject) -> Option<Library> {
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
