//! Variables that programs hand out memory from: arrays of bytes and integers in which objects of other types lie.
//!
//! The address of such memory identifies only the array. The type that the code uses it as is a better name; memory
//! without one keeps the array's name.

use crate::naming::name::{Name, Named};
use crate::naming::namer::Namer;
use crate::types::catalog::Ty;
use lineup_model::program::SymbolKind;
use lineup_model::types::{ScalarKind, TypeId, TypeKind, Types};
use std::ops::Range;
use std::rc::Rc;

/// Smaller arrays hold no objects of others.
const LEAST_BYTES: u64 = 64;
/// Smaller symbols without a known type do not count either.
const LEAST_SYMBOL_BYTES: u64 = 4096;
/// Members in members that are looked into.
const MOST_NESTED: usize = 8;

impl Namer<'_> {
    /// The array around a link address of an image that memory may be handed out from: its link addresses.
    fn pool_at(&mut self, image: usize, link: u64) -> Option<Range<u64>> {
        let global = self.globals.get(image).and_then(|globals| globals.at(link)).copied();
        if let Some(global) = global {
            let offset = link - global.start;
            let pools = self.pools_of(global.ty);
            let pool = pools.iter().find(|bytes| bytes.contains(&offset))?;
            return Some(global.start.checked_add(pool.start)?..global.start.checked_add(pool.end)?);
        }
        // A kernel's own debug information describes few of its variables.
        let image = self.images.get(image).filter(|image| !image.loaded.is_kernel())?;
        let symbol = image.symbol_at(link)?;
        let is_pool = symbol.kind == SymbolKind::Data && symbol.size_bytes >= LEAST_SYMBOL_BYTES;
        is_pool.then(|| symbol.address..symbol.address.saturating_add(symbol.size_bytes))
    }

    /// Whether memory at a link address of an image may have been handed out as objects of any type.
    pub(crate) fn is_pool(&mut self, image: usize, link: u64) -> bool {
        self.pool_at(image, link).is_some()
    }

    /// Whether an object at a runtime address may lie in a pool, as a part of it; true outside of all images.
    pub(crate) fn may_lie_at(&mut self, start: u64, ty: Ty) -> bool {
        let Some((image, link)) = self.data_at(start) else { return true };
        let (pool, size) = (self.pool_at(image, link), self.catalog.size_bytes(ty).unwrap_or(0));
        pool.is_some_and(|pool| size < pool.end - pool.start && link.saturating_add(size) <= pool.end)
    }

    /// The name of memory in a pool: the member that the code or the learned facts give, else the variable's name.
    pub(crate) fn or_variable(&mut self, found: Named, of_variable: Named) -> Named {
        match found.name {
            Name::Member { ty, base: Some(base), is_on_stack: false, .. } if self.may_lie_at(base, ty) => {
                found
            }
            _ => of_variable,
        }
    }

    /// The bytes of a type that are such arrays.
    fn pools_of(&mut self, ty: Ty) -> Rc<[Range<u64>]> {
        if let Some(known) = self.pools.get(&ty) {
            return known.clone();
        }
        let mut found = Vec::new();
        if let Some((types, described)) = self.catalog.table(ty) {
            add_pools(types, described.id, 0, MOST_NESTED, &mut found);
        }
        let found: Rc<[Range<u64>]> = found.into();
        self.pools.insert(ty, found.clone());
        found
    }
}

fn add_pools(types: &Types, id: TypeId, base: u64, depth: usize, all: &mut Vec<Range<u64>>) {
    let Some(id) = types.strip(id) else { return };
    match types.get(id).map(|ty| &ty.kind) {
        Some(TypeKind::Array { element, .. }) => {
            let element = types.strip(*element).and_then(|id| types.get(id));
            let is_plain = element.is_some_and(|element| match element.kind {
                TypeKind::Scalar(ScalarKind::Float) => false,
                TypeKind::Scalar(_) => true,
                // `std::byte`.
                TypeKind::Enum => element.size_bytes == Some(1),
                _ => false,
            });
            let size_bytes = types.size_bytes(id).filter(|size| *size >= LEAST_BYTES);
            if let Some(end) = size_bytes.filter(|_| is_plain).and_then(|size| base.checked_add(size)) {
                all.push(base..end);
            }
        }
        Some(TypeKind::Aggregate(aggregate)) if depth > 0 => {
            for member in &aggregate.members {
                if let Some(offset) = member.offset_bytes().and_then(|offset| base.checked_add(offset)) {
                    add_pools(types, member.ty, offset, depth - 1, all);
                }
            }
        }
        _ => {}
    }
}
