//! Which objects come to which places: pointers followed through the whole program.

use crate::collect::further;
use crate::facts::{Facts, Origin, Place, Reach, Source, Value};
use std::collections::{BTreeSet, HashMap};

/// The objects that each place may point to.
#[derive(Default, Debug)]
pub(crate) struct Spread {
    at: HashMap<Place, BTreeSet<(Origin, Reach)>>,
}

impl Spread {
    /// Follows every flow until nothing new comes anywhere.
    pub(crate) fn of(facts: &Facts) -> Spread {
        let mut next: HashMap<Place, Vec<(Reach, Place)>> = HashMap::new();
        let mut work: Vec<(Place, Origin, Reach)> = Vec::new();
        for (value, to) in &facts.flows {
            match &value.source {
                Source::Origin(origin) => work.push((to.clone(), origin.clone(), value.reach)),
                Source::Place(from) => {
                    // The address of a place: what is stored through it arrives there.
                    let reach = match value.reach {
                        Reach::Address => {
                            next.entry(to.clone()).or_default().push((Reach::Start, from.clone()));
                            Reach::Start
                        }
                        reach => reach,
                    };
                    next.entry(from.clone()).or_default().push((reach, to.clone()));
                }
                Source::Function(_) => {}
            }
        }
        call_through_pointers(facts, &mut next);
        let mut spread = Spread::default();
        while let Some((place, origin, reach)) = work.pop() {
            if !spread.at.entry(place.clone()).or_default().insert((origin.clone(), reach)) {
                continue;
            }
            for (by, to) in next.get(&place).into_iter().flatten() {
                work.push((to.clone(), origin.clone(), further(reach, *by)));
            }
        }
        spread
    }

    /// What a value may point to.
    pub(crate) fn objects(&self, value: &Value) -> Vec<(Origin, Reach)> {
        match &value.source {
            Source::Origin(origin) => vec![(origin.clone(), value.reach)],
            Source::Place(_) if value.reach == Reach::Address => Vec::new(),
            Source::Place(place) => {
                let found = self.at.get(place).into_iter().flatten();
                found.map(|(origin, reach)| (origin.clone(), further(*reach, value.reach))).collect()
            }
            Source::Function(_) => Vec::new(),
        }
    }
}

/// What is given through a pointer to functions of a type arrives at every function that is used as one.
fn call_through_pointers(facts: &Facts, next: &mut HashMap<Place, Vec<(Reach, Place)>>) {
    for (signature, function) in &facts.taken {
        for at in 0..MOST_PARAMETERS {
            let from = Place::Parameter(signature.clone(), at);
            next.entry(from).or_default().push((Reach::Start, Place::Parameter(function.clone(), at)));
        }
        let given = Place::Return(function.clone());
        next.entry(given).or_default().push((Reach::Start, Place::Return(signature.clone())));
    }
}

/// Parameters of functions called through pointers that are followed.
const MOST_PARAMETERS: usize = 16;
