//! `lineup layout --check lineup.lock FILE`: does the file keep what the lock promises?

use crate::files;
use crate::outcome::Outcome;
use anyhow::{Context, Result, bail};
use lineup_advise::assertions::{Dialect, assertions};
use lineup_advise::guard::{CheckReport, Lock};
use lineup_model::abi::Abi;
use lineup_model::types::{TypeKind, Types};
use lineup_report::visible::many_lines;
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
    /// What the lock holds, as assertions.
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

/// What is printed of a check.
#[derive(Clone, Copy)]
pub(crate) enum Form {
    /// Sentences.
    Text,
    /// JSON.
    Json,
    /// Where all is kept, the promises as assertions; else sentences, on standard error.
    Assertions(AssertionLanguage),
}

/// Holds the lock against the types of a file; a broken promise is a finding (exit 1).
pub(crate) fn check(lock: &Path, file: &Path, types: &Types, form: Form) -> Result<Outcome> {
    let text = companions::read(lock)?;
    let text = std::str::from_utf8(&text).with_context(|| format!("{} is not text", lock.display()))?;
    let parsed = Lock::parse(&lock.display().to_string(), text)?;
    let Some(abi) = data_model(types) else {
        bail!("{}: no pointer type tells its data model", file.display());
    };
    let report = parsed.check(types, abi);
    let is_kept = report.violations.is_empty();
    match form {
        Form::Json => files::print(&json(&report)?)?,
        Form::Assertions(language) if is_kept => files::print(&language.assertions(&parsed, types))?,
        Form::Assertions(_) => eprint!("{}", many_lines(&plain(&report, lock, file, abi))),
        Form::Text => files::print(&plain(&report, lock, file, abi))?,
    }
    Ok(if is_kept { Outcome::Done } else { Outcome::Finding })
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
