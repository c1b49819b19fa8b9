//! Runs `lineup layout`.

use super::args::{Options, Sort};
use super::shown::Shown;
use super::table::SCREEN_ROWS;
use super::{compare, json, pahole, table, view};
use crate::terminal::errors::UnknownName;
use crate::terminal::outcome::Outcome;
use crate::terminal::output;
use crate::terminal::progress::Stages;
use crate::types::select::Selected;
use crate::types::subject::Subject;
use crate::types::{guard, select};
use anyhow::{Context, Result};
use lineup_model::layout::Layout;
use lineup_report::text::TextStyle;
use lineup_report::visible::many_lines;
use lineup_study::progress::Progress;
use rayon::prelude::*;
use std::collections::HashSet;
use std::mem::ManuallyDrop;
use std::path::Path;

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
        Selected { types: select::all(&subject), unknown: Vec::new() }
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

fn show(options: &Options, subject: &Subject, selected: Selected<'_>) -> Result<()> {
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
        return output::print_all(&pahole::all(subject, &layouts));
    }
    let is_table = (options.types.is_empty() && !options.full) || options.sort.is_some();
    if !options.json && !is_table {
        let texts = view::all(subject, &layouts);
        match output::text_style() {
            style @ TextStyle::Terminal { .. } if !options.full => {
                output::print(&view::first_screen(&texts.concat(), style))?;
            }
            _ => output::print_all(&texts)?,
        }
        return Ok(());
    }
    let output = if options.json {
        let document = json::document(options, subject, &layouts, &unknown);
        serde_json::to_string_pretty(&document).context("cannot write JSON")? + "\n"
    } else {
        let style = output::text_style();
        let is_all = options.all || style == TextStyle::Plain;
        let most = if is_all { usize::MAX } else { SCREEN_ROWS };
        many_lines(&table::table(layouts, options.sort.unwrap_or(Sort::Size), most, style)).into_owned()
    };
    output::print(&output)
}

/// The layouts without those that look like an earlier one: units may describe a pointer's target differently.
fn distinct<'s>(subject: &'s Subject, layouts: Vec<Shown<'s>>) -> Vec<Shown<'s>> {
    let mut seen = HashSet::new();
    let mut is_new =
        |shown: &Shown<'s>| seen.insert((view::full(subject, shown), json::text(subject, shown)));
    layouts.into_iter().filter(|shown| is_new(shown)).collect()
}
