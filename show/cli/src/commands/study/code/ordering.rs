//! Puts the code of programs in order with `llvm-bolt`.

use super::counts::Training;
use super::gates::Gates;
use crate::commands::study::links::{self, Programs};
use crate::commands::study::variant::Variant;
use crate::terminal::typed_command;
use anyhow::{Context, Result};
use lineup_codelayout::bolt_profile;
use lineup_report::study::not_ordered_in_words;
use lineup_study::bolt::{Bolt, Evidence};
use lineup_study::progress::Progress;
use lineup_study::source::scratch::{Role, Tree};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::path::{Path, PathBuf};

/// A study of an order that `llvm-bolt` makes.
pub(crate) struct Study<'s> {
    pub(crate) gates: Gates<'s>,
    pub(crate) bolt: &'s Bolt,
    /// Functions that BOLT failed at, and that keep their places.
    pub(crate) skipped: RefCell<BTreeSet<String>>,
}

impl<'s> Deref for Study<'s> {
    type Target = Gates<'s>;

    fn deref(&self) -> &Gates<'s> {
        &self.gates
    }
}

/// The files among the results from which an order is computed.
pub(crate) struct Order {
    pub(crate) profile: PathBuf,
    /// Names of functions; `None` where BOLT finds their order.
    pub(crate) functions: Option<PathBuf>,
}

impl Order {
    pub(crate) fn evidence(&self) -> Evidence<'_> {
        Evidence { profile: &self.profile, order: self.functions.as_deref() }
    }
}

/// The file's own name.
pub(crate) fn name(path: &Path) -> &Path {
    path.file_name().map_or(path, Path::new)
}

impl Study<'_> {
    /// Writes the profile; returns the numbers of exact and of estimated ways between blocks.
    pub(super) fn write_profile(&self, trained: &Training, to: &Path) -> Result<[u64; 2]> {
        let code = trained.code()?;
        std::fs::write(to, bolt_profile(&code)).with_context(|| format!("cannot write {}", to.display()))?;
        let summary = code.summary("");
        Ok([summary.edges_exact, summary.edges_estimated])
    }

    /// A second copy, built alike from the same edited texts, in which the program is the one in the new order.
    pub(super) fn ordered(
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
    pub(crate) fn not_ordered(&self) -> Vec<String> {
        self.skipped.borrow().iter().cloned().collect()
    }

    /// Makes a program be another one in an order.
    pub(super) fn replace(&self, program: &Path, by: &Path, order: &Order) -> Result<()> {
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
    pub(crate) fn links(&self, order: &Order, variants: [&Variant; 2]) -> Result<Option<Programs>> {
        let programs = links::of(self.plan, self.scratch, variants)?;
        if let Some([linked, ordered]) = programs.as_deref() {
            self.stages.stage("putting the code of each link in order with llvm-bolt");
            let mut both = ordered.iter().zip(linked);
            both.try_for_each(|(ordered, linked)| self.replace(ordered, linked, order))?;
        }
        Ok(programs)
    }

    /// The words that order a program of the user's own build.
    pub(crate) fn command(&self, order: &Order) -> String {
        let program = name(&self.plan.started);
        let to = PathBuf::from(format!("{}.ordered", program.display()));
        typed_command::line(self.bolt.command(program, order.evidence(), &self.skipped.borrow(), &to))
    }
}
