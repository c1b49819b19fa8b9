//! `--sanitize`: AddressSanitizer and UndefinedBehaviorSanitizer must find nothing in a changed program that they do not
//! find in the unchanged one.

use super::plan::Plan;
use crate::terminal::progress::Stages;
use anyhow::Result;
use lineup_study::interrupt::Interrupts;
use lineup_study::progress::Progress;
use lineup_study::run::Run;
use lineup_study::source::compilers::Compiled;
use lineup_study::source::linkers::Linkers;
use lineup_study::source::sanitizers::SanitizerReports;
use lineup_study::source::scratch::{Role, Scratch};
use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;

/// Reports of a program; the reason where it cannot be built with sanitizers.
type Reports = Result<SanitizerReports, String>;

/// The reason why a change does not pass.
enum Fault {
    /// It has faults that the unchanged program does not have.
    New(String),
    /// Nothing can be said: the unchanged program cannot be built so.
    NotBuilt(String),
}

/// The programs of a study under sanitizers.
pub(crate) struct Sanitized<'s> {
    plan: &'s Plan,
    scratch: &'s Scratch,
    interrupts: &'s Interrupts,
    stages: &'s Stages,
    unchanged: OnceCell<Reports>,
    /// The last result, in words.
    said: RefCell<Option<String>>,
}

impl<'s> Sanitized<'s> {
    /// `None` unless the user asks for sanitizers.
    pub(crate) fn of(
        (plan, scratch): (&'s Plan, &'s Scratch),
        (interrupts, stages): (&'s Interrupts, &'s Stages),
    ) -> Option<Sanitized<'s>> {
        let (unchanged, said) = Default::default();
        plan.sanitize.then_some(Sanitized { plan, scratch, interrupts, stages, unchanged, said })
    }

    /// The last result, in words.
    pub(crate) fn in_words(&self) -> Option<String> {
        self.said.borrow().clone()
    }

    /// Builds a change with sanitizers, and runs it as the study does and by the commands of `--audit`. Returns the reason
    /// why the change fails.
    pub(crate) fn judge(&self, edited: &BTreeMap<String, String>) -> Result<Option<String>> {
        let judged = self.judgement(edited)?;
        let (said, failed) = match judged {
            Ok(passed) => (passed, None),
            Err(Fault::NotBuilt(why)) => (format!("not run: {why}"), None),
            Err(Fault::New(why)) => (why.clone(), Some(why)),
        };
        *self.said.borrow_mut() = Some(said);
        Ok(failed)
    }

    fn judgement(&self, edited: &BTreeMap<String, String>) -> Result<std::result::Result<String, Fault>> {
        let unchanged = match self.unchanged.get() {
            Some(known) => known,
            None => {
                let reports = self.reports(&BTreeMap::new())?;
                self.unchanged.get_or_init(|| reports)
            }
        };
        let unchanged = match unchanged {
            Ok(reports) => reports,
            Err(why) => return Ok(Err(Fault::NotBuilt(why.clone()))),
        };
        let changed = match self.reports(edited)? {
            Ok(changed) => changed,
            Err(why) => {
                let why = format!("with sanitizers the changed program alone does not build: {why}");
                return Ok(Err(Fault::New(why)));
            }
        };
        let new = changed.beyond(unchanged);
        if let Some(first) = new.first() {
            let others = match new.len() {
                1 => String::new(),
                several => format!(" and {} more", several - 1),
            };
            return Ok(Err(Fault::New(format!(
                "sanitizers find what the unchanged program does not have: {first}{others}"
            ))));
        }
        let runs = match changed.endings.len() {
            1 => "one run".to_owned(),
            several => format!("{several} runs"),
        };
        let both = match unchanged.faults.len() {
            0 => String::new(),
            1 => "; the unchanged program has 1 fault".to_owned(),
            several => format!("; the unchanged program has {several} faults"),
        };
        Ok(Ok(format!("nothing new in {runs} of each program{both}")))
    }

    fn reports(&self, edited: &BTreeMap<String, String>) -> Result<Reports> {
        let which = if edited.is_empty() { "unchanged" } else { "changed" };
        self.stages.stage(&format!("building the {which} program with sanitizers"));
        let linkers = Linkers::that_compile(Compiled::Sanitized, self.interrupts)?;
        let mut tree = self.scratch.copy(Role::Sanitized)?;
        tree.edit(edited)?;
        match self.scratch.build_by(&tree, &linkers) {
            Ok(()) if linkers.have_compiled() => {}
            Ok(()) => return Ok(Err("the build compiles nothing by GCC".into())),
            Err(error) => {
                self.interrupts.check()?;
                let words = error.to_string();
                let last = words.lines().last().unwrap_or_default().trim();
                return Ok(Err(format!("the build fails with them: {last}")));
            }
        }
        self.stages.stage(&format!("running the {which} program with sanitizers"));
        let mut reports = SanitizerReports::default();
        let run = self.plan.run(&tree)?;
        reports.add_run(&run, self.interrupts)?;
        for audit in &self.plan.audits {
            let command = ["sh", "-c", audit].map(Into::into).into();
            let audit = Run { command, directory: Some(tree.path.clone()), ..Run::default() };
            reports.add_run(&audit, self.interrupts)?;
        }
        Ok(Ok(reports))
    }
}
