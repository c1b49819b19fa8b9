//! Replaces declarations by their definitions.
//!
//! A unit that only declares `struct S` has its own pointer to `S`, and every type that uses that
//! pointer differs from its twin in a unit that defines `S`. Where the name has one definition in the
//! program, the declaration gives way to it, and the twins become one.

use crate::dwarf::MAX_CHAIN;
use foldhash::quality::FixedState;
use lineup_model::types::{AggregateKind, Type, TypeId, TypeKind, Types};
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher};

/// Rewrites the table without declarations that have a definition and without twins. Returns the new
/// id for every old one.
pub(crate) fn unify(types: &mut Types) -> Vec<TypeId> {
    let mut forward = definitions(types);
    let mut keys = TypeKeys { types, forward: &forward, known: [vec![0; types.len()], vec![0; types.len()]] };
    let final_keys: Vec<u64> = (0..types.len() as u32).map(|id| keys.final_key(TypeId(id))).collect();
    let mut first: HashMap<u64, TypeId, FixedState> = HashMap::default();
    for id in 0..types.len() {
        if forward[id] == TypeId(id as u32) {
            forward[id] = *first.entry(final_keys[id]).or_insert(TypeId(id as u32));
        }
    }
    compact(types, &forward)
}

/// Per type, the definition to use in its place; itself for all but declarations.
fn definitions(types: &Types) -> Vec<TypeId> {
    type TypeOrigin<'t> = (Option<u64>, &'t Option<lineup_model::types::SourceLocation>);
    let mut by_name: HashMap<(&str, bool), Option<(TypeOrigin<'_>, TypeId)>, FixedState> = HashMap::default();
    for (id, ty) in types.iter() {
        if let (TypeKind::Aggregate(aggregate), Some(name)) = (&ty.kind, &ty.name)
            && !aggregate.is_declaration
        {
            let place = (ty.size_bytes, &ty.declared_at);
            by_name
                .entry((name, aggregate.kind == AggregateKind::Union))
                .and_modify(|known| {
                    if known.is_some_and(|(other, _)| other != place) {
                        *known = None;
                    }
                })
                .or_insert(Some((place, id)));
        }
    }
    let definition = |id: TypeId, ty: &Type| {
        let TypeKind::Aggregate(aggregate) = &ty.kind else { return id };
        if !aggregate.is_declaration {
            return id;
        }
        let name = ty.name.as_deref().unwrap_or_default();
        let known = by_name.get(&(name, aggregate.kind == AggregateKind::Union));
        known.and_then(|known| known.map(|(_, definition)| definition)).unwrap_or(id)
    };
    types.iter().map(|(id, ty)| definition(id, ty)).collect()
}

/// The keys of [`super::keys`], over finished types.
struct TypeKeys<'t> {
    types: &'t Types,
    forward: &'t [TypeId],
    known: [Vec<u64>; 2],
}

impl TypeKeys<'_> {
    fn final_key(&mut self, id: TypeId) -> u64 {
        let level1 = self.key(1, id, 0);
        let Some(Type { kind: TypeKind::Aggregate(aggregate), .. }) = self.types.get(id) else {
            return level1;
        };
        let mut hasher = FixedState::default().build_hasher();
        hasher.write_u64(level1);
        for member in &aggregate.members {
            hasher.write_u64(self.key(1, member.ty, 0));
        }
        hasher.finish()
    }

    fn key(&mut self, level: usize, id: TypeId, depth: usize) -> u64 {
        let id = self.forward.get(id.0 as usize).copied().unwrap_or(id);
        let index = id.0 as usize;
        if depth > MAX_CHAIN {
            return 3;
        }
        if let Some(&key) = self.known[level].get(index)
            && key != 0
        {
            return key;
        }
        let Some(ty) = self.types.get(id) else { return 2 };
        let key = self.compute(level, ty, depth) | 1 << 63;
        self.known[level][index] = key;
        key
    }

    fn optional(&mut self, level: usize, id: Option<TypeId>, depth: usize) -> u64 {
        id.map_or(1, |id| self.key(level, id, depth + 1))
    }

    fn compute(&mut self, level: usize, ty: &Type, depth: usize) -> u64 {
        let mut hasher = FixedState::default().build_hasher();
        (&ty.name, ty.size_bytes, ty.declared_align, ty.language).hash(&mut hasher);
        std::mem::discriminant(&ty.kind).hash(&mut hasher);
        match &ty.kind {
            TypeKind::Scalar(kind) => kind.hash(&mut hasher),
            TypeKind::Enum => ty.declared_at.hash(&mut hasher),
            TypeKind::MemberPointer | TypeKind::Opaque => {}
            TypeKind::Pointer(target) | TypeKind::Qualified(target) => {
                hasher.write_u64(self.optional(level, *target, depth));
            }
            TypeKind::Typedef(target) => {
                ty.declared_at.hash(&mut hasher);
                hasher.write_u64(self.optional(level, *target, depth));
            }
            TypeKind::Array { element, counts } => {
                counts.hash(&mut hasher);
                hasher.write_u64(self.key(level, *element, depth + 1));
            }
            TypeKind::Function { returns, parameters } => {
                hasher.write_u64(self.optional(level, *returns, depth));
                for parameter in parameters {
                    hasher.write_u64(self.key(level, *parameter, depth + 1));
                }
            }
            TypeKind::Aggregate(aggregate) => {
                (&ty.declared_at, aggregate.kind, aggregate.is_declaration).hash(&mut hasher);
                if level == 0 && ty.name.is_some() {
                    return hasher.finish();
                }
                let below = if ty.name.is_some() { level - 1 } else { level };
                aggregate.static_members.hash(&mut hasher);
                for member in &aggregate.members {
                    (&member.name, member.offset_bits, member.bit_size, member.role).hash(&mut hasher);
                    hasher.write_u64(self.key(below, member.ty, depth + 1));
                }
            }
        }
        hasher.finish()
    }
}

/// Keeps the types that stand for themselves and renumbers.
fn compact(types: &mut Types, forward: &[TypeId]) -> Vec<TypeId> {
    let stands = |id: usize| forward.get(id) == Some(&TypeId(id as u32));
    // A declaration may lead to a definition that has itself an elder twin.
    let end = |id: usize| {
        let mut id = id;
        for _ in 0..4 {
            id = forward.get(id).map_or(id, |next| next.0 as usize);
        }
        id
    };
    let mut number = vec![TypeId(0); forward.len()];
    let mut next = 0;
    for (id, slot) in number.iter_mut().enumerate() {
        if stands(id) {
            *slot = TypeId(next);
            next += 1;
        }
    }
    let new_ids: Vec<TypeId> =
        (0..forward.len()).map(|id| number.get(end(id)).copied().unwrap_or(TypeId(0))).collect();
    let mut kept = Types::new();
    for (id, mut ty) in std::mem::take(types).into_iter().enumerate() {
        if stands(id) {
            renumber(&mut ty.kind, &new_ids);
            kept.push(ty);
        }
    }
    *types = kept;
    new_ids
}

fn renumber(kind: &mut TypeKind, new_ids: &[TypeId]) {
    let renew = |id: &mut TypeId| {
        if let Some(&new) = new_ids.get(id.0 as usize) {
            *id = new;
        }
    };
    match kind {
        TypeKind::Pointer(target) | TypeKind::Typedef(target) | TypeKind::Qualified(target) => {
            target.iter_mut().for_each(renew);
        }
        TypeKind::Array { element, .. } => renew(element),
        TypeKind::Function { returns, parameters } => {
            returns.iter_mut().for_each(renew);
            parameters.iter_mut().for_each(renew);
        }
        TypeKind::Aggregate(aggregate) => {
            aggregate.members.iter_mut().for_each(|member| renew(&mut member.ty))
        }
        TypeKind::Scalar(_) | TypeKind::Enum | TypeKind::MemberPointer | TypeKind::Opaque => {}
    }
}
