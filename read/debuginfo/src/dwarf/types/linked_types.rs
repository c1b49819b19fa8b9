//! The types of some units that refer to no others, with every reference led to its end.

use super::scan::{Part, RawType, Rest, Scan, Scope, ScopeName, moved, name_in};
use crate::dwarf::MAX_CHAIN;
use crate::dwarf::reference::{PackedRef, Ref};

/// Types of one or more units, in the order of the units and their entries.
pub(crate) struct Linked<'a> {
    /// The units, without their types, in ascending order.
    pub(crate) scans: Vec<Scan<'a>>,
    /// Index of each unit's first type.
    pub(crate) starts: Vec<usize>,
    pub(crate) types: Vec<RawType>,
    /// Runs parallel to `types`.
    pub(crate) rests: Vec<Rest>,
    parts: Vec<Part>,
    /// True when an entry stands for a type in a type unit.
    has_aliases: bool,
}

impl<'a> Linked<'a> {
    /// Takes the types out of `scans`, which are in ascending order of units.
    pub(crate) fn new(mut scans: Vec<Scan<'a>>) -> Self {
        let (mut types, mut rests, mut parts, mut starts) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (number, scan) in scans.iter_mut().enumerate() {
            let (first_type, first_part) = (types.len(), parts.len());
            starts.push(first_type);
            if number == 0 {
                types = std::mem::take(&mut scan.types);
                rests = std::mem::take(&mut scan.rests);
                parts = std::mem::take(&mut scan.parts);
                continue;
            }
            types.append(&mut scan.types);
            rests.append(&mut scan.rests);
            parts.append(&mut scan.parts);
            for ty in &mut types[first_type..] {
                ty.unit = number as u32;
                ty.parts.first += first_part as u32;
            }
            for part in &mut parts[first_part..] {
                part.next += first_part as u32;
            }
        }
        let has_aliases = scans.iter().any(|scan| scan.has_aliases);
        let mut linked = Linked { scans, starts, types, rests, parts, has_aliases };
        if has_aliases {
            linked.link_aliases();
        }
        linked.link();
        if linked.scans.iter().any(|scan| scan.has_lent_names) {
            linked.lend_names();
        }
        linked
    }

    /// Gives each scope that takes its name from another entry that entry's name, and all names in it with it.
    fn lend_names(&mut self) {
        // A name that is lent may lie in a scope with a lent name itself: each round settles one level.
        for _ in 0..MAX_CHAIN {
            let mut is_settled = true;
            for unit in 0..self.scans.len() {
                if self.scans.get(unit).is_some_and(|scan| scan.has_lent_names) {
                    is_settled &= !self.lend_names_of(unit);
                }
            }
            if is_settled {
                return;
            }
        }
    }

    /// One round of [`Self::lend_names`] over a unit; true when a name is another one than before.
    fn lend_names_of(&mut self, unit: usize) -> bool {
        let (Some(&start), Some(scan)) = (self.starts.get(unit), self.scans.get_mut(unit)) else {
            return false;
        };
        let count = self.starts.get(unit + 1).map_or(self.types.len(), |next| *next) - start;
        let mut scopes = std::mem::take(&mut scan.scopes);
        let before: Vec<u64> = scopes.iter().map(|scope| scope.full_name).collect();
        for at in 0..scopes.len() {
            let Some(&Scope { parent, name, .. }) = scopes.get(at) else { break };
            let around = scopes.get(parent as usize).map_or(0, |scope| scope.full_name);
            let full_name = match name {
                ScopeName::Own(name) => name_in(around, name),
                ScopeName::Of(number) => {
                    let named = self.named(self.real(start + number as usize));
                    self.types.get(named).map_or(around, |ty| ty.full_name)
                }
            };
            if let Some(scope) = scopes.get_mut(at) {
                scope.full_name = full_name;
            }
        }
        for (ty, rest) in self.types.iter_mut().zip(&self.rests).skip(start).take(count) {
            let (Some(scope), Some(&before)) =
                (scopes.get(rest.scope as usize), before.get(rest.scope as usize))
            else {
                continue;
            };
            ty.full_name = match ty.is_named {
                true => moved(ty.full_name, before, scope.full_name),
                false => scope.full_name,
            };
        }
        let is_changed = before.iter().zip(&scopes).any(|(before, scope)| *before != scope.full_name);
        if let Some(scan) = self.scans.get_mut(unit) {
            scan.scopes = scopes;
        }
        is_changed
    }

    /// Leads entries that stand for a type in a type unit to that type.
    fn link_aliases(&mut self) {
        let mut rests = std::mem::take(&mut self.rests);
        for (rest, ty) in rests.iter_mut().zip(&self.types) {
            rest.alias = self.index(ty.unit, rest.alias.get()).into();
        }
        for index in 0..rests.len() {
            let end = end_of_aliases(&rests, index);
            rests[index].alias = if end == index { Ref::Nothing } else { Ref::Local(end as u32) }.into();
        }
        self.rests = rests;
    }

    /// Turns offsets into indices, once for all who follow the references.
    fn link(&mut self) {
        let (mut types, mut parts) = (std::mem::take(&mut self.types), std::mem::take(&mut self.parts));
        for ty in &mut types {
            ty.target = self.resolve(ty.unit, ty.target.get()).into();
            // Does not skip entries that stand for others: that would lead a type of a type unit back to itself.
            ty.completes = self.index(ty.unit, ty.completes.get()).into();
            let mut at = ty.parts.first as usize;
            for _ in 0..ty.parts.count {
                let Some(part) = parts.get_mut(at) else { break };
                part.target = self.resolve(ty.unit, part.target.get()).into();
                at = part.next as usize;
            }
        }
        (self.types, self.parts) = (types, parts);
    }

    /// The index of the target of a unit's reference, past entries that stand for others.
    #[inline]
    pub(crate) fn resolve(&self, unit: u32, reference: Ref) -> Ref {
        match self.index(unit, reference) {
            Ref::Local(index) if self.has_aliases => Ref::Local(self.real(index as usize) as u32),
            other => other,
        }
    }

    /// A reference as it was read, by index.
    #[inline]
    fn index(&self, unit: u32, reference: Ref) -> Ref {
        let (unit, offset) = match reference {
            Ref::Local(offset) => (unit as usize, offset),
            Ref::Elsewhere(die) => match self.scans.binary_search_by_key(&die.unit, |scan| scan.unit) {
                Ok(unit) => (unit, die.offset),
                Err(_) => return Ref::Broken,
            },
            Ref::Nothing | Ref::Broken => return reference,
        };
        let found = self.scans.get(unit).and_then(|scan| scan.offsets.find(offset));
        found
            .zip(self.starts.get(unit))
            .map_or(Ref::Broken, |(index, start)| Ref::Local(*start as u32 + index))
    }

    /// The type that an entry stands for: mostly itself.
    #[inline]
    pub(crate) fn real(&self, index: usize) -> usize {
        if !self.has_aliases {
            return index;
        }
        self.rests.get(index).and_then(|rest| rest.alias.index()).unwrap_or(index)
    }

    /// The unit of a type.
    #[inline]
    pub(crate) fn unit_of(&self, ty: &RawType) -> Option<&Scan<'a>> {
        self.scans.get(ty.unit as usize)
    }

    /// The index of the entry that names a type: of the declaration that it completes, which stands in the scope of the
    /// type as the type itself need not.
    #[inline]
    pub(crate) fn named(&self, index: usize) -> usize {
        let declared = self.types.get(index).and_then(|ty| ty.completes.index());
        let is_named = |at: &usize| self.types.get(*at).is_some_and(|declared| declared.is_named);
        declared.filter(is_named).unwrap_or(index)
    }

    /// The targets of a type's parts, in the order of the entries.
    #[inline]
    pub(crate) fn part_targets(&self, ty: &RawType) -> impl Iterator<Item = PackedRef> {
        let mut at = ty.parts.first;
        (0..ty.parts.count).map_while(move |_| {
            let part = self.parts.get(at as usize)?;
            at = part.next;
            Some(part.target)
        })
    }
}

/// Follows entries that stand for a type in a type unit.
fn end_of_aliases(rests: &[Rest], start: usize) -> usize {
    let mut at = start;
    for _ in 0..MAX_CHAIN {
        let next = rests.get(at).and_then(|rest| rest.alias.index());
        match next {
            Some(next) => at = next,
            None => return at,
        }
    }
    at
}
