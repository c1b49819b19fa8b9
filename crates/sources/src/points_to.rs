//! Which objects come to which places: pointers followed through the whole program.
//!
//! What is given to a function and comes out of it again (`realloc`, a list's `void *`) comes out at the call that gave
//! it, not at every call of the function.

use crate::collect::{FIRST, further, variadic};
use crate::facts::{Act, Call, Facts, Origin, Place, Reach, Shape, Source, Value, Where};
use crate::known;
use crate::relation::{derives, lies_in};
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
    /// Memory that a call gave, and the memory inside the function that it is.
    pub(crate) same_memory: BTreeSet<(Name, Name)>,
}

/// A way from one place to another.
#[derive(Clone, Debug)]
struct Way {
    reach: Reach,
    /// Pointers stored less pointers read.
    level: i8,
    to: Place,
    /// Into a parameter of this function.
    into: Option<Name>,
    /// Out of this function.
    out_of: Option<Name>,
    /// By a call through a pointer: any function of the type may be meant.
    is_any: bool,
    /// So many functions of the type that nothing says which memory without a type goes to which.
    is_crowded: bool,
}

impl Way {
    fn plain(reach: Reach, to: Place) -> Way {
        Way { reach, level: 0, to, into: None, out_of: None, is_any: false, is_crowded: false }
    }
}

impl PointsTo {
    /// Follows every flow until nothing new comes anywhere.
    pub(crate) fn of(facts: &Facts) -> PointsTo {
        let mut ways = Ways::default();
        for (value, to) in &facts.flows {
            ways.add(value, to, None);
        }
        for (usr, record) in &facts.records {
            if let Some(first) = record.members.first() {
                let to = Place::Member(usr.clone(), FIRST.into());
                ways.add(&Value::place(Place::Member(usr.clone(), first.name.clone())), &to, None);
            }
        }
        let through = ways.through_functions(facts);
        for call in &facts.calls {
            ways.add_call(call, &through);
        }
        let mut functions: BTreeMap<&Name, usize> = BTreeMap::new();
        for (signature, _) in &facts.taken {
            *functions.entry(signature).or_default() += 1;
        }
        for (signature, function) in &facts.taken {
            ways.add_taken(signature, function, functions[signature] > CROWD);
        }
        ways.follow(facts)
    }

    /// What a function made and kept nowhere is, for each call, memory of its own.
    fn own_memory(&mut self, origin: Origin, is_kept: bool, way: &Way) -> Origin {
        match (&origin, &way.to) {
            (Origin::Memory(inner, level), Place::Result(call))
                if !is_kept && way.out_of.is_some() && inner != call =>
            {
                self.same_memory.insert((call.clone(), inner.clone()));
                Origin::Memory(call.clone(), *level)
            }
            _ => origin,
        }
    }

    /// What a value may point to.
    pub(crate) fn objects(&self, value: &Value) -> Vec<Pointed> {
        match &value.source {
            Source::Origin(origin) => {
                let origins = at_level(origin, value.level).into_iter();
                origins.map(|origin| (origin, value.reach, false)).collect()
            }
            Source::Place(_) if value.reach == Reach::Address => Vec::new(),
            Source::Place(place) => {
                let found = self.at.get(place).into_iter().flatten();
                let moved = found.flat_map(|(origin, reach, kept)| {
                    let origins = at_level(origin, value.level).into_iter();
                    origins.map(|origin| (origin, further(*reach, value.reach), *kept))
                });
                moved.collect()
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

/// What a function gives that moves memory: what it was given, at the call that gave it.
fn is_reallocators(place: &Place) -> bool {
    let (Place::Return(usr) | Place::Parameter(usr, _)) = place else { return false };
    known::plain_name(usr).to_ascii_lowercase().contains("realloc")
}

/// What a function gives whose name says that it allocates.
fn is_allocators_result(place: &Place) -> bool {
    let Place::Return(usr) = place else { return false };
    known::gives_fresh_memory(known::plain_name(usr))
}

/// Pointers to pointers to memory that are told apart.
const MOST_LEVELS: u8 = 3;

/// What is found after so many pointers were stored (or read, when negative). What is read from an array of pointers is
/// not the array. Of objects it is not told apart.
fn at_level(origin: &Origin, level: i8) -> Vec<Origin> {
    let Origin::Memory(block, known) = origin else { return vec![origin.clone()] };
    let memory = |level: u8| Origin::Memory(block.clone(), level);
    match known.checked_add_signed(level) {
        None => Vec::new(),
        // So far behind, it may be further still.
        Some(now) if *known == MOST_LEVELS && level < 0 => (now..=MOST_LEVELS).map(memory).collect(),
        Some(now) => vec![memory(now.min(MOST_LEVELS))],
    }
}

/// Where a pointer leads that is moved by `offsetof` of a member: from an object that lies in the record to the record,
/// from the record to its member.
fn shift(facts: &Facts, origin: Origin, reach: Reach, record: &Name, member: &Name) -> (Origin, Reach) {
    let to_record = || (Origin::Object(record.clone()), Reach::Start);
    match &origin {
        Origin::Object(object)
            if reach == Reach::Start && (object == record || derives(facts, object, record)) =>
        {
            (Origin::MemberOf(record.clone(), member.clone()), Reach::Start)
        }
        // An array of bytes among the record's members, by its name.
        Origin::Bytes(array) if reach == Reach::Start && array == member => to_record(),
        Origin::Object(object) if reach == Reach::Start && lies_in(facts, object, record) => to_record(),
        Origin::MemberOf(owner, _)
            if reach == Reach::Start && (owner == record || lies_in(facts, owner, record)) =>
        {
            to_record()
        }
        _ => (origin, further(reach, Reach::Fixed)),
    }
}

/// Of so many functions of one type, called through pointers, memory without a type may go to any.
const CROWD: usize = 6;

/// Parameters of one function that are followed when it is called through a pointer.
const MOST_PARAMETERS: usize = 16;

/// The parameters of each function that it gives back, and how.
type Through = BTreeMap<Name, BTreeMap<usize, BTreeSet<Passing>>>;

/// What becomes of a pointer on the way through a function.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
struct Passing {
    reach: Reach,
    level: i8,
    /// It is moved by the offset of this record's member, before all else.
    shift: Option<(Name, Name)>,
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

    fn shifted(self, to: &Place) -> Passing {
        let Place::Shifted(record, member, _) = to else { return self };
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

fn add_passings(through: &mut Through, function: &Name, index: usize, found: BTreeSet<Passing>) -> bool {
    if found.is_empty() {
        return false;
    }
    let own = through.entry(function.clone()).or_default().entry(index).or_default();
    let before = own.len();
    own.extend(found);
    own.len() > before
}

#[derive(Default)]
struct Ways {
    from: HashMap<Place, Vec<Way>>,
    starts: Vec<(Place, Arrival)>,
}

impl Ways {
    fn add(&mut self, value: &Value, to: &Place, into: Option<Name>) {
        match &value.source {
            Source::Origin(origin) => {
                for origin in at_level(origin, value.level) {
                    self.starts.push((to.clone(), ((origin, value.reach, false), into.clone())));
                }
            }
            Source::Place(from) => {
                // The address of a place: what is stored through it arrives there.
                let reach = match value.reach {
                    Reach::Address => {
                        let level = value.level.saturating_neg();
                        let back = Way { level, ..Way::plain(Reach::Start, from.clone()) };
                        self.from.entry(to.clone()).or_default().push(back);
                        Reach::Start
                    }
                    reach => reach,
                };
                let way = Way { into, level: value.level, ..Way::plain(reach, to.clone()) };
                self.from.entry(from.clone()).or_default().push(way);
            }
            Source::Function(_) => {}
        }
    }

    fn add_call(&mut self, call: &Call, through: &Through) {
        for (at, values) in call.given.iter().enumerate() {
            let gives_back = through.get(&call.function).and_then(|given| given.get(&at));
            for value in values {
                let parameter = Place::Parameter(call.function.clone(), at);
                self.add(value, &parameter, Some(call.function.clone()));
                if at >= call.named {
                    let further = variadic(&call.function, call.texts.contains(&at));
                    self.add(value, &Place::Variable(further), None);
                }
                for passing in gives_back.into_iter().flatten() {
                    self.add_passing(value, passing, &call.result);
                }
            }
        }
        let out_of = Some(call.function.clone());
        let way = Way { out_of, ..Way::plain(Reach::Start, call.result.clone()) };
        self.from.entry(Place::Return(call.function.clone())).or_default().push(way);
    }

    /// What a function gives back of what it was given comes out at the call.
    fn add_passing(&mut self, value: &Value, passing: &Passing, result: &Place) {
        let Place::Result(name) = result else { return };
        let passed = |value: &Value| {
            let reach = further(value.reach, passing.reach);
            Value { reach, ..value.clone().at_level(passing.level) }
        };
        match &passing.shift {
            Some((record, member)) => {
                let shifted = Place::Shifted(record.clone(), member.clone(), name.clone());
                self.add(value, &shifted, None);
                self.add(&passed(&Value::place(shifted)), result, None);
            }
            None => self.add(&passed(value), result, None),
        }
    }

    /// What is given through a pointer to functions of a type arrives at every function that is used as one.
    fn add_taken(&mut self, signature: &Name, function: &Name, is_crowded: bool) {
        for at in 0..MOST_PARAMETERS {
            let to = Place::Parameter(function.clone(), at);
            let way = Way {
                into: Some(function.clone()),
                is_any: true,
                is_crowded,
                ..Way::plain(Reach::Start, to)
            };
            self.from.entry(Place::Parameter(signature.clone(), at)).or_default().push(way);
        }
        let to = Place::Return(signature.clone());
        let out_of = Some(function.clone());
        let way = Way { out_of, is_any: true, is_crowded, ..Way::plain(Reach::Start, to) };
        self.from.entry(Place::Return(function.clone())).or_default().push(way);
    }

    /// Which parameters a function may give back, also by the functions that it calls itself.
    fn through_functions<'f>(&self, facts: &'f Facts) -> Through {
        let mut through = Through::new();
        let mut callers: HashMap<&Place, Vec<(&Call, usize, &Value)>> = HashMap::new();
        for call in &facts.calls {
            for (at, values) in call.given.iter().enumerate() {
                for value in values {
                    if let Source::Place(place) = &value.source {
                        callers.entry(place).or_default().push((call, at, value));
                    }
                }
            }
        }
        let mut parameters: BTreeSet<&Place> = callers.keys().copied().collect();
        parameters.extend(self.from.keys());
        parameters.retain(|place| matches!(place, Place::Parameter(..)));
        let as_record = |(value, act, _): &'f (Value, Act, Where)| match (&value.source, act) {
            (Source::Place(place), Act::As(Shape::Record(_), _)) => Some(place),
            _ => None,
        };
        let typed: HashSet<&Place> = facts.acts.iter().filter_map(as_record).collect();
        loop {
            let mut is_new = false;
            for parameter in &parameters {
                let Place::Parameter(function, index) = parameter else { continue };
                let mut found = self.comes_out(parameter, function, &callers, &through);
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

    /// How what comes in by a parameter reaches the function's end without being kept in a member meanwhile.
    fn comes_out(
        &self,
        parameter: &Place,
        function: &Name,
        callers: &HashMap<&Place, Vec<(&Call, usize, &Value)>>,
        through: &Through,
    ) -> BTreeSet<Passing> {
        let end = Place::Return(function.clone());
        let mut found = BTreeSet::new();
        let mut seen: HashSet<(&Place, Passing)> = HashSet::new();
        let mut work = vec![(parameter, Passing::default())];
        while let Some((place, passing)) = work.pop() {
            if *place == end {
                found.insert(passing);
                continue;
            }
            if matches!(place, Place::Member(..)) || !seen.insert((place, passing.clone())) {
                continue;
            }
            for way in self.from.get(place).into_iter().flatten() {
                work.push((&way.to, passing.moved(way.reach, way.level).shifted(&way.to)));
            }
            for (call, at, value) in callers.get(place).into_iter().flatten() {
                let given = passing.moved(value.reach, value.level);
                let back = through.get(&call.function).and_then(|through| through.get(at));
                work.extend(back.into_iter().flatten().map(|back| (&call.result, given.then(back))));
            }
        }
        found
    }

    fn follow(mut self, facts: &Facts) -> PointsTo {
        let mut seen: HashSet<(Place, Arrival)> = HashSet::new();
        let mut points_to = PointsTo::default();
        let mut work = std::mem::take(&mut self.starts);
        while let Some((place, ((origin, reach, was_kept), inside))) = work.pop() {
            let is_memory = matches!(origin, Origin::Memory(..));
            let kept = was_kept || matches!(place, Place::Member(..)) || (is_memory && is_shared(&place));
            // In a member, or a variable of the whole program, an object has left the function it came in by.
            let inside = inside.filter(|_| !is_shared(&place));
            let (origin, reach) = match &place {
                Place::Shifted(record, member, _) => shift(facts, origin, reach, record, member),
                _ => (origin, reach),
            };
            // Every call of an allocator gives memory of its own, also from what it keeps, and what that was while it
            // was free nobody else looks at.
            let is_free = match &origin {
                Origin::Memory(..) => kept,
                Origin::Object(record) => {
                    !facts.looked_into.contains(record) || (kept && is_reallocators(&place))
                }
                _ => false,
            };
            if is_free && is_allocators_result(&place) {
                continue;
            }
            if !seen.insert((place.clone(), ((origin.clone(), reach, kept), inside.clone()))) {
                continue;
            }
            points_to.at.entry(place.clone()).or_default().insert((origin.clone(), reach, kept));
            for way in self.from.get(&place).into_iter().flatten() {
                let is_lost = way.is_crowded && matches!(origin, Origin::Memory(..));
                if is_lost || (way.out_of.is_some() && way.out_of == inside) {
                    continue;
                }
                let inside = way.into.clone().or_else(|| inside.clone().filter(|_| way.out_of.is_none()));
                let kept = kept || if is_memory { way.level < 0 } else { way.is_any };
                for now in at_level(&origin, way.level) {
                    let now = points_to.own_memory(now, kept, way);
                    let pointed = (now, further(reach, way.reach), kept);
                    work.push((way.to.clone(), (pointed, inside.clone())));
                }
            }
        }
        points_to
    }
}
