//! Fights of threads for lines as findings.

use crate::findings::{BetweenThreads, Evidence, Finding, Kind, Sign, ThreadWaits, Trial};
use crate::owner::{self, Owner};
use crate::tables::manual_edits;
use crate::threads::contention::{Fight, Fighters, Waits};
use crate::trials::gains::Subject;
use crate::work::Work;
use lineup_coherence::WAIT_CYCLES;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Functions named with a finding at most.
const MOST_FUNCTIONS: usize = 3;
/// Functions with a smaller share of a finding's waits are not listed.
const LEAST_OF_FIGHT: f64 = 0.1;

/// Stands between the names of what threads fight over.
pub(crate) const BETWEEN_SUBJECTS: &str = " and ";

impl Work<'_, '_> {
    /// Waits in the windows as waits of the whole run, with which the windows' accesses are compared.
    pub(crate) fn thread_waits(&self, waits: Waits) -> ThreadWaits {
        let of_run =
            |waits: u64| waits as f64 * self.of_accesses() as f64 / self.watched.accesses.max(1) as f64;
        ThreadWaits { of_same_bytes: of_run(waits.of_same_bytes), of_line_alone: of_run(waits.of_line_alone) }
    }

    /// All contention between threads; `None` when only one thread has windows, and for kernels.
    pub(crate) fn between_threads(&self) -> Option<BetweenThreads> {
        let between = &self.between;
        (between.threads > 1).then(|| BetweenThreads {
            threads: between.threads as u64,
            wait_cycles: WAIT_CYCLES,
            waits: self.thread_waits(between.all),
        })
    }

    /// The findings of false sharing.
    pub(crate) fn fights(&mut self, all_cycles: f64) -> Vec<Finding> {
        let fights = std::mem::take(&mut self.between.fights);
        // Waits come on top of the stalls of each thread's own caches.
        let with_waits = all_cycles + self.thread_waits(self.between.all).all() * WAIT_CYCLES;
        fights.into_iter().map(|(fighters, fight)| self.fight(&fighters, &fight, with_waits)).collect()
    }

    fn fight(&mut self, fighters: &Fighters, fight: &Fight, with_waits: f64) -> Finding {
        let waits = self.thread_waits(fight.waits);
        let share = |waits: f64| waits * WAIT_CYCLES / with_waits;
        let mut spots: Vec<(u32, u64)> = fight.spots.iter().map(|(spot, waits)| (*spot, *waits)).collect();
        spots.sort_by_key(|(spot, waits)| (Reverse(*waits), *spot));
        let members = spots.iter().map(|(spot, _)| self.word_name(*spot)).collect();
        let names: Vec<String> =
            fighters.owners.iter().map(|owner| owner::name(&mut self.naming.namer, *owner)).collect();
        let functions = self.functions_that_wait(&fight.pcs);
        let gain = share(waits.of_line_alone);
        let mut types = fighters.owners.iter().filter_map(|owner| match owner {
            Owner::Type(ty) => Some(*ty),
            _ => None,
        });
        let is_of_template = types.any(|ty| self.is_of_template(Subject::Type(ty)));
        let by_hand = is_of_template.then(|| manual_edits::own_lines_of_template(&names));
        let next = match by_hand {
            None => self.next_of_fight(fighters, &functions),
            Some(_) => self.next_of_threads(&functions),
        };
        Finding {
            subject: Some(names.join(BETWEEN_SUBJECTS)),
            kind: Kind::OwnLines,
            stalls: share(waits.all()),
            gain,
            gains: vec![gain],
            sign: Sign::Steady,
            evidence: Evidence::Fight {
                lines: fight.lines.len() as u64,
                threads: fight.threads.len() as u64,
                of_one_object: fighters.of_one_object,
                members,
                waits,
            },
            trials: vec![Trial { kind: Kind::OwnLines, gain }],
            next,
            by_hand,
            is_written: false,
            instead: None,
            functions,
            map: None,
            clock: None,
        }
    }

    /// The program's functions with these instructions that wait, most waits first.
    pub(crate) fn functions_that_wait(&self, pcs: &BTreeMap<u64, u64>) -> Vec<String> {
        let mut by_function: BTreeMap<&str, u64> = BTreeMap::new();
        for (pc, waits) in pcs {
            let counts = self.attribution.function_of(*pc).filter(|counts| counts.image == self.program);
            if let Some(counts) = counts {
                *by_function.entry(&counts.name).or_default() += waits;
            }
        }
        let all: u64 = pcs.values().sum();
        let is_worth = |waits: u64| waits as f64 >= LEAST_OF_FIGHT * all as f64;
        let mut functions: Vec<(&str, u64)> = by_function.into_iter().filter(|one| is_worth(one.1)).collect();
        functions.sort_by_key(|(name, waits)| (Reverse(*waits), *name));
        functions.into_iter().take(MOST_FUNCTIONS).map(|(name, _)| name.to_owned()).collect()
    }

    /// `lineup study` parts declared data: members and objects of a type, and variables. For memory behind pointers the
    /// next command is `lineup threads`.
    fn next_of_fight(&self, fighters: &Fighters, functions: &[String]) -> String {
        match fighters.are_declared() || functions.is_empty() {
            true => self.next(Kind::OwnLines, functions),
            false => self.next_of_threads(functions),
        }
    }
}
