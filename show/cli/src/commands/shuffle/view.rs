//! A shuffle's results, as text and as JSON.

use anyhow::Result;
use lineup_advise::constraint::Binding;
use lineup_advise::proposal::Refusal;
use lineup_advise::shuffle::Movable;
use lineup_model::figure;
use lineup_study::shuffle::Outcome;
use serde::Serialize;
use std::fmt::Write;

/// A shuffle's results.
pub(crate) struct ShuffleResults {
    /// The share of the sources that was read with clang.
    pub(crate) sources: String,
    /// Types with an order to choose.
    pub(crate) movable: Vec<Movable>,
    /// Types without.
    pub(crate) refused: Vec<Refusal>,
    /// One for each seed.
    pub(crate) outcomes: Vec<Outcome>,
    /// The seed whose test did not end, when the work was ended early.
    pub(crate) ended_in: Option<u64>,
}

/// Schema `lineup.shuffle/1`.
#[derive(Serialize)]
struct Json<'a> {
    schema: &'static str,
    sources: &'a str,
    movable: Vec<JsonType<'a>>,
    pinned: Vec<JsonType<'a>>,
    refused: Vec<JsonType<'a>>,
    seeds: Vec<JsonSeed<'a>>,
    /// The seed whose test did not end: it and later ones have no result.
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_in: Option<u64>,
}

#[derive(Serialize)]
struct JsonType<'a> {
    #[serde(rename = "type")]
    name: &'a str,
    constraints: &'a [Binding],
}

#[derive(Serialize)]
struct JsonSeed<'a> {
    seed: u64,
    shuffled: usize,
    failures: Vec<JsonFailure<'a>>,
}

#[derive(Serialize)]
struct JsonFailure<'a> {
    #[serde(rename = "type")]
    name: &'a str,
    pair: &'a [String],
    together: &'a [String],
    words: &'a str,
}

fn json_type(ty: &Movable) -> JsonType<'_> {
    JsonType { name: &ty.type_name, constraints: &ty.obeyed }
}

fn is_pinned(ty: &Movable) -> bool {
    ty.free < ty.units.len()
}

impl ShuffleResults {
    pub(crate) fn as_json(&self) -> Result<String> {
        let (pinned, movable): (Vec<&Movable>, Vec<&Movable>) =
            self.movable.iter().partition(|ty| is_pinned(ty));
        let refused = self
            .refused
            .iter()
            .map(|refusal| JsonType { name: &refusal.owner, constraints: &refusal.constraints });
        let seeds = self.outcomes.iter().map(|outcome| JsonSeed {
            seed: outcome.seed,
            shuffled: outcome.shuffled,
            failures: outcome
                .failures
                .iter()
                .map(|failure| JsonFailure {
                    name: &failure.type_name,
                    pair: &failure.pair,
                    together: &failure.together,
                    words: &failure.words,
                })
                .collect(),
        });
        let json = Json {
            schema: "lineup.shuffle/1",
            sources: &self.sources,
            movable: movable.into_iter().map(json_type).collect(),
            pinned: pinned.into_iter().map(json_type).collect(),
            refused: refused.collect(),
            seeds: seeds.collect(),
            ended_in: self.ended_in,
        };
        Ok(serde_json::to_string_pretty(&json)? + "\n")
    }

    /// `with_types` lists every type, not only their numbers.
    pub(crate) fn as_text(&self, with_types: bool) -> String {
        let mut text = format!("Sources {}\n", self.sources);
        let pinned = self.movable.iter().filter(|ty| is_pinned(ty)).count();
        let (movable, refused) = (self.movable.len() - pinned, self.refused.len());
        let _ = writeln!(
            text,
            "Types of two or more members: {} ({movable} movable, {pinned} with members that stay, {refused} refused)",
            movable + pinned + refused
        );
        if with_types {
            self.types(&mut text);
        }
        for outcome in &self.outcomes {
            let _ = match outcome.failures.is_empty() {
                true => writeln!(
                    text,
                    "seed {}: {} in another order, passed",
                    outcome.seed,
                    figure::counted(outcome.shuffled as u64, "type")
                ),
                false => writeln!(
                    text,
                    "seed {}: {} in another order, FAILED",
                    outcome.seed,
                    figure::counted(outcome.shuffled as u64, "type")
                ),
            };
            for failure in &outcome.failures {
                let _ = match failure.pair.as_slice() {
                    [one, two] => {
                        writeln!(
                            text,
                            "  {}: the test fails when {two} stands before {one}",
                            failure.type_name
                        )
                    }
                    _ if !failure.together.is_empty() => {
                        writeln!(
                            text,
                            "  {}: the test fails only together with {}; which of them it is was not found, all are held",
                            failure.type_name,
                            failure.together.join(", ")
                        )
                    }
                    _ => writeln!(text, "  {}: the test fails in this order", failure.type_name),
                };
                for line in failure.words.lines() {
                    let _ = writeln!(text, "    {line}");
                }
            }
        }
        if let Some(seed) = self.ended_in {
            let _ = writeln!(text, "seed {seed}: ended early, no result; later seeds were not tested");
        }
        lineup_report::visible::many_lines(&text).into_owned()
    }

    fn types(&self, text: &mut String) {
        for ty in &self.movable {
            let state = if is_pinned(ty) { "pinned " } else { "movable" };
            let _ = writeln!(text, "{state}  {} ({} of {} free)", ty.type_name, ty.free, ty.units.len());
            for binding in ty.obeyed.iter().filter(|_| is_pinned(ty)) {
                let _ = writeln!(text, "           {binding}");
            }
        }
        for refusal in &self.refused {
            let _ = writeln!(text, "refused  {}", refusal.owner);
            for binding in &refusal.constraints {
                let _ = writeln!(text, "           {binding}");
            }
        }
    }
}
