//! The search through a history: along first parents, into merges, and across them.

use super::trial::Trials;
use anyhow::Result;
use lineup_prove::bisect::{Judged, Turn, search};
use lineup_study::git::{Commit, Replay};

/// The commits that carry the change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Culprit {
    /// This commit.
    One(Commit),
    /// One of these: some of them could not be judged.
    Among(Vec<Commit>),
    /// Neither parent of this merge, nor its two lines replayed on each other: the merge itself.
    Merge {
        merge: Commit,
        /// The reason why its lines could not be searched further, or a note that they were.
        because: String,
    },
    /// Two commits that only together carry it, on the two sides of this merge.
    Pair {
        merge: Commit,
        /// The one on the first parent's side; several when some could not be judged.
        main: Vec<Commit>,
        /// The one on the merged branch; several when some could not be judged.
        side: Vec<Commit>,
    },
}

/// Finds the change that turned `bad` bad, with `good` known to be good.
pub(crate) fn find(trials: &mut Trials<'_>, good: &str, bad: &str) -> Result<Culprit> {
    let line = trials.scratch.first_parents(good, bad)?;
    match turn(trials, &line)? {
        Turn::At(at) => match line.get(at) {
            Some(commit) => look_into(trials, commit),
            None => Ok(Culprit::Among(line)),
        },
        Turn::Among(steps) => Ok(Culprit::Among(pick(&line, &steps))),
    }
}

fn turn(trials: &mut Trials<'_>, line: &[Commit]) -> Result<Turn> {
    search(line.len(), |at| match line.get(at) {
        Some(commit) => trials.judge(commit),
        None => Ok(Judged::Skip),
    })
}

fn pick(line: &[Commit], steps: &[usize]) -> Vec<Commit> {
    steps.iter().filter_map(|at| line.get(*at)).cloned().collect()
}

/// A commit that is bad although its first parent is good: itself, or something it merged.
fn look_into(trials: &mut Trials<'_>, commit: &str) -> Result<Culprit> {
    let parents = trials.scratch.parents(commit)?;
    let [main, sides @ ..] = parents.as_slice() else { return Ok(Culprit::One(commit.into())) };
    if sides.is_empty() {
        return Ok(Culprit::One(commit.into()));
    }
    trials.say(&format!("looking into the merge {}", trials.scratch.title(commit)?));
    for side in sides {
        match (trials.judge(side)?, trials.scratch.merge_base(main, side)?) {
            (Judged::Bad, Some(base)) if trials.judge(&base)? == Judged::Good => {
                return find(trials, &base, side);
            }
            (Judged::Bad, _) => return Ok(Culprit::One(side.clone())),
            (Judged::Skip, _) => {
                return Ok(Culprit::Merge {
                    merge: commit.into(),
                    because: "the tip of the merged branch could not be judged".into(),
                });
            }
            (Judged::Good, _) => {}
        }
    }
    match sides {
        [side] => across(trials, commit, main, side),
        _ => Ok(Culprit::Merge {
            merge: commit.into(),
            because: "all parents are good, and it has more than two".into(),
        }),
    }
}

/// Both parents are good and their merge is bad: replays each side on the other and bisects the
/// replayed lines.
fn across(trials: &mut Trials<'_>, merge: &str, main: &str, side: &str) -> Result<Culprit> {
    let whole = |because: &str| Culprit::Merge { merge: merge.into(), because: because.into() };
    let Some(base) = trials.scratch.merge_base(main, side)? else {
        return Ok(whole("its parents have no common ancestor"));
    };
    let side_line = trials.scratch.line(&base, side)?;
    let main_line = trials.scratch.line(&base, main)?;
    trials.say("both parents are good: replaying the merged branch on the other parent");
    let side_turn = match replayed_turn(trials, main, &side_line)? {
        Ok(found) => found,
        Err(because) => return Ok(whole(&because)),
    };
    // The side branch up to the commit that turns the other line bad is good by itself; which commit
    // of the other line it needs shows when that line is replayed on it.
    let Some(tip) = side_turn.last().cloned() else { return Ok(whole("its merged branch is empty")) };
    let main_turn = match replayed_turn(trials, &tip, &main_line)? {
        Ok(found) => found,
        Err(because) => return Ok(whole(&because)),
    };
    Ok(Culprit::Pair { merge: merge.into(), main: main_turn, side: side_turn })
}

/// Replays a line on another commit and finds the commits of the line at which that turns bad. Returns the originals,
/// or the reason why they cannot be found.
fn replayed_turn(
    trials: &mut Trials<'_>,
    onto: &str,
    line: &[Commit],
) -> Result<Result<Vec<Commit>, String>> {
    let copies = match trials.scratch.replay(onto, line)? {
        Replay::Done(copies) => copies,
        Replay::Conflict(commit) => {
            let title = trials.scratch.title(&commit)?;
            return Ok(Err(format!("{title} does not apply on the other side")));
        }
    };
    let Some(tip) = copies.last() else {
        return Ok(Err("one of its sides has no commit of its own".into()));
    };
    if trials.judge(tip)? != Judged::Bad {
        return Ok(Err("its sides replayed on each other are good: the merge itself brings it".into()));
    }
    Ok(Ok(match turn(trials, &copies)? {
        Turn::At(at) => pick(line, &[at]),
        Turn::Among(steps) => pick(line, &steps),
    }))
}
