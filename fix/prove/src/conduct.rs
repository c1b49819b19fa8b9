//! A variant's behaviour while it was recorded. A comparison of variants whose conduct differs would compare one
//! program's work with another's.

use crate::effects::{EffectsAgreement, RepeatedEffects};
use crate::error::ProveError;
use crate::footprint::RegionFootprint;
use crate::output::Output;
use crate::run::{Ending, RunResult, Variant};
use lineup_model::region::RegionId;

/// A variant as it was recorded.
#[derive(Clone, PartialEq, Debug)]
pub struct Recorded {
    /// Lines per call, by region.
    pub footprints: Vec<RegionFootprint>,
    /// Its conduct.
    pub conduct: Conduct,
}

/// The input, calls, output and ending of a recorded run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Conduct {
    /// All of its standard input.
    pub input: Output,
    /// Calls of every region.
    pub calls: Vec<RegionCalls>,
    /// The same of further recordings of this variant; empty where its counts do not depend on the time.
    pub repeated_calls: Vec<Vec<RegionCalls>>,
    /// Its ending.
    pub ending: Ending,
    /// Its standard output.
    pub stdout: Output,
    /// Its standard error.
    pub stderr: Output,
    /// The standard output of the client that drove it; `None` without a client.
    pub client_stdout: Option<Output>,
    /// The effects of its processes.
    pub effects: ConductEffects,
}

/// The effects of a variant's processes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ConductEffects {
    /// Seen in runs of their own.
    Observed(RepeatedEffects),
    /// Not seen; why, in words.
    NotObserved(String),
}

/// Calls of one region.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RegionCalls {
    /// The region's place in the study's table.
    pub id: RegionId,
    /// The region's name.
    pub region: String,
    /// Calls that the program made; `None` when the recorder did not get to say.
    pub made: Option<u64>,
    /// Calls in the recording.
    pub recorded: u64,
}

impl Conduct {
    /// The conduct of a run without output and input that ended well.
    pub fn quiet(calls: Vec<RegionCalls>) -> Self {
        let none = Output::of(b"");
        Conduct {
            input: none.clone(),
            calls,
            repeated_calls: Vec::new(),
            ending: Ending::Exited(0),
            stdout: none.clone(),
            stderr: none,
            client_stdout: None,
            effects: ConductEffects::NotObserved("nobody looked".into()),
        }
    }

    /// The same effects, as far as they can be compared; without observation, why there was none.
    ///
    /// # Errors
    /// The first difference.
    pub(crate) fn require_same_effects(
        &self,
        after: &Conduct,
    ) -> Result<Result<EffectsAgreement, String>, ProveError> {
        match (&self.effects, &after.effects) {
            (ConductEffects::Observed(before), ConductEffects::Observed(after)) => {
                let agreement = before.agreement(after);
                Ok(Ok(agreement.map_err(|difference| ProveError::Effects { difference })?))
            }
            (ConductEffects::NotObserved(why), _) | (_, ConductEffects::NotObserved(why)) => {
                Ok(Err(why.clone()))
            }
        }
    }

    /// The regions whose calls differ from another recording's.
    pub fn unlike_calls<'c>(&'c self, after: &'c Conduct) -> impl Iterator<Item = &'c RegionCalls> {
        let others = |id| after.calls.iter().find(move |calls| calls.id == id);
        self.calls.iter().filter(move |calls| others(calls.id).is_some_and(|other| other != *calls))
    }

    /// The same work: the same input, and as many calls of every region, but for a share `apart`, and for what further
    /// recordings of this variant allow. Returns the differences that these allowed, in words.
    ///
    /// # Errors
    /// The difference.
    pub(crate) fn require_same_work(&self, after: &Conduct, apart: f64) -> Result<Vec<String>, ProveError> {
        let mut allowed = Vec::new();
        if let Some(difference) = self.input.difference(&after.input) {
            return Err(ProveError::Inputs { difference });
        }
        for before in &self.calls {
            let Some(after) = after.calls.iter().find(|calls| calls.id == before.id) else {
                continue;
            };
            let region = &before.region;
            let (Some(made), Some(made_after)) = (before.made, after.made) else {
                let variant = if before.made.is_none() { Variant::BEFORE } else { Variant::AFTER };
                return Err(ProveError::CallsUnknown { region: region.clone(), variant });
            };
            let counts = [("made", made, made_after), ("recorded", before.recorded, after.recorded)];
            let differ = |before: u64, after: u64| before.abs_diff(after) as f64 > apart * before as f64;
            for (what, count, count_after) in counts {
                if !differ(count, count_after) {
                    continue;
                }
                let repeated = self.repeated(before.id, what).chain([count]);
                let (least, most) =
                    repeated.fold((count, count), |(least, most), one| (least.min(one), most.max(one)));
                let spread = most - least;
                let range = match self.repeated_calls.len() {
                    0 => String::new(),
                    more => {
                        format!("{} recordings of the unchanged program {what} {least} to {most}", more + 1)
                    }
                };
                if (least.saturating_sub(spread)..=most + spread).contains(&count_after) {
                    allowed.push(format!(
                        "calls of {region} {what}: {count} before the change, {count_after} after; {range}"
                    ));
                } else {
                    let (region, range) =
                        (region.clone(), if range.is_empty() { range } else { format!("; {range}") });
                    return Err(ProveError::Calls { region, what, before: count, after: count_after, range });
                }
            }
        }
        Ok(allowed)
    }

    /// The counts of a region in the further recordings.
    fn repeated(&self, id: RegionId, what: &str) -> impl Iterator<Item = u64> {
        let of_region = self.repeated_calls.iter().flatten().filter(move |calls| calls.id == id);
        let is_made = what == "made";
        of_region.filter_map(move |calls| if is_made { calls.made } else { Some(calls.recorded) })
    }

    /// The other's difference in words, as far as it can be seen from outside.
    pub(crate) fn difference(&self, after: &Conduct) -> Option<String> {
        let difference = self.as_run().difference(&after.as_run());
        difference.map(|difference| format!("{difference}, while they were recorded"))
    }

    fn as_run(&self) -> RunResult {
        RunResult {
            ending: self.ending,
            stdout: self.stdout.clone(),
            stderr: self.stderr.clone(),
            client_stdout: self.client_stdout.clone(),
            ..RunResult::finished(0, b"", b"", 0)
        }
    }
}
