//! The levers of timed edits: pools for objects that stall, and loops of functions that stall with the next object's line
//! asked for ahead.
//!
//! Such an edit changes no result and no layout. Rounds of paired runs choose one candidate, and new runs confirm it, on
//! the second input as well; effects are compared once more.

use super::candidate::{Candidate, Candidates};
use super::kept_edit::KeptEdit;
use super::stalling::Stalling;
use super::{pools, prefetches};
use crate::commands::study::confirm::{BoxedError, Confirmation, EQUAL, SEED, change_of, is_less};
use crate::commands::study::plan::Plan;
use crate::commands::study::result_files::PATCH;
use crate::commands::study::sanitized::Sanitized;
use crate::commands::study::{args, found_regions, patch_command, result_files};
use crate::recordings::debug_info;
use crate::terminal::progress::Stages;
use crate::terminal::typed_command;
use anyhow::Result;
use lineup_advise::meaning::Meaning;
use lineup_advise::patch::unified_diff;
use lineup_advise::pool::Pools;
use lineup_advise::prefetch::Prefetches;
use lineup_advise::proposal::{Advice, PooledType};
use lineup_advise::sources::Sources;
use lineup_advise::usage::Usage;
use lineup_model::abi::Abi;
use lineup_model::figure;
use lineup_model::types::Types;
use lineup_prove::compare::ComparePlan;
use lineup_prove::elimination::{Elimination, EliminationPlan, Fate};
use lineup_prove::metric::ELAPSED;
use lineup_prove::run::Variant;
use lineup_report::placement::{Action, ConfirmedInput};
use lineup_report::study::{LeverReport, POOLS, PREFETCH};
use lineup_study::interrupt::Interrupts;
use lineup_study::progress::Progress;
use lineup_study::run::Run;
use lineup_study::source::chases::chases;
use lineup_study::source::judge::BuildJudge;
use lineup_study::source::meaning::{self, Reading, Units};
use lineup_study::source::scratch::{Role, Scratch, Tree};
use lineup_study::source::texts;
use std::path::Path;

/// The kinds of edits that the clock judges.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum EditKind {
    /// Objects in blocks of the program's own.
    Pools,
    /// The next object's line asked for ahead.
    Prefetches,
}

impl EditKind {
    /// The lever.
    fn lever(self) -> &'static str {
        match self {
            EditKind::Pools => POOLS,
            EditKind::Prefetches => PREFETCH,
        }
    }

    /// Edits of the kind, in words.
    fn several(self) -> &'static str {
        match self {
            EditKind::Pools => "pools",
            EditKind::Prefetches => "prefetches",
        }
    }

    fn without(self, why: impl Into<String>) -> LeverReport {
        LeverReport::without_time(self.lever(), why)
    }
}

/// The setting of a lever.
pub(crate) struct TimedEdits<'p> {
    pub(crate) kind: EditKind,
    pub(crate) options: &'p args::Options,
    pub(crate) plan: &'p Plan,
    /// The folder of the lever's results.
    pub(crate) out: &'p Path,
    pub(crate) interrupts: &'p Interrupts,
    pub(crate) stages: &'p Stages,
}

/// A candidate that was built.
struct Built {
    candidate: Candidate,
    advice: Advice,
    tree: Tree,
}

impl TimedEdits<'_> {
    /// Tries edits. `known` is where the run stalls, where that was found before.
    pub(crate) fn study(&self, known: Option<Stalling>) -> Result<(LeverReport, Option<KeptEdit>)> {
        let (kind, units) = (self.kind, self.options.advice.units());
        let read = if kind == EditKind::Pools { "sources" } else { "loops" };
        if units == Units::Unread {
            return Ok((kind.without(format!("not tried: --no-clang leaves the {read} unread")), None));
        }
        // Where that is known already, nothing is built for nothing.
        if let Some(why) = known.as_ref().and_then(|known| stalls_too_little(kind, known)) {
            return Ok((kind.without(why), None));
        }
        let plan = self.plan;
        self.stages.stage(&format!("building the program whose {read} are read"));
        let scratch = Scratch::new(&plan.source, &plan.build, &plan.out, self.interrupts)?;
        let mut unchanged = scratch.copy(Role::Before)?;
        let program = plan.program.as_ref().unwrap_or(&plan.started);
        let reading = meaning::build_and_read(&scratch, &mut unchanged, &units, Some(program))?;
        let built = debug_info::debug_info(&unchanged.path.join(program), self.stages);
        if built.is_some_and(|debug| !debug.has_debug_info()) {
            let why = "not tried: the built program has no debug information; build it with -g, and link it without -s";
            return Ok((kind.without(why), None));
        }
        let stalling = match known {
            Some(known) => known,
            None => self.stalling(&unchanged)?,
        };
        if let Some(why) = stalls_too_little(kind, &stalling) {
            return Ok((kind.without(why), None));
        }
        let sources = texts::read(scratch.source(), scratch.leave_out())?;
        let sources = reading.in_their_languages(&sources);
        let (meaning, Candidates { list, refused }) = match kind {
            EditKind::Pools => {
                let meaning = reading.meaning();
                let options =
                    lineup_advise::options::Options { meaning: meaning.clone(), ..plan.advice.clone() };
                let found = pools::candidates(&sources, &options, &stalling);
                (meaning, found)
            }
            EditKind::Prefetches => {
                let functions = stalling.functions();
                self.stages.stage("reading the loops of functions that stall");
                let chases = match chases(&reading, &unchanged.path, &functions) {
                    Ok(chases) => chases,
                    Err(why) => return Ok((kind.without(format!("not tried: {why}")), None)),
                };
                let meaning = Meaning { chases, ..reading.meaning() };
                let found = prefetches::candidates(&meaning, &stalling);
                (meaning, found)
            }
        };
        if list.is_empty() {
            let result = no_candidate(kind, refused.len());
            return Ok((LeverReport { details: refused, ..kind.without(result) }, None));
        }
        let build =
            ReadBuild { scratch: &scratch, reading: &reading, unchanged: &unchanged, meaning: &meaning };
        let (built, mut details) = self.build(&build, &sources, list)?;
        details.extend(refused);
        let (report, chosen) = self.compare(&unchanged, &built)?;
        scratch.check_untouched()?;
        let report = LeverReport { details: [report.details, details].concat(), ..report };
        let Some(chosen) = chosen.and_then(|at| built.into_iter().nth(at)) else { return Ok((report, None)) };
        let edited = chosen.advice.edited.clone();
        let sanitized = Sanitized::of((plan, &scratch), (self.interrupts, self.stages));
        if let Some(sanitized) = &sanitized
            && let Some(why) = sanitized.judge(&edited)?
        {
            let result = format!("not kept: {}: {why}", chosen.candidate.words);
            return Ok((LeverReport { details: report.details, ..kind.without(result) }, None));
        }
        let of_sanitizers = sanitized.as_ref().and_then(Sanitized::in_words);
        let of_sanitizers = of_sanitizers.map(|words| format!("; sanitizers: {words}")).unwrap_or_default();
        let report = LeverReport { result: report.result.clone() + &of_sanitizers, ..report };
        let diff = unified_diff(&sources, &edited);
        let message = message(kind, &report, &chosen);
        result_files::put(self.out, PATCH, &(message.clone() + &diff))?;
        let patch = self.out.join(PATCH);
        let apply = Action {
            purpose: format!("apply the patch of {}", kind.several()),
            text: typed_command::line(patch_command::apply(&plan.source, &patch)),
        };
        let report = LeverReport { actions: vec![apply], ..report };
        let tree = chosen.tree;
        Ok((report, Some(KeptEdit { lever: kind.lever(), tree, edited, patch, message, scratch })))
    }

    /// Where a run of the unchanged program stalls.
    fn stalling(&self, unchanged: &Tree) -> Result<Stalling> {
        let named = self.plan.program.as_ref().map(|program| unchanged.path.join(program));
        let run = (self.plan.run(unchanged)?, named.as_deref());
        let recorder = (self.plan.engine, &self.plan.caches[..]);
        let findings = found_regions::whole_run(run, recorder, self.stages, self.interrupts)?;
        Ok(Stalling::of(&findings))
    }

    /// Builds each candidate in a copy of its own; returns those that were built, and sentences on the others.
    fn build(
        &self,
        read: &ReadBuild<'_>,
        sources: &Sources,
        list: Vec<Candidate>,
    ) -> Result<(Vec<Built>, Vec<String>)> {
        let (mut built, mut failed) = (Vec::new(), Vec::new());
        let program = self.plan.program.as_ref().unwrap_or(&self.plan.started);
        let total = list.len();
        for (place, candidate) in list.into_iter().enumerate() {
            let several = self.kind.several();
            self.stages.stage(&format!("building program {} of {total} with {several}", place + 1));
            let judge = BuildJudge::new(
                read.scratch,
                program,
                &read.unchanged.path,
                &read.reading.calls,
                self.interrupts,
            )?;
            let mut judge = judge.in_copy(Role::Optimised(place));
            let options = lineup_advise::options::Options {
                meaning: read.meaning.clone(),
                prefetches: candidate.prefetches.clone(),
                pools: candidate.pools.clone(),
                ..self.plan.advice.clone()
            };
            let (usage, types) = (Usage::empty(Abi::X86_64), Types::default());
            let task = lineup_advise::kind::Task {
                usage: &usage,
                types: &types,
                sources,
                options: &options,
                judge: &mut judge,
            };
            let advice = lineup_advise::advise_with(&[&Pools, &Prefetches], task)?;
            self.interrupts.check()?;
            if advice.edited.is_empty() {
                let why = advice
                    .refusals
                    .last()
                    .map(|refusal| refusal.constraints.first().map(ToString::to_string));
                failed.push(format!("{}: not built: {}", candidate.words, why.flatten().unwrap_or_default()));
                continue;
            }
            let tree = judge.take_built(&advice.edited)?;
            built.push(Built { candidate, advice, tree });
        }
        Ok((built, failed))
    }

    /// Chooses one candidate and confirms it; returns its place where it gains.
    fn compare(&self, unchanged: &Tree, built: &[Built]) -> Result<(LeverReport, Option<usize>)> {
        if built.is_empty() {
            let why = format!("not tried: no program with {} was built", self.kind.several());
            return Ok((self.kind.without(why), None));
        }
        let confirmation =
            Confirmation { options: self.options, interrupts: self.interrupts, stages: self.stages };
        let run = self.plan.run(unchanged)?;
        let mut runs = vec![run.clone()];
        for one in built {
            runs.push(self.plan.run(&one.tree)?);
        }
        let compare = ComparePlan { margin: self.options.margin.0, seed: SEED, ..ComparePlan::default() };
        let max_time_ns = self.options.max_time.saturating_mul(1_000_000_000);
        let plan = EliminationPlan { candidates: built.len(), compare, max_time_ns };
        let among = format!("with {} {}", built.len(), self.kind.several());
        let mut result = confirmation.eliminated(runs.clone(), &plan, &among)?;
        let cut_short = result.cut_short.take();
        let details =
            (1..).map(Variant).zip(built).map(|(at, one)| tried(at, &one.candidate, &result)).collect();
        if let Some(error) = cut_short {
            let report = self.cut_short("the rounds that choose", self.kind.several(), &error);
            return Ok((LeverReport { details, ..report }, None));
        }
        let Some(last) = result.last() else {
            let why = format!("every program with {} printed something else", self.kind.several());
            let report = self.kind.without(why);
            return Ok((LeverReport { details, ..report }, None));
        };
        let at = last.0 - 1;
        let words = built[at].candidate.words.clone();
        self.stages.stage(&format!("confirming {words} in new runs"));
        let pair = [run, runs.swap_remove(last.0)];
        let report = self.confirm(&confirmation, &pair, &words, result.unrepeatable.is_some())?;
        let is_gain = report.is_gain;
        Ok((LeverReport { details, ..report }, is_gain.then_some(at)))
    }

    /// The report of comparisons that ended early; its details have the figures of the rounds that ended.
    fn cut_short(&self, runs: &str, of: &str, error: &BoxedError) -> LeverReport {
        self.kind.without(format!("not tried to its end: {runs} {of}: {error}"))
    }

    fn confirm(
        &self,
        confirmation: &Confirmation<'_>,
        pair: &[Run; 2],
        words: &str,
        is_unrepeatable: bool,
    ) -> Result<LeverReport> {
        let mut inputs: Vec<ConfirmedInput> = Vec::new();
        let seconds = pair.iter().map(|run| self.options.code.second_run(run, self.interrupts));
        let seconds: Option<Vec<Run>> = seconds.collect::<Result<_>>()?;
        for (runs, is_second) in
            std::iter::once((pair.to_vec(), false)).chain(seconds.map(|runs| (runs, true)))
        {
            let (confirmed, cut_short) = confirmation.on_input(runs, (is_second, is_unrepeatable))?;
            if let Some(error) = cut_short {
                return Ok(self.cut_short("the runs that confirm", words, &error));
            }
            inputs.extend(confirmed);
        }
        let effects = confirmation.effects([&pair[0], &pair[1]])?;
        Ok(report((self.kind, words), &inputs, &effects, self.options.margin.0))
    }
}

/// The build whose loops were read.
struct ReadBuild<'r> {
    scratch: &'r Scratch,
    reading: &'r Reading,
    unchanged: &'r Tree,
    meaning: &'r Meaning,
}

/// The reason why a run stalls too little for edits of a kind; `None` where it stalls enough.
fn stalls_too_little(kind: EditKind, stalling: &Stalling) -> Option<String> {
    match kind {
        EditKind::Pools => (!pools::may_gain(stalling)).then(|| no_candidate(kind, 0)),
        EditKind::Prefetches => stalling
            .functions()
            .is_empty()
            .then(|| "not tried: no function stalls for 1 % of the modelled stalls".into()),
    }
}

/// The reason why nothing is tried.
fn no_candidate(kind: EditKind, refused: usize) -> String {
    match (kind, refused) {
        (EditKind::Pools, 0) => {
            "not tried: no type of objects stalls for 1 % of the modelled stalls that headers and room cost"
                .into()
        }
        (EditKind::Pools, types) => format!("not tried: none of {types} types that stall can have a pool"),
        (EditKind::Prefetches, 0) => {
            "not tried: no loop of a function that stalls follows pointers or indexes by values in memory"
                .into()
        }
        (EditKind::Prefetches, loops) => {
            format!("not tried: none of {loops} loops that stall can be prefetched")
        }
    }
}

/// A candidate's end in the rounds, in a sentence.
fn tried(at: Variant, candidate: &Candidate, result: &Elimination) -> String {
    let round = result.last_round(at);
    let change = round.and_then(|round| round.contrast(at, ELAPSED)).and_then(change_of);
    let time = change.map_or_else(|| "not timed".to_owned(), |change| change.in_words());
    let end = match &result.fates[at.0 - 1] {
        Fate::Differs(how) => format!("dropped, since {how}"),
        Fate::Dropped => "dropped, since others were faster".to_owned(),
        Fate::Last => "chosen".to_owned(),
        Fate::Undecided => "undecided".to_owned(),
    };
    format!("{}: {time} in the rounds, {end}", candidate.words)
}

/// The result, from the chosen candidate's figures on each input.
fn report(
    (kind, words): (EditKind, &str),
    inputs: &[ConfirmedInput],
    effects: &str,
    margin: f64,
) -> LeverReport {
    let Some(first) = inputs.first() else { return kind.without("no comparison was made") };
    let figures: Vec<String> = inputs
        .iter()
        .map(|input| {
            let on = if input.is_second { "on the second input " } else { "" };
            format!("{on}{} in {} blocks", input.elapsed.in_words(), input.blocks)
        })
        .collect();
    let figures = figures.join(", ");
    let one_input = match inputs.len() {
        1 => "; --test-arguments names a second input, which was not tried",
        _ => "",
    };
    let difference = inputs.iter().find_map(|input| input.difference.clone());
    let is_gain = inputs.iter().all(|input| is_less(input, margin))
        && difference.is_none()
        && effects.starts_with(EQUAL);
    let result = match (difference, is_gain) {
        (Some(difference), _) => format!("{words} changes what the program prints: {difference}"),
        (None, true) => format!("less time with {words}: {figures}; effects {effects}{one_input}"),
        (None, false) => {
            let least = first
                .smallest_detectable
                .map(|least| format!("; a change of {} would have shown", figure::share(least)));
            format!("not confirmed: {words}: {figures}; effects {effects}{}", least.unwrap_or_default())
        }
    };
    LeverReport { elapsed: Some(first.elapsed.clone()), is_gain, ..kind.without(result) }
}

/// The message at the head of the patch, its first line the subject.
fn message(kind: EditKind, report: &LeverReport, chosen: &Built) -> String {
    if kind == EditKind::Pools {
        let types: Vec<&PooledType> = chosen.advice.pools.iter().flat_map(|one| &one.types).collect();
        let names: Vec<&str> = types.iter().map(|one| one.type_name.as_str()).collect();
        let lines: String = types.iter().map(|one| format!("- {}.\n", one.in_words())).collect();
        let names = names.join(", ");
        return format!("take objects of {names} from blocks\n\n{lines}\nEvidence: {}.\n\n", report.result);
    }
    let places = chosen.advice.prefetches.iter().flat_map(|one| &one.places);
    let places: Vec<String> =
        places.map(|place| format!("- {}: {}\n", place.in_words(), place.statement)).collect();
    let subject = match places.len() {
        1 => "prefetch the next object in a loop".to_owned(),
        several => format!("prefetch the next objects in {several} loops"),
    };
    format!("{subject}\n\n{}\nEvidence: {}.\n\n", places.concat(), report.result)
}

/// Writes the lever's results as a text.
pub(crate) fn write_details(out: &Path, report: &LeverReport) -> Result<()> {
    let lines: Vec<String> =
        std::iter::once(&report.result).chain(&report.details).map(|line| format!("{line}\n")).collect();
    result_files::put(out, &format!("{}.txt", report.lever), &lines.concat())
}
