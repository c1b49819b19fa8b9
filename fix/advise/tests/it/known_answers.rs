//! Published layouts whose best answers are known.

use crate::pahole;
use crate::pahole::{Folder, integer, member, pointer, structure};
use lineup_advise::judge::NoCompiler;
use lineup_advise::options::Options;
use lineup_advise::patch::unified_diff;
use lineup_advise::proposal::{Advice, Check, OrderProposal, RegionLines};
use lineup_advise::sources::Sources;
use lineup_advise::usage::Usage;
use lineup_advise::{advise, constraint::Constraint};
use lineup_model::abi::Abi;
use lineup_model::access::ThreadId;
use lineup_model::region::{Region, RegionId};
use lineup_model::types::{TypeId, Types};
use lineup_model::usage::{ByteUse, ObjectPattern, Owner, Sharing, TypeUse};
use std::collections::BTreeSet;

const CLOCKCHIPS: &str = include_str!("texts/clockchips.h");
const USES_IT: &str = "#include \"clockchips.h\"\nstruct clock_event_device device;\n";

/// A region that touches these members of `objects` line-aligned objects per call.
fn touches(types: &Types, id: TypeId, region: u16, members: &[&str], objects: u64) -> TypeUse {
    let (_, aggregate) = types.aggregate(id).expect("a struct");
    let mut bytes: Vec<ByteUse> = members
        .iter()
        .map(|name| {
            let member =
                aggregate.members.iter().find(|member| member.name.as_deref() == Some(name)).expect("known");
            let bits = member.offset_bits.expect("placed");
            let size_bytes = match member.bit_size {
                Some(width) => (bits % 8 + u64::from(width)).div_ceil(8),
                None => types.size_bytes(member.ty).expect("complete"),
            };
            ByteUse { offset: bits / 8, size_bytes, loads: 1, stores: 0 }
        })
        .collect();
    bytes.sort();
    let patterns = vec![ObjectPattern::alone(0, bytes, 100 * objects)];
    TypeUse { region: RegionId(region), ty: id, calls: 100, patterns, used_as: BTreeSet::new() }
}

fn usage(abi: Abi, regions: &[&str], types: Vec<TypeUse>) -> Usage {
    let regions = regions.iter().map(|name| Region::named(*name)).collect();
    Usage { regions, types, ..Usage::empty(abi) }
}

fn lines<'a>(rows: &'a [RegionLines], region: &str, model: &str, bytes: u64) -> &'a RegionLines {
    rows.iter()
        .find(|row| row.region == region && row.data_model == model && row.line_bytes == bytes)
        .unwrap_or_else(|| panic!("no row for {region} {model} {bytes}"))
}

fn only(advice: &Advice) -> &OrderProposal {
    assert!(advice.refusals.is_empty(), "{:?}", advice.refusals);
    assert_eq!(advice.orders.len(), 1, "{advice:?}");
    &advice.orders[0]
}

const ADJUSTED: [&str; 5] = ["features", "mult_adjusted", "shift", "mult", "list"];
const PROGRAMMED: [&str; 8] = [
    "state_use_accessors",
    "next_event",
    "features",
    "set_next_event",
    "max_delta_ns",
    "min_delta_ticks_adjusted",
    "mult_adjusted",
    "shift",
];

fn clockevents() -> Folder {
    let mut folder =
        Folder::new(&[("clockchips.h", CLOCKCHIPS), ("use.c", USES_IT)], "use.c", &["clock_event_device"]);
    folder.abis = vec![Abi::X86_64, Abi::ARM];
    folder
}

#[test]
fn the_adjustment_of_2016_fits_one_line_on_both_data_models() {
    let mut folder = clockevents();
    folder.write(&Default::default());
    let types = folder.types(Abi::X86_64).expect("compiles");
    let id = types.by_name()["clock_event_device"][0];
    let used = touches(&types, id, 0, &ADJUSTED, 64);
    let usage = usage(Abi::X86_64, &["adjust"], vec![used]);
    let sources = Sources::new(folder.files.clone());
    let advice = advise(&usage, &types, &sources, &Options::default(), &mut folder)
        .expect("nothing but candidates fails");
    let proposal = only(&advice);
    assert_eq!(proposal.check, Check::Compiled);
    assert!(proposal.is_proven_minimal);
    for (model, before) in [("LP64", 2.0), ("ILP32", 2.0)] {
        let row = lines(&proposal.lines, "adjust", model, 64);
        assert_eq!((row.before, row.after), (Some(before * 64.0), 64.0), "{model}");
    }
    let fewest = lines(&proposal.lines, "adjust", "LP64", 32).after;
    assert_eq!(fewest, 64.0, "32 bytes hold 16 of list, 3 of features and 12 of the others");
    assert!(proposal.sizes.iter().all(|size| size.after_bytes <= size.before_bytes));
}

#[test]
fn with_the_event_programming_weighed_in_no_region_needs_more_lines_than_the_patch_of_2016() {
    let mut folder = clockevents();
    folder.write(&Default::default());
    let types = folder.types(Abi::X86_64).expect("compiles");
    let id = types.by_name()["clock_event_device"][0];
    let uses = vec![touches(&types, id, 0, &ADJUSTED, 1), touches(&types, id, 1, &PROGRAMMED, 1)];
    let usage = usage(Abi::X86_64, &["adjust", "program"], uses);
    let sources = Sources::new(folder.files.clone());
    let advice = advise(&usage, &types, &sources, &Options::default(), &mut folder)
        .expect("nothing but candidates fails");
    let proposal = only(&advice);
    let row = |region, model| lines(&proposal.lines, region, model, 64).after;
    assert_eq!((row("adjust", "LP64"), row("program", "LP64")), (1.0, 1.0), "the patch needs two and one");
    assert_eq!((row("adjust", "ILP32"), row("program", "ILP32")), (1.0, 1.0), "as the patch");
}

#[test]
fn the_patch_applies_with_git_and_the_guard_holds_it() {
    let mut folder = clockevents();
    folder.write(&Default::default());
    let types = folder.types(Abi::X86_64).expect("compiles");
    let id = types.by_name()["clock_event_device"][0];
    let usage = usage(Abi::X86_64, &["adjust"], vec![touches(&types, id, 0, &ADJUSTED, 1)]);
    let sources = Sources::new(folder.files.clone());
    let advice = advise(&usage, &types, &sources, &Options::default(), &mut folder)
        .expect("nothing but candidates fails");
    assert!(!advice.guard.check(&types, Abi::X86_64).violations.is_empty(), "the old layout breaks it");
    std::fs::write(folder.path().join("fix.patch"), unified_diff(&sources, &advice.edited)).expect("writes");
    pahole::run("git", "git", folder.path(), &["apply", "fix.patch"]).expect("applies");
    let text = std::fs::read_to_string(folder.path().join("clockchips.h")).expect("reads");
    assert_eq!(text, advice.edited["clockchips.h"]);
    let after = folder.types(Abi::X86_64).expect("compiles");
    let report = advice.guard.check(&after, Abi::X86_64);
    assert_eq!((report.violations, report.kept), (Vec::new(), 1));
}

fn pointers(count: usize) -> (Types, TypeId, Sources) {
    let mut types = Types::new();
    let word = pointer(&mut types, Abi::X86_64);
    let members = (0..count).map(|index| member(&format!("p{index}"), word, index as u64 * 64)).collect();
    let id = structure(&mut types, "wide", count as u64 * 8, members);
    let fields: String = (0..count).map(|index| format!("\tvoid *p{index};\n")).collect();
    let text = format!("struct wide {{\n{fields}}};\n");
    (types, id, Sources::new([("wide.c".to_string(), text)]))
}

#[test]
fn five_hot_pointers_of_two_regions_fit_one_line_for_both() {
    let (types, id, sources) = pointers(24);
    let uses = vec![
        touches(&types, id, 0, &["p0", "p9", "p17"], 1),
        touches(&types, id, 1, &["p3", "p9", "p21"], 1),
    ];
    let usage = usage(Abi::X86_64, &["a", "b"], uses);
    let advice = advise(&usage, &types, &sources, &Options::default(), &mut NoCompiler)
        .expect("nothing but candidates fails");
    let proposal = only(&advice);
    for region in ["a", "b"] {
        assert_eq!(lines(&proposal.lines, region, "LP64", 64).after, 1.0);
    }
    let at_32: f64 = ["a", "b"].iter().map(|region| lines(&proposal.lines, region, "LP64", 32).after).sum();
    assert_eq!(at_32, 3.0, "four pointers fit 32 bytes, and the two sets have five");
    assert!(proposal.moved.len() <= 5, "only hot members need to move: {:?}", proposal.moved);
    assert_eq!(proposal.check, Check::Predicted);
}

#[test]
fn a_counter_that_every_thread_writes_leaves_the_line_of_a_pointer_that_they_read() {
    let (types, id, sources) = pointers(24);
    let mut usage = usage(Abi::X86_64, &["read"], vec![touches(&types, id, 0, &["p0", "p1"], 1)]);
    let threads: BTreeSet<ThreadId> = (0..4).map(ThreadId).collect();
    let sharing = |offset, writers: &BTreeSet<ThreadId>, handovers| Sharing {
        owner: Owner::Type(id),
        offset,
        size_bytes: 8,
        readers: threads.clone(),
        writers: writers.clone(),
        handovers,
    };
    usage.sharing = vec![sharing(0, &BTreeSet::new(), 0), sharing(8, &threads, 90)];
    let advice = advise(&usage, &types, &sources, &Options::default(), &mut NoCompiler)
        .expect("nothing but candidates fails");
    let proposal = only(&advice);
    let at = |name: &str| proposal.new_order.iter().position(|member| member == name).expect("kept") / 8;
    assert_ne!(at("p0"), at("p1"));
    assert!(advice.guard.groups.iter().any(|group| group.members == ["p0"] && group.apart == ["p1"]));
}

#[test]
fn when_no_order_of_the_same_size_parts_them_the_answer_is_a_named_refusal() {
    let (types, id, sources) = pointers(2);
    let mut usage = usage(Abi::X86_64, &["read"], vec![touches(&types, id, 0, &["p0", "p1"], 1)]);
    let threads: BTreeSet<ThreadId> = (0..2).map(ThreadId).collect();
    let sharing = |offset, writers: BTreeSet<ThreadId>| Sharing {
        owner: Owner::Type(id),
        offset,
        size_bytes: 8,
        readers: threads.clone(),
        writers,
        handovers: 100,
    };
    usage.sharing = vec![sharing(0, BTreeSet::new()), sharing(8, threads.clone())];
    let advice = advise(&usage, &types, &sources, &Options::default(), &mut NoCompiler)
        .expect("nothing but candidates fails");
    assert_eq!(advice.refusals[0].constraints[0].constraint, Constraint::NeverLarger);
    assert!(advice.orders.is_empty());
}

#[test]
fn linux_6_1_puts_mult_at_48_and_list_across_lines_2_and_3() {
    // Linux 6.1's members in order, reduced to sizes.
    let mut types = Types::new();
    let word = pointer(&mut types, Abi::X86_64);
    let int = integer(&mut types, "unsigned int", 4);
    let long = integer(&mut types, "long unsigned int", 8);
    let list =
        structure(&mut types, "list_head", 16, vec![member("next", word, 0), member("prev", word, 64)]);
    let mut members = Vec::new();
    let mut at = 0;
    let mut add = |name: &str, ty, size: u64| {
        at = u64::next_multiple_of(at, size.min(8));
        members.push(member(name, ty, at * 8));
        at += size;
    };
    for name in ["event_handler", "set_next_event", "set_next_ktime"] {
        add(name, word, 8);
    }
    for name in ["next_event", "max_delta_ns", "min_delta_ns"] {
        add(name, long, 8);
    }
    for name in ["mult", "shift", "state_use_accessors", "features"] {
        add(name, int, 4);
    }
    add("retries", long, 8);
    for index in 0..5 {
        add(&format!("set_state_{index}"), word, 8);
    }
    for name in ["broadcast", "suspend", "resume"] {
        add(name, word, 8);
    }
    for name in ["min_delta_ticks", "max_delta_ticks"] {
        add(name, long, 8);
    }
    add("name", word, 8);
    for name in ["rating", "irq", "bound_on"] {
        add(name, int, 4);
    }
    add("cpumask", word, 8);
    add("list", list, 16);
    add("owner", word, 8);
    let id = structure(&mut types, "clock_event_device", 256, members);
    let aggregate = types.aggregate(id).expect("a struct").1;
    let offset = |name: &str| {
        let found = aggregate.members.iter().find(|member| member.name.as_deref() == Some(name));
        found.and_then(|member| member.offset_bytes())
    };
    assert_eq!((offset("mult"), offset("list")), (Some(48), Some(184)));
    let text = CLOCKCHIPS.replace("struct clock_event_device {", "struct unrelated {");
    let fields: String =
        aggregate.members.iter().map(|m| format!("\tT {};\n", m.name.as_deref().unwrap_or(""))).collect();
    let text = format!("{text}\nstruct clock_event_device {{\n{fields}}} ____cacheline_aligned;\n");
    let sources = Sources::new([("c.h".to_string(), text)]);
    let usage = usage(
        Abi::X86_64,
        &["adjust"],
        vec![touches(&types, id, 0, &["features", "mult", "shift", "list"], 1)],
    );
    let advice = advise(&usage, &types, &sources, &Options::default(), &mut NoCompiler)
        .expect("nothing but candidates fails");
    let row = lines(&only(&advice).lines, "adjust", "LP64", 64).clone();
    assert_eq!((row.before, row.after), (Some(3.0), 1.0), "line 0, and list across lines 2 and 3");
    assert_eq!(only(&advice).sizes[0].after_bytes, 256);
}

#[test]
fn a_reason_says_stays_only_of_members_that_did_not_move() {
    let text = "struct rec { long a; char cold[40]; long b; char colder[64]; long c; };\nstruct rec r;\n";
    let mut folder = Folder::new(&[("a.c", text)], "a.c", &["rec"]);
    folder.write(&Default::default());
    let types = folder.types(Abi::X86_64).expect("compiles");
    let id = types.by_name()["rec"][0];
    let used = touches(&types, id, 0, &["a", "b", "c"], 1);
    let usage = usage(Abi::X86_64, &["hot"], vec![used]);
    let sources = Sources::new(folder.files.clone());
    let advice = advise(&usage, &types, &sources, &Options::default(), &mut folder)
        .expect("nothing but candidates fails");
    let proposal = only(&advice);
    let because = |member: &str| {
        let reason = proposal.reasons.iter().find(|reason| reason.member == member);
        reason.map(|reason| reason.because.clone()).expect("a reason")
    };
    assert!(proposal.moved.contains(&"b".to_string()), "{:?}", proposal.moved);
    assert!(because("b").starts_with("moves within line 0"), "{}", because("b"));
    assert!(because("a").starts_with("stays on line 0"), "{}", because("a"));
}
