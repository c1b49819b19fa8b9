//! The next command of each finding.

use crate::findings::Kind;
use crate::stalls::counts::FunctionCounts;
use crate::work::Work;
use lineup_model::abi::Machine;

/// The functions that the next command records for a finding that names none.
const HOTTEST: usize = 5;

impl Work<'_, '_> {
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
        let join_all = |first: &[&str], own: &[String], command: &[String]| {
            let first = first.iter().map(|word| (*word).to_owned());
            let own = own.iter().cloned().chain(["--".to_owned()]);
            shell_words::join(first.chain(own).chain(command.iter().cloned()).collect::<Vec<String>>())
        };
        let join = |first: &[&str], own: &[String], command: &[String]| {
            join_all(first, &[own, &regions].concat(), command)
        };
        let own = || [again.build.as_slice(), &again.recorder, &again.run].concat();
        let studied = if again.studied.is_empty() { command } else { &again.studied };
        let study = |option: &[&str]| join(&[&["lineup", "study"], option].concat(), &own(), studied);
        let study_all = |option: &[&str]| join_all(&[&["lineup", "study"], option].concat(), &own(), studied);
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
            Kind::OwnParts => self.next_of_threads(functions),
            Kind::Prefetch => study_all(&["--only", "prefetch"]),
            // For the others the study orders the members; changes that gain more are made by hand.
            Kind::Order
            | Kind::Split
            | Kind::Columns
            | Kind::ReprC
            | Kind::Boxed
            | Kind::BoxedVariant
            | Kind::NoHoles
            | Kind::Narrow => study(&[]),
        }
    }

    /// The command that records these functions, and shows the contention between threads in them.
    pub(crate) fn next_of_threads(&self, functions: &[String]) -> String {
        self.record_of_threads(functions, &[])
    }

    /// The same with some calls in a row of each thread, which is enough to see who holds a lock.
    pub(crate) fn next_of_locks(&self, functions: &[String]) -> String {
        self.record_of_threads(functions, &["--calls", "2000", "--in-runs"])
    }

    fn record_of_threads(&self, functions: &[String], of_calls: &[&str]) -> String {
        let again = &self.options.again;
        let regions = functions.iter().flat_map(|name| ["--region", name.as_str()]);
        let own = again.environment.iter().chain(&again.run).map(String::as_str).chain(regions);
        let own = own.chain(of_calls.iter().copied()).chain(["--"]);
        let first = ["lineup", "record", "--engine", "native", "--out", "threads.rec"].into_iter();
        let command = self.recorded.header.command.iter().map(String::as_str);
        format!("{} && lineup threads threads.rec", shell_words::join(first.chain(own).chain(command)))
    }

    /// The command that tries placements.
    pub(crate) fn next_of_placement(&self) -> String {
        let again = &self.options.again;
        let command = &self.recorded.header.command;
        let command = if again.studied.is_empty() { command } else { &again.studied };
        let first = ["lineup", "study", "--placement"].into_iter();
        let own = again.run.iter().map(String::as_str).chain(["--"]);
        shell_words::join(first.chain(own).chain(command.iter().map(String::as_str)))
    }
}
