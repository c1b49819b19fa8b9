//! A program's types and the regions' accesses to them, invented for tests.

use lineup_model::region::RegionId;
use lineup_model::types::{
    Aggregate, AggregateKind, Language, Member, MemberRole, ScalarKind, Type, TypeId, TypeKind, Types,
};
use lineup_model::usage::{ByteUse, ObjectPattern, TypeUse};
use std::collections::BTreeSet;

fn ty(name: Option<&str>, size_bytes: u64, kind: TypeKind) -> Type {
    Type {
        name: name.map(Into::into),
        size_bytes: Some(size_bytes),
        declared_align: None,
        declared_at: None,
        unit: None,
        language: Language::C,
        kind,
    }
}

fn field(name: Option<&str>, ty: TypeId, offset_bits: u64, bit_size: Option<u32>) -> Member {
    Member {
        name: name.map(Into::into),
        ty,
        offset_bits: Some(offset_bits),
        bit_size,
        declared_align: None,
        role: MemberRole::Field,
        declared_at: None,
    }
}

fn aggregate(
    types: &mut Types,
    kind: AggregateKind,
    name: Option<&str>,
    size: u64,
    members: Vec<Member>,
) -> TypeId {
    let aggregate = Aggregate { kind, members, static_members: vec![], is_declaration: false };
    types.push(ty(name, size, TypeKind::Aggregate(aggregate)))
}

/// `struct device { u64 id; struct rate { u32 mult, shift; } rate; union { u64 a; u32 b; }; u32 state:4, flags:12;
/// struct rate spare; }` of 40 bytes.
pub(crate) fn device() -> (Types, TypeId) {
    let mut types = Types::new();
    let integer = TypeKind::Scalar(ScalarKind::Integer { signed: false });
    let u32_ = types.push(ty(Some("u32"), 4, integer.clone()));
    let u64_ = types.push(ty(Some("u64"), 8, integer));
    let pair = vec![field(Some("mult"), u32_, 0, None), field(Some("shift"), u32_, 32, None)];
    let rate = aggregate(&mut types, AggregateKind::Struct, Some("rate"), 8, pair);
    let either = vec![field(Some("a"), u64_, 0, None), field(Some("b"), u32_, 0, None)];
    let either = aggregate(&mut types, AggregateKind::Union, None, 8, either);
    let members = vec![
        field(Some("id"), u64_, 0, None),
        field(Some("rate"), rate, 64, None),
        field(None, either, 128, None),
        field(Some("state"), u32_, 192, Some(4)),
        field(Some("flags"), u32_, 196, Some(12)),
        field(Some("spare"), rate, 256, None),
    ];
    let device = aggregate(&mut types, AggregateKind::Struct, Some("device"), 40, members);
    (types, device)
}

pub(crate) fn bytes(offset: u64, size_bytes: u64, loads: u64, stores: u64) -> ByteUse {
    ByteUse { offset, size_bytes, loads, stores }
}

pub(crate) fn use_of(ty: TypeId, region: u16, calls: u64, patterns: Vec<(u8, u64, Vec<ByteUse>)>) -> TypeUse {
    let pattern = |(base_in_line, occurrences, bytes)| ObjectPattern::alone(base_in_line, bytes, occurrences);
    let patterns = patterns.into_iter().map(pattern).collect();
    TypeUse { region: RegionId(region), ty, calls, patterns, used_as: BTreeSet::new() }
}
