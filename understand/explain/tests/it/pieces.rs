//! Facts about registers and stack slots from the pieces of a variable, even if debug info contradicts them.

use lineup_explain::abstract_value::Origin;
use lineup_explain::catalog::Catalog;
use lineup_explain::congruence::Congruence;
use lineup_explain::variable_locations::{Located, Names, Slot};
use lineup_model::program::{Function, Location, Piece, ValueLocation, Variable};
use lineup_model::types::{
    Aggregate, AggregateKind, Language, Member, MemberRole, ScalarKind, Type, TypeId, TypeKind, Types,
};
use std::ops::Range;

/// The function's code.
const CODE: Range<u64> = 0x1000..0x1010;

fn push(types: &mut Types, name: &str, size_bytes: u64, kind: TypeKind) -> TypeId {
    types.push(Type {
        name: Some(name.into()),
        size_bytes: Some(size_bytes),
        declared_align: None,
        declared_at: None,
        unit: None,
        language: Language::Rust,
        kind,
    })
}

/// A struct of members, each with its name, type and offset.
pub(crate) fn struct_of(members: &[(&str, TypeId, u64)]) -> TypeKind {
    let members = members.iter().map(|(name, ty, offset)| Member {
        name: Some((*name).into()),
        ty: *ty,
        offset_bits: Some(offset * 8),
        bit_size: None,
        declared_align: None,
        role: MemberRole::Field,
        declared_at: None,
    });
    let (members, kind) = (members.collect(), AggregateKind::Struct);
    TypeKind::Aggregate(Aggregate { kind, members, static_members: Vec::new(), is_declaration: false })
}

fn structure(types: &mut Types, name: &str, size_bytes: u64, members: &[(&str, TypeId, u64)]) -> TypeId {
    push(types, name, size_bytes, struct_of(members))
}

/// A slice of structs of 24 bytes, and a struct with pointers to a number and to such a struct.
fn types() -> (Types, TypeId, TypeId) {
    let mut types = Types::new();
    let number = push(&mut types, "u64", 8, TypeKind::Scalar(ScalarKind::Integer { signed: false }));
    let item = structure(&mut types, "Item", 24, &[("key", number, 0), ("next", number, 16)]);
    let to_item = push(&mut types, "*Item", 8, TypeKind::Pointer(Some(item)));
    let to_number = push(&mut types, "*u64", 8, TypeKind::Pointer(Some(number)));
    let slice = structure(&mut types, "&[Item]", 16, &[("data_ptr", to_item, 0), ("length", number, 8)]);
    let pair = structure(&mut types, "Pair", 24, &[("a", to_number, 0), ("b", to_item, 16)]);
    (types, slice, pair)
}

fn located<'t>(types: &'t Types, ty: TypeId, pieces: &[(u64, u64, Location)]) -> (Located, Catalog<'t>) {
    let piece = |(offset, size_bytes, at): &(u64, u64, Location)| Piece {
        offset: *offset,
        size_bytes: *size_bytes,
        at: at.clone(),
    };
    let at = Location::Pieces(pieces.iter().map(piece).collect());
    let variable = Variable {
        name: Some("v".into()),
        ty: Some(ty),
        declared_at: None,
        is_external: false,
        places: vec![ValueLocation { range: None, at }],
    };
    let function = Function {
        name: "f".into(),
        linkage_name: None,
        language: Language::Rust,
        ranges: Vec::from([CODE]),
        frame_base: None,
        returns: None,
        parameters: vec![variable],
        variables: Vec::new(),
        inlined: Vec::new(),
        declared_at: None,
    };
    let mut catalog = Catalog::new(vec![types]);
    (Located::of(&mut catalog, &mut Names::default(), 0, &function, 8), catalog)
}

#[test]
fn the_register_of_a_slice_points_to_any_of_its_elements() {
    let (types, slice, _) = types();
    let pieces = [(0, 8, Location::Register(5)), (8, 8, Location::Register(4))];
    let (located, catalog) = located(&types, slice, &pieces);
    let [fact] = located.registers.as_slice() else { panic!("{located:?}") };
    assert_eq!((fact.register.0, catalog.name(fact.target).as_str()), (5, "Item"));
    assert_eq!((fact.offset, fact.range.clone()), (Congruence::new(0, 24), CODE));
    assert_eq!(fact.origin, Origin::Variable(0));
}

#[test]
fn only_a_piece_that_is_just_a_pointer_types_its_register() {
    let (types, _, pair) = types();
    let (known, catalog) =
        located(&types, pair, &[(16, 8, Location::RegisterPlus { register: 3, offset: 8 })]);
    let [fact] = known.registers.as_slice() else { panic!("{known:?}") };
    assert_eq!((catalog.name(fact.target).as_str(), fact.offset), ("Item", Congruence::exactly(-8)));
    assert!(matches!(fact.origin, Origin::Member(_, 16)));
    for (offset, size_bytes) in
        [(0, 4), (0, 16), (4, 8), (8, 8), (12, 8), (20, 8), (24, 8), (1 << 60, 8), (16, 1 << 60)]
    {
        let (known, _) = located(&types, pair, &[(offset, size_bytes, Location::Register(3))]);
        assert_eq!(known.registers, [], "{size_bytes} bytes at {offset}");
    }
}

#[test]
fn values_that_are_nowhere_are_no_addresses() {
    let (types, slice, _) = types();
    let pieces = [
        (0, 8, Location::Constant(0x1000)),
        (0, 8, Location::AddressOf(0x1000)),
        (8, 8, Location::Constant(3)),
    ];
    let (known, _) = located(&types, slice, &pieces);
    assert!(known.registers.is_empty() && known.locals.is_empty(), "{known:?}");
}

#[test]
fn pieces_in_memory_are_cut_off_at_the_end_of_the_variable() {
    let (types, slice, _) = types();
    let frame = |offset| Location::Frame { offset };
    let pieces = [
        (8, 1 << 60, frame(-32)),
        (0, 12, frame(i64::MIN)),
        (1 << 60, 1 << 60, frame(i64::MAX)),
        (16, u64::MAX - 16, frame(8)),
    ];
    let (known, _) = located(&types, slice, &pieces);
    let found: Vec<_> = known.locals.iter().map(|local| (local.slot, local.bytes.clone())).collect();
    assert_eq!(found, [(Slot::FrameBase(-32), 8..16), (Slot::FrameBase(i64::MIN), 0..12)]);
}
