//! `__randomize_layout` refuses a type only where the configuration lets the compiler randomise.

use crate::pahole::{integer, member, push, structure};
use lineup_advise::advise;
use lineup_advise::constraint::{Binding, Constraint};
use lineup_advise::judge::NoCompiler;
use lineup_advise::options::Options;
use lineup_advise::order_file::parse;
use lineup_advise::proposal::Advice;
use lineup_advise::randomisation::Randomisation;
use lineup_advise::sources::Sources;
use lineup_advise::usage::Usage;
use lineup_model::abi::Abi;
use lineup_model::types::{TypeKind, Types};

const FILE: &str = "struct file {\n\tlong count;\n\tlong mode;\n\tlong pos;\n} __randomize_layout;\n";

/// Advice on the order `file: mode, pos, count`, where the members are longs or pointers to functions.
fn given(randomisation: Randomisation, declared: &str, has_functions: bool, lifted: &[&str]) -> Advice {
    let mut types = Types::new();
    let mut ty = integer(&mut types, "long", 8);
    if has_functions {
        let function = TypeKind::Function { returns: None, parameters: Vec::new() };
        let function = push(&mut types, "", None, function);
        ty = push(&mut types, "", Some(8), TypeKind::Pointer(Some(function)));
    }
    let members = ["count", "mode", "pos"].iter().zip(0..).map(|(name, at)| member(name, ty, at * 64));
    structure(&mut types, "file", 24, members.collect());
    let sources = Sources::new([("include/fs.h".to_owned(), declared.to_owned())]);
    let lifts = lifted.iter().map(|ty| ((*ty).to_owned(), None)).collect();
    let orders = parse("orders", "file: mode, pos, count").expect("an order");
    let options = Options { orders, lifts, randomisation, ..Options::default() };
    advise(&Usage::empty(Abi::X86_64), &types, &sources, &options, &mut NoCompiler).expect("advice")
}

fn off() -> Randomisation {
    Randomisation::Off { configuration: ".config".into() }
}

fn on() -> Randomisation {
    Randomisation::On { option: "CONFIG_RANDSTRUCT_FULL".into(), configuration: ".config".into() }
}

fn refusal(advice: &Advice) -> Option<&Binding> {
    advice.refusals.first().map(|refusal| &refusal.constraints[0])
}

#[test]
fn without_randomisation_the_annotation_permits_any_order() {
    let advice = given(off(), FILE, false, &[]);
    assert_eq!(refusal(&advice), None);
    assert!(
        advice.edited["include/fs.h"]
            .starts_with("struct file {\n\tlong mode;\n\tlong pos;\n\tlong count;\n")
    );
}

#[test]
fn with_randomisation_the_type_is_refused_by_the_options_name_and_no_lift_helps() {
    for lifted in [&[][..], &["file"]] {
        let advice = given(on(), FILE, false, lifted);
        let binding = refusal(&advice).expect("refused");
        assert_eq!(binding.constraint, Constraint::RandomisedLayout);
        assert!(binding.to_string().contains("CONFIG_RANDSTRUCT_FULL is on in .config"), "{binding}");
        assert!(advice.edited.is_empty());
    }
}

#[test]
fn without_a_configuration_the_type_is_refused_until_the_user_lifts_it() {
    let advice = given(Randomisation::Unknown, FILE, false, &[]);
    let binding = refusal(&advice).expect("refused");
    assert!(binding.to_string().contains("no configuration was found"), "{binding}");
    assert_eq!(refusal(&given(Randomisation::Unknown, FILE, false, &["file"])), None);
    assert!(refusal(&given(Randomisation::Unknown, FILE, false, &["inode"])).is_some(), "another type");
}

#[test]
fn randomisation_reaches_types_that_hold_only_pointers_to_functions() {
    let bare = "struct file {\n\tvoid (*count)(void);\n\tvoid (*mode)(void);\n\tvoid (*pos)(void);\n};\n";
    let exempt = bare.replace("};", "} __no_randomize_layout;");
    assert!(refusal(&given(on(), bare, true, &[])).is_some());
    assert_eq!(refusal(&given(on(), &exempt, true, &[])), None);
    assert_eq!(refusal(&given(off(), bare, true, &[])), None);
    let longs = FILE.replace(" __randomize_layout", "");
    assert_eq!(refusal(&given(on(), &longs, false, &[])), None, "no annotation, and data");
}
