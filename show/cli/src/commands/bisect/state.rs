//! The verdicts of a bisection so far, kept so that it can be interrupted and resumed.

use anyhow::{Context, Result, bail};
use lineup_prove::bisect::Judged;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The verdict on one commit.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Verdict {
    pub(crate) judged: Judged,
    /// In words, with the figures.
    pub(crate) because: String,
    /// The change against the good commit: ratio, low and high; `None` when it could not be measured.
    pub(crate) ratio: Option<[f64; 3]>,
}

/// The verdicts of one question, saved after each.
pub(crate) struct State {
    path: PathBuf,
    question: Value,
    verdicts: BTreeMap<String, Verdict>,
}

const SCHEMA: &str = "lineup.bisect-state/1";

impl State {
    /// Continues where an earlier run of the same question stopped, or starts anew.
    pub(crate) fn open(directory: &Path, question: Value) -> Result<Self> {
        let path = directory.join("state.json");
        let mut state = Self { path, question, verdicts: BTreeMap::new() };
        if !state.path.exists() {
            return Ok(state);
        }
        let name = state.path.display().to_string();
        let text = lineup_mapping::read_text(&state.path).with_context(|| format!("reading {name}"))?;
        let value: Value =
            serde_json::from_str(&text).with_context(|| format!("{name} is damaged; remove it"))?;
        if value["schema"] != SCHEMA || value["question"] != state.question {
            bail!("{name} belongs to another bisection; remove it or choose another --dir");
        }
        for (commit, verdict) in value["verdicts"].as_object().into_iter().flatten() {
            let verdict = read(verdict).with_context(|| format!("{name} is damaged; remove it"))?;
            state.verdicts.insert(commit.clone(), verdict);
        }
        Ok(state)
    }

    pub(crate) fn get(&self, commit: &str) -> Option<&Verdict> {
        self.verdicts.get(commit)
    }

    pub(crate) fn all(&self) -> &BTreeMap<String, Verdict> {
        &self.verdicts
    }

    /// Remembers a verdict, on disk before it is used.
    pub(crate) fn put(&mut self, commit: &str, verdict: Verdict) -> Result<()> {
        self.verdicts.insert(commit.to_owned(), verdict);
        let verdicts: BTreeMap<&String, Value> =
            self.verdicts.iter().map(|(commit, verdict)| (commit, write(verdict))).collect();
        let value = json!({ "schema": SCHEMA, "question": self.question, "verdicts": verdicts });
        let beside = self.path.with_extension("new");
        std::fs::write(&beside, serde_json::to_string_pretty(&value)?)
            .and_then(|()| std::fs::rename(&beside, &self.path))
            .with_context(|| format!("writing {}", self.path.display()))
    }
}

fn word(judged: Judged) -> &'static str {
    match judged {
        Judged::Good => "good",
        Judged::Bad => "bad",
        Judged::Skip => "skip",
    }
}

pub(crate) fn write(verdict: &Verdict) -> Value {
    json!({ "judged": word(verdict.judged), "because": verdict.because, "ratio": verdict.ratio })
}

fn read(value: &Value) -> Option<Verdict> {
    let judged = match value["judged"].as_str()? {
        "good" => Judged::Good,
        "bad" => Judged::Bad,
        "skip" => Judged::Skip,
        _ => return None,
    };
    let ratio = match value["ratio"].as_array().map(Vec::as_slice) {
        Some([ratio, low, high]) => Some([ratio.as_f64()?, low.as_f64()?, high.as_f64()?]),
        _ => None,
    };
    Some(Verdict { judged, because: value["because"].as_str()?.to_owned(), ratio })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_survive_and_another_question_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let verdict =
            Verdict { judged: Judged::Bad, because: "+5 %".into(), ratio: Some([1.05, 1.04, 1.06]) };
        State::open(directory.path(), json!("a")).unwrap().put("c1", verdict.clone()).unwrap();
        assert_eq!(State::open(directory.path(), json!("a")).unwrap().get("c1"), Some(&verdict));
        assert!(State::open(directory.path(), json!("b")).is_err());
        std::fs::write(directory.path().join("state.json"), "{").unwrap();
        assert!(State::open(directory.path(), json!("a")).is_err());
    }
}
