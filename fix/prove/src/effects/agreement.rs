//! Comparison of two variants of a program by the effects of their processes.

use super::compare::{Effect, Key, Mask, difference, listed};
use super::difference::{EffectDifference, NotCompared};
use super::{CallSite, Effects, Target, exchanges};
use std::collections::{BTreeMap, BTreeSet};

/// Two variants that do the same as far as their effects could be compared. Only [`RepeatedEffects::agreement`] makes
/// one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EffectsAgreement {
    compared: Vec<String>,
    not_compared: Vec<NotCompared>,
    not_observed: BTreeSet<String>,
    runs: u64,
}

impl EffectsAgreement {
    /// The effects that were compared and are equal, such as `standard output`, `3 files`, `12 ioctl`.
    pub fn compared(&self) -> &[String] {
        &self.compared
    }

    /// The effects in which two runs of the same variant already differ.
    pub fn not_compared(&self) -> &[NotCompared] {
        &self.not_compared
    }

    /// The actions of the runs that could not be observed.
    pub fn not_observed(&self) -> &BTreeSet<String> {
        &self.not_observed
    }

    /// The number of observed runs, both variants together.
    pub fn runs(&self) -> u64 {
        self.runs
    }
}

/// The effects of several runs of one variant, each from the same folder with the same input.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RepeatedEffects {
    /// One run.
    pub first: Effects,
    /// One more run or several. Without any, the differences from run to run are unknown.
    pub others: Vec<Effects>,
}

impl RepeatedEffects {
    /// Compares this variant with another. Effects in which the runs of one variant differ are left out and named;
    /// everything else has to be equal.
    ///
    /// # Errors
    /// The first difference.
    pub fn agreement(&self, after: &RepeatedEffects) -> Result<EffectsAgreement, EffectDifference> {
        agreement((&self.first, &self.others), (&after.first, &after.others))
    }
}

fn agreement(
    before: (&Effects, &[Effects]),
    after: (&Effects, &[Effects]),
) -> Result<EffectsAgreement, EffectDifference> {
    let connections = exchanges::agree([before, after].map(|(first, others)| {
        std::iter::once(first).chain(others).map(|effects| effects.connections.as_slice()).collect()
    }))?;
    let masks = both(masks(before), masks(after));
    let (first, second) = (listed(before.0), listed(after.0));
    let keys: BTreeSet<&Key<'_>> = first.keys().chain(second.keys()).collect();
    for key in keys {
        let mask = masks.get(key).cloned().unwrap_or_else(Mask::nothing);
        let found = match (first.get(key), second.get(key)) {
            _ if mask == Mask::All => None,
            (Some(one), Some(other)) => difference(one, other, &mask),
            (Some(_), None) => Some((None, "the first variant does it, the second does not".into())),
            (None, _) => Some((None, "the second variant does it, the first does not".into())),
        };
        if let Some((part, how)) = found {
            return Err(EffectDifference {
                effect: named(key, first.get(key).or(second.get(key)), part),
                how,
                varies: !mask.is_nothing(),
            });
        }
    }
    let all = || std::iter::once(before.0).chain(before.1).chain(std::iter::once(after.0)).chain(after.1);
    Ok(EffectsAgreement {
        compared: connections.compared.into_iter().chain(summary(&first, &masks)).collect(),
        not_compared: connections
            .not_compared
            .into_iter()
            .chain(left_out(&masks, &[&first, &second]))
            .collect(),
        not_observed: all().flat_map(|effects| effects.not_observed.iter().cloned()).collect(),
        runs: all().count() as u64,
    })
}

type Masks<'e> = BTreeMap<Key<'e>, Mask>;

/// The effects in which the runs of one variant differ.
fn masks<'e>((first, others): (&'e Effects, &'e [Effects])) -> Masks<'e> {
    let mut masks = Masks::new();
    let first = listed(first);
    for other in others {
        let other = listed(other);
        let mut found = Masks::new();
        for (key, effect) in &first {
            let mask = other.get(key).map_or(Mask::All, |other| Mask::between(effect, other));
            found.insert(key.clone(), mask);
        }
        let only_there = other.into_keys().filter(|key| !first.contains_key(key));
        found.extend(only_there.map(|key| (key, Mask::All)));
        masks = both(masks, found);
    }
    masks.retain(|_, mask| !mask.is_nothing());
    masks
}

fn both<'e>(mut one: Masks<'e>, other: Masks<'e>) -> Masks<'e> {
    for (key, mask) in other {
        let known = one.remove(&key).unwrap_or_else(Mask::nothing);
        one.insert(key, known.and(mask));
    }
    one
}

/// The effect in words, with the number of the call and the system calls that made it.
fn named(key: &Key<'_>, effect: Option<&Effect<'_>>, part: Option<usize>) -> String {
    let words = key.words();
    let by = |names: &BTreeSet<&str>| names.iter().copied().collect::<Vec<_>>().join(", ");
    match (effect, part) {
        (Some(Effect::Calls(_)), Some(part)) => format!("call {} of {words}", part + 1),
        (Some(Effect::Stream(stream)), _) => format!("{words} ({})", by(&stream.written_by)),
        (Some(Effect::File(left)), _) => format!("{words} (changed by {})", by(&left.changed_by)),
        _ => words,
    }
}

/// The compared effects, counted by kind.
fn summary(effects: &BTreeMap<Key<'_>, Effect<'_>>, masks: &Masks<'_>) -> Vec<String> {
    let mut streams: BTreeMap<&str, u64> = BTreeMap::new();
    let mut calls: BTreeMap<&str, u64> = BTreeMap::new();
    let (mut files, mut ends) = (0u64, 0u64);
    for (key, effect) in effects.iter().filter(|(key, _)| masks.get(*key) != Some(&Mask::All)) {
        match (key, effect) {
            (Key::Stream(_, target), _) => *streams.entry(stream_kind(target)).or_default() += 1,
            (Key::Calls(_, CallSite { name, .. }), Effect::Calls(list)) => {
                *calls.entry(name).or_default() += list.count();
            }
            (Key::File(_), _) => files += 1,
            _ => ends += 1,
        }
    }
    let mut words: Vec<String> = Vec::new();
    for name in ["standard output", "standard error"] {
        words.extend(streams.remove(name).map(|_| name.to_owned()));
    }
    words.extend((files > 0).then(|| counted(files, "file left behind", "files left behind")));
    words.extend(streams.into_iter().map(|(kind, count)| counted(count, kind, &format!("{kind}s"))));
    words.extend(calls.into_iter().map(|(name, count)| format!("{count} {name}")));
    words.extend((ends > 0).then(|| match ends {
        1 => "exit status".to_owned(),
        _ => format!("exit status of {ends} processes"),
    }));
    words
}

fn counted(count: u64, one: &str, several: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
}

fn stream_kind(target: &Target) -> &'static str {
    match target {
        Target::StandardOutput => "standard output",
        Target::StandardError => "standard error",
        Target::Pipe(_) => "pipe",
        Target::Socket(..) => "socket",
        Target::Path(_) => "written stream",
        _ => "other stream",
    }
}

fn left_out(masks: &Masks<'_>, runs: &[&BTreeMap<Key<'_>, Effect<'_>>]) -> Vec<NotCompared> {
    let share = |key: &Key<'_>, mask: &Mask| match runs.iter().find_map(|run| run.get(key)) {
        Some(effect) => mask.words(effect),
        None => "all of it".into(),
    };
    masks.iter().map(|(key, mask)| NotCompared { effect: key.words(), share: share(key, mask) }).collect()
}
