//! `lineup study --code`: the program's code in another order, made by an installed `llvm-bolt` from Lineup's counts,
//! and proven like a patch.

mod cold;
mod counts;
mod gates;
mod hints;
mod optimisers;
mod options;
mod patched;

use crate::files;
use crate::machine;
use crate::outcome::Outcome;
use crate::progress::Stages;
use crate::study::links::{self, Programs};
use crate::study::outputs::{self, Left};
use crate::study::plan::Plan;
use crate::study::trials::failure_of;
use crate::study::variant::Variant;
use crate::study::{call_times, plan};
use anyhow::{Context, Result, bail};
use cold::Cold;
use counts::Training;
pub(in crate::study) use counts::per_call;
use gates::{Gates, Measured};
use lineup_codelayout::bolt_profile;
use lineup_prove::{Proof, Proven};
use lineup_report::study::{
    CALLS, COUNTS, CodeReport, NotObserved, Optimisers, ProgramFindings, StudyReport, not_ordered_in_words,
};
use lineup_study::bolt::{Bolt, Evidence};
use lineup_study::effects::Snapshot;
use lineup_study::interrupt::Interrupts;
use lineup_study::progress::Progress;
use lineup_study::source::linkers::Linkers;
use lineup_study::source::scratch::{Role, Scratch, Tree};
use optimisers::Others;
pub(crate) use options::CodeOptions;
use options::Workload;
use patched::Patched;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::path::{Path, PathBuf};

/// A study of an order that `llvm-bolt` makes.
struct Study<'s> {
    gates: Gates<'s>,
    bolt: &'s Bolt,
    /// Functions that BOLT failed at, and that keep their places.
    skipped: RefCell<BTreeSet<String>>,
}

impl<'s> Deref for Study<'s> {
    type Target = Gates<'s>;

    fn deref(&self) -> &Gates<'s> {
        &self.gates
    }
}

/// The files among the results from which an order is computed.
struct Order {
    profile: PathBuf,
    /// Names of functions; `None` where BOLT finds their order.
    functions: Option<PathBuf>,
}

impl Order {
    fn evidence(&self) -> Evidence<'_> {
        Evidence { profile: &self.profile, order: self.functions.as_deref() }
    }
}

/// A study that was written.
pub(in crate::study) struct Studied {
    pub(in crate::study) plan: Plan,
    pub(in crate::study) report: StudyReport,
    /// The program in the new order, where it was compared; its folder goes with these copies.
    pub(in crate::study) ordered: Option<(Variant, Scratch)>,
    /// The reason why the order is no gain, after the program's name; `None` where it may be used.
    worse: Option<&'static str>,
}

/// Studies, and prints the report.
pub(super) fn run(options: plan::Options) -> Result<Outcome> {
    if options.code.hints {
        return hints::run(options);
    }
    let stages = Stages::new();
    let interrupts = stages.watch_signals()?;
    let Studied { plan, report, worse, .. } = study(options, (&interrupts, &stages))?;
    files::print(&outputs::for_standard_output(plan.json, &plan.report, &plan.out, &report)?)?;
    Ok(gates::outcome(changed(report.code.as_ref().is_some_and(|code| code.patch.is_some())), worse))
}

/// The changed program's name.
fn changed(is_patched: bool) -> &'static str {
    match is_patched {
        true => "the program with the patch and in the new order",
        false => "the program in the new order",
    }
}

/// Counts a run, lets `llvm-bolt` order the program by that, compares both programs by another run, and writes the
/// report.
pub(in crate::study) fn study(
    options: plan::Options,
    (interrupts, stages): (&Interrupts, &Stages),
) -> Result<Studied> {
    let asked = options.code.clone();
    let bolt = Bolt::find(asked.bolt.as_deref())?;
    let (mut plan, training, is_held_out) = gates::plan(options, interrupts, stages)?;
    stages.stage("reading the source folder");
    let linkers = match plan.proof.links {
        0 | 1 => Linkers::that_keep_relocations(interrupts)?,
        links => Linkers::that_link_again_and_keep_relocations(links, plan.proof.seed.0, interrupts)?,
    };
    let scratch = Scratch::new(&plan.source, &plan.build, &plan.out, interrupts)?.linked_by(linkers);
    let built = Variant::build(&plan, &scratch, None, stages)?;
    require_relocations(&plan, &built.tree)?;
    let patch = asked.patch.as_deref().map(|file| Patched::read(file, &scratch)).transpose()?;
    let patched = patch.as_ref().map(|patch| patch.build(&scratch, stages)).transpose()?;
    let ordered_from = patched.as_ref().unwrap_or(&built.tree);
    let as_built =
        Snapshot::take(&ordered_from.path).context("cannot copy the folder of the built program")?;
    let trained = gates::train(&mut plan, &training, ordered_from, &as_built, (interrupts, stages))?;
    let changed = changed(patch.is_some());
    let gates = Gates { plan: &plan, scratch: &scratch, interrupts, stages, changed };
    let study = Study { gates, bolt: &bolt, skipped: RefCell::default() };
    let profile = plan.out.join(format!("{}.fdata", name(&plan.started).display()));
    let ways = study.write_profile(&trained, &profile)?;
    let by_counts = Order { profile, functions: None };
    let cold = asked.cold.then(|| Cold::of(&study, &training, &trained, &built.tree)).transpose()?;
    as_built.restore()?;
    let order = cold.as_ref().map_or(&by_counts, |cold| &cold.order);
    let unedited = BTreeMap::new();
    let edited = patch.as_ref().map_or(&unedited, |patch| &patch.edited);
    let ordered = study.ordered((ordered_from, edited), order, Role::After)?;
    let before = study.measure(built, None)?;
    let after = study.measure(Variant::built(ordered, "after"), Some(&before.variant));
    let (after, compared) = match after {
        Ok(after) => {
            let variants = [&before.variant, &after.variant];
            let compared = study.compare(variants, study.links(order, variants)?)?;
            (Some(after), compared)
        }
        Err(error) => (None, Err(failure_of(error)?.because)),
    };
    let proven = compared.as_ref().ok();
    let timed = after.as_ref().zip(proven).map(|(after, proof)| {
        call_times::compare(&plan, [&before.variant, &after.variant], proof.value(), interrupts, stages)
    });
    let timed = timed.transpose()?.unwrap_or_default();
    let judged = cold.as_ref().zip(after.as_ref().filter(|_| proven.is_some()));
    let judged =
        judged.map(|(cold, after)| cold.judge(&study, &by_counts, [&before.variant, &after.variant]));
    let cold_calls = judged.transpose()?;
    let compared_runs = after.as_ref().filter(|_| proven.is_some());
    let others = Others { optimisers: asked.against_optimisers, patched: patched.as_ref() };
    let others = (others.optimisers || others.patched.is_some()).then_some(others);
    let peers = others
        .zip(compared_runs)
        .map(|(others, after)| study.beside_others(others, (&training, &trained), proven, [&before, after]));
    let peers = peers.transpose()?;
    stages.end();
    scratch.check_untouched()?;
    let mut report = StudyReport::of_found(ProgramFindings {
        title: before.variant.program().display().to_string(),
        commands: outputs::commands(&plan, before.variant.program(), Left::default()),
        setting: study.setting(Some("with --emit-relocs, by linkers that COMPILER_PATH names")),
        machine: machine::facts(),
        line: plan.line(),
        built_in: scratch.built_in(before.variant.tree()),
        before: &before.variant.recorded,
        after: after.as_ref().filter(|_| proven.is_some()).map(|after| &after.variant.recorded),
        advice: None,
        patch: None,
        not_proven: compared.as_ref().err().cloned(),
        proof: proven,
        call_times: timed.proven.as_ref(),
        not_timed: timed.not_timed.clone(),
        contention: None,
    });
    let (optimisers, why_not) =
        peers.map_or((None, None), |peers| (peers.as_ref().ok().cloned(), peers.err()));
    report.not_observed.extend(why_not);
    report.code = match compared_runs {
        Some(after) => Some(CodeReport {
            optimiser: bolt.version().to_owned(),
            optimiser_command: study.command(order),
            not_ordered: study.not_ordered(),
            evidence: if cold.is_some() { CALLS } else { COUNTS },
            training: training.in_words(&plan),
            test: Workload::of(&plan).in_words(&plan),
            is_held_out,
            ways_exact: ways[0],
            ways_estimated: ways[1],
            whole_run: before.counted.beside(&after.counted),
            calls: study.calls()?,
            cold: cold_calls,
            patch: patch.as_ref().map(Patched::in_words),
            hints: None,
            optimisers,
        }),
        None => None,
    };
    outputs::write(&plan.out, &report, None)?;
    let worse = gates::worse(&compared);
    let ordered = after.filter(|_| compared.is_ok()).map(|after| (after.variant, scratch));
    Ok(Studied { plan, report, ordered, worse })
}

/// The file's own name.
fn name(path: &Path) -> &Path {
    path.file_name().map_or(path, Path::new)
}

/// Without relocations no code can be moved.
fn require_relocations(plan: &Plan, tree: &Tree) -> Result<()> {
    let program = tree.path.join(&plan.started);
    if !program.is_file() {
        bail!(
            "--code orders the code of the program that is started, and the build did not make {}",
            plan.started.display()
        );
    }
    if lineup_study::companions::load(&program)?.keeps_relocations() {
        return Ok(());
    }
    bail!(
        "the build linked {} without relocations, which ordering its code needs. GCC and Clang were given linkers that \
         keep them, by COMPILER_PATH; this build links otherwise, or strips the program. Link it with \
         -Wl,--emit-relocs and without -s, as in --build 'make LDFLAGS=-Wl,--emit-relocs'",
        plan.started.display()
    )
}

impl Study<'_> {
    /// Writes the profile; returns the numbers of exact and of estimated ways between blocks.
    fn write_profile(&self, trained: &Training, to: &Path) -> Result<[u64; 2]> {
        let code = trained.code()?;
        std::fs::write(to, bolt_profile(&code)).with_context(|| format!("cannot write {}", to.display()))?;
        let summary = code.summary("");
        Ok([summary.edges_exact, summary.edges_estimated])
    }

    /// A second copy, built alike from the same edited texts, in which the program is the one in the new order.
    fn ordered(
        &self,
        (built, edited): (&Tree, &BTreeMap<String, String>),
        order: &Order,
        role: Role,
    ) -> Result<Tree> {
        self.stages.stage("building the program once more, for another order");
        let mut tree = self.scratch.copy(role)?;
        self.scratch.build(&mut tree, edited)?;
        self.stages.stage("putting the code in order with llvm-bolt");
        let [from, to] = [built, &tree].map(|tree| tree.path.join(&self.plan.started));
        self.replace(&to, &from, order)?;
        Ok(tree)
    }

    /// The functions that keep their places.
    fn not_ordered(&self) -> Vec<String> {
        self.skipped.borrow().iter().cloned().collect()
    }

    /// Makes a program be another one in an order.
    fn replace(&self, program: &Path, by: &Path, order: &Order) -> Result<()> {
        let beside = program.with_extension("ordered");
        let known = self.skipped.borrow().len();
        self.bolt.reorder(by, order.evidence(), &mut self.skipped.borrow_mut(), &beside)?;
        let skipped = self.not_ordered();
        if skipped.len() > known {
            self.stages.line(&format!("note: {}", not_ordered_in_words(&skipped)));
        }
        self.interrupts.check()?;
        std::fs::rename(&beside, program).with_context(|| format!("cannot replace {}", program.display()))
    }

    /// The links of both variants: the second's are derived from the first's. Names and places within functions fit
    /// every link.
    fn links(&self, order: &Order, variants: [&Variant; 2]) -> Result<Option<Programs>> {
        let programs = links::of(self.plan, self.scratch, variants)?;
        if let Some([linked, ordered]) = programs.as_deref() {
            self.stages.stage("putting the code of each link in order with llvm-bolt");
            let mut both = ordered.iter().zip(linked);
            both.try_for_each(|(ordered, linked)| self.replace(ordered, linked, order))?;
        }
        Ok(programs)
    }

    /// The optimisers' programs, or the reason why they are not compared: that needs a program whose runs can be
    /// compared.
    fn beside_others(
        &self,
        others: Others<'_>,
        (run, counted): (&Workload, &Training),
        proven: Option<&Proven<Proof>>,
        programs: [&Measured; 2],
    ) -> Result<Result<Optimisers, NotObserved>> {
        let time = proven.map(|proof| &proof.value().time);
        if !matches!(time, Some(Ok(_))) {
            return Ok(Err(NotObserved {
                what: "comparison with other optimisers".into(),
                consequence: "no time is claimed for the unchanged program, so none is compared".into(),
            }));
        }
        optimisers::table(self, others, &optimisers::Trained { run, counted }, programs).map(Ok)
    }

    /// The words that order a program of the user's own build.
    fn command(&self, order: &Order) -> String {
        let program = name(&self.plan.started);
        let to = PathBuf::from(format!("{}.ordered", program.display()));
        crate::typed::line(self.bolt.command(program, order.evidence(), &self.skipped.borrow(), &to))
    }
}
