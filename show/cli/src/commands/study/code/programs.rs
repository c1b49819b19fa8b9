//! The compared programs: each in a copy of its own, built or changed by another optimiser.

use super::counts::Training;
use super::ordering::{Order, Study};
use super::workload::Workload;
use anyhow::{Context, Result, bail};
use lineup_codelayout::{linker_script, section_order, symbol_order};
use lineup_prove::{Runner, Slot, Variant as RunOf};
use lineup_study::bolt::Bolt;
use lineup_study::effects::Snapshot;
use lineup_study::progress::Progress;
use lineup_study::source::compilers::{Compiled, FunctionOrder, counts_for};
use lineup_study::source::linkers::Linkers;
use lineup_study::source::scratch::{Role, Tree};
use lineup_study::timing::{ProcessRunner, RunnerOptions};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Programs other than the one as linked and the one in Lineup's order.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Peer {
    /// Functions in Lineup's order, by the linker.
    Functions,
    /// BOLT, from its own instrumented run.
    Bolt,
    /// BOLT, from Lineup's counts.
    Counts,
    /// GCC's profile-guided optimisation.
    Pgo,
    /// That, and BOLT on its result, from Lineup's counts.
    PgoAndBolt,
}

/// The error for a program that is ended from outside: it leaves no profile for the optimiser.
const NO_PROFILE: &str = "the instrumented program left no profile: it must end by itself";

/// Makes the programs.
pub(crate) struct Programs<'p> {
    pub(crate) study: &'p Study<'p>,
    /// The run that all are trained by.
    pub(crate) training: &'p Workload,
    /// It, counted.
    pub(crate) trained: &'p Training,
    /// The copy with the program as it was linked.
    pub(crate) linked: &'p Tree,
    /// The folder for orders and counts while programs are made.
    pub(crate) folder: PathBuf,
}

impl Programs<'_> {
    /// A copy in which the program is this one.
    pub(crate) fn make(&self, peer: Peer) -> Result<Tree> {
        match peer {
            Peer::Functions => self.in_order(),
            Peer::Bolt => self.bolted(),
            Peer::Counts => self.by_lineups_counts(),
            Peer::Pgo => self.by_counts(Role::Optimised(2), false),
            Peer::PgoAndBolt => self.by_counts_and_bolted(),
        }
    }

    /// Functions in Lineup's order.
    fn in_order(&self) -> Result<Tree> {
        let code = self.trained.code()?;
        let written = |name: &str, text: String| {
            let path = self.folder.join(name);
            std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
            anyhow::Ok(path)
        };
        let order = FunctionOrder {
            script: written("script", linker_script(&code))?,
            sections: written("sections", section_order(&code))?,
            symbols: written("symbols", symbol_order(&code))?,
        };
        self.built(Role::Optimised(0), Compiled::InOrder(&order), "in which functions lie in Lineup's order")
    }

    /// BOLT, from Lineup's counts.
    fn by_lineups_counts(&self) -> Result<Tree> {
        let order = self.order_by(self.trained, "counts.fdata")?;
        self.study.ordered((self.linked, &BTreeMap::new()), &order, Role::Optimised(6))
    }

    /// The order that these counts lead to.
    fn order_by(&self, counted: &Training, name: &str) -> Result<Order> {
        let profile = self.folder.join(name);
        self.study.write_profile(counted, &profile)?;
        Ok(Order { profile, functions: None })
    }

    /// BOLT, from a run of the program that it instrumented.
    fn bolted(&self) -> Result<Tree> {
        let Study { gates, bolt, .. } = self.study;
        gates.stages.stage("building the program once more, for llvm-bolt to instrument");
        let mut tree = gates.scratch.copy(Role::Optimised(1))?;
        gates.scratch.build(&mut tree, &BTreeMap::new())?;
        let as_built = Snapshot::take(&tree.path).context("cannot copy the folder of the program")?;
        let [linked, program] = [self.linked, &tree].map(|tree| tree.path.join(&gates.plan.started));
        let profile = self.folder.join("instrumented.fdata");
        let beside = program.with_extension("counting");
        bolt.instrument(&linked, &profile, &beside)?;
        std::fs::rename(&beside, &program)
            .with_context(|| format!("cannot replace {}", program.display()))?;
        gates.stages.stage("running the program that llvm-bolt instrumented");
        self.train(&tree)?;
        if !profile.is_file() {
            bail!(NO_PROFILE);
        }
        as_built.restore()?;
        self.study.replace(&program, &linked, &Order { profile, functions: None })?;
        Ok(tree)
    }

    /// GCC's own optimisation by a profile.
    fn by_counts(&self, role: Role, in_one_piece: bool) -> Result<Tree> {
        let counts = self.counted_by_gcc()?;
        // GCC looks for profiles by the paths of objects, and this copy has other paths.
        let here = self.study.scratch.copy(role)?;
        let folder = self.folder.join(format!("counts-{in_one_piece}"));
        let counted_in = self.study.scratch.path(Role::Optimised(4));
        if !counts_for(&counts, [&counted_in, &here.path], &folder)? {
            bail!(NO_PROFILE);
        }
        let by = Compiled::ByCounts { folder: &folder, in_one_piece };
        self.built(role, by, "that GCC optimises by a profile")
    }

    /// The folder of the counts from GCC's instrumented program; the run is made once.
    fn counted_by_gcc(&self) -> Result<PathBuf> {
        let counts = self.folder.join("gcc");
        if counts.is_dir() {
            return Ok(counts);
        }
        let counting = self.built(Role::Optimised(4), Compiled::Counting(&counts), "that GCC instruments")?;
        // Runs during the build itself are not training.
        if counts.is_dir() {
            std::fs::remove_dir_all(&counts).context("emptying the folder of counts")?;
        }
        std::fs::create_dir_all(&counts).context("making the folder of counts")?;
        self.study.stages.stage("running the program that GCC instrumented");
        self.train(&counting)?;
        Ok(counts)
    }

    /// GCC's program by a profile, and BOLT from Lineup's counts of it.
    fn by_counts_and_bolted(&self) -> Result<Tree> {
        let tree = self.by_counts(Role::Optimised(3), true)?;
        let order = self.order_by(&self.study.trained(self.training, &tree)?, "optimised.fdata")?;
        let program = tree.path.join(&self.study.plan.started);
        self.study.replace(&program, &program, &order)?;
        Ok(tree)
    }

    /// A copy that is built so.
    fn built(&self, role: Role, how: Compiled<'_>, what: &str) -> Result<Tree> {
        self.study.stages.stage(&format!("building a program {what}"));
        let linkers = Linkers::that_compile(how, self.study.interrupts)?;
        let tree = self.study.scratch.copy(role)?;
        self.study.scratch.build_by(&tree, &linkers)?;
        if !linkers.have_compiled() {
            bail!("the build compiles nothing by GCC, or starts it where COMPILER_PATH does not reach");
        }
        Ok(tree)
    }

    /// One training run to its end.
    fn train(&self, tree: &Tree) -> Result<()> {
        let run = self.training.run(self.study.plan, tree)?;
        let mut runner = ProcessRunner::new(vec![run], RunnerOptions::default(), self.study.interrupts)?;
        let slot = Slot { variant: RunOf::BEFORE, number: 0, block: None };
        runner.run(&slot).map_err(anyhow::Error::from_boxed)?;
        Ok(())
    }
}

/// A program's optimiser, in words.
pub(crate) fn made(peer: Peer, bolt: &Bolt) -> String {
    let version = bolt.version();
    let bolt = bolt.program().file_name().unwrap_or_default().to_string_lossy();
    match peer {
        Peer::Counts => format!("{version}, from Lineup's counts of the training run"),
        Peer::Functions => {
            "GCC with -ffunction-sections, and the linker with an order of functions from Lineup's counts"
                .into()
        }
        Peer::Bolt => format!("{bolt} -instrument, the training run, and {bolt} with its profile"),
        Peer::Pgo => "GCC with -fprofile-generate, the training run, and GCC with -fprofile-use".into(),
        Peer::PgoAndBolt => format!(
            "the same with -fno-reorder-blocks-and-partition, as {bolt} needs it; then the training run counted by Lineup, and {bolt} with these counts"
        ),
    }
}
