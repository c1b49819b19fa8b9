//! The members that bytes of a type belong to.

use lineup_explain::fields::{field_at, has_open_end, leaves};
use lineup_model::types::{
    Aggregate, AggregateKind, Member, MemberRole, ScalarKind, Type, TypeId, TypeKind, Types,
};

struct Table(Types);

impl Table {
    fn push(&mut self, name: Option<&str>, size_bytes: Option<u64>, kind: TypeKind) -> TypeId {
        self.0.push(Type {
            name: name.map(Into::into),
            size_bytes,
            declared_align: None,
            declared_at: None,
            unit: None,
            language: Default::default(),
            kind,
        })
    }

    fn integer(&mut self, size_bytes: u64) -> TypeId {
        self.push(Some("int"), Some(size_bytes), TypeKind::Scalar(ScalarKind::Integer { signed: true }))
    }

    fn array(&mut self, element: TypeId, counts: &[Option<u64>]) -> TypeId {
        self.push(None, None, TypeKind::Array { element, counts: counts.to_vec() })
    }

    fn aggregate(&mut self, kind: AggregateKind, size_bytes: u64, members: Vec<Member>) -> TypeId {
        let aggregate = Aggregate { kind, members, static_members: Vec::new(), is_declaration: false };
        self.push(Some("s"), Some(size_bytes), TypeKind::Aggregate(aggregate))
    }
}

fn member(name: Option<&str>, ty: TypeId, offset: u64) -> Member {
    Member {
        name: name.map(Into::into),
        ty,
        offset_bits: Some(offset * 8),
        bit_size: None,
        declared_align: None,
        role: MemberRole::Field,
        declared_at: None,
    }
}

fn bits(name: &str, ty: TypeId, offset_bits: u64, width: u32) -> Member {
    Member { offset_bits: Some(offset_bits), bit_size: Some(width), ..member(Some(name), ty, 0) }
}

/// `struct { int id; struct { short x; long y; } in; int grid[2][3]; unsigned a : 3, b : 9; union { int i; char c; };
/// char tail[]; }`
fn subject() -> (Types, TypeId) {
    let mut table = Table(Types::new());
    let [byte, short, int, long] = [1, 2, 4, 8].map(|size| table.integer(size));
    let inner = vec![member(Some("x"), short, 0), member(Some("y"), long, 8)];
    let inner = table.aggregate(AggregateKind::Struct, 16, inner);
    let grid = table.array(int, &[Some(2), Some(3)]);
    let either = vec![member(Some("i"), int, 0), member(Some("c"), byte, 0)];
    let either = table.aggregate(AggregateKind::Union, 4, either);
    let tail = table.array(byte, &[None]);
    let members = vec![
        member(Some("id"), int, 0),
        member(Some("in"), inner, 8),
        member(Some("grid"), grid, 24),
        bits("a", int, 48 * 8, 3),
        bits("b", int, 48 * 8 + 3, 9),
        member(None, either, 52),
        member(Some("tail"), tail, 56),
    ];
    let whole = table.aggregate(AggregateKind::Struct, 56, members);
    (table.0, whole)
}

fn path(offset: u64, size: u64) -> Option<(String, usize)> {
    let (types, id) = subject();
    field_at(&types, id, offset, size).map(|field| (field.path, field.members))
}

fn named(name: &str, members: usize) -> Option<(String, usize)> {
    Some((name.to_owned(), members))
}

#[test]
fn nested_members_and_arrays_fold_into_a_path() {
    assert_eq!(path(0, 4), named("id", 1));
    assert_eq!(path(16, 8), named("in.y", 1));
    assert_eq!(path(44, 4), named("grid[][]", 1));
}

#[test]
fn an_access_across_members_names_the_first_and_the_last() {
    assert_eq!(path(0, 16), named("id..in", 2));
    assert_eq!(path(24, 8), named("grid[][]", 1));
}

#[test]
fn bytes_of_bit_fields_name_every_field_they_hold() {
    assert_eq!(path(48, 2), named("a..b", 2));
    assert_eq!(path(49, 1), named("b", 1));
}

#[test]
fn of_a_union_the_member_of_that_size_is_meant() {
    assert_eq!(path(52, 4), named("i", 1));
    assert_eq!(path(52, 1), named("c", 1));
}

/// `union { struct { unsigned open : 1, kind : 7; } a; struct { char tag; short length; } b; struct { char *text; } c;
/// long d; }`
fn union_of_arms() -> (Types, TypeId) {
    let mut table = Table(Types::new());
    let [byte, short, int, long] = [1, 2, 4, 8].map(|size| table.integer(size));
    let pointer = table.push(None, Some(8), TypeKind::Pointer(Some(byte)));
    let a = table.aggregate(AggregateKind::Struct, 4, vec![bits("open", int, 0, 1), bits("kind", int, 1, 7)]);
    let b = vec![member(Some("tag"), byte, 0), member(Some("length"), short, 2)];
    let b = table.aggregate(AggregateKind::Struct, 4, b);
    let c = table.aggregate(AggregateKind::Struct, 8, vec![member(Some("text"), pointer, 0)]);
    let arms = [("a", a), ("b", b), ("c", c), ("d", long)];
    let arms = arms.map(|(name, ty)| member(Some(name), ty, 0)).to_vec();
    let either = table.aggregate(AggregateKind::Union, 8, arms);
    let whole = table.aggregate(AggregateKind::Struct, 16, vec![member(Some("u"), either, 8)]);
    (table.0, whole)
}

#[test]
fn of_arms_of_which_any_may_be_meant_all_are_named() {
    let (types, id) = union_of_arms();
    let field = |offset, size| field_at(&types, id, offset, size).unwrap();
    // Bit-fields are reached with any width, so an access of a byte may mean them.
    assert_eq!(field(8, 1).path, "u.(a.open..kind | b.tag)");
    assert!(field(8, 1).may_be("u.b.tag") && field(8, 1).may_be("u.a.open") && !field(8, 1).may_be("u.d"));
    // Only one arm has a member of two bytes there.
    assert_eq!(field(10, 2).path, "u.b.length");
    let wide = field(8, 8);
    assert_eq!(wide.path, "u.(c.text | d)");
    assert!(wide.leaf.is_some_and(|leaf| types.pointee(leaf).is_some()), "the pointer is followed");
}

#[test]
fn padding_is_said_to_be_padding() {
    assert_eq!(path(4, 4), named("(padding)", 0));
    assert_eq!(path(10, 2), named("in.(padding)", 0));
}

#[test]
fn a_flexible_array_has_no_end_and_other_types_do() {
    assert_eq!(path(500, 1), named("tail[]", 1));
    let mut table = Table(Types::new());
    let int = table.integer(4);
    let plain = table.aggregate(AggregateKind::Struct, 4, vec![member(Some("id"), int, 0)]);
    assert_eq!(field_at(&table.0, plain, 4, 4), None);
}

#[test]
fn empty_bases_do_not_hide_the_member_that_shares_their_byte() {
    let mut table = Table(Types::new());
    let int = table.integer(4);
    let empty = table.aggregate(AggregateKind::Struct, 1, Vec::new());
    let base = Member { role: MemberRole::Base, ..member(None, empty, 0) };
    let class = table.aggregate(AggregateKind::Class, 4, vec![base, member(Some("id"), int, 0)]);
    let field = field_at(&table.0, class, 0, 4).unwrap();
    assert_eq!((field.path.as_str(), field.members), ("id", 1));
}

#[test]
fn leaves_are_what_a_line_can_hold() {
    let (types, id) = subject();
    let names: Vec<String> = leaves(&types, id).into_iter().map(|(path, ..)| path).collect();
    assert_eq!(names, ["id", "in.x", "in.y", "grid", "a", "b", "(union)", "tail"]);
}

#[test]
fn members_that_lie_where_no_memory_is_are_no_leaves() {
    let mut table = Table(Types::new());
    let int = table.integer(4);
    let huge = table.integer(u64::MAX);
    let far = |name, ty| Member { offset_bits: Some(u64::MAX), ..member(Some(name), ty, 0) };
    let mut inner =
        table.aggregate(AggregateKind::Struct, 8, vec![member(Some("m"), int, 0), far("far", int)]);
    for _ in 0..20 {
        // Each is at the greatest offset in the next: in the outermost they are past all addresses.
        inner = table.aggregate(AggregateKind::Struct, 8, vec![member(Some("m"), int, 0), far("in", inner)]);
    }
    let wide = bits("wide", int, u64::MAX - 3, 32);
    let members = vec![member(Some("m"), int, 0), member(Some("huge"), huge, 4), far("in", inner), wide];
    let id = table.aggregate(AggregateKind::Struct, 8, members);
    assert_eq!(leaves(&table.0, id), [("m".to_owned(), 0, 4)]);
    assert_eq!(field_at(&table.0, id, 4, 4).unwrap().path, "huge");
}

#[test]
fn structs_nested_very_deeply_are_searched_for_an_open_end_without_recursion() {
    let mut table = Table(Types::new());
    let mut inner = table.integer(4);
    for _ in 0..200_000 {
        inner = table.aggregate(AggregateKind::Struct, 4, vec![member(Some("m"), inner, 0)]);
    }
    assert_eq!(table.0.break_containment(), []);
    assert!(!has_open_end(&table.0, inner));
}
