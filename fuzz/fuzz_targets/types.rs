//! Any types that debug information may describe, through what walks their members inwards: layouts and what differs
//! between them, declarations, fields, advice, maps of lines. Values, never a panic, never without end.

#![no_main]

mod lengthen;

use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use lineup_advise::advise;
use lineup_advise::data_model::{DataModel, counterpart};
use lineup_advise::guard::{Group, Lock};
use lineup_advise::judge::NoCompiler;
use lineup_advise::options::Options;
use lineup_advise::order_file::Arrangement;
use lineup_advise::sources::Sources;
use lineup_advise::usage::{TypedVariable, Usage};
use lineup_explain::catalog::Catalog;
use lineup_explain::congruence::Congruence;
use lineup_explain::fields;
use lineup_explain::what_if::{NewOrder, Relayout};
use lineup_model::abi::Abi;
use lineup_model::access::ThreadId;
use lineup_model::layout::{Layout, diff};
use lineup_model::line::LineSize;
use lineup_model::region::{Region, RegionId, Regions};
use lineup_model::types::{
    Aggregate, AggregateKind, Language, Member, MemberRole, ScalarKind, Selector, Type, TypeId, TypeKind,
    Types,
};
use lineup_model::usage::{
    ByteUse, NeededAnyway, ObjectPattern, Owner, Sharing, TypeUse, VariablePattern, VariableRef, VariableUse,
};
use lineup_report::study::ObjectUse;

/// More types and members multiply to sizes that only take time.
const MOST_TYPES: u32 = 12;
const MOST_MEMBERS: u8 = 4;

/// Bytes that types are made of, besides those given.
const DRAWN_BYTES: usize = 512;

fuzz_target!(|data: &[u8]| {
    let data = lengthen::lengthened(data, DRAWN_BYTES);
    let mut input = Unstructured::new(&data);
    let (Ok(types), Ok(other)) = (types(&mut input), types(&mut input)) else { return };
    let access = |_| Ok((number(&mut input)?, number(&mut input)?));
    let Ok(accesses) = (0..4).map(access).collect::<Result<Vec<(u64, u64)>>>() else { return };
    for (id, _) in types.iter() {
        lay_out(&types, id);
        if other.get(id).is_some() {
            diff((&types, id), (&other, id), LineSize::B64);
        }
    }
    name(&types, &accesses);
    for abi in [Abi::X86_64, Abi::ARM] {
        advise_on(&types, abi, &accesses);
    }
    map(&types, &accesses);
});

fn types(input: &mut Unstructured<'_>) -> Result<Types> {
    let mut types = Types::new();
    for _ in 0..input.int_in_range(1..=MOST_TYPES)? {
        let (name, language) = (name_of(input)?, *input.choose(&[Language::C, Language::Rust])?);
        let (declared_align, size_bytes) = (maybe(input, number)?, maybe(input, number)?);
        let kind = kind(input)?;
        types.push(Type { name, size_bytes, declared_align, declared_at: None, unit: None, language, kind });
    }
    // The last step of readers of debug information.
    types.break_containment();
    Ok(types)
}

fn kind(input: &mut Unstructured<'_>) -> Result<TypeKind> {
    Ok(match input.int_in_range(0..=13)? {
        0 => TypeKind::Scalar(ScalarKind::Integer { signed: input.arbitrary()? }),
        1 => TypeKind::Enum,
        2 => TypeKind::Pointer(maybe(input, id)?),
        3 => TypeKind::MemberPointer,
        4 | 5 => {
            let dimensions = input.int_in_range(0..=2)?;
            let counts = (0..dimensions).map(|_| maybe(input, number)).collect::<Result<_>>()?;
            TypeKind::Array { element: id(input)?, counts }
        }
        6 => TypeKind::Typedef(maybe(input, id)?),
        7 => TypeKind::Qualified(maybe(input, id)?),
        8 => TypeKind::Function { returns: maybe(input, id)?, parameters: vec![id(input)?, id(input)?] },
        _ => TypeKind::Aggregate(Aggregate {
            kind: *input.choose(&[
                AggregateKind::Struct,
                AggregateKind::Struct,
                AggregateKind::Union,
                AggregateKind::Variants,
            ])?,
            members: (0..input.int_in_range(0..=MOST_MEMBERS)?)
                .map(|_| member(input))
                .collect::<Result<_>>()?,
            static_members: Vec::new(),
            is_declaration: input.ratio(1, 16)?,
        }),
    })
}

fn member(input: &mut Unstructured<'_>) -> Result<Member> {
    let selector = *input.choose(&[
        Selector::Value { bits: 1, width_bits: 8 },
        Selector::Value { bits: u64::MAX, width_bits: 64 },
        Selector::Rest,
        Selector::Unknown,
    ])?;
    let roles = [
        MemberRole::Field,
        MemberRole::Field,
        MemberRole::Field,
        MemberRole::Base,
        MemberRole::VirtualBase,
        MemberRole::VtablePointer,
        MemberRole::Variant(selector),
        MemberRole::Discriminant,
    ];
    Ok(Member {
        name: name_of(input)?,
        ty: id(input)?,
        offset_bits: maybe(input, number)?,
        bit_size: if input.ratio(1, 4)? { Some(number(input)? as u32) } else { None },
        declared_align: maybe(input, number)?.filter(|_| input.ratio(1, 8).unwrap_or(false)),
        role: *input.choose(&roles)?,
        declared_at: None,
    })
}

fn id(input: &mut Unstructured<'_>) -> Result<TypeId> {
    Ok(TypeId(input.int_in_range(0..=MOST_TYPES)?))
}

fn name_of(input: &mut Unstructured<'_>) -> Result<Option<std::sync::Arc<str>>> {
    const NAMES: [&str; 8] = [
        "a",
        "b",
        "s",
        "long",
        "u64",
        "data_ptr",
        "alloc::raw_vec::RawVec<s, a>",
        "core::slice::iter::Iter<s>",
    ];
    maybe(input, |input| Ok((*input.choose(&NAMES)?).into()))
}

fn maybe<T>(
    input: &mut Unstructured<'_>,
    one: impl FnOnce(&mut Unstructured<'_>) -> Result<T>,
) -> Result<Option<T>> {
    if input.ratio(1, 5)? { Ok(None) } else { one(input).map(Some) }
}

/// A small number, a power of two, one near the greatest, or any.
fn number(input: &mut Unstructured<'_>) -> Result<u64> {
    let byte: u8 = input.arbitrary()?;
    Ok(match byte {
        0..128 => u64::from(byte),
        128..160 => u64::from(byte - 128) * 64,
        160..224 => 1 << (byte - 160),
        224..252 => u64::MAX - u64::from(byte - 224),
        _ => input.arbitrary()?,
    })
}

fn lay_out(types: &Types, id: TypeId) {
    types.spell(Some(id), "x");
    types.declaration(id);
    types.size_bytes(id);
    for line in LineSize::ALL {
        let Some(layout) = Layout::of(types, id, line) else { continue };
        let _ = (layout.lines(), layout.last_line_bytes(), layout.holes(), layout.hole_bytes());
        let _ = (layout.bit_holes(), layout.hole_bits(), layout.member_bytes(), layout.bit_field_bits());
        let _ = (layout.straddling().count(), layout.inner_padding_bytes());
        for row in &layout.rows {
            row.lines(line);
            layout.variant(types, row);
        }
        if let Some((_, aggregate)) = types.aggregate(id) {
            let _ = (types.discriminant_bytes(aggregate), types.niche(aggregate));
            types.discriminant_value(aggregate, 255, 8);
        }
    }
}

fn name(types: &Types, accesses: &[(u64, u64)]) {
    let mut catalog = Catalog::new(vec![types]);
    let known: Vec<_> = types.iter().filter_map(|(id, _)| catalog.intern(0, id)).collect();
    for &ty in &known {
        for &(offset, size_bytes) in accesses {
            catalog.field(ty, offset, size_bytes);
            catalog.spot(ty, Congruence::new(offset.cast_signed(), size_bytes % 3), size_bytes);
            let target = catalog.pointee_at(ty, offset, 8);
            catalog.step_at(ty, offset, 8, target.unwrap_or(ty));
            catalog.holds(ty, offset, *known.first().unwrap_or(&ty));
        }
        catalog.begins_with(ty, *known.last().unwrap_or(&ty));
    }
    for (id, _) in types.iter() {
        for (_, offset, size_bytes) in fields::leaves(types, id) {
            assert!(offset.checked_add(size_bytes).is_some(), "a leaf ends before the last address");
        }
    }
}

fn bytes(accesses: &[(u64, u64)]) -> Vec<ByteUse> {
    let one = |&(offset, size_bytes): &(u64, u64)| ByteUse { offset, size_bytes, loads: 3, stores: 1 };
    accesses.iter().map(one).collect()
}

/// Of as many objects as there are accesses: each one's own bytes, with the others' numbers as masks of what lies beside.
fn needed_anyway(accesses: &[(u64, u64)]) -> NeededAnyway {
    let mut needed = NeededAnyway::default();
    let mask = |(low, high): (u64, u64)| u128::from(high) << 64 | u128::from(low);
    for (object, beside) in accesses.iter().zip(accesses.iter().rev()) {
        needed.add(&NeededAnyway::seen(object.0, object.1, mask(*beside), !mask(*beside)));
    }
    needed
}

fn uses(types: &Types, accesses: &[(u64, u64)]) -> Vec<TypeUse> {
    let distances = [None, accesses.first().map(|(offset, _)| *offset)];
    let pattern = |neighbour_distance_bytes| ObjectPattern {
        base_in_line: 16,
        neighbour_distance_bytes,
        bytes: bytes(accesses),
        occurrences: 3,
        needed_anyway: needed_anyway(accesses),
    };
    let used = |(ty, _)| TypeUse {
        region: RegionId(0),
        ty,
        calls: 2,
        patterns: distances.map(pattern).into(),
        used_as: Default::default(),
    };
    types.iter().map(used).collect()
}

/// Variables of all types, each after the one before but for the last, which is as far back as can be.
fn variables(types: &Types, accesses: &[(u64, u64)]) -> (Vec<TypedVariable>, Vec<VariableUse>) {
    let variable = |(ty, _): (TypeId, &Type)| {
        let address = if ty.0 as usize + 1 == types.len() { u64::MAX - 8 } else { u64::from(ty.0) * 4096 };
        let size_bytes = types.size_bytes(ty).unwrap_or(0).min(u64::MAX - address);
        TypedVariable { variable: VariableRef { name: "v".to_owned(), address, size_bytes }, ty }
    };
    let all: Vec<TypedVariable> = types.iter().map(variable).collect();
    let variables = all.iter().map(|one| (one.variable.clone(), bytes(accesses))).collect();
    let patterns = vec![VariablePattern { variables, occurrences: 3 }];
    (all, vec![VariableUse { region: RegionId(0), calls: 2, patterns }])
}

fn sharing(accesses: &[(u64, u64)]) -> Vec<Sharing> {
    let shared = |&(offset, size_bytes): &(u64, u64)| Sharing {
        owner: Owner::Type(TypeId(0)),
        offset,
        size_bytes,
        readers: [ThreadId(0)].into(),
        writers: [ThreadId(1)].into(),
        handovers: 9,
    };
    accesses.iter().map(shared).collect()
}

fn advise_on(types: &Types, abi: Abi, accesses: &[(u64, u64)]) {
    let model = DataModel::new(types, abi, counterpart(abi));
    for (id, _) in types.iter() {
        let _ = (model.shape(id), model.layout(id));
        for &(offset, size_bytes) in accesses {
            model.translate(id, offset, size_bytes);
        }
    }
    let (variable_types, variables) = variables(types, accesses);
    let usage = Usage {
        regions: Regions::from_iter([Region::named("f")]),
        types: uses(types, accesses),
        variables,
        sharing: sharing(accesses),
        variable_types,
        ..Usage::empty(abi)
    };
    let text = "struct s { long a; struct s *b; };\nstruct a { int s; int b; };\n";
    let sources = Sources::new([("a.c".to_owned(), text.to_owned())]);
    let _advice = advise(&usage, types, &sources, &Options::default(), &mut NoCompiler);
    for (id, _) in types.iter() {
        let Some((_, aggregate)) = types.aggregate(id) else { continue };
        let order: Vec<usize> = (0..aggregate.members.len()).rev().collect();
        let align_bytes = vec![Some(64); order.len()];
        let arrangement = Arrangement { order, align_bytes, groups: Vec::new() };
        let Some(arranged) = arrangement.place(types, &usage, id) else { continue };
        let offsets_bytes = arranged.offsets_bits.iter().map(|bits| bits / 8).collect();
        let new = NewOrder { ty: id, offsets_bytes, align_bytes: arranged.align_bytes };
        let relayout = Relayout::new(types, &[new], &[(id, 0x1000)]);
        accesses.iter().for_each(|(offset, _)| _ = relayout.place(0x1000_u64.saturating_add(*offset)));
    }
    let group = Group {
        type_name: "s".to_owned(),
        line_bytes: 64,
        data_model: abi.data_model().to_owned(),
        members: ["a", "b", "a.b", "b.a.s"].map(str::to_owned).into(),
        apart: vec!["s".to_owned()],
        why: Vec::new(),
    };
    Lock { groups: vec![group] }.check(types, abi);
}

fn map(types: &Types, accesses: &[(u64, u64)]) {
    let (uses, sharing) = (uses(types, accesses), sharing(accesses));
    for (id, _) in types.iter() {
        ObjectUse::of_type(types, id, &uses, &sharing, LineSize::B64);
    }
    // Lines of variables that overlap take the square of how many.
    let (typed, uses) = variables(types, &accesses[..1]);
    let typed: Vec<(VariableRef, TypeId)> = typed.into_iter().map(|one| (one.variable, one.ty)).collect();
    ObjectUse::of_variables(types, &uses, &typed, &[], &sharing, LineSize::B64);
}
