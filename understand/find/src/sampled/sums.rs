//! Samples added up by function, by the accessed data, and by the source of the data.

use super::findings::{
    SampledAccesses, SampledData, SampledEvidence, SampledFunction, SampledMember, SampledSource,
    SampledUser, SampledWithCallees,
};
use super::options::SampledOptions;
use crate::error::FindError;
use crate::owner::{self, Owner, Spot};
use crate::sampled::place_names::{Function, Places};
use crate::sampled::wording;
use foldhash::HashMap;
use lineup_explain::name::Evidence;
use lineup_samples::data_source::{DataSource, Operation};
use lineup_samples::record::Mode;
use lineup_samples::tally::{Sum, Tally};
use lineup_samples::{Code, Data};
use std::collections::{BTreeMap, BTreeSet};

/// The largest number of functions listed for a member.
const USERS: usize = 4;

#[derive(Default)]
struct MemberSum {
    accesses: SampledAccesses,
    sources: BTreeMap<DataSource, Sum>,
    evidence: BTreeMap<Evidence, u64>,
    users: BTreeMap<u32, u64>,
}

/// All sums.
pub(super) struct Sums {
    /// By event and number of the function.
    functions: BTreeMap<(u32, u32), Sum>,
    /// The same with the functions that each called.
    with_callees: BTreeMap<(u32, u32), Sum>,
    names: Vec<Function>,
    /// Files of functions of programs, by the functions' names.
    user_files: BTreeMap<String, u32>,
    members: HashMap<Spot, MemberSum>,
    sources: BTreeMap<DataSource, Sum>,
    all: Sum,
}

impl Sums {
    /// The sums of the accesses by the wanted functions.
    pub(super) fn of(
        tally: &Tally,
        places: &mut Places<'_>,
        wanted: &SampledOptions,
    ) -> Result<Sums, FindError> {
        let mut sums = Sums {
            functions: BTreeMap::new(),
            with_callees: BTreeMap::new(),
            names: Vec::new(),
            user_files: BTreeMap::new(),
            members: HashMap::default(),
            sources: BTreeMap::new(),
            all: Sum::default(),
        };
        let mut by_code: HashMap<Code, u32> = HashMap::default();
        let mut numbers: BTreeMap<Function, u32> = BTreeMap::new();
        // In one order, so that the same file gives the same report.
        let mut spots: Vec<_> = tally.spots.iter().collect();
        spots.sort_unstable_by_key(|(spot, _)| **spot);
        for (spot, sum) in spots {
            let number = *by_code.entry(spot.code).or_insert_with(|| {
                let function = places.function(spot.code);
                let next = numbers.len() as u32;
                *numbers.entry(function).or_insert(next)
            });
            if let (Mode::User, Code::File { file, .. }) = (spot.mode, spot.code) {
                let function = places.function(spot.code);
                sums.user_files.entry(function.name).or_insert(file);
            }
            sums.functions.entry((spot.event, number)).or_default().add(*sum);
            if is_access(tally, spot) && wanted.has(&places.function(spot.code).name) {
                let (owner, evidence) = places.accessed(spot.code, spot.data, spot.source)?;
                sums.see_access((owner, evidence), number, spot, *sum);
            }
        }
        for place in tally.chains.places() {
            by_code.entry(*place).or_insert_with(|| {
                let next = numbers.len() as u32;
                *numbers.entry(places.function(*place)).or_insert(next)
            });
        }
        sums.see_chains(tally, &by_code);
        let mut names: Vec<(u32, Function)> =
            numbers.into_iter().map(|(name, number)| (number, name)).collect();
        names.sort_unstable_by_key(|(number, _)| *number);
        sums.names = names.into_iter().map(|(_, name)| name).collect();
        Ok(sums)
    }

    /// A function counts once in each chain, also when it calls itself.
    fn see_chains(&mut self, tally: &Tally, by_code: &HashMap<Code, u32>) {
        for (event, places, sum) in tally.chains.iter() {
            let functions: BTreeSet<u32> = places.filter_map(|place| by_code.get(&place).copied()).collect();
            for function in functions {
                self.with_callees.entry((event, function)).or_default().add(sum);
            }
        }
    }

    fn see_access(
        &mut self,
        (owner, evidence): (Spot, Evidence),
        function: u32,
        of: &lineup_samples::tally::Spot,
        sum: Sum,
    ) {
        let source = of.source;
        let member = self.members.entry(owner).or_default();
        let counted = |is_so: bool| if is_so { sum.samples } else { 0 };
        member.accesses.add(SampledAccesses {
            samples: sum.samples,
            loads: counted(matches!(source.operation, Operation::Load | Operation::Both)),
            stores: counted(matches!(source.operation, Operation::Store | Operation::Both)),
            hitm: counted(source.is_hitm()),
            locked: counted(source.is_locked),
            worked_out: counted(of.is_worked_out),
            weight: sum.weight,
            ..SampledAccesses::default()
        });
        member.sources.entry(source).or_default().add(sum);
        *member.evidence.entry(evidence).or_default() += sum.samples;
        *member.users.entry(function).or_default() += sum.samples;
        self.sources.entry(source).or_default().add(sum);
        self.all.add(sum);
    }

    /// The path of the file of a program's function.
    pub(super) fn user_file(&self, tally: &Tally, name: &str) -> Option<String> {
        let file = tally.files.get(*self.user_files.get(name)? as usize)?;
        (!name.starts_with('(')).then(|| file.path.clone())
    }

    /// Functions, for each event most events first.
    pub(super) fn functions(&self, tally: &Tally) -> Vec<SampledFunction> {
        let one = |(event, number): (u32, u32)| {
            let all = tally.events.get(event as usize).map_or(0, |event| event.sum.period);
            let function = self.names.get(number as usize)?;
            let sum = self.functions.get(&(event, number)).copied().unwrap_or_default();
            let with_callees = self.with_callees.get(&(event, number)).map(|sum| SampledWithCallees {
                samples: sum.samples,
                period: sum.period,
                share: share(sum.period, all),
            });
            Some(SampledFunction {
                event,
                name: function.name.clone(),
                file: function.file.clone(),
                samples: sum.samples,
                period: sum.period,
                share: share(sum.period, all),
                with_callees,
            })
        };
        let numbers: BTreeSet<(u32, u32)> =
            self.functions.keys().chain(self.with_callees.keys()).copied().collect();
        let mut all: Vec<SampledFunction> = numbers.into_iter().filter_map(one).collect();
        let with_callees =
            |function: &SampledFunction| function.with_callees.map_or(0, |callees| callees.period);
        all.sort_by(|one, other| {
            let most_first = (other.period, with_callees(other)).cmp(&(one.period, with_callees(one)));
            one.event.cmp(&other.event).then(most_first).then_with(|| one.name.cmp(&other.name))
        });
        all
    }

    /// The accessed data, most weight first.
    pub(super) fn data(&self, places: &mut Places<'_>) -> Vec<SampledData> {
        let mut owners: BTreeMap<Owner, Vec<(Spot, &MemberSum)>> = BTreeMap::new();
        for (spot, sum) in &self.members {
            owners.entry(spot.owner).or_default().push((*spot, sum));
        }
        let mut all = Vec::new();
        for (owner, mut members) in owners {
            members.sort_by_key(|(spot, _)| (spot.at, spot.size_bytes));
            let mut accesses = SampledAccesses::default();
            members.iter().for_each(|(_, sum)| accesses.add(sum.accesses));
            let members = members.into_iter().map(|(spot, sum)| self.member(places, spot, sum)).collect();
            all.push(SampledData {
                name: owner::name(&mut places.namer, owner),
                kind: owner::class(owner),
                accesses: self.with_shares(accesses),
                members,
            });
        }
        all.sort_by(|one, other| {
            let figures = |data: &SampledData| (data.accesses.weight, data.accesses.samples);
            figures(other).cmp(&figures(one)).then_with(|| one.name.cmp(&other.name))
        });
        all
    }

    fn member(&self, places: &mut Places<'_>, spot: Spot, sum: &MemberSum) -> SampledMember {
        let mut users: Vec<(&u32, &u64)> = sum.users.iter().collect();
        users.sort_by_key(|(number, samples)| (std::cmp::Reverse(**samples), **number));
        let user = |(number, samples): (&u32, &u64)| {
            Some(SampledUser { name: self.names.get(*number as usize)?.name.clone(), samples: *samples })
        };
        let evidence = |(evidence, samples): (&Evidence, &u64)| SampledEvidence {
            evidence: *evidence,
            samples: *samples,
        };
        let passed = sum.sources.iter().filter(|(source, _)| source.is_hitm());
        SampledMember {
            path: owner::member_name(&mut places.namer, spot),
            offset: spot.at,
            size_bytes: spot.size_bytes,
            accesses: self.with_shares(sum.accesses),
            hitm_weight: passed.map(|(_, sum)| sum.weight).sum(),
            sources: self.by_source(&sum.sources),
            evidence: sum.evidence.iter().map(evidence).collect(),
            functions: users.into_iter().take(USERS).filter_map(user).collect(),
        }
    }

    /// The sources of data, most weight first.
    pub(super) fn sources(&self) -> Vec<SampledSource> {
        self.by_source(&self.sources)
    }

    fn by_source(&self, sources: &BTreeMap<DataSource, Sum>) -> Vec<SampledSource> {
        let mut by_words: BTreeMap<String, Sum> = BTreeMap::new();
        for (source, sum) in sources {
            by_words.entry(wording::source(*source)).or_default().add(*sum);
        }
        let one = |(from, sum): (String, Sum)| SampledSource {
            from,
            samples: sum.samples,
            weight: sum.weight,
            weight_share: share(sum.weight, self.all.weight),
        };
        let mut all: Vec<SampledSource> = by_words.into_iter().map(one).collect();
        all.sort_by(|one, other| {
            (other.weight, other.samples, &one.from).cmp(&(one.weight, one.samples, &other.from))
        });
        all
    }

    fn with_shares(&self, accesses: SampledAccesses) -> SampledAccesses {
        SampledAccesses {
            weight_share: share(accesses.weight, self.all.weight),
            sample_share: share(accesses.samples, self.all.samples),
            ..accesses
        }
    }
}

/// Whether a sample describes an access.
fn is_access(tally: &Tally, spot: &lineup_samples::tally::Spot) -> bool {
    let event = tally.events.get(spot.event as usize);
    let has_address = event.is_some_and(|event| event.carries.address);
    let says_something = spot.data != Data::Unsaid || spot.source != DataSource::default();
    spot.is_worked_out || has_address && says_something
}

impl SampledAccesses {
    fn add(&mut self, other: SampledAccesses) {
        self.samples += other.samples;
        self.loads += other.loads;
        self.stores += other.stores;
        self.hitm += other.hitm;
        self.locked += other.locked;
        self.worked_out += other.worked_out;
        self.weight = self.weight.saturating_add(other.weight);
    }
}

fn share(part: u64, all: u64) -> f64 {
    part as f64 / all.max(1) as f64
}
