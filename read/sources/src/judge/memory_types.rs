//! The types of allocated memory, and of values taken out of places that keep several types.

use super::Judge;
use super::pointer_uses::{Many, is_generic};
use crate::facts::{Act, Origin, PointerPlace, Reach, Shape, Source, Value};
use crate::points_to::{Objects, Pointed};
use crate::tree::Name;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The records that memory is used as.
pub(super) struct BlockRecords {
    /// By the place of the call that gave it.
    blocks: BTreeMap<Name, BTreeSet<Name>>,
    /// The records of any block.
    records: BTreeSet<Name>,
    /// Cached answers: whether a block may be a record.
    answers: RefCell<HashMap<(Name, Name), bool, foldhash::fast::RandomState>>,
}

impl Judge<'_> {
    /// The records that each block of memory is used as where nothing else arrives, inside the functions that give it
    /// as well.
    pub(super) fn made(&self) -> BlockRecords {
        let mut made = self.made_here();
        loop {
            let mut is_new = false;
            for (inner, calls) in &self.points_to.same_memory {
                // An allocator's own use of free memory concerns nobody else.
                let is_others = |record: &&Name| self.facts.looked_into.contains(*record);
                let inside: Vec<Name> =
                    made.get(inner).into_iter().flatten().filter(is_others).cloned().collect();
                for call in calls.iter().filter(|_| !inside.is_empty()) {
                    let own = made.entry(call.clone()).or_default();
                    let before = own.len();
                    own.extend(inside.iter().cloned());
                    is_new |= own.len() > before;
                }
            }
            if !is_new {
                let records = made.values().flatten().cloned().collect();
                return BlockRecords { blocks: made, records, answers: RefCell::default() };
            }
        }
    }

    fn made_here(&self) -> BTreeMap<Name, BTreeSet<Name>> {
        let mut made: BTreeMap<Name, BTreeSet<Name>> = BTreeMap::new();
        for (value, act, _) in &self.facts.acts {
            let Act::As(Shape::Record(record), _) = act else { continue };
            let objects = self.points_to.objects(value);
            let is_other =
                |(origin, _, _): &Pointed| matches!(origin, Origin::Object(other) if other != record);
            let is_shared = is_member(value) && objects.each.iter().any(is_other);
            if !is_generic(&objects) && !is_shared {
                for (origin, _, _) in objects.each {
                    if let Origin::Memory(block, 0) = origin {
                        made.entry(block).or_default().insert(record.clone());
                    }
                }
            }
        }
        made
    }

    /// A cast to a type of which no object arrives here, nor one related to it, nor plain memory.
    pub(super) fn takes_another(
        &self,
        act: &Act,
        objects: &Objects,
        made: &BlockRecords,
        many: &mut Many,
    ) -> bool {
        let Act::As(Shape::Record(wanted), _) = act else { return false };
        let may_be = |origin: &Origin| match origin {
            Origin::Object(record) | Origin::Number(record) => self.relations.may_stand_for(record, wanted),
            Origin::Memory(block, _) => self.may_become(block, wanted, made),
            Origin::Foreign(usr, _) => !self.facts.defined.contains(usr),
            Origin::Bytes(_) | Origin::End(_) | Origin::Element(_) => true,
            Origin::MemberOf(..) | Origin::Numbers(..) | Origin::Handle(_) => false,
        };
        let is_another_of_many = || !self.points_to.many.iter().any(|(origin, _)| may_be(origin));
        !objects.each.iter().any(|(origin, _, _)| may_be(origin))
            && (objects.many.is_empty()
                || *many.is_another.entry(wanted.clone()).or_insert_with(is_another_of_many))
    }

    /// A cast of a member's value, where the member keeps objects of one type and memory that may be the wanted type:
    /// each value is taken out as the type it was stored as.
    pub(super) fn takes_memory(
        &self,
        value: &Value,
        act: &Act,
        objects: &[Pointed],
        made: &BlockRecords,
    ) -> bool {
        let Act::As(Shape::Record(wanted), _) = act else { return false };
        let is_it = |(origin, reach, _): &Pointed| match origin {
            Origin::Memory(block, 0) if *reach == Reach::Start => self.may_become(block, wanted, made),
            _ => false,
        };
        is_member(value) && objects.iter().any(is_it)
    }

    /// Memory without a known use may be a type that is made nowhere else. Code that makes a larger object may know
    /// only its beginning. The result of a function is what its callers use it as.
    fn may_become(&self, block: &Name, wanted: &Name, made: &BlockRecords) -> bool {
        let mut answers = made.answers.borrow_mut();
        let answer = || self.find_whether_it_may_become(block, wanted, made);
        *answers.entry((block.clone(), wanted.clone())).or_insert_with(answer)
    }

    fn find_whether_it_may_become(&self, block: &Name, wanted: &Name, made: &BlockRecords) -> bool {
        let (mut work, mut seen) = (vec![block], BTreeSet::new());
        while let Some(block) = work.pop() {
            let calls = self.points_to.same_memory.get(block);
            let is_wanted = match made.blocks.get(block) {
                Some(records) => records.iter().any(|record| self.relations.may_stand_for(record, wanted)),
                None => calls.is_none() && !made.records.contains(wanted),
            };
            if is_wanted {
                return true;
            }
            work.extend(calls.into_iter().flatten().filter(|call| seen.insert(*call)));
        }
        false
    }
}

fn is_member(value: &Value) -> bool {
    matches!(value.source, Source::Place(PointerPlace::Member(..)))
}
