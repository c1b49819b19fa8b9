//! A predicted layout is accepted only when the compiler gives the same: a difference discards it and is named.

use crate::pahole::{integer, member, push, structure};
use lineup_advise::advise;
use lineup_advise::constraint::Constraint;
use lineup_advise::judge::{CompileError, Compiled, Judge};
use lineup_advise::options::Options;
use lineup_advise::proposal::{Advice, Check};
use lineup_advise::sources::Sources;
use lineup_advise::usage::Usage;
use lineup_model::abi::Abi;
use lineup_model::region::{Region, RegionId, Regions};
use lineup_model::types::{TypeId, TypeKind, Types};
use lineup_model::usage::{ByteUse, ObjectPattern, TypeUse};
use std::collections::{BTreeMap, BTreeSet};

/// A compiler that gives this answer to every input.
struct Says(Vec<Compiled>);

impl Judge for Says {
    fn compile(&mut self, _edited: &BTreeMap<String, String>) -> Result<Vec<Compiled>, CompileError> {
        Ok(self.0.clone())
    }
}

/// Types with `struct rec` of words and 120 cold bytes, in this order and at these bytes.
fn types(word_bytes: u64, size_bytes: u64, members: [(&str, u64); 3]) -> (Types, TypeId) {
    let mut types = Types::new();
    let (byte, word) = (integer(&mut types, "char", 1), integer(&mut types, "long", word_bytes));
    let cold = push(&mut types, "", None, TypeKind::Array { element: byte, counts: vec![Some(120)] });
    let members = members.map(|(name, at)| member(name, if name == "cold" { cold } else { word }, 8 * at));
    let id = structure(&mut types, "rec", size_bytes, members.into());
    (types, id)
}

/// A build's answer for x86-64.
fn compiled(size_bytes: u64, members: [(&str, u64); 3]) -> Compiled {
    Compiled { abi: Abi::X86_64, types: types(8, size_bytes, members).0 }
}

/// `a`, then 120 cold bytes, then `z`: the proposed order brings `z` behind `a`.
fn advice(said: Vec<Compiled>) -> Advice {
    let (types, id) = types(8, 136, [("a", 0), ("cold", 8), ("z", 128)]);
    let hot = |offset| ByteUse { offset, size_bytes: 8, loads: 1, stores: 0 };
    let pattern = ObjectPattern::alone(0, vec![hot(0), hot(128)], 1);
    let used =
        TypeUse { region: RegionId(0), ty: id, calls: 1, patterns: vec![pattern], used_as: BTreeSet::new() };
    let regions = Regions::from_iter([Region::named("hot")]);
    let usage = Usage { regions, types: vec![used], ..Usage::empty(Abi::X86_64) };
    let text = "struct rec { long a; char cold[120]; long z; };\n";
    let sources = Sources::new([("a.c".to_string(), text.to_string())]);
    advise(&usage, &types, &sources, &Options::default(), &mut Says(said)).expect("advice")
}

fn refused_because(said: Compiled) -> String {
    let advice = advice(vec![said]);
    assert!(advice.orders.is_empty() && advice.edited.is_empty(), "{:?}", advice.orders);
    let binding = &advice.refusals[0].constraints[0];
    assert_eq!(binding.constraint, Constraint::CompilerDisagrees);
    binding.detail.clone().expect("what differs")
}

fn check(said: Vec<Compiled>) -> Check {
    let advice = advice(said);
    assert_eq!(advice.refusals, []);
    assert_eq!(advice.orders[0].new_order, ["a", "z", "cold"]);
    advice.orders[0].check
}

#[test]
fn what_the_compiler_gives_as_predicted_is_proposed() {
    assert_eq!(check(vec![]), Check::Predicted);
    let as_predicted = compiled(136, [("a", 0), ("z", 8), ("cold", 16)]);
    assert_eq!(check(vec![as_predicted.clone()]), Check::CompiledRecordedOnly);
    let other = types(4, 128, [("a", 0), ("z", 4), ("cold", 8)]).0;
    assert_eq!(check(vec![as_predicted, Compiled { abi: Abi::ARM, types: other }]), Check::Compiled);
}

#[test]
fn a_member_that_the_compiler_puts_elsewhere_is_named() {
    assert_eq!(refused_because(compiled(136, [("a", 0), ("z", 12), ("cold", 16)])), "z differs under LP64");
    assert_eq!(refused_because(compiled(136, [("a", 0), ("z", 8), ("cold", 20)])), "cold differs under LP64");
    assert_eq!(
        refused_because(compiled(192, [("a", 0), ("z", 8), ("cold", 16)])),
        "the size differs under LP64"
    );
}

#[test]
fn a_declaration_that_is_not_the_edited_one_is_no_confirmation() {
    let unedited = compiled(136, [("a", 0), ("cold", 8), ("z", 128)]);
    assert_eq!(refused_because(unedited), "z is not where the declaration puts it");
    let gone = Compiled { abi: Abi::X86_64, types: Types::new() };
    assert_eq!(refused_because(gone), "rec is not where the declaration puts it");
}

/// Neither the recorded machine nor its counterpart: its figures stand for neither data model.
#[test]
fn a_build_for_an_unknown_machine_of_the_other_width_says_nothing() {
    let members = [("a", 0), ("z", 60), ("cold", 64)];
    let foreign = Compiled { abi: Abi::I386, types: types(4, 256, members).0 };
    assert_eq!(check(vec![foreign]), Check::Predicted);
}
