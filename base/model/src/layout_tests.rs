//! The layouts here were laid out by hand after the System V ABI for x86-64.

use super::*;
use crate::types::{Language, ScalarKind, Type, TypeKind};

struct Builder {
    types: Types,
}

impl Builder {
    fn new() -> Self {
        Builder { types: Types::new() }
    }

    fn add(&mut self, name: Option<&str>, size_bytes: Option<u64>, kind: TypeKind) -> TypeId {
        self.types.push(Type {
            name: name.map(Into::into),
            size_bytes,
            declared_align: None,
            declared_at: None,
            unit: None,
            language: Language::C,
            kind,
        })
    }

    fn int(&mut self, bytes: u64) -> TypeId {
        self.add(Some("int"), Some(bytes), TypeKind::Scalar(ScalarKind::Integer { signed: true }))
    }

    fn aggregate(&mut self, kind: AggregateKind, size: u64, members: Vec<Member>) -> TypeId {
        let aggregate = Aggregate { kind, members, static_members: Vec::new(), is_declaration: false };
        self.add(Some("s"), Some(size), TypeKind::Aggregate(aggregate))
    }

    fn structure(&mut self, size: u64, members: Vec<Member>) -> TypeId {
        self.aggregate(AggregateKind::Struct, size, members)
    }
}

fn field(name: &str, ty: TypeId, offset_bytes: u64) -> Member {
    Member {
        name: Some(name.into()),
        ty,
        offset_bits: Some(offset_bytes * 8),
        bit_size: None,
        declared_align: None,
        role: MemberRole::Field,
        declared_at: None,
    }
}

fn bits(name: &str, ty: TypeId, offset_bits: u64, bit_size: u32) -> Member {
    Member { offset_bits: Some(offset_bits), bit_size: Some(bit_size), ..field(name, ty, 0) }
}

#[test]
fn a_hole_stands_before_the_member_that_alignment_pushed_away() {
    // struct { char c; long l; int i; }
    let mut b = Builder::new();
    let (char, int, long) = (b.int(1), b.int(4), b.int(8));
    let s = b.structure(24, vec![field("c", char, 0), field("l", long, 8), field("i", int, 16)]);
    let layout = Layout::of(&b.types, s, LineSize::B64).unwrap();
    assert_eq!(layout.rows[1].gap_before, Gap { bytes: 7, bits: 0 });
    assert_eq!((layout.holes(), layout.hole_bytes()), (1, 7));
    assert_eq!(layout.padding, Gap { bytes: 4, bits: 0 });
    assert_eq!(layout.member_bytes(), 13);
    assert_eq!((layout.lines(), layout.last_line_bytes()), (1, 24));
}

#[test]
fn bits_left_in_a_storage_unit_are_bit_holes_and_what_lies_beyond_is_bytes() {
    // struct { int a:3; long l; }: 29 bits of a's int, then 4 bytes.
    let mut b = Builder::new();
    let (int, long) = (b.int(4), b.int(8));
    let s = b.structure(16, vec![bits("a", int, 0, 3), field("l", long, 8)]);
    let layout = Layout::of(&b.types, s, LineSize::B64).unwrap();
    assert_eq!(layout.rows[1].gap_before, Gap { bytes: 4, bits: 29 });
    assert_eq!((layout.bit_holes(), layout.hole_bits()), (1, 29));
    assert_eq!(layout.bit_field_bits(), 3);
}

#[test]
fn a_byte_may_follow_inside_the_storage_unit_of_a_bit_field() {
    // struct { int a:3; char c; }: c takes the second byte of a's int.
    let mut b = Builder::new();
    let (char, int) = (b.int(1), b.int(4));
    let s = b.structure(4, vec![bits("a", int, 0, 3), field("c", char, 1)]);
    let layout = Layout::of(&b.types, s, LineSize::B64).unwrap();
    assert_eq!(layout.rows[1].gap_before, Gap { bytes: 0, bits: 5 });
    assert_eq!(layout.padding, Gap { bytes: 2, bits: 0 });
}

#[test]
fn a_trailing_bit_field_pads_in_bits() {
    // struct { long l; int a:30; }
    let mut b = Builder::new();
    let (int, long) = (b.int(4), b.int(8));
    let s = b.structure(16, vec![field("l", long, 0), bits("a", int, 64, 30)]);
    let layout = Layout::of(&b.types, s, LineSize::B64).unwrap();
    assert_eq!(layout.padding, Gap { bytes: 4, bits: 2 });
}

#[test]
fn a_union_has_no_holes() {
    let mut b = Builder::new();
    let (char, long) = (b.int(1), b.int(8));
    let u = b.aggregate(AggregateKind::Union, 8, vec![field("c", char, 0), field("l", long, 0)]);
    let layout = Layout::of(&b.types, u, LineSize::B64).unwrap();
    assert_eq!((layout.holes(), layout.padding), (0, Gap::default()));
}

#[test]
fn room_reused_from_a_base_class_is_no_hole_and_counts_once() {
    // struct B { long l; char c; }; struct D : B { char d; }: d sits in B's padding.
    let mut b = Builder::new();
    let (char, long) = (b.int(1), b.int(8));
    let base = b.structure(16, vec![field("l", long, 0), field("c", char, 8)]);
    let mut inherited = field("B", base, 0);
    (inherited.name, inherited.role) = (None, MemberRole::Base);
    let derived = b.structure(16, vec![inherited, field("d", char, 9)]);
    let layout = Layout::of(&b.types, derived, LineSize::B64).unwrap();
    assert_eq!((layout.holes(), layout.member_bytes()), (0, 16));
    assert_eq!((layout.rows[0].inner_padding_bytes, layout.rows[0].reused_padding_bytes), (6, 1));
}

#[test]
fn a_base_class_without_members_shares_its_byte() {
    // struct E {}; struct D : E { int x; }
    let mut b = Builder::new();
    let int = b.int(4);
    let empty = b.structure(1, Vec::new());
    let mut inherited = field("E", empty, 0);
    (inherited.name, inherited.role) = (None, MemberRole::Base);
    let derived = b.structure(4, vec![inherited.clone(), field("x", int, 0)]);
    let layout = Layout::of(&b.types, derived, LineSize::B64).unwrap();
    assert_eq!((layout.inner_padding_bytes(), layout.padding), (0, Gap::default()));
    let apart = b.structure(8, vec![inherited, field("e", empty, 1), field("x", int, 4)]);
    let layout = Layout::of(&b.types, apart, LineSize::B64).unwrap();
    assert_eq!((layout.inner_padding_bytes(), layout.hole_bytes()), (2, 2));
}

#[test]
fn a_member_that_would_end_behind_its_type_has_no_size() {
    // struct Rest { tag: u8, rest: [u32] }: debug information has one element.
    let mut b = Builder::new();
    let (byte, word) = (b.int(1), b.int(4));
    let open = b.structure(4, vec![field("tag", byte, 0), field("rest", word, 4)]);
    let layout = Layout::of(&b.types, open, LineSize::B64).unwrap();
    assert_eq!((layout.rows[1].size_bytes, layout.member_bytes()), (None, 1));
}

#[test]
fn no_padding_is_claimed_where_a_virtual_base_lies() {
    // struct M : virtual B { int m; }: 8 bytes of table pointer, m, 4 unused, then B.
    let mut b = Builder::new();
    let (int, long) = (b.int(4), b.int(8));
    let base = b.structure(8, vec![field("l", long, 0)]);
    let mut inherited = field("B", base, 0);
    (inherited.offset_bits, inherited.role) = (None, MemberRole::VirtualBase);
    let derived = b.structure(24, vec![field("_vptr", long, 0), field("m", int, 8), inherited]);
    let layout = Layout::of(&b.types, derived, LineSize::B64).unwrap();
    assert_eq!(layout.padding, Gap::default());
    assert_eq!(layout.rows.last().unwrap().offset_bits, None);
}

#[test]
fn no_hole_is_claimed_where_a_virtual_base_holds_the_table_pointer() {
    // struct I { virtual void f(); }; struct M : virtual I { int m; }: the pointer of I, then m.
    let mut b = Builder::new();
    let (int, long) = (b.int(4), b.int(8));
    let base = b.structure(8, vec![field("_vptr", long, 0)]);
    let mut inherited = field("I", base, 0);
    (inherited.offset_bits, inherited.role) = (None, MemberRole::VirtualBase);
    let derived = b.structure(24, vec![field("m", int, 8), field("n", long, 16), inherited]);
    let layout = Layout::of(&b.types, derived, LineSize::B64).unwrap();
    assert_eq!((layout.holes(), layout.hole_bytes()), (1, 4));
}

#[test]
fn a_member_of_unknown_size_hides_the_room_after_it_instead_of_inventing_a_hole() {
    let mut b = Builder::new();
    let char = b.int(1);
    let unknown = b.add(Some("u"), None, TypeKind::Opaque);
    let s = b.structure(32, vec![field("u", unknown, 0), field("c", char, 24)]);
    let layout = Layout::of(&b.types, s, LineSize::B64).unwrap();
    assert_eq!(layout.rows[0].size_bytes, None);
    assert_eq!(layout.holes(), 0);
}

#[test]
fn a_flexible_array_takes_no_room() {
    let mut b = Builder::new();
    let char = b.int(1);
    let tail = b.add(None, None, TypeKind::Array { element: char, counts: vec![None] });
    let s = b.structure(1, vec![field("c", char, 0), field("tail", tail, 1)]);
    let layout = Layout::of(&b.types, s, LineSize::B64).unwrap();
    assert_eq!(layout.rows[1].size_bytes, Some(0));
    assert_eq!(layout.padding, Gap::default());
}

#[test]
fn straddling_members_lie_on_more_lines_than_they_need() {
    let mut b = Builder::new();
    let (int, long) = (b.int(4), b.int(8));
    let s = b.structure(72, vec![field("i", int, 0), field("l", long, 60)]);
    let layout = Layout::of(&b.types, s, LineSize::B64).unwrap();
    let names: Vec<_> = layout.straddling().filter_map(|row| row.name.as_deref()).collect();
    assert_eq!(names, ["l"]);
    assert_eq!(layout.rows[1].lines(LineSize::B64), Some(0..=1));
}

#[test]
fn a_type_that_contains_itself_ends() {
    // Corrupt input only: a struct cannot hold itself.
    let mut b = Builder::new();
    let s = b.structure(8, vec![field("me", TypeId(0), 0)]);
    assert!(Layout::of(&b.types, s, LineSize::B64).is_some());
}

#[test]
fn diff_tells_what_grew_moved_came_and_went() {
    let mut old = Builder::new();
    let (int, long) = (old.int(4), old.int(8));
    let before = old.structure(24, vec![field("a", int, 0), field("gone", long, 8), field("b", int, 16)]);
    let mut new = Builder::new();
    let (int, long) = (new.int(4), new.int(8));
    let after = new.structure(80, vec![field("a", long, 0), field("came", int, 8), field("b", int, 64)]);
    let found = diff((&old.types, before), (&new.types, after), LineSize::B64).unwrap();
    assert_eq!((found.size_bytes, found.lines), ((24, 80), (1, 2)));
    assert_eq!(
        found.changes,
        [
            Change::Resized { name: "a".into(), from: 4, to: 8, is_in_bits: false },
            Change::Added { name: "came".into(), offset: 8 },
            Change::Moved { name: "b".into(), from: 16, to: 64, bits: None, lines: Some((0, 1)) },
            Change::Removed { name: "gone".into(), offset: 8 },
        ]
    );
    assert!(diff((&old.types, before), (&old.types, before), LineSize::B64).unwrap().is_empty());
}

#[test]
fn diff_looks_into_types_without_a_name_and_at_bits() {
    // struct { int m; struct { int a, b; } inner; unsigned c:3, d:5; }, then with a and b, c and d exchanged.
    let build = |(a, b): (u64, u64), (c, d): (u64, u64)| {
        let mut types = Builder::new();
        let int = types.int(4);
        let inner = types.structure(8, vec![field("a", int, a), field("b", int, b)]);
        types.types.get_mut(inner).unwrap().name = None;
        let (c, d) = (bits("c", int, 96 + c, 3), bits("d", int, 96 + d, 5));
        let whole = types.structure(16, vec![field("m", int, 0), field("inner", inner, 4), c, d]);
        (types.types, whole)
    };
    let (before, after) = (build((0, 4), (0, 3)), build((4, 0), (5, 0)));
    let found = diff((&before.0, before.1), (&after.0, after.1), LineSize::B64).unwrap();
    let moved =
        |name: &str, (from, to), bits| Change::Moved { name: name.into(), from, to, bits, lines: None };
    let mut changes = found.changes;
    changes.sort_by_key(|change| format!("{change:?}"));
    assert_eq!(
        changes,
        [
            moved("c", (12, 12), Some((0, 5))),
            moved("d", (12, 12), Some((3, 0))),
            moved("inner.a", (4, 8), None),
            moved("inner.b", (8, 4), None),
        ]
    );
}

#[test]
fn paddings_of_members_add_up_to_no_more_than_can_be_counted() {
    let mut types = Builder::new();
    let byte = types.int(1);
    let padded = types.structure(1 << 60, vec![field("m", byte, 0)]);
    let members = (0..17).map(|_| field("m", padded, 0)).collect();
    let whole = types.aggregate(AggregateKind::Union, 1 << 60, members);
    let layout = Layout::of(&types.types, whole, LineSize::B64).unwrap();
    assert_eq!(layout.rows[0].inner_padding_bytes, (1 << 60) - 1);
    assert_eq!(layout.inner_padding_bytes(), u64::MAX);
}
