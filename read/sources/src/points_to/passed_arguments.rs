//! Arguments that functions give back.

use super::flow_edges::FlowEdges;
use super::levels::MOST_LEVELS;
use crate::collect::further;
use crate::facts::{Act, Call, Facts, PointerPlace, Reach, Shape, Source, Value, Where};
use crate::library_functions;
use crate::tree::Name;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// The parameters of each function that it gives back, and the ways.
pub(super) type Through = BTreeMap<Name, BTreeMap<usize, BTreeSet<Passing>>>;

/// The change of a pointer on its way through a function.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Passing {
    pub(super) reach: Reach,
    pub(super) level: i8,
    /// It is first moved by the offset of this record's member.
    pub(super) shift: Option<(Name, Name)>,
}

impl Default for Passing {
    fn default() -> Self {
        Passing { reach: Reach::Start, level: 0, shift: None }
    }
}

impl Passing {
    fn moved(&self, reach: Reach, level: i8) -> Passing {
        // The address of a place leads to that place, one pointer further.
        let reach = if reach == Reach::Address { Reach::Start } else { reach };
        let most = MOST_LEVELS.cast_signed();
        Passing {
            reach: further(self.reach, reach),
            level: self.level.saturating_add(level).clamp(-most, most),
            shift: self.shift.clone(),
        }
    }

    fn shifted(self, to: &PointerPlace) -> Passing {
        let PointerPlace::Shifted(record, member, _) = to else { return self };
        self.shifted_by(Some((record.clone(), member.clone())))
    }

    /// A second offset leads somewhere.
    fn shifted_by(self, shift: Option<(Name, Name)>) -> Passing {
        match (&self.shift, self.reach, &shift) {
            (_, _, None) => self,
            (None, Reach::Start, _) => Passing { shift, ..self },
            _ => self.moved(Reach::Fixed, 0),
        }
    }

    fn then(&self, next: &Passing) -> Passing {
        self.clone().shifted_by(next.shift.clone()).moved(next.reach, next.level)
    }
}

/// The calls that a place's pointers are given to: the call, the parameter, the value.
type Givers<'f> = HashMap<&'f PointerPlace, Vec<(&'f Call, usize, &'f Value)>>;

/// The calls that each place's values are given to.
fn givers(facts: &Facts) -> Givers<'_> {
    let mut givers = Givers::new();
    for call in &facts.calls {
        for (at, values) in call.given.iter().enumerate() {
            for value in values {
                if let Source::Place(place) = &value.source {
                    givers.entry(place).or_default().push((call, at, value));
                }
            }
        }
    }
    givers
}

/// The parameters that a function may give back, also through the functions that it calls itself.
pub(super) fn through_functions(ways: &FlowEdges, facts: &Facts) -> Through {
    let mut through = Through::new();
    let givers = givers(facts);
    let mut parameters: BTreeSet<&PointerPlace> = givers.keys().copied().collect();
    parameters.extend(ways.starting_places());
    parameters.retain(|place| matches!(place, PointerPlace::Parameter(..)));
    let typed = used_as_records(facts);
    loop {
        let mut is_new = false;
        for parameter in &parameters {
            let PointerPlace::Parameter(function, index) = parameter else { continue };
            let mut found = comes_out((parameter, function), ways, &givers, &through);
            if is_reallocators(parameter) && !typed.contains(parameter) {
                found.insert(Passing::default());
            }
            is_new |= add_passings(&mut through, function, *index, found);
        }
        for (signature, function) in &facts.taken {
            for (index, found) in through.get(function).cloned().unwrap_or_default() {
                is_new |= add_passings(&mut through, signature, index, found);
            }
        }
        if !is_new {
            return through;
        }
    }
}

/// Places whose pointers are used as pointers to a record.
fn used_as_records(facts: &Facts) -> HashSet<&PointerPlace> {
    fn place((value, act, _): &(Value, Act, Where)) -> Option<&PointerPlace> {
        match (&value.source, act) {
            (Source::Place(place), Act::As(Shape::Record(_), _)) => Some(place),
            _ => None,
        }
    }
    facts.acts.iter().filter_map(place).collect()
}

/// The ways in which a parameter's value reaches the function's end without being kept in a member meanwhile.
fn comes_out<'f>(
    (parameter, function): (&'f PointerPlace, &Name),
    ways: &'f FlowEdges,
    givers: &Givers<'f>,
    through: &Through,
) -> BTreeSet<Passing> {
    let end = PointerPlace::Return(function.clone());
    let mut found = BTreeSet::new();
    let mut seen: HashSet<(&PointerPlace, Passing)> = HashSet::new();
    let mut work = vec![(parameter, Passing::default())];
    while let Some((place, passing)) = work.pop() {
        if *place == end {
            found.insert(passing);
            continue;
        }
        if matches!(place, PointerPlace::Member(..)) || !seen.insert((place, passing.clone())) {
            continue;
        }
        for way in ways.places.known(place).map_or(&[][..], |place| ways.from(place)) {
            let to = ways.places.value(way.to);
            work.push((to, passing.moved(way.reach, way.level).shifted(to)));
        }
        for (call, at, value) in givers.get(place).into_iter().flatten() {
            let given = passing.moved(value.reach, value.level);
            let back = through.get(&call.function).and_then(|through| through.get(at));
            work.extend(back.into_iter().flatten().map(|back| (&call.result, given.then(back))));
        }
    }
    found
}

fn add_passings(through: &mut Through, function: &Name, index: usize, found: BTreeSet<Passing>) -> bool {
    if found.is_empty() {
        return false;
    }
    let own = through.entry(function.clone()).or_default().entry(index).or_default();
    let before = own.len();
    own.extend(found);
    own.len() > before
}

/// True for the result or a parameter of a function that moves memory: it gives its argument back, at the call that
/// gave it.
pub(super) fn is_reallocators(place: &PointerPlace) -> bool {
    let (PointerPlace::Return(usr) | PointerPlace::Parameter(usr, _)) = place else { return false };
    library_functions::plain_name(usr).to_ascii_lowercase().contains("realloc")
}
