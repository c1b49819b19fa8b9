//! The guard of a proposal's order. `lineup layout --check lineup.lock FILE` checks that the file keeps the lock's
//! promises.

use crate::terminal::outcome::Outcome;
use crate::terminal::output;
use anyhow::{Context, Result, bail};
use lineup_advise::assertions::{Dialect, assertions};
use lineup_advise::guard::{CheckReport, Lock};
use lineup_model::abi::Abi;
use lineup_model::types::{TypeKind, Types};
use lineup_report::visible::{many_lines, one_line};
use lineup_study::companions;
use std::path::Path;

/// Version of the JSON form.
const SCHEMA: &str = "lineup.check/1";

/// The language of assertions, as it is typed.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum AssertionLanguage {
    /// That of the types
    Auto,
    /// C11 and C++11
    C,
    /// Rust 1.82 and later
    Rust,
    /// Linux
    Kernel,
}

impl AssertionLanguage {
    /// The lock's promises, as assertions.
    pub(crate) fn assertions(self, lock: &Lock, types: &Types) -> String {
        let dialect = match self {
            AssertionLanguage::Auto => Dialect::of(lock, types),
            AssertionLanguage::C => Dialect::C,
            AssertionLanguage::Rust => Dialect::Rust,
            AssertionLanguage::Kernel => Dialect::Kernel,
        };
        assertions(lock, types, dialect)
    }
}

/// The output of a check.
#[derive(Clone, Copy)]
pub(crate) enum Form {
    /// Sentences.
    Text,
    /// JSON.
    Json,
    /// The promises as assertions where all are kept; else sentences, on standard error.
    Assertions(AssertionLanguage),
}

/// Holds the lock against the types of a file; a broken promise is a finding (exit 1).
pub(crate) fn check(lock: &Path, file: &Path, types: &Types, form: Form) -> Result<Outcome> {
    let text = companions::read(lock)?;
    let text = std::str::from_utf8(&text).with_context(|| format!("{} is not text", lock.display()))?;
    let parsed = Lock::parse(&lock.display().to_string(), text)?;
    let Some(abi) = data_model(types) else {
        bail!("{}: its data model is not known, because it has no pointer type", file.display());
    };
    if parsed.groups.is_empty() {
        bail!(
            "{} promises nothing, so a check would keep nothing: it holds no group of members; record functions that use several \
             members of an object, and write it anew with `lineup advise --guard`",
            lock.display()
        );
    }
    let report = parsed.check(types, abi);
    if report.not_checked == report.groups {
        bail!(
            "{}: nothing was checked: no group of {} is for {}",
            file.display(),
            lock.display(),
            abi.data_model()
        );
    }
    let is_kept = report.violations.is_empty();
    match form {
        Form::Json => output::print(&json(&report)?)?,
        Form::Assertions(language) if is_kept => output::print(&language.assertions(&parsed, types))?,
        Form::Assertions(_) => eprint!("{}", many_lines(&plain(&report, lock, file, abi))),
        Form::Text => output::print(&plain(&report, lock, file, abi))?,
    }
    Ok(if is_kept { Outcome::Done } else { Outcome::Finding })
}

/// Writes the guard, without promises that the build it is for does not keep, and returns whether there is one. A guard
/// that promises nothing is not written, since a check of it would always pass.
pub(crate) fn write(path: &Path, lock: &Lock, built: Option<(&Types, Abi)>) -> Result<bool> {
    let mut lock = lock.clone();
    let broken = built.map_or_else(Vec::new, |(types, abi)| lock.leave_out_broken(types, abi));
    if !broken.is_empty() {
        eprintln!(
            "lineup: warning: the guard leaves out members of {}: the build that it is for does not keep them on one line",
            one_line(&broken.join(", "))
        );
    }
    if lock.groups.is_empty() {
        eprintln!(
            "lineup: warning: no {} is written: in no type do the recorded calls use several members on one line, so a guard \
             would promise nothing",
            path.display()
        );
        return Ok(false);
    }
    std::fs::write(path, lock.to_text()).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(true)
}

/// LP64 or ILP32, by the size of the file's pointers. Raw BTF names no machine.
pub(crate) fn data_model(types: &Types) -> Option<Abi> {
    let size = types.iter().find_map(|(_, ty)| match ty.kind {
        TypeKind::Pointer(_) => ty.size_bytes,
        _ => None,
    });
    size.map(|size| if size == 4 { Abi::ARM } else { Abi::X86_64 })
}

fn json(report: &CheckReport) -> Result<String> {
    let mut document = serde_json::to_value(report).context("cannot write JSON")?;
    document["schema"] = SCHEMA.into();
    Ok(serde_json::to_string_pretty(&document).context("cannot write JSON")? + "\n")
}

fn plain(report: &CheckReport, lock: &Path, file: &Path, abi: Abi) -> String {
    let mut text: String =
        report.violations.iter().map(|violation| format!("broken: {}\n", violation.message)).collect();
    text += &format!(
        "{}: {} of {} groups of {} kept",
        file.display(),
        report.kept,
        report.groups - report.not_checked,
        lock.display()
    );
    if report.not_checked > 0 {
        text += &format!("; {} not checked: not for {}", report.not_checked, abi.data_model());
    }
    text + "\n"
}
