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

    /// The same work: the same input, and as many calls of every region, but for a share `apart`.
    ///
    /// # Errors
    /// The difference.
    pub(crate) fn require_same_work(&self, after: &Conduct, apart: f64) -> Result<(), ProveError> {
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
            let other = counts.into_iter().find(|(_, before, after)| differ(*before, *after));
            if let Some((what, before, after)) = other {
                return Err(ProveError::Calls { region: region.clone(), what, before, after });
            }
        }
        Ok(())
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
