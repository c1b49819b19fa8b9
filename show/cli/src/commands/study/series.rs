//! A study's patch as a series of mails, one commit for each fix, and the settings that need no source.

use super::plan::Plan;
use super::result_files::{PATCH, SERIES_FOLDER, put};
use super::timed_edits::changed_sources::{MergedTexts, merged};
use super::timed_edits::kept_edit::KeptEdit;
use crate::terminal::typed_command;
use anyhow::{Context, Result};
use lineup_advise::patch::diff_of_texts;
use lineup_advise::proposal::Advice;
use lineup_advise::sources::Sources;
use lineup_report::series_message;
use lineup_report::study::{CommandLine, LAYOUT, POOLS, PREFETCH, StudyReport};
use lineup_study::git;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

/// The settings that need no source.
const SETTINGS: &str = "settings.txt";

/// Characters of a file's name that come from the type.
const NAME_CHARACTERS: usize = 40;

/// Writes a mail for each commit; returns their number.
pub(crate) fn write(plan: &Plan, report: &StudyReport, advice: &Advice, sources: &Sources) -> Result<usize> {
    let folder = plan.out.join(SERIES_FOLDER);
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let author = git::author_in(&plan.source);
    let steps = advice.steps();
    let mut texts: BTreeMap<String, String> = BTreeMap::new();
    for (number, step) in (1..).zip(&steps) {
        let original = |path: &String| {
            let text = texts.get(path).map(String::as_str).or_else(|| sources.get(path)).unwrap_or_default();
            (path.clone(), text.to_owned())
        };
        let before: BTreeMap<String, String> = step.edited.keys().map(original).collect();
        let diff = diff_of_texts(&before, &step.edited);
        let message = series_message(report, &step.targets, [number, steps.len()]);
        let name = step.targets.first().map(|target| file_name(target)).unwrap_or_default();
        let mail = mail(&author, &message, &diff, [number, steps.len()]);
        put(&folder, &format!("{number:04}-{name}.patch"), &mail)?;
        texts.clone_from(&step.edited);
    }
    Ok(steps.len())
}

/// Writes the mails of timed edits that gain behind those of the layout. Where an edit does not fit the patches before it,
/// the study says so when it tries all, and there is no mail.
pub(crate) fn add_edits(plan: &Plan, edits: &[KeptEdit]) -> Result<()> {
    (1..=edits.len()).try_for_each(|count| add_last(plan, &edits[..count]))
}

fn add_last(plan: &Plan, edits: &[KeptEdit]) -> Result<()> {
    let Some(edit) = edits.last() else { return Ok(()) };
    let folder = plan.out.join(SERIES_FOLDER);
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let has_patch = plan.out.join(PATCH).exists();
    let Ok(MergedTexts { before, after }) = merged(plan, has_patch, edits)? else { return Ok(()) };
    let names = |path: &String| (path.clone(), before.get(path).unwrap_or_default().to_owned());
    let original: BTreeMap<String, String> = edit.edited.keys().map(names).collect();
    let edited = edit.edited.keys().filter_map(|path| Some((path.clone(), after.get(path)?.clone())));
    let diff = diff_of_texts(&original, &edited.collect());
    let mails = fs::read_dir(&folder).map(|entries| entries.flatten().count()).unwrap_or_default();
    let number = mails + 1;
    let mail = mail(&git::author_in(&plan.source), &edit.message, &diff, [number, number]);
    put(&folder, &format!("{number:04}-{}.patch", edit.lever), &mail)
}

/// Writes the words that use levers without sources; nothing where there are none.
pub(crate) fn write_settings(out: &Path, report: &StudyReport) -> Result<()> {
    let used = report
        .levers
        .iter()
        .filter(|lever| lever.is_gain && ![LAYOUT, POOLS, PREFETCH].contains(&lever.lever));
    let lines: Vec<String> = used
        .flat_map(|lever| lever.actions.iter().map(move |action| (lever.lever, action)))
        .map(|(lever, action)| format!("# {lever}: {}\n{}\n", action.purpose, action.text))
        .collect();
    if lines.is_empty() {
        return Ok(());
    }
    let folder = out.join(SERIES_FOLDER);
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    put(&folder, SETTINGS, &lines.concat())
}

/// The command that makes commits of a series of several; `None` where the source folder is in no repository.
pub(crate) fn command(plan: &Plan, commits: usize) -> Option<CommandLine> {
    if commits < 2 {
        return None;
    }
    let below = git::place_in_repository(&plan.source)?;
    let folder = std::path::absolute(plan.out.join(SERIES_FOLDER)).ok()?;
    let mut words: Vec<OsString> = ["git", "-C"].map(OsString::from).to_vec();
    words.extend([plan.source.clone().into(), "am".into()]);
    if !below.is_empty() {
        words.push(format!("--directory={below}").into());
    }
    let text =
        format!("{} {}/*.patch", typed_command::line(words), typed_command::line([folder.into_os_string()]));
    Some(CommandLine { purpose: "or make commits of it, one for each fix".into(), text })
}

/// A commit as `git am` reads it.
fn mail(author: &str, message: &str, diff: &str, [number, total]: [usize; 2]) -> String {
    let (subject, body) = message.split_once('\n').unwrap_or((message, ""));
    format!(
        "From {:040} Mon Sep 17 00:00:00 2001\nFrom: {author}\nSubject: [PATCH {number}/{total}] {subject}\n\n{}\n{diff}-- \nlineup {}\n\n",
        0,
        body.trim_start(),
        env!("CARGO_PKG_VERSION")
    )
}

/// A type's name as part of a file's.
fn file_name(owner: &str) -> String {
    let kept = |character: char| if character.is_ascii_alphanumeric() { character } else { '-' };
    owner.chars().map(kept).take(NAME_CHARACTERS).collect()
}
