//! Names held against programs whose every access is known by construction.

mod generator;
mod harness;

use harness::{AARCH64, ARM, I386, Run, Target, Truth, X86_64, compile, compile_rust, trace};
use lineup_debuginfo::{DebugInfo, NoCompanions};
use lineup_explain::access_context::AccessContext;
use lineup_explain::fields::Field;
use lineup_explain::image::Image;
use lineup_explain::name::{Class, Evidence, Name, Named};
use lineup_explain::namer::Namer;
use lineup_model::access::Access;
use lineup_model::program::Location;
use std::collections::BTreeMap;
use std::path::Path;

/// Counts of accesses over all programs of a test.
#[derive(Default, Debug)]
struct Score {
    accesses: u64,
    named: u64,
    right: u64,
    /// Accesses to thread-local variables: those that have a variable's name, and all.
    thread_local: (u64, u64),
    by_class: BTreeMap<Class, u64>,
    by_evidence: BTreeMap<Evidence, (u64, u64)>,
    wrong: BTreeMap<String, u64>,
    unnamed: BTreeMap<String, u64>,
}

fn describe(namer: &mut Namer<'_>, access: &Access, named: &Named) -> String {
    let size = u64::from(access.size_bytes);
    match named.name {
        Name::Member { ty, offset, .. } => {
            let path = namer.catalog().field(ty, offset, size).map_or("?".into(), |field| field.path.clone());
            format!("{}.{path}", namer.catalog().name(ty))
        }
        Name::Variable { image, variable, offset } => {
            let found = &namer.images()[image].globals()[variable as usize];
            format!("{}+{offset}", found.name.as_deref().unwrap_or("?"))
        }
        other => format!("{other:?}"),
    }
}

/// True when a field agrees with the program's description of its memory. If several of a union's arms are alike, all
/// must be named: the access may mean any.
fn is_path_right(truth: &Truth, ty: &str, offset: u64, size: u64, field: &Field) -> bool {
    let Some(parts) = truth.parts.get(ty) else { return true };
    let mut known = parts.iter().filter(|(_, at, part_size)| *at == offset && *part_size == size);
    known.all(|(known, ..)| field.may_be(known))
}

/// True when a name agrees with the program's report; `None` when the program does not report the place.
fn is_right(namer: &mut Namer<'_>, run: &Run, truth: &Truth, access: &Access, named: &Named) -> Option<bool> {
    let size = u64::from(access.size_bytes);
    let object = truth.object_at(access.address);
    let in_thread_local = truth.is_thread_local(access.address);
    if let Some(expected) = truth.in_pool(access.address, &namer.function_at(access.pc).0) {
        let is_aggregate = |name: &str| ["chunk", "sized", "point"].contains(&name);
        return Some(match named.name {
            Name::Member { ty, .. } => namer.catalog().name(ty) == expected,
            _ => !is_aggregate(expected),
        });
    }
    let on_stack = run.stacks.iter().any(|stack| (stack.start..stack.end).contains(&access.address));
    match (&named.name, object) {
        (Name::Member { ty, offset, .. }, Some((known, at))) => {
            let field = namer.catalog().field(*ty, *offset, size);
            let name = namer.catalog().name(*ty);
            let is_type = name == known || is_header(&name, known);
            let is_path_right = field.is_none_or(|field| is_path_right(truth, known, at, size, &field));
            Some(is_type && *offset == at && is_path_right)
        }
        (Name::Member { is_on_stack, .. }, None) => on_stack.then_some(*is_on_stack),
        (Name::Variable { image, variable, offset }, _) => {
            let found = &namer.images()[*image].globals()[*variable as usize];
            if let Some((start, _)) = found.name.as_ref().and_then(|name| truth.thread_locals.get(name)) {
                return Some(start + offset == access.address);
            }
            let starts = found.places.iter().filter_map(|place| match place.at {
                Location::Address(start) => Some(start),
                _ => None,
            });
            Some(starts.into_iter().any(|start| start + offset == access.address))
        }
        _ if in_thread_local => Some(false),
        (Name::Stack { .. }, _) => Some(on_stack),
        (Name::Buffer { .. }, _) => Some(truth.is_buffer(access.address)),
        (_, Some(_)) => Some(false),
        _ => None,
    }
}

/// The source reads the common header of these through a type of its own.
fn is_header(name: &str, known: &str) -> bool {
    let number = |text: &str, kind: &str| text.strip_prefix(kind).map(str::to_owned);
    number(name, "head")
        .is_some_and(|own| [number(known, "small"), number(known, "large")].contains(&Some(own)))
}

/// Names every access of a compiled program. `label` distinguishes it from the others.
fn score(target: &Target, program: &Path, label: &str, score: &mut Score) {
    let run = trace(target, program, program.parent().unwrap());
    let debug = DebugInfo::parse(run.bytes.clone(), &mut NoCompanions).unwrap();
    let mut pcs = run.calls.iter().flat_map(|(call, _)| call.accesses.iter().map(|access| access.pc));
    let image = Image::new(run.image.clone(), Some(&debug), &mut pcs);
    let mut namer = Namer::new(vec![image], &[], &run.memory, &run.stacks);
    for (call, _) in &run.calls {
        let mut context = AccessContext::default();
        for access in &call.accesses {
            namer.observe(access, &mut context, call.entered_at).unwrap();
        }
    }
    namer.settle();
    for (call, truth) in &run.calls {
        let mut context = AccessContext::default();
        for access in &call.accesses {
            let named = namer.name(access, &mut context, call.entered_at).unwrap();
            let right = is_right(&mut namer, &run, truth, access, &named);
            score.add(&mut namer, label, access, &named, right, truth);
        }
    }
}

impl Score {
    fn add(
        &mut self,
        namer: &mut Namer<'_>,
        label: &str,
        access: &Access,
        named: &Named,
        right: Option<bool>,
        truth: &Truth,
    ) {
        let class = named.class();
        if truth.is_thread_local(access.address) {
            self.thread_local.0 += u64::from(matches!(named.name, Name::Variable { .. }));
            self.thread_local.1 += 1;
        }
        self.accesses += 1;
        *self.by_class.entry(class).or_default() += 1;
        let place = || format!("{:?} at {:#x}", namer.function_at(access.pc).0, access.pc);
        if class == Class::Unnamed {
            *self.unnamed.entry(place()).or_default() += 1;
            return;
        }
        self.named += 1;
        let counts = self.by_evidence.entry(named.evidence).or_default();
        counts.1 += 1;
        if right != Some(false) {
            counts.0 += 1;
            self.right += 1;
            return;
        }
        let place = place();
        let said = describe(namer, access, named);
        let known = truth.object_at(access.address);
        let line = format!(
            "{place} of {label} {:?} {} bytes: {said} is {known:?}",
            named.evidence, access.size_bytes
        );
        *self.wrong.entry(line).or_default() += 1;
    }
}

fn hold(target: &Target) {
    let mut total = Score::default();
    for flags in [&["-O2"][..], &["-O3"][..]] {
        for seed in 1..=2 {
            let folder = tempfile::tempdir().unwrap();
            let program = compile(target, &generator::program(seed, 4), flags, folder.path());
            score(target, &program, &format!("seed {seed}"), &mut total);
        }
    }
    is_good(target, &total);
    let (named, all) = total.thread_local;
    assert!(all > 300 && named == all, "{named} of {all} accesses to thread-local variables");
}

/// Structs of two words that hold pointers, in registers.
fn hold_views(target: &Target, told_by_code: f64) {
    let source = concat!(include_str!("../programs/prelude.c"), include_str!("../programs/views.c"));
    let mut total = Score::default();
    for flag in ["-O1", "-O2", "-O3"] {
        let folder = tempfile::tempdir().unwrap();
        let program = compile(target, source, &[flag], folder.path());
        score(target, &program, flag, &mut total);
    }
    is_good(target, &total);
    is_told_by_code(&total, told_by_code);
}

/// Most memory outside the stack is named by the code that accesses it, not only through other code that used the same
/// memory.
fn is_told_by_code(total: &Score, at_least: f64) {
    let of = |evidence| total.by_evidence.get(&evidence).map_or(0, |(_, named)| *named);
    let by_code = of(Evidence::LocatedRegister) + of(Evidence::Propagated);
    let elsewhere = of(Evidence::ObjectMap) + of(Evidence::PointerValue);
    let unnamed = total.by_class.get(&Class::Unnamed).copied().unwrap_or(0);
    let share = by_code as f64 / (by_code + elsewhere + unnamed) as f64;
    println!("told by the code: {share:.4}");
    assert!(share >= at_least, "{share} of the accesses are told by the code");
}

fn is_good(target: &Target, total: &Score) {
    assert!(total.accesses > 1000, "{total:?}");
    let accuracy = total.right as f64 / total.named as f64;
    let coverage = total.named as f64 / total.accesses as f64;
    println!("{}: {} accesses, coverage {coverage:.4}, accuracy {accuracy:.4}", target.name, total.accesses);
    println!("{:?}\n{:?}", total.by_class, total.by_evidence);
    let most = |counts: &BTreeMap<String, u64>| {
        let mut all: Vec<(u64, String)> = counts.iter().map(|(text, count)| (*count, text.clone())).collect();
        all.sort_unstable_by(|a, b| b.cmp(a));
        all.into_iter().take(25).map(|(count, text)| format!("{count:6} {text}\n")).collect::<String>()
    };
    println!("wrong:\n{}unnamed:\n{}", most(&total.wrong), most(&total.unnamed));
    assert!(accuracy >= 0.995, "accuracy {accuracy}");
    for (evidence, (right, named)) in &total.by_evidence {
        assert!(*right as f64 >= 0.995 * *named as f64, "{evidence:?}: {right} of {named} are right");
    }
    assert!(coverage >= 0.95, "coverage {coverage}");
}

#[test]
fn names_are_right_on_x86_64() {
    hold(&X86_64);
}

#[test]
fn names_are_right_on_aarch64() {
    hold(&AARCH64);
}

#[test]
fn names_are_right_on_32_bit_arm() {
    hold(&ARM);
}

#[test]
fn names_are_right_on_i386() {
    hold(&I386);
}

/// Blocks of pools, which change hands without a word.
fn hold_pools(target: &Target) {
    let source = concat!(include_str!("../programs/prelude.c"), include_str!("../programs/pools.c"));
    let mut total = Score::default();
    for flag in ["-O1", "-O2", "-O3"] {
        let folder = tempfile::tempdir().unwrap();
        let program = compile(target, source, &[flag], folder.path());
        score(target, &program, flag, &mut total);
    }
    is_good(target, &total);
}

#[test]
fn blocks_of_a_pool_are_no_links_while_they_are_handed_out() {
    hold_pools(&X86_64);
}

#[test]
fn blocks_of_a_pool_are_no_links_on_aarch64_either() {
    hold_pools(&AARCH64);
}

#[test]
fn what_slices_strings_and_vectors_point_to_is_named_in_rust() {
    let mut total = Score::default();
    for level in ["opt-level=1", "opt-level=2", "opt-level=3"] {
        let folder = tempfile::tempdir().unwrap();
        let source = include_str!("../programs/slices.rs");
        let program = compile_rust(source, &["-C", level], folder.path());
        score(&X86_64, &program, level, &mut total);
    }
    is_good(&X86_64, &total);
    is_told_by_code(&total, 0.95);
}

#[test]
fn structs_in_two_registers_are_followed_on_x86_64() {
    // GCC says nowhere where the struct of a number and a pointer is.
    hold_views(&X86_64, 0.9);
}

#[test]
fn structs_in_two_registers_are_followed_on_aarch64() {
    hold_views(&AARCH64, 0.95);
}

#[test]
fn structs_in_two_registers_are_followed_on_32_bit_arm() {
    // GCC does not say where a pointer is once it has stored it unread.
    hold_views(&ARM, 0.8);
}

#[test]
fn structs_passed_in_two_words_of_the_stack_are_followed_on_i386() {
    hold_views(&I386, 0.95);
}
