//! Volatile members: registers of a device stay, and data that threads look at may move.

use crate::pahole::{integer, member, push, structure};
use lineup_advise::advise;
use lineup_advise::constraint::{Binding, Constraint};
use lineup_advise::judge::NoCompiler;
use lineup_advise::options::Options;
use lineup_advise::proposal::Advice;
use lineup_advise::sources::Sources;
use lineup_advise::usage::Usage;
use lineup_model::abi::Abi;
use lineup_model::region::{Region, RegionId, Regions};
use lineup_model::types::{TypeId, TypeKind, Types};
use lineup_model::usage::{ByteUse, MemoryOfObjects, ObjectPattern, TypeUse};
use std::collections::BTreeSet;

/// Every call loads the words at these two offsets of one object.
fn advised(
    types: &Types,
    id: TypeId,
    text: &str,
    offsets: [u64; 2],
    memory: Option<MemoryOfObjects>,
) -> Advice {
    let bytes = offsets.map(|offset| ByteUse { offset, size_bytes: 8, loads: 1, stores: 0 }).to_vec();
    let patterns = vec![ObjectPattern::alone(0, bytes, 10)];
    let used = TypeUse { region: RegionId(0), ty: id, calls: 10, patterns, used_as: BTreeSet::new() };
    let regions = Regions::from_iter([Region::named("hot")]);
    let usage = Usage { regions, types: vec![used], memory, ..Usage::empty(Abi::X86_64) };
    let sources = Sources::new([("rec.c".to_owned(), text.to_owned())]);
    advise(&usage, types, &sources, &Options::default(), &mut NoCompiler).expect("advice")
}

/// The constraint on the type that is refused.
fn held(advice: &Advice) -> &Binding {
    assert!(advice.orders.is_empty(), "{advice:?}");
    let mut held = advice.refusals.iter().flat_map(|refusal| &refusal.constraints);
    held.find(|binding| binding.constraint == Constraint::Volatile).expect("a reason")
}

const TEXT: &str = "struct rec { volatile long control; char cold[120]; long data; };\n";

/// The types, and the struct of which one member is volatile.
fn controlled() -> (Types, TypeId) {
    let mut types = Types::new();
    let (byte, word) = (integer(&mut types, "char", 1), integer(&mut types, "long", 8));
    let volatile = push(&mut types, "volatile", None, TypeKind::Qualified(Some(word)));
    let cold = push(&mut types, "", None, TypeKind::Array { element: byte, counts: vec![Some(120)] });
    let own = vec![member("control", volatile, 0), member("cold", cold, 64), member("data", word, 1024)];
    let id = structure(&mut types, "rec", 136, own);
    (types, id)
}

#[test]
fn a_volatile_member_pins_the_whole_type_where_nobody_saw_its_memory() {
    let (types, id) = controlled();
    let advice = advised(&types, id, TEXT, [0, 128], None);
    assert_eq!(held(&advice).names, ["control"]);
}

#[test]
fn volatile_members_move_where_all_objects_lay_in_the_programs_own_memory() {
    let (types, id) = controlled();
    let private = MemoryOfObjects { private_types: [id].into(), shared_mappings: 0 };
    let advice = advised(&types, id, TEXT, [0, 128], Some(private.clone()));
    let obeyed = &advice.orders.first().unwrap_or_else(|| panic!("{advice:?}")).obeyed;
    assert!(obeyed.iter().any(|binding| binding.constraint == Constraint::OrdinaryMemory), "{obeyed:?}");
    let mapped = format!("{TEXT}/* no mmap */ void *f(int x) {{ return mmap(0, 8, 3, 1, x, 0); }}\n");
    let others = [
        (MemoryOfObjects { shared_mappings: 1, ..private.clone() }, TEXT, "shares memory"),
        (MemoryOfObjects::default(), TEXT, "were not seen"),
        (private, mapped.as_str(), "mmap at rec.c:2"),
    ];
    for (memory, text, why) in others {
        let advice = advised(&types, id, text, [0, 128], Some(memory));
        let said = held(&advice).detail.clone().unwrap_or_default();
        assert!(said.contains(why), "{why}: {said}");
    }
}

#[test]
fn a_volatile_member_beside_pointers_pins_nothing() {
    let mut types = Types::new();
    let (byte, word) = (integer(&mut types, "char", 1), integer(&mut types, "long", 8));
    let stop = push(&mut types, "volatile", None, TypeKind::Qualified(Some(word)));
    let next = push(&mut types, "", Some(8), TypeKind::Pointer(None));
    let cold = push(&mut types, "", None, TypeKind::Array { element: byte, counts: vec![Some(120)] });
    let own = vec![
        member("stop", stop, 0),
        member("cold", cold, 64),
        member("data", word, 1024),
        member("next", next, 1088),
    ];
    let id = structure(&mut types, "rec", 144, own);
    let text = "struct rec { volatile long stop; char cold[120]; long data; void *next; };\n";
    let advice = advised(&types, id, text, [0, 128], None);
    assert!(!advice.orders.is_empty(), "{advice:?}");
}
