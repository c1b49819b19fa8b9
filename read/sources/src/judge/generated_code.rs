//! Machine code that the program writes when it runs.

use super::Judge;
use crate::facts::{Act, Origin, PointerPlace, Source, Value};
use crate::tree::Name;
use std::collections::BTreeSet;

impl Judge<'_> {
    /// The types as which memory is called that may be executed, and arrays of bytes.
    pub(super) fn generated_code(&self) -> BTreeSet<Name> {
        let executable = self.executable_memory();
        let is_code = |value: &Value| {
            let is_kept = matches!(value.source, Source::Place(PointerPlace::Member(..)));
            self.points_to.objects(value).each.iter().any(|(origin, _, _)| match origin {
                Origin::Bytes(_) => !is_kept,
                Origin::Memory(..) | Origin::Foreign(..) => executable.contains(origin),
                _ => false,
            })
        };
        let called = self.facts.acts.iter().filter_map(|(value, act, _)| match act {
            Act::Code(signature) if is_code(value) => Some(signature.clone()),
            _ => None,
        });
        called.collect()
    }

    /// Memory that was mapped, or made, executable; with all memory that functions give which is the same.
    fn executable_memory(&self) -> BTreeSet<Origin> {
        let acts = self.facts.acts.iter().filter(|(_, act, _)| *act == Act::Executable);
        let mut work: Vec<Origin> = acts
            .flat_map(|(value, ..)| self.points_to.objects(value).each)
            .map(|(origin, ..)| origin)
            .collect();
        let mut found = BTreeSet::new();
        while let Some(origin) = work.pop() {
            if let Origin::Memory(block, _) = &origin {
                let calls = self.points_to.same_memory.get(block).into_iter().flatten();
                let outer = calls.map(|call| Origin::Memory(call.clone(), 0));
                work.extend(outer.filter(|outer| !found.contains(outer)));
            }
            found.insert(origin);
        }
        found
    }
}
