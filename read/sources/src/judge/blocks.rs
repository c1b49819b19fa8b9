//! Memory that is allocated as plain bytes, used as objects, and exchanged with code that is not compiled here.

use crate::facts::{Act, Shape, Where};
use crate::tree::Name;
use std::collections::{BTreeMap, BTreeSet};

/// The uses of one block of memory.
#[derive(Default)]
struct Block {
    /// The records that it is used as.
    used_as: Vec<Name>,
    /// The place of its first use as a record.
    used_at: Option<Where>,
    /// The first thing that makes its bytes matter: in words, and its place.
    crossing: Option<(String, Where)>,
}

/// All blocks, by the place of the call that gave them.
#[derive(Default)]
pub(super) struct Blocks {
    blocks: BTreeMap<Name, Block>,
}

impl Blocks {
    pub(super) fn note(&mut self, block: &Name, act: &Act, at: &Where) {
        let crossing = match act {
            Act::As(Shape::Record(record), _) | Act::Placed(Shape::Record(record), _) => {
                let block = self.blocks.entry(block.clone()).or_default();
                block.used_at.get_or_insert_with(|| at.clone());
                if !block.used_as.contains(record) {
                    block.used_as.push(record.clone());
                }
                return;
            }
            Act::Given(_, name) => format!("is given to {name}(), which is not compiled here"),
            Act::GivenThrough(_) => "is given to a function that is not compiled here".to_string(),
            Act::Leaves(to) => format!("goes to {to}"),
            Act::Bytes => "is read byte by byte".to_string(),
            Act::Compared(_) => "is compared byte by byte".to_string(),
            Act::Assembly => "is used by assembly".to_string(),
            Act::Found(by) => format!("is found by its variable's name: {by}"),
            _ => return,
        };
        self.blocks.entry(block.clone()).or_default().crossing.get_or_insert((crossing, at.clone()));
    }

    /// The first use as an object of a block, or of the same memory by another name, and the records used.
    pub(super) fn becomes_objects(
        &self,
        block: &Name,
        same: &BTreeMap<Name, BTreeSet<Name>>,
    ) -> Option<(Where, BTreeSet<Name>)> {
        let (mut work, mut seen) = (vec![block], BTreeSet::from([block]));
        let (mut first, mut objects) = (None, BTreeSet::new());
        while let Some(next) = work.pop() {
            if let Some(block) = self.blocks.get(next) {
                first = first.or_else(|| block.used_at.clone());
                objects.extend(block.used_as.iter().cloned());
            }
            let inside = same.iter().filter(|(_, calls)| calls.contains(next)).map(|(inner, _)| inner);
            let same = same.get(next).into_iter().flatten().chain(inside);
            work.extend(same.filter(|block| seen.insert(*block)));
        }
        first.map(|at| (at, objects))
    }

    /// The records whose bytes matter: record, reason, place. Memory that a call gave is the memory that the called
    /// function made: a crossing of either is one of both, but not from one call to the next.
    pub(super) fn crossings(&self, same: &BTreeMap<Name, BTreeSet<Name>>) -> Vec<(Name, String, Where)> {
        let mut inside: BTreeMap<&Name, BTreeSet<&Name>> = BTreeMap::new();
        for (inner, calls) in same {
            for call in calls {
                inside.entry(call).or_default().insert(inner);
            }
        }
        let mut found = Vec::new();
        for outer in self.blocks.keys().chain(inside.keys().copied()).cloned().collect::<BTreeSet<Name>>() {
            let mut all: BTreeSet<&Name> = [&outer].into();
            let mut work = vec![&outer];
            while let Some(next) = work.pop() {
                work.extend(inside.get(next).into_iter().flatten().filter(|&&inner| all.insert(inner)));
            }
            let blocks = || all.iter().filter_map(|name| self.blocks.get(*name));
            let Some((crossing, at)) = blocks().find_map(|block| block.crossing.clone()) else { continue };
            let reason = format!("memory that is used as one {crossing}");
            let records = blocks().flat_map(|block| block.used_as.iter().cloned());
            found.extend(records.map(|record| (record, reason.clone(), at.clone())));
        }
        found
    }
}
