//! Follows each origin along the flows.
//!
//! Invariants: a place where many origins arrive ([`MANY`]) holds, in addition to those, memory and whole
//! objects that were not kept. All other origins that arrive there are added to the many, and continue as "any of
//! them". A place where many blocks of memory and objects of several types arrive holds no other memory that was kept.

use super::flow_edges::{FlowEdge, FlowEdges, Start};
use super::levels::{ANY_BLOCK, at_level};
use super::numbers::Numbers;
use super::objects::{PlaceContents, PointsTo};
use super::passed_arguments::is_reallocators;
use crate::collect::{ANY_RECORD, further};
use crate::facts::{Facts, Origin, PointerPlace, Reach, RecordFact, behind};
use crate::library_functions;
use crate::relation::{derives, lies_in};
use crate::tree::{Name, OUTLIVES};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

/// The number of types of kept objects up to which a place keeps their origins separate.
const MANY: usize = 64;

/// The number of arrivals of kept memory up to which a place with several types keeps the blocks separate.
const MANY_BLOCKS: usize = 256;

/// An origin at a place.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Arrival {
    place: u32,
    /// The origin's number; `None` for any of the many.
    origin: Option<u32>,
    /// The function through whose parameter it arrived, while it stays inside.
    inside: Option<u32>,
    reach: Reach,
    kept: bool,
}

/// The facts about a place while origins are followed.
#[derive(Clone, Copy, Debug)]
struct PlaceKind {
    is_member: bool,
    /// A member, or a variable of the whole program.
    is_shared: bool,
    is_shifted: bool,
    is_result: bool,
    is_reallocators: bool,
    is_allocators_result: bool,
}

/// The kind of an origin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum OriginKind {
    Memory,
    /// An object of a record; true when the record's members are used outside of functions that give memory.
    Object {
        is_looked_into: bool,
    },
    /// An array of numbers.
    Numbers,
    Other,
    /// Any of the many.
    Many,
}

/// The kept origins that arrived at a place.
#[derive(Clone, Default, Debug)]
struct ArrivedObjects {
    /// Objects by their numbers, as long as they are few.
    objects: Vec<u32>,
    /// Arrivals of memory.
    blocks: usize,
    has_many: bool,
    has_many_blocks: bool,
    /// The functions inside which anything arrived.
    insides: Vec<Option<u32>>,
}

impl PointsTo {
    /// Follows every flow until nothing new arrives anywhere.
    pub(crate) fn of(facts: &Facts) -> PointsTo {
        follow(FlowEdges::of(facts), facts)
    }
}

fn follow(mut ways: FlowEdges, facts: &Facts) -> PointsTo {
    let starts = std::mem::take(&mut ways.starts);
    let mut follower = Follower::new(&ways, facts);
    follower.start(starts);
    while let Some(arrival) = follower.work.pop_front() {
        follower.leave(&arrival);
    }
    let Follower { origins, mut at, same_memory, many, many_blocks, .. } = follower;
    for found in &mut at {
        found.each.sort_unstable();
        found.each.dedup();
        found.each.shrink_to_fit();
    }
    let many =
        many.into_iter().map(|(origin, is_unkept)| (origins.value(origin).clone(), is_unkept)).collect();
    let mut points_to = PointsTo { places: ways.places, origins, at, many, ..PointsTo::default() };
    let blocks = many_blocks.into_iter().filter_map(|origin| match points_to.origins.value(origin) {
        Origin::Memory(block, _) => Some(block.clone()),
        _ => None,
    });
    let blocks: BTreeSet<Name> = blocks.collect();
    if !blocks.is_empty() {
        points_to.same_memory.insert(ANY_BLOCK.into(), blocks);
    }
    for (inner, call) in same_memory {
        let (Origin::Memory(inner, _), PointerPlace::Result(call)) =
            (points_to.origins.value(inner), points_to.places.value(call))
        else {
            continue;
        };
        points_to.same_memory.entry(inner.clone()).or_default().insert(call.clone());
    }
    points_to
}

struct Follower<'w> {
    ways: &'w FlowEdges,
    facts: &'w Facts,
    /// By the place's number.
    places: Vec<PlaceKind>,
    /// By the origin's number.
    kinds: Vec<OriginKind>,
    origins: Numbers<Origin>,
    seen: HashSet<Arrival, foldhash::fast::RandomState>,
    /// By the place's number, in the order of arrival; some twice, since they arrived inside several functions.
    at: Vec<PlaceContents>,
    /// By the place's number.
    kept: Vec<ArrivedObjects>,
    /// The merged origins' numbers, each with true when it arrived without having been kept.
    many: BTreeMap<u32, bool>,
    /// The merged blocks of memory.
    many_blocks: BTreeSet<u32>,
    /// Stands for any of these blocks.
    any_block: u32,
    /// Memory inside a function, and the place that holds the result of one of its calls.
    same_memory: BTreeSet<(u32, u32)>,
    /// Memory behind objects, which only an allocator gives anew at each call.
    behind: BTreeSet<Name>,
    /// Memory after this many pointers were stored or read.
    levels: HashMap<(u32, i8), Vec<u32>>,
    /// First in, first out: a place collects its many origins before each of them has been followed everywhere from
    /// there.
    work: VecDeque<Arrival>,
}

impl<'w> Follower<'w> {
    fn new(ways: &'w FlowEdges, facts: &'w Facts) -> Follower<'w> {
        let numbers = 0..ways.places.count() as u32;
        let mut follower = Follower {
            ways,
            facts,
            places: numbers.map(|place| place_kind(ways.places.value(place))).collect(),
            kinds: Vec::new(),
            origins: Numbers::default(),
            seen: HashSet::default(),
            at: vec![PlaceContents::default(); ways.places.count()],
            kept: vec![ArrivedObjects::default(); ways.places.count()],
            many: BTreeMap::new(),
            many_blocks: BTreeSet::new(),
            same_memory: BTreeSet::new(),
            behind: facts.records.iter().filter_map(memory_behind).collect(),
            levels: HashMap::new(),
            any_block: 0,
            work: VecDeque::new(),
        };
        follower.any_block = follower.number(&Origin::Memory(ANY_BLOCK.into(), 0));
        follower
    }

    fn start(&mut self, starts: Vec<Start>) {
        let facts = self.facts;
        // The result of a function compiled here is the value that its body returns.
        let is_followed = |start: &Start| match &start.origin {
            Origin::Foreign(function, _) => !facts.defined.contains(function),
            _ => true,
        };
        for Start { place, origin, reach, into } in starts.into_iter().filter(is_followed) {
            let origin = Some(self.number(&origin));
            self.arrive(Arrival { place, origin, inside: into, reach, kept: false });
        }
    }

    fn number(&mut self, origin: &Origin) -> u32 {
        let number = self.origins.number(origin);
        if number as usize == self.kinds.len() {
            self.kinds.push(match origin {
                Origin::Memory(..) => OriginKind::Memory,
                Origin::Object(record) => {
                    OriginKind::Object { is_looked_into: self.facts.looked_into.contains(record) }
                }
                Origin::Numbers(..) => OriginKind::Numbers,
                _ => OriginKind::Other,
            });
        }
        number
    }

    fn kind(&self, arrival: &Arrival) -> OriginKind {
        arrival.origin.map_or(OriginKind::Many, |origin| self.kinds[origin as usize])
    }

    fn arrive(&mut self, mut arrival: Arrival) {
        let place = self.places[arrival.place as usize];
        arrival.kept |= place.is_member || (self.kind(&arrival) == OriginKind::Memory && place.is_shared);
        // In a member, or a variable of the whole program, an object has left the function through which it arrived.
        arrival.inside = arrival.inside.filter(|_| !place.is_shared);
        if place.is_shifted && !self.shift(&mut arrival) {
            return;
        }
        if place.is_allocators_result && self.is_free(&arrival, place) {
            return;
        }
        self.join_many(&mut arrival);
        self.join_many_blocks(&mut arrival);
        // An arrival outside of any function follows every flow that it follows inside one.
        let anywhere = Arrival { inside: None, ..arrival };
        if (arrival.inside.is_some() && self.seen.contains(&anywhere)) || !self.seen.insert(arrival) {
            return;
        }
        let found = &mut self.at[arrival.place as usize];
        match arrival.origin {
            Some(origin) => found.each.push((origin, arrival.reach, arrival.kept)),
            None => _ = found.many.insert((arrival.reach, arrival.kept)),
        }
        let insides = &mut self.kept[arrival.place as usize].insides;
        if !insides.contains(&arrival.inside) {
            insides.push(arrival.inside);
        }
        self.work.push_back(arrival);
    }

    /// Follows the flows from the arrival's place, unless it was merged with the many there.
    fn leave(&mut self, arrival: &Arrival) {
        let kept = &self.kept[arrival.place as usize];
        let is_joined = match arrival.origin {
            None => false,
            Some(_) if kept.has_many && is_one_of_many(self.kind(arrival), arrival.kept) => true,
            Some(origin) => kept.has_many_blocks && self.is_kept_block(origin, arrival.kept),
        };
        let ways = self.ways;
        for way in ways.from(arrival.place).iter().filter(|_| !is_joined) {
            self.go(arrival, way);
        }
    }

    /// At a place with many origins, the arrival becomes one of them.
    fn join_many(&mut self, arrival: &mut Arrival) {
        let kind = self.kind(arrival);
        let kept = &mut self.kept[arrival.place as usize];
        if let (false, OriginKind::Object { .. }, true, Some(origin)) =
            (kept.has_many, kind, arrival.kept, arrival.origin)
            && !kept.objects.contains(&origin)
        {
            kept.objects.push(origin);
        }
        if !kept.has_many && (arrival.origin.is_none() || kept.objects.len() > MANY) {
            self.make_many(arrival.place);
        }
        if self.kept[arrival.place as usize].has_many && is_one_of_many(kind, arrival.kept) {
            self.add_to_many(arrival.origin.take(), arrival.kept);
        }
    }

    fn add_to_many(&mut self, origin: Option<u32>, kept: bool) {
        if let Some(origin) = origin {
            *self.many.entry(origin).or_default() |= !kept;
        }
    }

    /// Earlier arrivals at a place with many origins join them.
    fn make_many(&mut self, place: u32) {
        self.kept[place as usize].has_many = true;
        self.kept[place as usize].objects = Vec::new();
        let joins =
            |follower: &Self, origin: u32, kept| is_one_of_many(follower.kinds[origin as usize], kept);
        for arrival in self.take(place, joins) {
            self.add_to_many(arrival.origin, arrival.kept);
            self.arrive(Arrival { origin: None, ..arrival });
        }
    }

    /// At a place with many blocks of memory and objects of several types, the arrival becomes one of the blocks.
    fn join_many_blocks(&mut self, arrival: &mut Arrival) {
        let Some(origin) = arrival.origin.filter(|&origin| self.is_kept_block(origin, arrival.kept)) else {
            return;
        };
        let kept = &mut self.kept[arrival.place as usize];
        kept.blocks += 1;
        let has_types = kept.has_many || kept.objects.len() > 1;
        if !kept.has_many_blocks && has_types && kept.blocks > MANY_BLOCKS {
            self.make_many_blocks(arrival.place);
        }
        if self.kept[arrival.place as usize].has_many_blocks {
            self.many_blocks.insert(origin);
            arrival.origin = Some(self.any_block);
        }
    }

    fn make_many_blocks(&mut self, place: u32) {
        self.kept[place as usize].has_many_blocks = true;
        for arrival in self.take(place, Self::is_kept_block) {
            self.many_blocks.extend(arrival.origin);
            self.arrive(Arrival { origin: Some(self.any_block), ..arrival });
        }
    }

    /// One block of memory that was kept.
    fn is_kept_block(&self, origin: u32, kept: bool) -> bool {
        kept && self.kinds[origin as usize] == OriginKind::Memory && origin != self.any_block
    }

    /// Takes from a place the origins that match `joins`, and returns their arrivals.
    fn take(&mut self, place: u32, joins: impl Fn(&Self, u32, bool) -> bool) -> Vec<Arrival> {
        let each = std::mem::take(&mut self.at[place as usize].each);
        let (joined, others): (Vec<_>, _) =
            each.into_iter().partition(|(origin, _, kept)| joins(self, *origin, *kept));
        self.at[place as usize].each = others;
        let insides = &self.kept[place as usize].insides;
        let arrivals = joined.iter().flat_map(|&(origin, reach, kept)| {
            let arrival = move |&inside| Arrival { place, origin: Some(origin), inside, reach, kept };
            insides.iter().map(arrival).filter(|arrival| self.seen.contains(arrival))
        });
        arrivals.collect()
    }

    /// Every call of an allocator gives memory of its own, also from its free list. Nobody else looks at the memory's
    /// use while it was free.
    fn is_free(&self, arrival: &Arrival, place: PlaceKind) -> bool {
        match self.kind(arrival) {
            OriginKind::Memory => arrival.kept,
            OriginKind::Object { is_looked_into } => {
                !is_looked_into || (arrival.kept && place.is_reallocators)
            }
            OriginKind::Many => place.is_reallocators,
            OriginKind::Other | OriginKind::Numbers => false,
        }
    }

    fn go(&mut self, arrival: &Arrival, way: &FlowEdge) {
        let arrival = &Arrival { origin: self.across_number(arrival.origin, way), ..*arrival };
        let memory = arrival.origin.filter(|_| self.kind(arrival) == OriginKind::Memory);
        let is_memory = memory.is_some();
        let is_number = way.level < 0 && self.kind(arrival) == OriginKind::Numbers;
        let is_lost = (way.is_crowded && is_memory) || is_number;
        if is_lost || (way.out_of.is_some() && way.out_of == arrival.inside) {
            return;
        }
        let inside = way.into.or_else(|| arrival.inside.filter(|_| way.out_of.is_none()));
        let kept = arrival.kept || if is_memory { way.level < 0 } else { way.is_any };
        let reach = further(arrival.reach, way.reach);
        let next = Arrival { place: way.to, origin: arrival.origin, inside, reach, kept };
        let Some(memory) = memory else {
            self.arrive(next);
            return;
        };
        for origin in self.at_level(memory, way.level) {
            let origin = Some(self.own_memory(origin, kept, way));
            self.arrive(Arrival { origin, ..next });
        }
    }

    /// A pointer that is kept in a number, on the way to the number's address and back.
    fn across_number(&mut self, origin: Option<u32>, way: &FlowEdge) -> Option<u32> {
        let Some(known) = origin.filter(|_| way.is_number || way.level < 0) else { return origin };
        let across = match self.origins.value(known) {
            Origin::Object(record) if way.is_number => Origin::Number(record.clone()),
            Origin::Number(record) if way.level < 0 => Origin::Object(record.clone()),
            _ => return origin,
        };
        Some(self.number(&across))
    }

    fn at_level(&mut self, origin: u32, level: i8) -> Vec<u32> {
        if level == 0 {
            return vec![origin];
        }
        if let Some(known) = self.levels.get(&(origin, level)) {
            return known.clone();
        }
        let found = at_level(self.origins.value(origin), level);
        let found: Vec<u32> = found.iter().map(|origin| self.number(origin)).collect();
        self.levels.insert((origin, level), found.clone());
        found
    }

    /// Memory that a function made and kept nowhere is separate memory for each call.
    fn own_memory(&mut self, origin: u32, is_kept: bool, way: &FlowEdge) -> u32 {
        if is_kept || way.out_of.is_none() || !self.places[way.to as usize].is_result {
            return origin;
        }
        let (Origin::Memory(inner, level), PointerPlace::Result(call)) =
            (self.origins.value(origin), self.ways.places.value(way.to))
        else {
            return origin;
        };
        let is_anew =
            || way.out_of.is_some_and(|function| self.places[function as usize].is_allocators_result);
        if inner == call || (self.behind.contains(inner) && !is_anew()) {
            return origin;
        }
        let own = Origin::Memory(call.clone(), *level);
        self.same_memory.insert((origin, way.to));
        self.number(&own)
    }

    /// The target of a pointer that is moved by `offsetof` of a member. A pointer to any of the many may then point to
    /// every target that it could from one of them. False where it has no such member.
    fn shift(&mut self, arrival: &mut Arrival) -> bool {
        let PointerPlace::Shifted(record, member, _) = self.ways.places.value(arrival.place) else {
            return true;
        };
        if **record == *ANY_RECORD {
            let origin = arrival.origin.map(|origin| self.origins.value(origin));
            let Some(Origin::Object(object)) = origin.filter(|_| arrival.reach == Reach::Start) else {
                return false;
            };
            let Some(owner) = owner_of(self.facts, object, member) else { return false };
            let origin = Origin::MemberOf(owner, member.clone());
            arrival.origin = Some(self.number(&origin));
            return true;
        }
        match arrival.origin {
            Some(origin) => {
                let origin = self.origins.value(origin).clone();
                let (origin, reach) = shift(self.facts, origin, arrival.reach, record, member);
                (arrival.origin, arrival.reach) = (Some(self.number(&origin)), reach);
            }
            None => {
                let outer = Origin::Object(record.clone());
                let inner = Origin::MemberOf(record.clone(), member.clone());
                let both = [&outer, &inner].map(|origin| self.number(origin));
                for origin in both {
                    self.add_to_many(Some(origin), arrival.kept);
                }
                let elsewhere = Arrival { reach: further(arrival.reach, Reach::Fixed), ..*arrival };
                if elsewhere != *arrival {
                    self.arrive(elsewhere);
                }
            }
        }
        true
    }
}

/// The memory behind a record's objects.
fn memory_behind((record, found): (&Name, &RecordFact)) -> Option<Name> {
    found.members.last().filter(|last| last.is_open_array).map(|last| behind(record, &last.name))
}

/// True for an origin that is merged where many arrive.
fn is_one_of_many(kind: OriginKind, kept: bool) -> bool {
    match kind {
        OriginKind::Memory | OriginKind::Object { .. } => kept,
        OriginKind::Other | OriginKind::Numbers | OriginKind::Many => true,
    }
}

fn place_kind(place: &PointerPlace) -> PlaceKind {
    PlaceKind {
        is_member: matches!(place, PointerPlace::Member(..)),
        is_shared: is_shared(place),
        is_shifted: matches!(place, PointerPlace::Shifted(..)),
        is_result: matches!(place, PointerPlace::Result(_)),
        is_reallocators: is_reallocators(place),
        is_allocators_result: is_allocators_result(place),
    }
}

/// Members, and variables of the whole program.
fn is_shared(place: &PointerPlace) -> bool {
    match place {
        PointerPlace::Member(..) => true,
        // libclang names a function's own variables after the function.
        PointerPlace::Variable(usr) => !usr.contains("@F@") || usr.ends_with(OUTLIVES),
        _ => false,
    }
}

/// True for the result of a function whose name implies that it allocates.
fn is_allocators_result(place: &PointerPlace) -> bool {
    let PointerPlace::Return(usr) = place else { return false };
    library_functions::gives_fresh_memory(library_functions::plain_name(usr))
}

/// The record, or the base class of it, that has a member.
fn owner_of(facts: &Facts, record: &Name, member: &Name) -> Option<Name> {
    let mut work = vec![record.clone()];
    while let Some(record) = work.pop() {
        let Some(found) = facts.records.get(&record) else { continue };
        if found.members.iter().any(|known| known.name == *member) {
            return Some(record);
        }
        work.extend(found.bases.iter().cloned());
    }
    None
}

/// The target of a pointer that is moved by `offsetof` of a member: from an object that lies in the record to the
/// record, from the record to its member.
fn shift(facts: &Facts, origin: Origin, reach: Reach, record: &Name, member: &Name) -> (Origin, Reach) {
    let to_record = || (Origin::Object(record.clone()), Reach::Start);
    match &origin {
        Origin::Object(object)
            if reach == Reach::Start && (object == record || derives(facts, object, record)) =>
        {
            (Origin::MemberOf(record.clone(), member.clone()), Reach::Start)
        }
        Origin::Element(object) if reach == Reach::Start && object == record => {
            (Origin::MemberOf(record.clone(), member.clone()), Reach::Start)
        }
        // An array of bytes among the record's members, by its name.
        Origin::Bytes(array) if reach == Reach::Start && array == member => to_record(),
        Origin::Memory(block, 0) if reach == Reach::Start && *block == behind(record, member) => to_record(),
        Origin::Object(object) if reach == Reach::Start && lies_in(facts, object, record) => to_record(),
        Origin::MemberOf(owner, _)
            if reach == Reach::Start && (owner == record || lies_in(facts, owner, record)) =>
        {
            to_record()
        }
        _ => (origin, further(reach, Reach::Fixed)),
    }
}
