//! One numbering for the types of several images.

use crate::pieces::struct_of;
use lineup_explain::catalog::Catalog;
use lineup_model::types::{Language, ScalarKind, Type, TypeId, TypeKind, Types};

fn push(types: &mut Types, name: Option<&str>, kind: TypeKind, size_bytes: u64) -> TypeId {
    types.push(Type {
        name: name.map(Into::into),
        size_bytes: Some(size_bytes),
        declared_align: None,
        declared_at: None,
        unit: None,
        language: Language::C,
        kind,
    })
}

/// A struct without a tag and a typedef of it, and a struct that holds one behind 8 bytes; with a typedef of the typedef
/// in front, as C++ libraries have.
fn types(typedef: &str, second: &str) -> (Types, TypeId, TypeId) {
    let mut types = Types::new();
    let number = push(&mut types, Some("int"), TypeKind::Scalar(ScalarKind::Integer { signed: true }), 4);
    let distant = push(&mut types, Some("native_lock_t"), TypeKind::Typedef(Some(TypeId(3))), 8);
    let lock = push(&mut types, None, struct_of(&[("state", number, 0), (second, number, 4)]), 8);
    let named = push(&mut types, Some(typedef), TypeKind::Typedef(Some(lock)), 8);
    assert_eq!(named, TypeId(3), "the typedef that the other one names");
    let shard = push(&mut types, Some("shard"), struct_of(&[("count", number, 0), ("lock", distant, 8)]), 16);
    (types, lock, shard)
}

#[test]
fn a_struct_that_only_a_typedef_names_is_one_type_in_all_images() {
    let (program, _, shard) = types("lock_t", "owner");
    let (library, lock, _) = types("lock_t", "owner");
    let (other_name, other_lock, _) = types("guard_t", "owner");
    let (other_shape, wide_lock, _) = types("lock_t", "waiters");
    let mut catalog = Catalog::new(vec![&program, &library, &other_name, &other_shape]);
    let shard = catalog.intern(0, shard).expect("a type");
    let lock = catalog.intern(1, lock).expect("a type");
    assert!(catalog.holds(shard, 8, lock), "the program's lock is the library's");
    assert!(!catalog.holds(shard, 0, lock));
    for (image, id) in [(2, other_lock), (3, wide_lock)] {
        let other = catalog.intern(image, id).expect("a type");
        assert!(!catalog.holds(shard, 8, other), "image {image}");
    }
}
