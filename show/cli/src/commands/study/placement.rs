//! `lineup study --placement`: the same program under other allocators, settings of the C library, huge pages and
//! Lineup's pools. No source is needed: paired runs choose a candidate, and runs of their own confirm it.

use super::confirm::{BoxedError, Confirmation, EQUAL, NOT_OBSERVED, SEED, change_of, is_less, ratio};
use super::result_files::{PAGE, REPORT};
use super::{args, found_regions, output_folder, result_files};
use crate::host::facts;
use crate::terminal::outcome::Outcome;
use crate::terminal::progress::Stages;
use crate::terminal::{output, typed_command};
use crate::whole_program::findings::{costs_of_this_machine, run_alone};
use anyhow::{Context, Result, bail};
use lineup_find::{Allocator, PageCosts, PlacementKind, Placements, RunAlone};
use lineup_model::figure;
use lineup_prove::compare::ComparePlan;
use lineup_prove::detectable_in_words;
use lineup_prove::elimination::{Elimination, EliminationPlan, Fate};
use lineup_prove::metric::{ELAPSED, PEAK_MEMORY};
use lineup_prove::run::{Ending, Slot, Variant};
use lineup_report::placement::{
    Action, CandidateReport, Confirmed, NotTried, PlacementReport, placement_page, placement_text,
};
use lineup_study::heap_pools::POOL_NAMES;
use lineup_study::interrupt::Interrupts;
use lineup_study::placements::{
    ALLOCATOR_NAMES, Candidate, Candidates, HUGE_HEAP_NAME, HUGE_KEPT_MEMORY_NAME, KEPT_MEMORY_NAME,
    WITH_HUGE_PAGES, candidates,
};
use lineup_study::progress::Progress;
use lineup_study::run::Run;
use lineup_study::timing::{ProcessRunner, RunnerOptions};
use std::cmp::{Ordering, Reverse};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The longest time for recording and modelling the run.
const MOST_MODELLING: Duration = Duration::from_secs(120);

/// With a larger share of stalls of which the model's windows have nothing, it predicts nothing.
const MOST_UNOBSERVED: f64 = 0.5;

/// Peak memory that grows by more than this share is said with the verdict.
const MORE_MEMORY: f64 = 0.1;

/// A program that is studied, with its options.
struct Study<'s> {
    options: &'s args::Options,
    /// The run that chooses.
    run: Run,
    /// Another run, on which the chosen candidate is confirmed.
    second: Option<Run>,
    interrupts: &'s Interrupts,
    /// The folder of the report, and of plans.
    out: &'s Path,
    stages: &'s Stages,
    /// The placements that were tried in a model of the run.
    modelled: Option<Placements>,
}

/// Runs the study.
pub(crate) fn run(options: &args::Options) -> Result<Outcome> {
    let stages = Stages::new();
    let interrupts = stages.watch_signals()?;
    let run = options.surroundings.run(&options.command, &[], &interrupts, &stages)?;
    let second = options.code.second_run(&run, &interrupts)?;
    let out = output_folder::prepare(&options.out, Path::new("/"), options.overwrite)?;
    let (modelled, not_modelled) = modelled(options, &run, (&interrupts, &stages))?;
    let study = Study { options, run, second, interrupts: &interrupts, out: &out, stages: &stages, modelled };
    let (Studied { mut report, .. }, cut_short) = study.report()?;
    report.remarks.extend(not_modelled);
    let _keeping = cut_short.as_ref().map(|_| interrupts.keeping());
    stages.end();
    let json = write(&report, &out)?;
    output::print(&match options.json {
        true => json,
        false => format!(
            "{}  the whole report: {}\n",
            placement_text(&report, output::text_style()),
            out.join(PAGE).display()
        ),
    })?;
    Ok(match cut_short {
        Some(error) => Outcome::CutShort(anyhow::Error::from_boxed(error)),
        None => Outcome::Done,
    })
}

/// A study's report.
pub(crate) struct Studied {
    pub(crate) report: PlacementReport,
    /// The confirmed candidate; `None` where nothing is better.
    pub(crate) better: Option<Candidate>,
}

/// Placements in a model of the run, made within [`MOST_MODELLING`]; else the reason why there are none.
fn modelled(
    options: &args::Options,
    run: &Run,
    (interrupts, stages): (&Interrupts, &Stages),
) -> Result<(Option<Placements>, Option<String>)> {
    let bounded = interrupts.for_at_most(MOST_MODELLING);
    let recorder = (options.engine(), &options.caches[..]);
    let found = found_regions::whole_run((run.clone(), None), recorder, &stages.of_part(&bounded), &bounded);
    interrupts.check()?;
    Ok(match found {
        Ok(findings) => (findings.placements, None),
        Err(why) => (None, Some(format!("placements were not modelled: {why:#}"))),
    })
}

/// Studies a program that another study has built: its run there, and the placements in a model of it. Writes page and
/// values into a folder.
pub(crate) fn of_built(
    options: &args::Options,
    (run, modelled): (Run, Option<Placements>),
    out: &Path,
    (interrupts, stages): (&Interrupts, &Stages),
) -> Result<Studied> {
    let second = options.code.second_run(&run, interrupts)?;
    // A report that was cut short says so, and has the figures of the rounds that ended.
    let (studied, _) = Study { options, run, second, interrupts, out, stages, modelled }.report()?;
    write(&studied.report, out)?;
    Ok(studied)
}

/// Writes page and values; returns the values.
fn write(report: &PlacementReport, out: &Path) -> Result<String> {
    let json = report.to_json()?;
    result_files::put(out, PAGE, &placement_page(report))?;
    result_files::put(out, REPORT, &json)?;
    Ok(json)
}

impl Study<'_> {
    fn report(&self) -> Result<(Studied, Option<BoxedError>)> {
        let mut report = PlacementReport::new(self.confirmation().in_words(&self.run));
        report.margin = self.options.margin.0;
        report.machine = facts::of_this_machine();
        report.repeat = typed_command::line(std::env::args_os());
        let (candidates, alone) = self.candidates()?;
        let costs = self.modelled.as_ref().map_or_else(PageCosts::default, |_| costs_of_this_machine());
        report.not_tried = candidates
            .not_tried
            .iter()
            .map(|(name, why)| NotTried { name: name.clone(), why: why.clone() })
            .collect();
        report
            .not_tried
            .extend(NEVER_TRIED.map(|(name, why)| NotTried { name: name.into(), why: why.into() }));
        let plan = self.elimination(candidates.list.len());
        report.level = plan.level();
        let among = format!("under {} placements", plan.candidates);
        let mut result = self.confirmation().eliminated(self.variants(&candidates), &plan, &among)?;
        let cut_short = result.cut_short.take();
        report.candidates = (1..)
            .map(Variant)
            .zip(&candidates.list)
            .map(|(at, one)| CandidateReport {
                modelled_gain: self.modelled_gain(one, (alone, costs)),
                ..of_candidate(at, one, &result)
            })
            .collect();
        report.remarks.extend(
            self.modelled.as_ref().filter(|modelled| modelled.unobserved > MOST_UNOBSERVED).map(|modelled| {
                format!(
                    "nothing is predicted: {} of the modelled stalls for data are of instructions that the kept windows of the run hardly have",
                    figure::share(modelled.unobserved)
                )
            }),
        );
        report.candidates.sort_by(|a, b| order(a).partial_cmp(&order(b)).unwrap_or(Ordering::Equal));
        report.remarks.extend(result.unrepeatable.iter().map(|difference| {
            format!(
                "the program's output differs from run to run by itself ({difference}), so placements are compared by exit alone"
            )
        }));
        if let Some(error) = cut_short {
            report.verdict = cut_short_verdict(&error, report.candidates.first());
            return Ok((Studied { report, better: None }, Some(error)));
        }
        let Some(last) = result.last() else {
            report.verdict = "Nothing is better: every placement changes what the program does.".into();
            return Ok((Studied { report, better: None }, None));
        };
        let candidate = &candidates.list[last.0 - 1];
        let (confirmed, cut_short) = self.confirm(candidate, result.unrepeatable.is_some())?;
        let is_better = cut_short.is_none() && is_better(&confirmed, self.options.margin.0);
        report.verdict = match &cut_short {
            Some(error) => {
                cut_short_verdict(error, report.candidates.iter().find(|one| one.name == candidate.name))
            }
            None => verdict(&confirmed, plan.candidates, self.options.margin.0),
        };
        let better = is_better.then(|| candidate.clone());
        report.actions = better.as_ref().map(|better| self.actions(better)).unwrap_or_default();
        report.confirmed = Some(confirmed);
        Ok((Studied { report, better }, cut_short))
    }

    /// The placements to try, and the program's run as it is. It runs once so, once for each other allocator, and once
    /// while its allocations are counted.
    fn candidates(&self) -> Result<(Candidates, RunAlone)> {
        self.stages.stage("running the program as it is, and with each allocator");
        let alone = RunnerOptions { placing: self.options.cpus.clone(), ..RunnerOptions::default() };
        let mut runner = ProcessRunner::new(vec![self.run.clone()], alone, self.interrupts)?;
        let first = runner.run_slot(&Slot { variant: Variant::BEFORE, number: 0, block: None })?;
        if let Ending::Killed(_) = first.ending {
            bail!("the program as it is ends by {}; a study needs one that ends well", first.ending);
        }
        let program = PathBuf::from(self.run.command.first().context("no program given")?);
        let named = &self.options.placement.allocators;
        let mut candidates = candidates(&program, named, runner.is_parallel())?;
        candidates.keep_loaded(&self.run, self.interrupts)?;
        self.stages.stage("counting allocations by site");
        candidates.add_pools(&self.run, self.out, self.interrupts)?;
        let usage = first.usage.unwrap_or_default();
        Ok((candidates, run_alone(usage.user_ns + usage.system_ns, usage.minor_faults)))
    }

    /// The share of its time that the run saves under a candidate in the model.
    fn modelled_gain(&self, candidate: &Candidate, (alone, costs): (RunAlone, PageCosts)) -> Option<f64> {
        let modelled = self.modelled.as_ref().filter(|modelled| modelled.unobserved <= MOST_UNOBSERVED)?;
        modelled.saved_time(model_of(&candidate.name)?, alone, costs)
    }

    fn elimination(&self, candidates: usize) -> EliminationPlan {
        let max_time_ns = self.options.max_time.saturating_mul(1_000_000_000);
        let compare = ComparePlan { margin: self.options.margin.0, seed: SEED, ..ComparePlan::default() };
        EliminationPlan { candidates, compare, max_time_ns }
    }

    /// The program as it is and under each candidate.
    fn variants(&self, candidates: &Candidates) -> Vec<Run> {
        let placed = candidates.list.iter().map(|candidate| candidate.on(&self.run));
        std::iter::once(self.run.clone()).chain(placed).collect()
    }

    /// Compares a candidate with the unchanged program in new runs, on each input.
    fn confirm(
        &self,
        candidate: &Candidate,
        is_unrepeatable: bool,
    ) -> Result<(Confirmed, Option<BoxedError>)> {
        let mut inputs = Vec::new();
        let mut cut_short = None;
        let runs = [Some((&self.run, false)), self.second.as_ref().map(|second| (second, true))];
        for (run, is_second) in runs.into_iter().flatten() {
            let input = if is_second { "the second input" } else { "new runs" };
            self.stages.stage(&format!("confirming {} in {input}", candidate.name));
            let variants = vec![run.clone(), candidate.on(run)];
            let (confirmed, error) = self.confirmation().on_input(variants, (is_second, is_unrepeatable))?;
            inputs.extend(confirmed);
            cut_short = error;
            if cut_short.is_some() {
                break;
            }
        }
        let effects = match cut_short.is_some() {
            true => format!("{NOT_OBSERVED}: the study was cut short"),
            false => self.confirmation().effects([&self.run, &candidate.on(&self.run)])?,
        };
        Ok((Confirmed { name: candidate.name.clone(), inputs, effects }, cut_short))
    }

    fn confirmation(&self) -> Confirmation<'_> {
        Confirmation { options: self.options, interrupts: self.interrupts, stages: self.stages }
    }

    /// The ways to use a candidate.
    fn actions(&self, candidate: &Candidate) -> Vec<Action> {
        let words = candidate.in_front_of_a_command();
        let mut actions = vec![Action {
            purpose: "start the program with".into(),
            text: format!("{words} {}", self.confirmation().in_words(&self.run)),
        }];
        let file = candidate.library.as_ref().and_then(|library| library.file_name());
        if let Some(file) = file {
            let folder =
                candidate.library.as_ref().and_then(|library| library.parent()).unwrap_or(Path::new("/"));
            let text = format!("-Wl,--no-as-needed -L{} -l:{}", folder.display(), file.to_string_lossy());
            actions.push(Action { purpose: "or link it with, in front of the C library".into(), text });
        }
        actions
    }
}

/// Placements that this version never tries.
const NEVER_TRIED: [(&str, &str); 1] = [("huge pages for code", "this version has no means to make them")];

/// The placement of a candidate in the model; `None` where it has none.
fn model_of(name: &str) -> Option<(PlacementKind, Allocator)> {
    use Allocator::{Keeping, Other, Own};
    use PlacementKind::{AsIs, HugePages, PoolsBySite, PoolsBySiteHuge, PoolsBySize, PoolsBySizeHuge};
    let pools = [PoolsBySize, PoolsBySizeHuge, PoolsBySite, PoolsBySiteHuge];
    if let Some((_, kind)) = POOL_NAMES.iter().zip(pools).find(|(own, _)| **own == name) {
        return Some((kind, Own));
    }
    match name {
        HUGE_HEAP_NAME => Some((HugePages, Own)),
        KEPT_MEMORY_NAME => Some((AsIs, Keeping)),
        HUGE_KEPT_MEMORY_NAME => Some((HugePages, Keeping)),
        // They have classes of sizes without headers.
        _ if ALLOCATOR_NAMES.contains(&name) => Some((PoolsBySize, Other)),
        _ => {
            let of = name.strip_suffix(WITH_HUGE_PAGES)?;
            ALLOCATOR_NAMES.contains(&of).then_some((PoolsBySizeHuge, Other))
        }
    }
}

fn of_candidate(at: Variant, candidate: &Candidate, result: &Elimination) -> CandidateReport {
    let round = result.last_round(at);
    let fate = &result.fates[at.0 - 1];
    CandidateReport {
        name: candidate.name.clone(),
        environment: candidate.in_front_of_a_command(),
        modelled_gain: None,
        elapsed: round.and_then(|round| round.contrast(at, ELAPSED)).and_then(change_of),
        peak_memory_ratio: round.and_then(|round| ratio(round, at, PEAK_MEMORY)),
        page_faults_ratio: round.and_then(|round| ratio(round, at, "page-faults")),
        difference: match fate {
            Fate::Differs(words) => Some(words.clone()),
            _ => None,
        },
        end: match fate {
            Fate::Differs(_) => "differs",
            Fate::Dropped => "dropped",
            Fate::Last => "chosen",
            Fate::Undecided => "undecided",
        },
        round: result.rounds.iter().rposition(|round| round.variants.contains(&at)).map(|round| round + 1),
    }
}

/// The order of candidates in a report: those of the last rounds first, and the faster ones of a round.
fn order(one: &CandidateReport) -> (bool, Reverse<Option<usize>>, f64) {
    let ratio = one.elapsed.as_ref().map_or(f64::INFINITY, |elapsed| elapsed.ratio);
    (one.difference.is_some(), Reverse(one.round), ratio)
}

/// True when every input takes less time beyond doubt and the margin, and nothing is seen to differ.
fn is_better(confirmed: &Confirmed, margin: f64) -> bool {
    !confirmed.inputs.is_empty()
        && confirmed.inputs.iter().all(|input| is_less(input, margin))
        && !has_other_effects(confirmed)
}

/// True when the effects of the processes were observed and differ.
fn has_other_effects(confirmed: &Confirmed) -> bool {
    !confirmed.effects.starts_with(EQUAL) && !confirmed.effects.starts_with(NOT_OBSERVED)
}

/// The result of a study that ended before its last comparison: of the rounds that ended, the fastest candidate.
fn cut_short_verdict(error: &BoxedError, fastest: Option<&CandidateReport>) -> String {
    let seen = fastest.filter(|one| one.difference.is_none()).and_then(|one| {
        let elapsed = one.elapsed.as_ref()?.in_words();
        Some(format!(" In the rounds that ended, {} was the fastest: {elapsed}.", one.name))
    });
    format!("The study was cut short: {error}. No placement is confirmed.{}", seen.unwrap_or_default())
}

/// The result in one sentence.
fn verdict(confirmed: &Confirmed, tried: usize, margin: f64) -> String {
    let Some(first) = confirmed.inputs.first() else {
        return format!("Nothing is confirmed: {} was left, and could not be compared.", confirmed.name);
    };
    let second = confirmed.inputs.iter().find(|input| input.is_second);
    let most_memory = confirmed.inputs.iter().filter_map(|input| input.peak_memory_ratio).fold(0.0, f64::max);
    let memory = match most_memory > 1.0 + MORE_MEMORY {
        true => format!(", for {} peak memory", figure::change(most_memory)),
        false => String::new(),
    };
    let on_second = second.map(|input| format!(", on the second input {}", input.elapsed.in_words()));
    if is_better(confirmed, margin) {
        let unknown = match confirmed.effects.starts_with(EQUAL) {
            true => String::new(),
            false => format!("; effects {}", confirmed.effects),
        };
        return format!(
            "Less time with {}{memory}: {}{}, confirmed in {} blocks of runs that did not choose it{unknown}.",
            confirmed.name,
            first.elapsed.in_words(),
            on_second.unwrap_or_default(),
            first.blocks
        );
    }
    let why = match confirmed.inputs.iter().find(|input| input.difference.is_some()) {
        Some(_) => "it changes what the program does".to_owned(),
        None if has_other_effects(confirmed) => {
            format!("it changes what the program does: {}", confirmed.effects)
        }
        None => format!("{}{}", first.elapsed.in_words(), on_second.unwrap_or_default()),
    };
    let seen = first.smallest_detectable.map(detectable_in_words).unwrap_or_default();
    format!(
        "Nothing is better: of {tried} placements {} was the fastest, and confirmed it is {why}; {seen}.",
        confirmed.name
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use lineup_report::placement::{Change, ConfirmedInput};

    fn confirmed(ratio: f64, effects: &str) -> Confirmed {
        let input = ConfirmedInput {
            command: "./program".into(),
            is_second: false,
            blocks: 12,
            verdict: "changed",
            elapsed: Change { ratio, interval: [ratio - 0.01, ratio + 0.01] },
            smallest_detectable: None,
            peak_memory_ratio: None,
            page_faults_ratio: None,
            difference: None,
        };
        Confirmed { name: "mimalloc".into(), inputs: vec![input], effects: effects.into() }
    }

    #[test]
    fn a_placement_with_less_time_and_other_effects_is_not_better() {
        let other = confirmed(0.8, "files differs: result.txt");
        assert!(!is_better(&other, 0.01));
        let said = verdict(&other, 9, 0.01);
        assert!(said.contains("it changes what the program does: files differs: result.txt"), "{said}");
        let equal = confirmed(0.8, EQUAL);
        assert!(is_better(&equal, 0.01));
        let said = verdict(&equal, 9, 0.01);
        assert!(said.starts_with("Less time with mimalloc: −20.00 %") && !said.contains("effects"), "{said}");
        let unknown = confirmed(0.8, "not observed: the program cannot be traced");
        assert!(is_better(&unknown, 0.01));
        let said = verdict(&unknown, 9, 0.01);
        assert!(said.contains("; effects not observed: the program cannot be traced."), "{said}");
    }

    #[test]
    fn a_study_that_its_time_ends_names_the_fastest_placement_of_the_rounds_that_ended() {
        let error = || BoxedError::from("its time is over");
        let fastest = CandidateReport {
            name: "jemalloc".into(),
            environment: String::new(),
            modelled_gain: None,
            elapsed: Some(Change { ratio: 0.7, interval: [0.65, 0.75] }),
            peak_memory_ratio: None,
            page_faults_ratio: None,
            difference: None,
            end: "undecided",
            round: Some(1),
        };
        let said = cut_short_verdict(&error(), Some(&fastest));
        assert!(
            said.contains("its time is over. No placement is confirmed. In the rounds that ended, jemalloc"),
            "{said}"
        );
        assert!(said.contains("−30.00 %"), "{said}");
        let differs = CandidateReport { difference: Some("other output".into()), ..fastest };
        assert!(!cut_short_verdict(&error(), Some(&differs)).contains("jemalloc"));
    }
}
