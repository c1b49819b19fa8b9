//! From a recording to findings.

use crate::attribution::{Attribution, FunctionCounts, Tally};
use crate::clock::{self, Clock};
use crate::configurations::configurations;
use crate::contexts;
use crate::error::FindError;
use crate::findings::{
    AllocationStalls, ClassShare, Coverage, Evidence, Finding, Findings, FunctionStalls, Kind, MemberStalls,
    OwnerStalls, Sample, Stack, Stalls, Trial,
};
use crate::gains::{self, Bench, Gain, Subject};
use crate::member_map::member_map;
use crate::naming::Naming;
use crate::owner::{self, Owner, Spot};
use crate::recorded::Recorded;
use crate::replay::cycles;
use crate::sites::{self, Sites};
use crate::watched::Watched;
use lineup_cache::{CacheLevel, CacheSpec};
use lineup_debuginfo::DebugInfo;
use lineup_explain::catalog::Ty;
use lineup_explain::name::Class;
use lineup_recording::Latency;
use std::collections::{BTreeMap, HashMap};

/// Functions named with an owner or a finding at most.
const MOST_FUNCTIONS: usize = 3;
/// A function that has less of an owner's stalls than this share is not worth a look.
const LEAST_OF_OWNER: f64 = 0.1;
/// A function that never stalls is told of when it executes at least this share of all instructions.
const LEAST_EXECUTED: f64 = 0.0001;

/// A file whose debug information lacks something is told of when its code has at least this share of all stalls.
const LEAST_LACKING: f64 = 0.01;

/// What a recording says that was made inside the program.
const NATIVE_ENGINE: &str = "native engine";

/// What is wanted.
#[derive(Clone, Debug)]
pub struct Options {
    /// Findings that gain less than this share of all modelled stalls are left out.
    pub least_gain: f64,
    /// Findings at most.
    pub most_findings: usize,
    /// What misses cost.
    pub latency: Latency,
    /// Words of the command that a finding goes on with, up to its functions; `None` for a program that `lineup study`
    /// can build.
    pub next: Option<Vec<String>>,
}

impl Default for Options {
    fn default() -> Self {
        Options { least_gain: 0.01, most_findings: 10, latency: Latency::default(), next: None }
    }
}

/// Works out what is worth fixing. `debug` holds the debug info of each of the recording's images, `program` is the path
/// of the one whose functions can be studied, `clock` what samples of a run at its own speed say.
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
    let watched = Watched::of(recorded, &naming, &sites, usual, line_bytes(&specs), options.latency);
    let attribution =
        Attribution::of(recorded, debug, &mut naming, &watched.observed, options.latency, clock)?;
    let mut work = Work { recorded, options, program, attribution, naming, sites: &sites, watched: &watched };
    let (points, spots) = (std::mem::take(&mut work.naming.points), work.naming.spots.clone());
    let windows = (recorded.windows.as_slice(), points.as_slice());
    let all_cycles = (work.stalls().cycles() as f64).max(1.0);
    let caches = (configurations.as_slice(), line_bytes(&specs));
    let bench = Bench::new(windows, &spots, &watched, caches, options, all_cycles);
    // What stalls for less cannot gain more, but for the room that it leaves to others.
    let least_cycles = work.stalls().cycles() as f64 * options.least_gain;
    let types = work.types_by_stalls(least_cycles);
    let mut gains = gains::of_types(&bench, &mut work.naming, &types);
    gains.extend(gains::of_code(&bench, &work.attribution, (&recorded.images, debug), least_cycles));
    let lost = clock.map_or(0, |clock| clock.lost);
    let mut findings = work.findings(&bench, gains);
    findings.contexts = contexts::stalls(recorded, debug, options.latency, all_cycles);
    findings.notes.extend((lost > 0).then(|| format!("{lost} samples by the clock were lost")));
    Ok(findings)
}

/// Bytes of a line of the first level for data.
fn line_bytes(specs: &[CacheSpec]) -> u64 {
    let spec = specs.iter().rfind(|spec| spec.level() == CacheLevel::L1d);
    spec.map_or(64, |spec| spec.line().bytes())
}

/// Everything known so far.
struct Work<'w, 'a> {
    recorded: &'w Recorded,
    options: &'w Options,
    program: &'w str,
    attribution: Attribution,
    naming: Naming<'a>,
    sites: &'w Sites,
    watched: &'w Watched,
}

impl Work<'_, '_> {
    fn stalls(&self) -> Stalls {
        let of = |counts: &FunctionCounts| self.of_function(counts);
        self.attribution.functions.iter().map(of).fold(Stalls::default(), |sum, own| Stalls {
            code_cycles: sum.code_cycles + own.code_cycles,
            data_cycles: sum.data_cycles + own.data_cycles,
        })
    }

    /// Stalls of data by owner, member and function, and of code by function.
    fn stacks(&mut self) -> Vec<Stack> {
        let mut sums: BTreeMap<Vec<String>, f64> = BTreeMap::new();
        for ((spot, function), tally) in &self.attribution.spots_in {
            let cycles = tally.cycles(self.options.latency);
            if cycles > 0.0 {
                let spot = self.naming.spots[*spot as usize];
                let owner = owner::name(&mut self.naming.namer, spot.owner);
                let member = owner::member_name(&mut self.naming.namer, spot);
                let function = self.attribution.functions[*function].name.clone();
                let frames = ["data".to_owned(), owner, member, function];
                let frames = frames.into_iter().filter(|frame| !frame.is_empty()).collect();
                *sums.entry(frames).or_default() += cycles;
            }
        }
        for counts in &self.attribution.functions {
            let cycles = cycles(counts.fetch_misses, self.options.latency);
            *sums.entry(vec!["code".to_owned(), counts.name.clone()]).or_default() += cycles as f64;
        }
        let stacks = sums.into_iter().map(|(frames, cycles)| Stack { frames, cycles: cycles.round() as u64 });
        stacks.filter(|stack| stack.cycles > 0).collect()
    }

    /// Samples by the clock.
    fn samples(&self) -> u64 {
        self.attribution.functions.iter().map(|counts| counts.samples).sum()
    }

    fn of_function(&self, counts: &FunctionCounts) -> Stalls {
        Stalls {
            code_cycles: cycles(counts.fetch_misses, self.options.latency),
            data_cycles: cycles(counts.access_misses, self.options.latency),
        }
    }

    /// Tallies of all owners.
    fn by_owner(&self) -> Vec<(Owner, Tally)> {
        let mut sums: HashMap<Owner, Tally> = HashMap::new();
        let mut spots: Vec<(&u32, &Tally)> = self.attribution.spots.iter().collect();
        spots.sort_by_key(|(spot, _)| **spot);
        for (spot, tally) in spots {
            sums.entry(self.naming.spots[*spot as usize].owner).or_default().add(*tally);
        }
        sums.into_iter().collect()
    }

    /// Types that stall for at least so many cycles, most stalls first.
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
        let all = found.len();
        found.retain(|finding| finding.gain >= self.options.least_gain);
        let below_threshold = all - found.len();
        found.sort_by(|one, other| other.gain.total_cmp(&one.gain));
        found.truncate(self.options.most_findings);
        let (header, latency) = (&self.recorded.header, self.options.latency);
        let of_accesses = self.recorded.instructions.iter().map(|counts| counts.loads + counts.stores).sum();
        Findings {
            schema: "lineup.find/1",
            command: header.command.clone(),
            recorder: header.emulator.clone(),
            caches: header.caches.clone(),
            l2_cycles: latency.l2_cycles,
            memory_cycles: latency.memory_cycles,
            instructions: self.attribution.functions.iter().map(|counts| counts.instructions).sum(),
            stalls,
            coverage: coverage(&owners, stalls),
            sample: Sample {
                windows: self.recorded.windows.len() as u64,
                accesses: self.watched.accesses,
                of_accesses,
                stall_cycles: bench.base,
            },
            configurations: bench.configurations.iter().map(|one| one.name.clone()).collect(),
            findings: found,
            below_threshold,
            owners,
            allocation_sites,
            contexts: None,
            functions,
            stacks: self.stacks(),
            clock_samples: (self.samples() > 0).then(|| self.samples()),
            notes: self.notes(all_cycles),
        }
    }

    /// Stalls by where objects were allocated; `None` when that was not seen.
    fn allocation_sites(&mut self, all_cycles: f64) -> Option<Vec<AllocationStalls>> {
        let (used, latency) = (&self.watched.used_by_site, self.options.latency);
        let told =
            || sites::stalls(self.sites, &self.attribution, &mut self.naming, used, latency, all_cycles);
        (!self.recorded.sites.is_empty()).then(told)
    }

    /// What the recorder says, and which files would have to tell more for names.
    fn notes(&self, all_cycles: f64) -> Vec<String> {
        let mut lacking: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        for run in &self.recorded.runs {
            let image = self.recorded.images.iter().rfind(|image| image.contains(run.pc));
            let lack = self.naming.namer.lack_at(run.pc).map(|lack| lack.advice());
            if let (Some(image), Some(lack)) = (image, lack) {
                let of_data = cycles(run.load_misses, self.options.latency);
                *lacking.entry((&image.path, lack)).or_default() +=
                    of_data + cycles(run.store_misses, self.options.latency);
            }
        }
        let share = |cycles: u64| cycles as f64 / all_cycles;
        let worth = lacking.into_iter().filter(|(_, cycles)| share(*cycles) >= LEAST_LACKING);
        let lacks = worth.map(|((path, lack), cycles)| {
            format!(
                "{:.1} % of modelled stalls are for data of code in {path}: {lack}",
                100.0 * share(cycles)
            )
        });
        let told = self.recorded.summary.iter().flat_map(|summary| summary.notes.clone());
        self.uncounted().into_iter().chain(told).chain(self.unseen()).chain(lacks).collect()
    }

    /// Why it is not told where objects were allocated; of guests it never is.
    fn unseen(&self) -> Option<String> {
        let is_guest = self.options.next.is_some();
        let is_told = !self.recorded.sites.is_empty();
        let why = match self.recorded.header.emulator.as_str() {
            NATIVE_ENGINE => "no allocator was called by a name that is known",
            _ => "the native engine sees that, and did not record here",
        };
        (!is_guest && !is_told).then(|| format!("where objects were allocated is not known: {why}"))
    }

    /// Programs that this one started or became, which are not counted: what is wanted may be one of those, as where a
    /// script starts it.
    fn uncounted(&self) -> Vec<String> {
        let all = self.recorded.summary.iter().flat_map(|summary| &summary.unfollowed);
        let mut times: BTreeMap<&str, u64> = BTreeMap::new();
        all.for_each(|one| *times.entry(one.program.as_str()).or_default() += 1);
        let told = times.into_iter().map(|(program, times)| {
            let times = if times == 1 { "once".to_owned() } else { format!("{times} times") };
            format!("{program} was started {times} and is not counted: to look into it, name it after --")
        });
        told.collect()
    }

    fn owners(&mut self, all_cycles: f64) -> Vec<OwnerStalls> {
        let mut all: Vec<OwnerStalls> = Vec::new();
        for (owner, tally) in self.by_owner() {
            let stall_cycles = tally.cycles(self.options.latency);
            if stall_cycles <= 0.0 {
                continue;
            }
            all.push(OwnerStalls {
                name: owner::name(&mut self.naming.namer, owner),
                class: class_name(owner::class(owner)),
                size_bytes: match owner {
                    Owner::Type(ty) => self.naming.namer.catalog().size_bytes(ty),
                    _ => None,
                },
                accesses: tally.accesses,
                l1_misses: tally.l1,
                l2_misses: tally.l2,
                stall_cycles,
                share: stall_cycles / all_cycles,
                used_bytes_per_line: self.watched.used_per_line.get(&owner).copied(),
                members: self.members(owner, all_cycles),
                functions: self.functions_of(owner, None),
            });
        }
        all.sort_by(|one, other| {
            let order = other.stall_cycles.total_cmp(&one.stall_cycles);
            order.then_with(|| (&one.name, one.class).cmp(&(&other.name, other.class)))
        });
        all
    }

    fn members(&mut self, owner: Owner, all_cycles: f64) -> Vec<MemberStalls> {
        if !matches!(owner, Owner::Type(_) | Owner::ThreadLocal(_)) {
            return Vec::new();
        }
        let own = self.attribution.spots.iter().filter_map(|(number, tally)| {
            let spot = self.naming.spots[*number as usize];
            (spot.owner == owner).then_some((spot, *tally))
        });
        let own: Vec<(Spot, Tally)> = own.collect();
        let member = |(spot, tally): (Spot, Tally)| {
            let stall_cycles = tally.cycles(self.options.latency);
            MemberStalls {
                path: owner::member_name(&mut self.naming.namer, spot),
                offset: spot.at,
                size_bytes: spot.size_bytes,
                accesses: tally.accesses,
                stall_cycles,
                share: stall_cycles / all_cycles,
            }
        };
        let mut members: Vec<MemberStalls> = own.into_iter().map(member).collect();
        members.sort_by(|one, other| {
            let order = other.stall_cycles.total_cmp(&one.stall_cycles);
            order.then_with(|| (one.offset, one.size_bytes).cmp(&(other.offset, other.size_bytes)))
        });
        members
    }

    /// The functions in which an owner stalls most, with their shares in its stalls; those of one file, if given.
    fn functions_of(&self, owner: Owner, image: Option<&str>) -> Vec<(String, f64)> {
        let own = self.attribution.owners.iter().filter(|((of, _), _)| *of == owner);
        let own = own.map(|((_, function), tally)| (*function, tally.cycles(self.options.latency)));
        let mut own: Vec<(usize, f64)> = own.collect();
        // Sums of fractions come out the same each time.
        own.sort_by_key(|(function, _)| *function);
        let all: f64 = own.iter().map(|(_, cycles)| cycles).sum();
        let named = own.into_iter().filter_map(|(function, cycles)| {
            let counts = &self.attribution.functions[function];
            let is_wanted = image.is_none_or(|image| counts.image == image);
            (is_wanted && cycles > 0.0).then(|| (counts.name.clone(), cycles / all))
        });
        let mut named: Vec<(String, f64)> = named.filter(|(_, share)| *share >= LEAST_OF_OWNER).collect();
        named.sort_by(|(one, share), (other, more)| more.total_cmp(share).then(one.cmp(other)));
        if image.is_some() && named.len() > 1 {
            // It is called once: what it does is better studied in what it calls.
            named.retain(|(name, _)| name != "main");
        }
        named.truncate(MOST_FUNCTIONS);
        named
    }

    fn functions(&self, all_cycles: f64) -> Vec<FunctionStalls> {
        let samples = self.samples();
        let executed: u64 = self.attribution.functions.iter().map(|counts| counts.instructions).sum();
        let is_worth = |counts: &&FunctionCounts| {
            self.of_function(counts).cycles() > 0
                || counts.samples > 0
                || counts.instructions as f64 >= LEAST_EXECUTED * executed as f64
        };
        let all = self.attribution.functions.iter().filter(is_worth).map(|counts| {
            let stalls = self.of_function(counts);
            let of_cycles = clock::modelled(counts, stalls.cycles(), executed + self.stalls().cycles());
            FunctionStalls {
                name: counts.name.clone(),
                image: counts.image.clone(),
                instructions: counts.instructions,
                stalls,
                share: stalls.cycles() as f64 / all_cycles,
                of_cycles,
                clock: (samples > 0).then(|| clock::share(counts.samples, samples, of_cycles)),
            }
        });
        let mut all: Vec<FunctionStalls> = all.collect();
        all.sort_by(|one, other| {
            let order = other.stalls.cycles().cmp(&one.stalls.cycles());
            order.then_with(|| (&one.name, &one.image).cmp(&(&other.name, &other.image)))
        });
        all
    }

    fn finding(&mut self, bench: &Bench<'_>, gain: Gain) -> Option<Finding> {
        let all_cycles = bench.all_cycles;
        let sign = gain.sign(bench.configurations);
        let best = gain.trials.first()?.clone();
        let (subject, stalls, functions) = match gain.subject {
            Subject::Type(ty) => {
                let tallies = self.by_owner();
                let own = tallies.iter().find(|(owner, _)| *owner == Owner::Type(ty))?;
                let functions = self.functions_of(Owner::Type(ty), Some(self.program));
                let name = self.naming.namer.catalog().name(ty);
                (Some(name), own.1.cycles(self.options.latency), functions)
            }
            Subject::Function(Some(number)) => {
                let counts = &self.attribution.functions[number];
                let own = counts.image == self.program;
                let functions = own.then(|| (counts.name.clone(), 1.0)).into_iter().collect();
                (
                    Some(counts.name.clone()),
                    cycles(counts.fetch_misses, self.options.latency) as f64,
                    functions,
                )
            }
            Subject::Function(None) => (None, self.stalls().code_cycles as f64, Vec::new()),
        };
        let functions: Vec<String> = functions.into_iter().map(|(name, _)| name).collect();
        let scale = bench.scale(stalls, gain.window_cycles);
        // Where one function's code comes to lie is luck as well: it saves no more than the lines that it does not need.
        let most = match (gain.subject, &gain.evidence) {
            (Subject::Function(Some(_)), Evidence::Code { lines, lines_needed, .. }) => {
                stalls / all_cycles * (1.0 - *lines_needed as f64 / (*lines).max(1) as f64)
            }
            _ => f64::INFINITY,
        };
        let scaled = |gain: f64| (gain * scale).min(most);
        let trials = gain.trials.iter().map(|trial| Trial { gain: scaled(trial.gain), ..*trial }).collect();
        let map = match gain.subject {
            Subject::Type(ty) => member_map(&mut self.naming, &self.attribution, ty, &gain, bench.line_bytes),
            Subject::Function(_) => None,
        };
        Some(Finding {
            next: self.next(best.kind, &functions),
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
        })
    }

    /// The command to go on with.
    fn next(&self, kind: Kind, functions: &[String]) -> String {
        let command = &self.recorded.header.command;
        let regions = functions.iter().flat_map(|name| ["--region", name.as_str()]);
        let words = |first: &'static [&'static str]| -> String {
            let all = first.iter().copied().chain(regions.clone()).chain(["--"]);
            shell_words::join(all.chain(command.iter().map(String::as_str)))
        };
        if let Some(next) = &self.options.next {
            return shell_words::join(next.iter().map(String::as_str).chain(regions));
        }
        match kind {
            Kind::Code => {
                let with = |first: String| shell_words::join([first].iter().chain(command.iter().skip(1)));
                let program = command.first().map_or("", String::as_str);
                let both = [with(program.to_owned()), with(format!("{program}.profiled"))];
                shell_words::join(["lineup", "compare"].into_iter().chain(both.iter().map(String::as_str)))
            }
            _ if functions.is_empty() => words(&["lineup", "record", "--whole-program"]),
            Kind::Order | Kind::Split => words(&["lineup", "study"]),
            Kind::Columns | Kind::ReprC | Kind::Boxed | Kind::BoxedVariant => words(&["lineup", "record"]),
        }
    }
}

/// The shares of stalls of data that have names, by class.
fn coverage(owners: &[OwnerStalls], stalls: Stalls) -> Coverage {
    let all: f64 = owners.iter().map(|owner| owner.stall_cycles).sum();
    let of = |class: Class| {
        let own = owners.iter().filter(|owner| owner.class == class_name(class));
        own.fold(0.0, |sum, owner| sum + owner.stall_cycles)
    };
    let share = |cycles: f64| cycles / all.max(1.0);
    Coverage {
        of_all: (stalls.cycles() > 0).then(|| 1.0 - of(Class::Unnamed) / stalls.cycles() as f64),
        named: (all > 0.0).then(|| share(all - of(Class::Unnamed))),
        classes: Class::ALL
            .into_iter()
            .map(|class| ClassShare { class: class_name(class), share: share(of(class)) })
            .collect(),
    }
}

fn class_name(class: Class) -> &'static str {
    match class {
        Class::Variable => "variable",
        Class::Member => "member",
        Class::Stack => "stack",
        Class::Buffer => "buffer",
        Class::Constant => "constant",
        Class::Library => "library",
        Class::Unnamed => "unnamed",
    }
}
