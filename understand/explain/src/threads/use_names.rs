//! The names of uses.

use crate::naming::name::VariableId;
use crate::naming::namer::Namer;
use crate::naming::owner::{OwnerKey, part_name, variable_ref};
use crate::threads::access_log::Use;
use crate::threads::report::UseOf;
use std::collections::HashMap;

/// Names of uses, each worked out once.
pub(super) struct Names<'u> {
    uses: &'u [Use],
    parts: HashMap<u32, String>,
    places: HashMap<u64, (String, Option<String>)>,
}

impl<'u> Names<'u> {
    pub(super) fn new(uses: &'u [Use]) -> Names<'u> {
        Names { uses, parts: HashMap::new(), places: HashMap::new() }
    }

    /// A use by its tag.
    pub(super) fn of(&self, tag: u32) -> Option<&'u Use> {
        self.uses.get(tag as usize)
    }

    /// The accessed bytes.
    pub(super) fn part(&mut self, tag: u32, namer: &mut Namer<'_>) -> String {
        if let Some(known) = self.parts.get(&tag) {
            return known.clone();
        }
        let name = match self.of(tag) {
            Some(Use { part: Some(part), .. }) => {
                let name = part_name(namer, part.owner, part.offset, part.size_bytes);
                match part.owner {
                    // The members of such a variable are unknown.
                    OwnerKey::Variable(_, VariableId::Symbol(_)) if part.offset > 0 => {
                        format!("{name}+{:#x}", part.offset)
                    }
                    _ => name,
                }
            }
            Some(Use { label, .. }) => label.unwrap_or("(unnamed)").to_owned(),
            None => String::new(),
        };
        self.parts.insert(tag, name.clone());
        name
    }

    /// The accessed innermost object of a named type, and the variable that contains it if that has another name.
    pub(super) fn object(&mut self, tag: u32, namer: &mut Namer<'_>) -> (String, Option<String>) {
        let Some(used @ Use { object: Some(object), .. }) = self.of(tag) else {
            return (self.part(tag, namer), None);
        };
        let variable = used.part.filter(|part| part.owner != object.owner).map(|_| owners(used, namer));
        let of_object = Use { part: Some(*object), ..used.clone() };
        let is_other = owners(&of_object, namer) != variable.clone().unwrap_or_default();
        let name = part_name(namer, object.owner, object.offset, object.size_bytes);
        (name, variable.filter(|_| is_other))
    }

    /// It, with its code.
    pub(super) fn used(&mut self, thread: u32, tag: u32, namer: &mut Namer<'_>) -> UseOf {
        let part = self.part(tag, namer);
        let pc = self.of(tag).map_or(0, |used| used.pc);
        let (function, place) =
            self.places.entry(pc).or_insert_with(|| (namer.function_at(pc).0, namer.place_of(pc))).clone();
        UseOf { thread, function, place, part }
    }
}

/// The variable or the type that a use's bytes belong to.
pub(super) fn owners(used: &Use, namer: &mut Namer<'_>) -> String {
    let Some(part) = used.part else { return used.label.unwrap_or_default().to_owned() };
    match part.owner {
        OwnerKey::Object(ty, _) => namer.catalog().name(ty),
        OwnerKey::Variable(image, variable) => {
            variable_ref(namer, image, variable).map_or_else(String::new, |(reference, _)| reference.name)
        }
        OwnerKey::Block(..) => crate::summary::line_map::THREAD_LOCAL.to_owned(),
    }
}
