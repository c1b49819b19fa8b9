//! Joins the facts about a register from the flow of a function with those from debug info.

use crate::code::abstract_value::{AbstractValue, Pointer};
use crate::code::variable_locations::RegisterFact;
use crate::types::catalog::Catalog;

/// Combines a register's value from the flow with that from debug info. If they agree it is the one with the outer
/// object, else that from debug info.
pub(crate) fn refine(catalog: &mut Catalog<'_>, flow: AbstractValue, fact: &RegisterFact) -> AbstractValue {
    let located = Pointer { is_located: true, ..Pointer::new(fact.target, fact.offset, fact.origin) };
    let pointer = match flow {
        AbstractValue::Pointer(pointer) => pointer,
        AbstractValue::Stack(_) | AbstractValue::Thread(_) => return flow,
        // Compilers describe an offset from a pointer as if it were the pointer.
        AbstractValue::Number(number) if number.is_offset() => return flow,
        AbstractValue::Nothing
        | AbstractValue::Untyped(_)
        | AbstractValue::Conflict
        | AbstractValue::Number(_) => {
            return AbstractValue::Pointer(located);
        }
    };
    let keep = AbstractValue::Pointer(Pointer { is_located: true, ..pointer });
    if pointer.target == fact.target {
        return same_target(catalog, pointer, located, fact.is_piece);
    }
    let inside = |catalog: &Catalog<'_>, outer: &Pointer, inner: &Pointer| {
        let distance = outer.offset.minus(inner.offset);
        let exact = distance.exact().and_then(|distance| u64::try_from(distance).ok());
        exact.or_else(|| distance.remainder(catalog.size_bytes(outer.target)?))
    };
    if let Some(distance) = inside(catalog, &pointer, &located)
        && catalog.holds(pointer.target, distance, fact.target)
    {
        return keep;
    }
    if let Some(distance) = inside(catalog, &located, &pointer)
        && catalog.holds(fact.target, distance, pointer.target)
    {
        return AbstractValue::Pointer(located);
    }
    let in_bounds = catalog.spot(pointer.target, pointer.offset, 1).is_some_and(|spot| spot.is_certain);
    if catalog.is_aggregate(pointer.target) && !catalog.is_aggregate(fact.target) && in_bounds {
        return keep;
    }
    AbstractValue::Pointer(located)
}

/// Combines two pointers to the same type.
fn same_target(catalog: &Catalog<'_>, flow: Pointer, located: Pointer, is_piece: bool) -> AbstractValue {
    let apart = flow.offset.minus(located.offset);
    let of_element = catalog.size_bytes(flow.target).and_then(|size| apart.remainder(size));
    let keep = Pointer { is_located: true, ..flow };
    AbstractValue::Pointer(match (apart.exact(), of_element) {
        (Some(0), _) => keep,
        // One of them knows that it is an array.
        (None, Some(0)) if flow.offset.exact().is_none() => keep,
        // Compilers describe a piece past the instruction that moves its register into the object.
        (_, Some(1..)) if is_piece => flow,
        _ => located,
    })
}
