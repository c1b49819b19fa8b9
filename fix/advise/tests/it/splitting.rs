//! Types of which little is used: the saving and the cost of two structs, in words.

use crate::pahole::{integer, member, push, structure};
use lineup_advise::advise;
use lineup_advise::judge::NoCompiler;
use lineup_advise::options::Options;
use lineup_advise::proposal::Advice;
use lineup_advise::sources::Sources;
use lineup_advise::usage::{Scale, Usage};
use lineup_model::abi::Abi;
use lineup_model::region::{Region, RegionId, Regions};
use lineup_model::types::{TypeKind, Types};
use lineup_model::usage::{ByteUse, ObjectPattern, TypeUse};
use std::collections::BTreeSet;

/// Every call loads the first word of this number of objects of 256 bytes.
fn advised(objects_per_call: u64) -> Advice {
    let mut types = Types::new();
    let (byte, word) = (integer(&mut types, "char", 1), integer(&mut types, "long", 8));
    let cold = push(&mut types, "", None, TypeKind::Array { element: byte, counts: vec![Some(248)] });
    let id = structure(&mut types, "rec", 256, vec![member("key", word, 0), member("cold", cold, 64)]);
    let bytes = vec![ByteUse { offset: 0, size_bytes: 8, loads: 1, stores: 0 }];
    let occurrences = 10 * objects_per_call;
    let patterns = vec![ObjectPattern::alone(0, bytes, occurrences)];
    let used = TypeUse { region: RegionId(0), ty: id, calls: 10, patterns, used_as: BTreeSet::new() };
    let regions = Regions::from_iter([Region::named("hot")]);
    let scale = Scale { data_lines: Some([40.0, 32.0, 20.0]), ..Scale::default() };
    let scales = [(RegionId(0), scale)].into();
    let usage = Usage { regions, scales, types: vec![used], ..Usage::empty(Abi::X86_64) };
    let text = "struct rec { long key; char cold[248]; };\n";
    let sources = Sources::new([("rec.c".to_owned(), text.to_owned())]);
    advise(&usage, &types, &sources, &Options::default(), &mut NoCompiler).expect("advice")
}

#[test]
fn a_split_is_told_with_the_lines_that_it_saves_at_best_and_its_price() {
    let advice = advised(16);
    let split = advice.splits.first().expect("it is told");
    assert_eq!((split.hot_bytes, split.size_bytes, split.pointer_bytes), (8, 256, 8));
    let row = split.lines.iter().find(|row| row.line_bytes == 64).expect("lines of 64 bytes");
    assert_eq!((row.before, row.after), (Some(16.0), 2.0));
    let told = advice.descriptions.iter().find(|one| one.kind.slug == "split").expect("in words");
    assert!(told.reasons.iter().any(|reason| reason.contains("a pointer of 8 bytes")), "{told:?}");
    let worth = told.worth.first().expect("a share");
    assert_eq!((worth.lines_saved, worth.share), (14.0, Some(14.0 / 32.0)));
    assert!(advice.edited.is_empty(), "nothing is edited");
}

#[test]
fn of_one_object_a_call_no_split_is_told() {
    assert!(advised(1).splits.is_empty());
}
