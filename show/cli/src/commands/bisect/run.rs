//! Runs `lineup bisect`.

use super::args::Bisect;
use super::culprit::Culprit;
use super::state::State;
use super::trial::{Trials, in_words};
use super::{culprit, state};
use crate::terminal::outcome::Outcome;
use crate::terminal::output::write_result;
use crate::terminal::progress::Stages;
use anyhow::{Context, Result, bail};
use lineup_prove::detectable_in_words;
use lineup_prove::links::{OF_ONE_LINK, ONE_LINK_MEANS};
use lineup_stats::verdict::{Verdict, judge};
use lineup_study::interrupt::Interrupts;
use serde_json::{Value, json};
use std::path::PathBuf;

/// Runs the command.
pub(crate) fn run(bisect: Bisect) -> Result<Outcome> {
    let repository = lineup_study::git::repository()?;
    let good = lineup_study::git::resolve(&repository, &bisect.good)?;
    let bad = lineup_study::git::resolve(&repository, &bisect.bad)?;
    let question = question(&bisect, &good, &bad);
    let directory = match &bisect.dir {
        Some(directory) => std::path::absolute(directory)?,
        None => usual_directory(&repository, &question)?,
    };
    let scratch = lineup_study::git::Scratch::open(&repository, &directory)?;
    let state = State::open(&directory, question)?;
    let interrupts = Interrupts::watch().context("watching for signals")?;
    let mut trials = Trials {
        options: &bisect,
        scratch,
        state,
        interrupts,
        stages: Stages::new(),
        good: good.clone(),
        half_effect: 0.0,
    };
    check_ends(&mut trials, &good, &bad).with_context(|| kept(&directory))?;
    let culprit = culprit::find(&mut trials, &good, &bad).with_context(|| kept(&directory))?;
    let rendered = if bisect.json { to_json(&trials, &culprit)? } else { to_text(&trials, &culprit)? };
    write_result(None, &rendered)?;
    Ok(Outcome::Done)
}

fn kept(directory: &std::path::Path) -> String {
    format!("verdicts so far are kept in {}; the same command resumes", directory.display())
}

/// The bad end must differ from the good one for sure. From then on half of the difference separates good from bad.
fn check_ends(trials: &mut Trials<'_>, good: &str, bad: &str) -> Result<()> {
    if let Some(known) = trials.state.get(bad).and_then(|verdict| verdict.ratio) {
        trials.half_effect = known[0].ln() / 2.0;
        return Ok(());
    }
    if trials.scratch.first_parents(good, bad)?.is_empty() {
        bail!("there is no commit from the good revision to the bad one; are they the wrong way round?");
    }
    let estimate = match trials.measure(bad)? {
        Ok(estimate) => estimate,
        Err(because) => bail!("the bad revision cannot be judged: {because}"),
    };
    let judged = judge(&estimate, 0.01);
    if judged.verdict != Verdict::Changed {
        bail!(
            "the two ends do not differ: {} ({}, {OF_ONE_LINK}); {}",
            in_words(&estimate),
            judged.verdict,
            detectable_in_words(judged.smallest_detectable)
        );
    }
    trials.half_effect = estimate.ratio.ln() / 2.0;
    trials.say(&format!("{}: {} bad", trials.scratch.title(bad)?, in_words(&estimate)));
    let interval = estimate.interval;
    let verdict = state::Verdict {
        judged: lineup_prove::bisect::Judged::Bad,
        because: format!("{} bad", in_words(&estimate)),
        ratio: Some([estimate.ratio, interval.low, interval.high]),
    };
    trials.state.put(bad, verdict)
}

/// The settings that make one bisection different from another.
fn question(bisect: &Bisect, good: &str, bad: &str) -> Value {
    let command: Vec<String> =
        bisect.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    json!({
        "good": good,
        "bad": bad,
        "build": bisect.build,
        "command": command,
        "primary": bisect.primary(),
        "events": bisect.events,
        "metrics": bisect.metrics,
    })
}

/// A directory of its own for every question, in the cache folder.
fn usual_directory(repository: &std::path::Path, question: &Value) -> Result<PathBuf> {
    let cache = lineup_bundle::cache_folder().context("no place for the verdicts; choose one with --dir")?;
    let text = format!("{}\n{question}", repository.display());
    let fingerprint = lineup_prove::output::Output::of(text.as_bytes()).fingerprint;
    let name: String = fingerprint.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    Ok(cache.join(format!("bisect-{name}")))
}

fn to_text(trials: &Trials<'_>, culprit: &Culprit) -> Result<String> {
    let titles = |commits: &[String]| -> Result<String> {
        let titles: Vec<String> =
            commits.iter().map(|commit| trials.scratch.title(commit)).collect::<Result<_, _>>()?;
        Ok(titles.join("\n  or "))
    };
    let figures = |commit: &str| {
        trials.state.get(commit).map(|verdict| format!(" ({})", verdict.because)).unwrap_or_default()
    };
    let found = match culprit {
        Culprit::One(commit) => {
            format!("The change came with\n  {}{}\n", trials.scratch.title(commit)?, figures(commit))
        }
        Culprit::Among(commits) => format!(
            "The change came with one of these; those between could not be judged:\n  {}\n",
            titles(commits)?
        ),
        Culprit::Merge { merge, because } => format!(
            "The change came with the merge\n  {}{}\n  {because}\n",
            trials.scratch.title(merge)?,
            figures(merge)
        ),
        Culprit::Pair { merge, main, side } => format!(
            "The change came with the merge\n  {}{}\nNeither side carries it alone. It takes both\n  {}\nand\n  {}\n",
            trials.scratch.title(merge)?,
            figures(merge),
            titles(main)?,
            titles(side)?
        ),
    };
    Ok(format!("{found}{ONE_LINK_MEANS}\n"))
}

fn to_json(trials: &Trials<'_>, culprit: &Culprit) -> Result<String> {
    let found = match culprit {
        Culprit::One(commit) => json!({ "kind": "commit", "commits": [commit] }),
        Culprit::Among(commits) => json!({ "kind": "among", "commits": commits }),
        Culprit::Merge { merge, because } => {
            json!({ "kind": "merge", "merge": merge, "because": because })
        }
        Culprit::Pair { merge, main, side } => {
            json!({ "kind": "pair", "merge": merge, "main": main, "side": side })
        }
    };
    let verdicts: serde_json::Map<String, Value> =
        trials.state.all().iter().map(|(commit, verdict)| (commit.clone(), state::write(verdict))).collect();
    let value = json!({
        "schema": "lineup.bisect/1",
        "good": trials.good,
        "primary": trials.options.primary(),
        "links": 1,
        "culprit": found,
        "verdicts": verdicts,
    });
    Ok(serde_json::to_string_pretty(&value)? + "\n")
}
