//! Types as only damaged debug information describes them: values, never a panic, never without end.

use crate::pahole;
use lineup_advise::advise;
use lineup_advise::data_model::DataModel;
use lineup_advise::guard::{Group, Lock};
use lineup_advise::judge::NoCompiler;
use lineup_advise::options::Options;
use lineup_advise::sources::Sources;
use lineup_advise::usage::Usage;
use lineup_model::abi::Abi;
use lineup_model::region::{Region, RegionId, Regions};
use lineup_model::types::{
    Aggregate, AggregateKind, Language, Member, ScalarKind, Type, TypeId, TypeKind, Types,
};
use lineup_model::usage::{ByteUse, ObjectPattern, TypeUse};

fn push(types: &mut Types, size_bytes: Option<u64>, kind: TypeKind) -> TypeId {
    types.push(Type {
        name: Some("t".into()),
        size_bytes,
        declared_align: None,
        declared_at: None,
        unit: None,
        language: Language::C,
        kind,
    })
}

fn scalar(types: &mut Types, size_bytes: u64) -> TypeId {
    push(types, Some(size_bytes), TypeKind::Scalar(ScalarKind::Integer { signed: true }))
}

fn aggregate(types: &mut Types, kind: AggregateKind, size_bytes: u64, members: Vec<Member>) -> TypeId {
    let aggregate = Aggregate { kind, members, static_members: Vec::new(), is_declaration: false };
    push(types, Some(size_bytes), TypeKind::Aggregate(aggregate))
}

/// Types of 32 bits on a machine of 64 bits: pointers and pointers to members take twice the room.
fn widened(types: &Types) -> DataModel<'_> {
    DataModel::new(types, Abi::ARM, Abi::AARCH64)
}

#[test]
fn sizes_that_another_data_model_would_double_past_all_numbers_have_no_layout() {
    let mut types = Types::new();
    let pointers = push(&mut types, Some(u64::MAX), TypeKind::MemberPointer);
    let union = vec![pahole::member("p", pointers, 0)];
    let union = aggregate(&mut types, AggregateKind::Union, 8, union);
    let model = widened(&types);
    assert_eq!((model.shape(union), model.layout(union)), (None, None));
    assert_eq!(model.translate(union, 0, 8), []);
}

#[test]
fn elements_past_the_last_address_are_left_out() {
    let mut types = Types::new();
    let pointer = push(&mut types, Some(4), TypeKind::Pointer(None));
    let array = push(&mut types, None, TypeKind::Array { element: pointer, counts: vec![Some(1 << 62)] });
    let model = widened(&types);
    assert_eq!(model.translate(array, 8, 4), [(16, 4)]);
    assert_eq!(model.translate(array, u64::MAX - 7, 4), []);
    assert_eq!(model.translate(array, 0, u64::MAX).len(), 4095, "those of a huge access are not all listed");
}

#[test]
fn arrays_of_arrays_of_nothing_are_translated_in_the_time_of_a_few() {
    let mut types = Types::new();
    let mut inner = aggregate(&mut types, AggregateKind::Struct, 1, Vec::new());
    for _ in 0..5 {
        inner = push(&mut types, None, TypeKind::Array { element: inner, counts: vec![Some(4096)] });
    }
    assert_eq!(widened(&types).translate(inner, 0, u64::MAX), []);
}

#[test]
fn a_lock_finds_no_member_where_no_memory_is() {
    let mut types = Types::new();
    let byte = scalar(&mut types, 1);
    let mut inner = byte;
    for _ in 0..12 {
        let mut member = pahole::member("m", inner, u64::MAX);
        member.offset_bits = Some(u64::MAX);
        inner = aggregate(&mut types, AggregateKind::Struct, 8, vec![member]);
    }
    if let Some(ty) = types.get_mut(inner) {
        ty.name = Some("outer".into());
    }
    let group = Group {
        type_name: "outer".to_owned(),
        line_bytes: 64,
        data_model: "LP64".to_owned(),
        members: vec!["m".to_owned(), ["m"; 12].join(".")],
        apart: Vec::new(),
        why: Vec::new(),
    };
    let report = Lock { groups: vec![group] }.check(&types, Abi::X86_64);
    let gone: Vec<_> = report.violations.iter().filter(|one| one.message.contains("is gone")).collect();
    assert_eq!(gone.len(), 1, "{report:?}");
}

#[test]
fn an_access_to_all_addresses_counts_as_many_bytes() {
    let mut types = Types::new();
    let half = scalar(&mut types, 1 << 60);
    let members = vec![pahole::member("a", half, 0), pahole::member("b", half, 1 << 63)];
    let id = aggregate(&mut types, AggregateKind::Struct, 1 << 61, members);
    let bytes = vec![ByteUse { offset: 0, size_bytes: u64::MAX, loads: 9, stores: 0 }];
    let patterns = vec![ObjectPattern::alone(0, bytes, 9)];
    let used = TypeUse { region: RegionId(0), ty: id, calls: 3, patterns, used_as: Default::default() };
    let usage = Usage {
        regions: Regions::from_iter([Region::named("f")]),
        types: vec![used],
        ..Usage::empty(Abi::X86_64)
    };
    let advice = advise(&usage, &types, &Sources::new([]), &Options::default(), &mut NoCompiler)
        .expect("nothing but candidates fails");
    assert!(advice.splits.is_empty());
}
