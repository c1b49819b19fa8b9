//! The contents of memory that has no type of its own: the objects copied there, and the bytes read there at fixed
//! places.

use super::Judge;
use super::pointer_uses::{CROWD, is_generic};
use crate::facts::{Act, Origin, Reach, Shape, Value, Where};
use crate::tree::Name;
use crate::uses::{UseKind, Verdict};
use std::collections::{BTreeMap, BTreeSet};

/// One block of memory.
#[derive(Default)]
struct Contents<'f> {
    /// Records that objects in it were copied from.
    copied: BTreeSet<Name>,
    /// Records that it is used as, with where.
    used_as: BTreeMap<&'f Name, &'f Where>,
    /// Records that it is used as from its start on.
    starts: BTreeSet<&'f Name>,
    /// Numbers and pointers that are read or written at a distance from its start that is written as a number.
    fixed: BTreeMap<&'f Name, &'f Where>,
    /// Numbers of bytes in which it is stepped through.
    strides: BTreeMap<u64, &'f Where>,
}

impl<'f> Judge<'f> {
    /// Elements of a container that copies them are read as their own type. Numbers from the start of the container's
    /// memory do not reach an object.
    pub(super) fn contents(&mut self) {
        let mut memory: BTreeMap<Name, Contents<'f>> = BTreeMap::new();
        self.copied_into(&mut memory);
        self.used_inside(&mut memory);
        // Memory with more types than this is an allocator's.
        memory.retain(|_, contents| contents.used_as.len() <= CROWD);
        for contents in memory.into_values() {
            self.taken_for_others(&contents);
            for (&stride, &at) in &contents.strides {
                contents.used_as.keys().for_each(|record| self.stepped_over(record, stride, at));
            }
            for (spelling, at) in contents.fixed.iter().take(1) {
                for record in &contents.starts {
                    let reason =
                        format!("{spelling} is read at a fixed offset of the memory that it lies in");
                    self.find(record, Verdict::Refuse, UseKind::Offset, at, reason);
                }
            }
        }
    }

    fn copied_into(&self, memory: &mut BTreeMap<Name, Contents<'f>>) {
        for copied in &self.facts.copies {
            let from = copied.from.iter().flat_map(|value| self.points_to.objects(value).each);
            let from: BTreeSet<Name> = from
                .filter_map(|(origin, reach, _)| match origin {
                    Origin::Object(record) if reach == Reach::Start => Some(record),
                    _ => None,
                })
                .collect();
            if from.is_empty() {
                continue;
            }
            for block in copied.to.iter().flat_map(|value| self.blocks(value)).map(|(block, _)| block) {
                memory.entry(block).or_default().copied.extend(from.iter().cloned());
            }
        }
    }

    fn used_inside(&self, memory: &mut BTreeMap<Name, Contents<'f>>) {
        let facts = self.facts;
        for (value, act, at) in &facts.acts {
            if let Act::Stride(bytes) = act {
                for (block, _) in self.blocks(value) {
                    memory.entry(block).or_default().strides.entry(*bytes).or_insert(at);
                }
            }
            let Act::As(shape, spelling) = act else { continue };
            for (block, reach) in self.blocks(value) {
                let contents = memory.entry(block).or_default();
                match shape {
                    Shape::Record(record) => {
                        contents.used_as.entry(record).or_insert(at);
                        if reach == Reach::Start {
                            contents.starts.insert(record);
                        }
                    }
                    Shape::Scalar(_) | Shape::Pointer if reach == Reach::Fixed => {
                        contents.fixed.entry(spelling).or_insert(at);
                    }
                    _ => {}
                }
            }
        }
    }

    /// The memory that a value leads to, where it leads to no objects of several types.
    fn blocks(&self, value: &Value) -> Vec<(Name, Reach)> {
        let objects = self.points_to.objects(value);
        if is_generic(&objects) {
            return Vec::new();
        }
        let blocks = objects.each.into_iter().filter_map(|(origin, reach, _)| match origin {
            Origin::Memory(block, 0) => Some((block, reach)),
            _ => None,
        });
        blocks.collect()
    }

    /// Memory that objects were copied into is used as a record that none of these is: that is a cast of each.
    fn taken_for_others(&mut self, contents: &Contents<'_>) {
        for (&record, &at) in &contents.used_as {
            let is_it = |copied: &Name| self.relations.may_stand_for(copied, record);
            if contents.copied.iter().any(is_it) {
                continue;
            }
            for copied in &contents.copied {
                self.used_as_record(copied, Reach::Start, record, false, at);
            }
        }
    }
}
