//! Which objects come to which places: pointers followed through the whole program.
//!
//! What is given to a function and comes out of it again (`realloc`, a list's `void *`) comes out at the call that gave
//! it, not at every call of the function.

use crate::collect::{further, variadic};
use crate::facts::{Call, Facts, Origin, Place, Reach, Source, Value};
use crate::known;
use crate::tree::{Name, OUTLIVES};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// An object, where in it a pointer points, and whether it was kept meanwhile: in a member, or as what functions of one
/// type are called with.
pub(crate) type Pointed = (Origin, Reach, bool);

/// The same, and the function whose parameter it came in by, while it stays inside.
type Arrival = (Pointed, Option<Name>);

/// The objects that each place may point to.
#[derive(Default, Debug)]
pub(crate) struct PointsTo {
    at: HashMap<Place, BTreeSet<Pointed>>,
}

/// A way from one place to another.
#[derive(Clone, Debug)]
struct Way {
    reach: Reach,
    to: Place,
    /// Into a parameter of this function.
    into: Option<Name>,
    /// Out of this function.
    out_of: Option<Name>,
    /// By a call through a pointer: any function of the type may be meant.
    is_any: bool,
}

impl Way {
    fn plain(reach: Reach, to: Place) -> Way {
        Way { reach, to, into: None, out_of: None, is_any: false }
    }
}

impl PointsTo {
    /// Follows every flow until nothing new comes anywhere.
    pub(crate) fn of(facts: &Facts) -> PointsTo {
        let mut ways = Ways::default();
        for (value, to) in &facts.flows {
            ways.add(value, to, None);
        }
        let through = ways.through_functions(facts);
        for call in &facts.calls {
            ways.add_call(call, &through);
        }
        for (signature, function) in &facts.taken {
            ways.add_taken(signature, function);
        }
        ways.follow()
    }

    /// What a value may point to.
    pub(crate) fn objects(&self, value: &Value) -> Vec<Pointed> {
        match &value.source {
            Source::Origin(origin) => vec![(origin.clone(), value.reach, false)],
            Source::Place(_) if value.reach == Reach::Address => Vec::new(),
            Source::Place(place) => {
                let found = self.at.get(place).into_iter().flatten();
                found
                    .map(|(origin, reach, kept)| (origin.clone(), further(*reach, value.reach), *kept))
                    .collect()
            }
            Source::Function(_) => Vec::new(),
        }
    }
}

/// Members, and variables of the whole program.
fn is_shared(place: &Place) -> bool {
    match place {
        Place::Member(..) => true,
        // libclang names a function's own variables after the function.
        Place::Variable(usr) => !usr.contains("@F@") || usr.ends_with(OUTLIVES),
        _ => false,
    }
}

/// What a function gives whose name says that it allocates.
fn is_allocators_result(place: &Place) -> bool {
    let Place::Return(usr) = place else { return false };
    usr.rsplit("@F@").next().is_some_and(known::gives_fresh_memory)
}

/// Parameters of one function that are followed when it is called through a pointer.
const MOST_PARAMETERS: usize = 16;

/// The parameters of each function that it gives back.
type Through = BTreeMap<Name, BTreeSet<usize>>;

#[derive(Default)]
struct Ways {
    from: HashMap<Place, Vec<Way>>,
    starts: Vec<(Place, Arrival)>,
}

impl Ways {
    fn add(&mut self, value: &Value, to: &Place, into: Option<Name>) {
        match &value.source {
            Source::Origin(origin) => {
                self.starts.push((to.clone(), ((origin.clone(), value.reach, false), into)));
            }
            Source::Place(from) => {
                // The address of a place: what is stored through it arrives there.
                let reach = match value.reach {
                    Reach::Address => {
                        let back = Way::plain(Reach::Start, from.clone());
                        self.from.entry(to.clone()).or_default().push(back);
                        Reach::Start
                    }
                    reach => reach,
                };
                let way = Way { into, ..Way::plain(reach, to.clone()) };
                self.from.entry(from.clone()).or_default().push(way);
            }
            Source::Function(_) => {}
        }
    }

    fn add_call(&mut self, call: &Call, through: &Through) {
        for (at, values) in call.given.iter().enumerate() {
            let gives_back = through.get(&call.function).is_some_and(|given| given.contains(&at));
            for value in values {
                let parameter = Place::Parameter(call.function.clone(), at);
                self.add(value, &parameter, Some(call.function.clone()));
                if at >= call.named {
                    let further = Place::Variable(variadic(&call.function));
                    self.add(value, &further, None);
                }
                if gives_back {
                    self.add(value, &call.result, None);
                }
            }
        }
        let out_of = Some(call.function.clone());
        let way = Way { out_of, ..Way::plain(Reach::Start, call.result.clone()) };
        self.from.entry(Place::Return(call.function.clone())).or_default().push(way);
    }

    /// What is given through a pointer to functions of a type arrives at every function that is used as one.
    fn add_taken(&mut self, signature: &Name, function: &Name) {
        for at in 0..MOST_PARAMETERS {
            let to = Place::Parameter(function.clone(), at);
            let way = Way { into: Some(function.clone()), is_any: true, ..Way::plain(Reach::Start, to) };
            self.from.entry(Place::Parameter(signature.clone(), at)).or_default().push(way);
        }
        let to = Place::Return(signature.clone());
        let out_of = Some(function.clone());
        let way = Way { out_of, is_any: true, ..Way::plain(Reach::Start, to) };
        self.from.entry(Place::Return(function.clone())).or_default().push(way);
    }

    /// Which parameters a function may give back, also by the functions that it calls itself.
    fn through_functions(&self, facts: &Facts) -> Through {
        let mut through = Through::new();
        let mut callers: HashMap<&Place, Vec<&Call>> = HashMap::new();
        for call in &facts.calls {
            for value in call.given.iter().flatten() {
                if let Source::Place(place) = &value.source {
                    callers.entry(place).or_default().push(call);
                }
            }
        }
        let mut parameters: BTreeSet<&Place> = callers.keys().copied().collect();
        parameters.extend(self.from.keys());
        parameters.retain(|place| matches!(place, Place::Parameter(..)));
        loop {
            let mut is_new = false;
            for parameter in &parameters {
                let Place::Parameter(function, index) = parameter else { continue };
                if self.comes_out(parameter, function, &callers, &through) {
                    is_new |= through.entry(function.clone()).or_default().insert(*index);
                }
            }
            for (signature, function) in &facts.taken {
                let given = through.get(function).cloned().unwrap_or_default();
                let own = through.entry(signature.clone()).or_default();
                let before = own.len();
                own.extend(given);
                is_new |= own.len() > before;
            }
            if !is_new {
                return through;
            }
        }
    }

    /// Whether what comes in by a parameter reaches the function's end without being kept in a member meanwhile.
    fn comes_out(
        &self,
        parameter: &Place,
        function: &Name,
        callers: &HashMap<&Place, Vec<&Call>>,
        through: &Through,
    ) -> bool {
        let end = Place::Return(function.clone());
        let mut seen: HashSet<&Place> = HashSet::new();
        let mut work = vec![parameter];
        while let Some(place) = work.pop() {
            if *place == end {
                return true;
            }
            if matches!(place, Place::Member(..)) || !seen.insert(place) {
                continue;
            }
            work.extend(self.from.get(place).into_iter().flatten().map(|way| &way.to));
            for call in callers.get(place).into_iter().flatten() {
                let given = call.given.iter().enumerate();
                let is_given = |values: &Vec<Value>| {
                    values.iter().any(|value| value.source == Source::Place(place.clone()))
                };
                let mut back = given.filter(|(at, _)| {
                    through.get(&call.function).is_some_and(|through| through.contains(at))
                });
                if back.any(|(_, values)| is_given(values)) {
                    work.push(&call.result);
                }
            }
        }
        false
    }

    fn follow(mut self) -> PointsTo {
        let mut seen: HashSet<(Place, Arrival)> = HashSet::new();
        let mut points_to = PointsTo::default();
        let mut work = std::mem::take(&mut self.starts);
        while let Some((place, ((origin, reach, was_kept), inside))) = work.pop() {
            let kept = was_kept || matches!(place, Place::Member(..));
            // In a member, or a variable of the whole program, an object has left the function it came in by.
            let inside = inside.filter(|_| !is_shared(&place));
            // Every call of an allocator gives memory of its own.
            if matches!(origin, Origin::Memory(_)) && is_allocators_result(&place) {
                continue;
            }
            if !seen.insert((place.clone(), ((origin.clone(), reach, kept), inside.clone()))) {
                continue;
            }
            points_to.at.entry(place.clone()).or_default().insert((origin.clone(), reach, kept));
            for way in self.from.get(&place).into_iter().flatten() {
                if way.out_of.is_some() && way.out_of == inside {
                    continue;
                }
                let inside = way.into.clone().or_else(|| inside.clone().filter(|_| way.out_of.is_none()));
                let pointed = (origin.clone(), further(reach, way.reach), kept || way.is_any);
                work.push((way.to.clone(), (pointed, inside)));
            }
        }
        points_to
    }
}
