//! The data that advice is derived from.

use super::aligned_parts::AskedAlignment;
use super::passes::Explainer;
use crate::explanation::ImageUsage;
use crate::images::image::Image;
use crate::memory::slabs::SlabCache;
use crate::naming::owner::variable_ref;
use crate::summary::tally::RegionTally;
use crate::threads::sharing::{Shared, SharedOwner};
use crate::threads::{BetweenThreads, ByBytes, Elsewhere, LockPlaces, Of, Remedy, Replay};
use crate::types::catalog::Ty;
use lineup_model::region::RegionId;
use lineup_model::types::{TypeId, TypeKind, Types};
use lineup_model::usage::{
    AlignedUse, FoughtOver, FoughtVariables, LockUse, MemoryOfObjects, ObjectPattern, Owner, Sharing,
    ThreadUse, TypeUse, VariablePattern, VariableRef, VariableUse,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

impl Explainer<'_> {
    pub(crate) fn usage(
        &mut self,
        tallies: &BTreeMap<RegionId, RegionTally>,
        shared: &Shared,
        between: Option<(&BetweenThreads, Replay)>,
    ) -> Vec<ImageUsage> {
        let mut all = Vec::new();
        let (between, replay) = between.unzip();
        let replay = replay.map(Arc::new);
        let owned = std::mem::take(&mut self.owned).by_type();
        for index in 0..self.namer.images().len() {
            let Some(image) = self.namer.images().get(index) else { continue };
            let (Some(abi), path) = (image.abi(), image.loaded.path.clone()) else { continue };
            let mut usage = ImageUsage {
                image: path,
                index,
                abi,
                objects: self.objects_in(index, tallies),
                types: Vec::new(),
                variables: Vec::new(),
                sharing: self.image_sharing(index, shared),
                memory: self.memory_of(index, tallies),
                thread_uses: self.thread_uses(index, &owned),
                fought_over: self.fought_over(index, between),
                fought_variables: fought_variables(index, between),
                locks: self.locks(index, between),
                elsewhere: None,
                aligned_uses: self.aligned_uses(index),
                slabs: self.slabs(index, tallies),
                variable_types: Vec::new(),
            };
            for (region, tally) in tallies {
                usage.types.extend(self.type_uses(index, *region, tally));
                let variables = self.variable_use(index, *region, tally, &mut usage.variable_types);
                usage.variables.extend(variables);
            }
            if !(usage.fought_over.is_empty() && usage.fought_variables.is_empty() && usage.locks.is_empty())
            {
                usage.elsewhere = replay.clone().map(|replay| self.elsewhere(index, replay));
            }
            if !usage.types.is_empty() || !usage.variables.is_empty() {
                all.push(usage);
            }
        }
        all
    }

    fn aligned_uses(&mut self, image: usize) -> Vec<AlignedUse> {
        let all = self.aligned.clone();
        let uses = all.iter().filter_map(|(ty, (offset, size_bytes), asked)| {
            let AskedAlignment { bytes: asked_bytes, is_atomic, .. } = asked;
            Some(AlignedUse { ty: self.id_in(image, ty)?, offset, size_bytes, asked_bytes, is_atomic })
        });
        uses.collect()
    }

    fn thread_uses(&mut self, image: usize, owned: &BTreeMap<Ty, ByBytes>) -> Vec<ThreadUse> {
        let mut all = Vec::new();
        for (ty, parts) in owned {
            let Some(ty) = self.id_in(image, *ty) else { continue };
            all.extend(parts.iter().map(|((offset, size_bytes), uses)| ThreadUse {
                ty,
                offset: *offset,
                size_bytes: *size_bytes,
                readers: uses.readers.clone(),
                writers: uses.writers.clone(),
                loads: uses.loads,
                stores: uses.stores,
            }));
        }
        all
    }

    fn fought_over(&mut self, image: usize, between: Option<&BetweenThreads>) -> Vec<FoughtOver> {
        let mut all = Vec::new();
        for found in between.into_iter().flat_map(|between| &between.false_sharing) {
            let (id, is_inside) = match &found.remedy {
                Remedy::PartMembers { id, .. } => (*id, true),
                Remedy::AlignObjects { id, .. } => (*id, false),
                _ => continue,
            };
            all.extend(id.and_then(|id| self.id_in(image, id)).map(|ty| FoughtOver {
                ty,
                is_inside,
                per_thousand: found.per_thousand_accesses,
                per_thousand_at_most: found.per_thousand_accesses_at_most,
            }));
        }
        all
    }

    /// Locks in objects whose types an image describes, those of one member of one type together.
    fn locks(&mut self, image: usize, between: Option<&BetweenThreads>) -> Vec<LockUse> {
        let mut all: BTreeMap<(TypeId, u64), LockUse> = BTreeMap::new();
        for lock in between.into_iter().flat_map(|between| &between.locks) {
            let Some(within) = &lock.within else { continue };
            let Some(ty) = self.id_in(image, within.ty) else { continue };
            let new = LockUse {
                ty,
                name: lock.name.clone(),
                offset: within.offset,
                guards: Vec::new(),
                waits: 0,
                is_better_elsewhere: false,
            };
            let known = all.entry((ty, within.offset)).or_insert(new);
            known.guards.extend(&within.guards);
            known.guards.sort_unstable();
            known.guards.dedup();
            known.is_better_elsewhere |= lock.places.as_ref().is_some_and(LockPlaces::are_better);
            known.waits += lock.line_waits.plus(lock.waits_while_held()).all();
        }
        all.into_values().collect()
    }

    fn elsewhere(&mut self, image: usize, replay: Arc<Replay>) -> Elsewhere {
        let types = replay.types().into_iter();
        let types = types.filter_map(|ty| Some((self.id_in(image, ty)?, ty))).collect();
        Elsewhere::new(replay, image, types)
    }

    /// The kinds of memory in which objects of an image's types lay; `None` if the recorder did not look.
    fn memory_of(
        &mut self,
        image: usize,
        tallies: &BTreeMap<RegionId, RegionTally>,
    ) -> Option<MemoryOfObjects> {
        let is_program = self.tells.of == Of::Threads && self.mappings.are_known();
        if !is_program {
            return None;
        }
        let (mut own, mut others) = (BTreeSet::new(), BTreeSet::new());
        for (ty, start) in self.objects_in(image, tallies) {
            let types = self.namer.images().get(image)?.types();
            let is_own = self.mappings.are_private(start, types.size_bytes(ty).unwrap_or(0));
            let seen = if is_own { &mut own } else { &mut others };
            note_with_parts(types, ty, MOST_NESTED, seen);
        }
        let private_types = own.difference(&others).copied().collect();
        Some(MemoryOfObjects { private_types, shared_mappings: self.mappings.shared() as u64 })
    }

    /// The addresses of objects whose types an image describes.
    fn objects_in(&mut self, image: usize, tallies: &BTreeMap<RegionId, RegionTally>) -> Vec<(TypeId, u64)> {
        let placed: BTreeSet<(Ty, u64)> =
            tallies.values().flat_map(|tally| tally.placed.iter().copied()).collect();
        placed.into_iter().filter_map(|(ty, start)| Some((self.id_in(image, ty)?, start))).collect()
    }

    /// The slab caches of a kernel's types.
    fn slabs(&mut self, image: usize, tallies: &BTreeMap<RegionId, RegionTally>) -> Vec<(TypeId, SlabCache)> {
        if self.tells.of != Of::Cpus {
            return Vec::new();
        }
        let mut by_type: BTreeMap<TypeId, BTreeSet<u64>> = BTreeMap::new();
        for (ty, start) in self.objects_in(image, tallies) {
            by_type.entry(ty).or_default().insert(start);
        }
        let types = self.namer.images().get(image).map(Image::types);
        let size = |ty: TypeId| types.and_then(|types| types.size_bytes(ty));
        let found = by_type.into_iter();
        found.filter_map(|(ty, starts)| Some((ty, SlabCache::of_objects(size(ty)?, &starts)?))).collect()
    }

    /// The id of a type in an image's table, when that image describes it.
    fn id_in(&mut self, image: usize, ty: Ty) -> Option<TypeId> {
        self.namer.catalog().id_in(image, ty)
    }

    fn type_uses(&mut self, image: usize, region: RegionId, tally: &RegionTally) -> Vec<TypeUse> {
        let mut by_type: BTreeMap<Ty, Vec<ObjectPattern>> = BTreeMap::new();
        let in_variables = tally.objects_in_variables.sorted();
        for (place, counted) in tally.objects.sorted().into_iter().chain(in_variables) {
            by_type.entry(place.ty).or_default().push(ObjectPattern {
                base_in_line: place.base,
                neighbour_distance_bytes: place.neighbour_distance_bytes,
                bytes: counted.bytes,
                occurrences: counted.occurrences,
                needed_anyway: counted.needed_anyway,
            });
        }
        let mut uses = Vec::new();
        for (ty, patterns) in by_type {
            let Some(id) = self.id_in(image, ty) else { continue };
            let others: Vec<Ty> = self.namer.used_as(ty).into_iter().flatten().copied().collect();
            let used_as = others.into_iter().filter_map(|other| self.id_in(image, other)).collect();
            uses.push(TypeUse { region, ty: id, calls: tally.calls, patterns, used_as });
        }
        uses
    }

    fn variable_use(
        &mut self,
        image: usize,
        region: RegionId,
        tally: &RegionTally,
        types: &mut Vec<(VariableRef, TypeId)>,
    ) -> Option<VariableUse> {
        let mut patterns = Vec::new();
        for (occurrences, sums) in tally.together.values() {
            let mut variables = Vec::new();
            for ((_, variable), bytes) in sums.iter().filter(|((of, _), _)| *of == image) {
                let Some((reference, ty)) = variable_ref(&mut self.namer, image, *variable) else { continue };
                if let Some(id) = ty.and_then(|ty| self.id_in(image, ty))
                    && !types.iter().any(|(known, _)| *known == reference)
                {
                    types.push((reference.clone(), id));
                }
                variables.push((reference, bytes.runs()));
            }
            if !variables.is_empty() {
                patterns.push(VariablePattern { variables, occurrences: *occurrences });
            }
        }
        patterns.sort_by(|a, b| (b.occurrences, &a.variables).cmp(&(a.occurrences, &b.variables)));
        (!patterns.is_empty()).then_some(VariableUse { region, calls: tally.calls, patterns })
    }

    fn image_sharing(&mut self, image: usize, shared: &Shared) -> Vec<Sharing> {
        let mut all = Vec::new();
        for ((owner, offset, size_bytes), sharing) in &shared.bytes {
            let owner = match owner {
                SharedOwner::Type(ty) => self.id_in(image, *ty).map(Owner::Type),
                SharedOwner::Variable(of, variable) if *of == image => {
                    variable_ref(&mut self.namer, image, *variable)
                        .map(|(reference, _)| Owner::Variable(reference))
                }
                SharedOwner::Variable(..) | SharedOwner::Blocks(_) => None,
            };
            let Some(owner) = owner else { continue };
            all.push(Sharing {
                owner,
                offset: *offset,
                size_bytes: *size_bytes,
                readers: sharing.readers.clone(),
                writers: sharing.writers.clone(),
                handovers: sharing.handovers,
            });
        }
        all
    }
}

/// Objects in objects that are looked into.
const MOST_NESTED: u32 = 8;

/// A type, and those of the objects in its objects.
fn note_with_parts(types: &Types, id: TypeId, depth: u32, all: &mut BTreeSet<TypeId>) {
    let Some((id, aggregate)) = types.aggregate(id).filter(|_| depth > 0) else { return };
    if !all.insert(id) {
        return;
    }
    for member in &aggregate.members {
        let element = types.strip(member.ty).map(|ty| match types.get(ty).map(|ty| &ty.kind) {
            Some(TypeKind::Array { element, .. }) => *element,
            _ => ty,
        });
        element.into_iter().for_each(|ty| note_with_parts(types, ty, depth - 1, all));
    }
}

/// The variables of an image that are under contention.
fn fought_variables(image: usize, between: Option<&BetweenThreads>) -> Vec<FoughtVariables> {
    let mut all = Vec::new();
    for found in between.into_iter().flat_map(|between| &between.false_sharing) {
        let (places, is_inside) = match &found.remedy {
            Remedy::SpreadArray { place, .. } => (place.as_slice(), true),
            Remedy::AlignVariables { places, .. } => (places.as_slice(), false),
            _ => continue,
        };
        let own = places.iter().filter(|(of, _)| *of == image);
        let variables: Vec<VariableRef> = own.map(|(_, variable)| variable.clone()).collect();
        if !variables.is_empty() {
            all.push(FoughtVariables {
                variables,
                is_inside,
                per_thousand: found.per_thousand_accesses,
                per_thousand_at_most: found.per_thousand_accesses_at_most,
            });
        }
    }
    all
}
