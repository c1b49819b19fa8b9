//! `lineup layout`: how types lie in memory.

pub(crate) mod changed_type;
mod compare;
mod index;
mod json;
mod pahole;
mod select;
mod subject;
mod table;
mod text;

use crate::advice_options::line_size;
use crate::errors::UnknownName;
use crate::files;
use crate::guard::{self, AssertionLanguage};
use crate::outcome::Outcome;
use crate::progress::Stages;
use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use lineup_model::abi::Abi;
use lineup_model::layout::Layout;
use lineup_model::line::LineSize;
use lineup_model::types::{TypeId, Types};
use lineup_report::text::TextStyle;
use lineup_report::visible::many_lines;
use lineup_study::progress::Progress;
use rayon::prelude::*;
use std::collections::HashSet;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use subject::Subject;

/// Arguments of `lineup layout`.
#[derive(Args)]
pub(crate) struct Options {
    /// Program, library, object file, or raw BTF such as /sys/kernel/btf/vmlinux
    file: PathBuf,
    /// Types to show in full, with or without namespaces; without any, a table of all types
    #[arg(value_name = "TYPE")]
    types: Vec<String>,
    /// Bytes in a cache line: 32, 64 or 128
    #[arg(long, value_name = "BYTES", default_value = "64", value_parser = line_size)]
    line_size: LineSize,
    /// Show a table instead of members, in this order
    #[arg(long, value_enum)]
    sort: Option<Sort>,
    /// Show the whole result, instead of one screen: without types, all types with their members; a pipe always gets it
    #[arg(long, conflicts_with_all = ["sort", "json", "diff"])]
    full: bool,
    /// Write types as pahole 1.24 does, for what reads its output: those that are named, or else all
    #[arg(long, conflicts_with_all = ["sort", "full", "json", "diff", "check"])]
    pahole: bool,
    /// Show every row of the table, as a pipe always gets it
    #[arg(long, conflicts_with_all = ["types", "full", "pahole", "json", "diff"])]
    all: bool,
    /// Print JSON (schema lineup.layout/1, or lineup.layout-diff/1 with --diff)
    #[arg(long)]
    json: bool,
    /// Show what is different in OTHER: sizes, members that came, went, moved
    #[arg(long, value_name = "OTHER")]
    diff: Option<PathBuf>,
    /// The BTF image that a kernel module's split BTF continues
    #[arg(long, value_name = "FILE")]
    base: Option<PathBuf>,
    /// Read all of a large file, and neither use nor write the index by which types are found at once
    #[arg(long)]
    no_index: bool,
    /// Check that FILE keeps what a lineup.lock promises; exit 1 when a member has moved
    #[arg(long, value_name = "LOCK", conflicts_with_all = ["types", "sort", "full", "diff"])]
    check: Option<PathBuf>,
    /// With --check: print the promises as assertions that the compiler checks instead, when FILE keeps them: in C (and
    /// C++), Rust, or as Linux writes them; in the language of the types when none is named
    #[arg(long, value_name = "LANGUAGE", num_args = 0..=1, require_equals = true, default_missing_value = "auto", requires = "check", conflicts_with = "json")]
    static_asserts: Option<AssertionLanguage>,
}

/// Order of the table.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Sort {
    /// Largest first
    Size,
    /// Most bytes in holes and padding first
    Holes,
    /// Most cache lines first
    Lines,
}

/// Runs `lineup layout`.
pub(crate) fn run(options: &Options) -> Result<Outcome> {
    let stages = Stages::new();
    let open = |file: &Path, wanted: &[String]| {
        stages.stage(&format!("reading the types of {}", file.display()));
        let base = options.base.as_deref();
        let subject = match options.no_index || wanted.is_empty() || options.diff.is_some() {
            true => Subject::open(file, base, options.no_index),
            false => Subject::open_for(file, base, wanted),
        };
        stages.end();
        subject
    };
    // Freeing a whole kernel's types takes long, one piece after another, and the process is about to end.
    let subject = ManuallyDrop::new(open(&options.file, &options.types)?);
    if let Some(lock) = &options.check {
        let form = match (options.static_asserts, options.json) {
            (Some(language), _) => guard::Form::Assertions(language),
            (None, true) => guard::Form::Json,
            (None, false) => guard::Form::Text,
        };
        return guard::check(lock, &options.file, subject.types(), form);
    }
    if let Some(other) = &options.diff {
        let other = open(other, &[])?;
        let unknown = compare::run(options, &subject, &other)?;
        return Ok(unknown.map_or(Outcome::Done, |unknown| Outcome::CutShort(unknown.into())));
    }
    let selected = if options.types.is_empty() {
        select::Selected { types: select::all(&subject), unknown: Vec::new() }
    } else {
        select::named(&subject, &options.types)
    };
    let Some(unknown) = UnknownName::all(&selected.unknown) else {
        show(options, &subject, selected)?;
        return Ok(Outcome::Done);
    };
    if selected.types.is_empty() {
        return Err(unknown.into());
    }
    show(options, &subject, selected)?;
    Ok(Outcome::CutShort(unknown.into()))
}

fn show(options: &Options, subject: &Subject, selected: select::Selected<'_>) -> Result<()> {
    let unknown = selected.unknown;
    let chosen = selected.types;
    let layouts: Vec<Shown<'_>> = chosen
        .into_par_iter()
        .filter_map(|(name, id)| {
            let layout = Layout::of_any_size(subject.types(), id, options.line_size)?;
            Some(Shown { name, id, layout })
        })
        .collect();
    let layouts = if options.types.is_empty() { layouts } else { distinct(subject, layouts) };
    if options.pahole {
        return files::print_all(&pahole::all(subject, &layouts));
    }
    let is_table = (options.types.is_empty() && !options.full) || options.sort.is_some();
    if !options.json && !is_table {
        let texts = text::all(subject, &layouts);
        match files::text_style() {
            style @ TextStyle::Terminal { .. } if !options.full => {
                files::print(&text::first_screen(&texts.concat(), style))?;
            }
            _ => files::print_all(&texts)?,
        }
        return Ok(());
    }
    let output = if options.json {
        let document = json::document(options, subject, &layouts, &unknown);
        serde_json::to_string_pretty(&document).context("cannot write JSON")? + "\n"
    } else {
        let style = files::text_style();
        let is_all = options.all || style == TextStyle::Plain;
        let most = if is_all { usize::MAX } else { table::SCREEN_ROWS };
        many_lines(&table::table(layouts, options.sort.unwrap_or(Sort::Size), most, style)).into_owned()
    };
    files::print(&output)
}

/// All types that a file describes, and the machine it was compiled for.
pub(crate) fn types_of(file: &Path) -> Result<(Types, Abi)> {
    let subject = Subject::open(file, None, true)?;
    let abi =
        subject.abi().with_context(|| format!("{}: no pointer type shows its data model", file.display()))?;
    Ok((subject.types().clone(), abi))
}

/// The layouts without those that look like an earlier one: units may describe a pointer's target differently.
fn distinct<'s>(subject: &'s Subject, layouts: Vec<Shown<'s>>) -> Vec<Shown<'s>> {
    let mut seen = HashSet::new();
    let mut is_new =
        |shown: &Shown<'s>| seen.insert((text::full(subject, shown), json::text(subject, shown)));
    layouts.into_iter().filter(|shown| is_new(shown)).collect()
}

/// A type chosen to be shown.
struct Shown<'s> {
    /// The name it was chosen by: its own, or that of a typedef.
    name: &'s str,
    /// The struct, class or union itself.
    id: TypeId,
    layout: Layout,
}
