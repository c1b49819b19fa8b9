//! Data of different threads gets room between it, and keeps the room that it has.

use crate::pahole::Folder;
use lineup_advise::advise;
use lineup_advise::options::Options;
use lineup_advise::proposal::{Advice, Check, OrderProposal};
use lineup_advise::sources::Sources;
use lineup_advise::usage::Usage;
use lineup_model::abi::Abi;
use lineup_model::access::ThreadId;
use lineup_model::region::{Region, RegionId, Regions};
use lineup_model::types::{TypeId, Types};
use lineup_model::usage::{ByteUse, FoughtOver, LockUse, ObjectPattern, ThreadUse, TypeUse};
use std::collections::BTreeSet;

/// A member, the threads that read it and those that write it.
type Used<'a> = (&'a str, &'a [u32], &'a [u32]);

fn usage(types: &Types, id: TypeId, used: &[Used<'_>], is_inside: Option<bool>) -> Usage {
    let (_, aggregate) = types.aggregate(id).expect("a struct");
    let member = |name: &str| {
        let found = aggregate.members.iter().find(|member| member.name.as_deref() == Some(name));
        let found = found.expect("a member");
        (found.offset_bits.expect("an offset") / 8, types.size_bytes(found.ty).expect("a size"))
    };
    let threads = |all: &[u32]| all.iter().map(|thread| ThreadId(*thread)).collect::<BTreeSet<_>>();
    let thread_uses = used.iter().map(|(name, readers, writers)| ThreadUse {
        ty: id,
        offset: member(name).0,
        // Of a larger member, such as a mutex, only the beginning.
        size_bytes: member(name).1.min(8),
        readers: threads(readers),
        writers: threads(writers),
        loads: 1000 * readers.len() as u64,
        stores: 1000 * writers.len() as u64,
    });
    let bytes = used.iter().map(|(name, ..)| ByteUse {
        offset: member(name).0,
        size_bytes: member(name).1,
        loads: 10,
        stores: 10,
    });
    let bytes = bytes.collect();
    let patterns = vec![ObjectPattern::alone(0, bytes, 10)];
    let fought =
        |is_inside| FoughtOver { ty: id, is_inside, per_thousand: 90.0, per_thousand_at_most: 1000.0 };
    Usage {
        regions: Regions::from_iter([Region::named("hot")]),
        types: vec![TypeUse { region: RegionId(0), ty: id, calls: 10, patterns, used_as: BTreeSet::new() }],
        thread_uses: thread_uses.collect(),
        fought_over: is_inside.map(fought).into_iter().collect(),
        threads: 2,
        ..Usage::empty(Abi::X86_64)
    }
}

fn advice(text: &str, used: &[Used<'_>], is_inside: Option<bool>, allow_growth: bool) -> Advice {
    advice_with(text, used, is_inside, allow_growth, &[])
}

/// A lock: its own member, and the members that it guards.
type Locks<'a> = &'a [(&'a str, &'a [&'a str])];

fn advice_with(
    text: &str,
    used: &[Used<'_>],
    is_inside: Option<bool>,
    allow_growth: bool,
    locks: Locks<'_>,
) -> Advice {
    advice_counted(text, used, is_inside, allow_growth, locks, |one| one)
}

/// The same with other counts of loads and stores.
fn advice_counted(
    text: &str,
    used: &[Used<'_>],
    is_inside: Option<bool>,
    allow_growth: bool,
    locks: Locks<'_>,
    counted: impl Fn(ThreadUse) -> ThreadUse,
) -> Advice {
    let options = Options { allow_growth, ..Options::default() };
    advice_by(text, used, is_inside, &options, locks, counted)
}

/// The same by all options.
fn advice_by(
    text: &str,
    used: &[Used<'_>],
    is_inside: Option<bool>,
    options: &Options,
    locks: Locks<'_>,
    counted: impl Fn(ThreadUse) -> ThreadUse,
) -> Advice {
    let mut folder = Folder::new(&[("a.c", text)], "a.c", &["rec"]);
    folder.write(&Default::default());
    let types = folder.types(Abi::X86_64).expect("compiles");
    let id = types.by_name()["rec"][0];
    let sources = Sources::new(folder.files.clone());
    let (_, aggregate) = types.aggregate(id).expect("a struct");
    let place = |name: &str| {
        let found = aggregate.members.iter().find(|member| member.name.as_deref() == Some(name));
        found.and_then(|member| member.offset_bytes()).expect("a member")
    };
    let lock = |(name, guards): &(&str, &[&str])| LockUse {
        ty: id,
        name: (*name).to_owned(),
        offset: place(name),
        guards: guards.iter().map(|guarded| (place(guarded), 8)).collect(),
        waits: 1000,
        is_better_elsewhere: false,
    };
    let locks = locks.iter().map(lock).collect();
    let usage = Usage { locks, ..usage(&types, id, used, is_inside) };
    let usage = Usage { thread_uses: usage.thread_uses.into_iter().map(counted).collect(), ..usage };
    advise(&usage, &types, &sources, options, &mut folder).expect("advice")
}

fn parted(advice: &Advice) -> &OrderProposal {
    let proposal = advice.orders.first().unwrap_or_else(|| panic!("a proposal: {:?}", advice.refusals));
    assert!(proposal.parted.is_some());
    assert_ne!(proposal.check, Check::Predicted, "the compiler has judged it");
    proposal
}

/// The offset of a member, in bytes.
fn at(proposal: &OrderProposal, member: &str) -> u64 {
    let place = proposal.new_order.iter().position(|name| name == member).expect("a member");
    proposal.new_offsets_bits[place] / 8
}

const EACH_OWN: [Used<'static>; 2] = [("first", &[0], &[0]), ("second", &[1], &[1])];

#[test]
fn counters_of_two_threads_are_parted_however_they_are_declared() {
    let many = format!(
        "struct rec {{ long first; long second; }};\nstruct rec all[] = {{ {} }};\n",
        "{ 1, 2 }, ".repeat(9)
    );
    for (declaration, room, values) in [
        (
            "struct rec {\n\tlong first; /* of one */\n\tlong second;\n};\nstruct rec r = { 1, 2 };\n",
            "\tchar pad[52]; /* other threads",
            "{ .first = 1, .second = 2 }",
        ),
        (
            "struct rec { unsigned long first; unsigned long second; } r = { 1, .second = 2 };\n",
            "first; char pad[52]; unsigned",
            "{ .first = 1, .second = 2 }",
        ),
        (
            "struct rec { long first; long second; };\nstruct rec r[] = { { .first = 1 }, { .second = 2 } };\n",
            "char pad[52];",
            "{ { .first = 1 }, { .second = 2 } }",
        ),
        (many.as_str(), "int : 32", "{ 1, 2 }, { 1, 2 }"),
    ] {
        let advice = advice(declaration, &EACH_OWN, Some(true), true);
        let proposal = parted(&advice);
        assert_eq!(at(proposal, "second") - at(proposal, "first"), 64, "{declaration}");
        let text = &advice.edited["a.c"];
        assert!(text.contains(room), "{text}");
        assert!(text.contains(values), "few values get names, and others stay right by position: {text}");
        assert_eq!(advice.descriptions[0].kind.slug, "part");
    }
}

#[test]
fn room_never_moves_a_member_that_keeps_its_offset() {
    let pins = vec![("rec".to_owned(), "second".to_owned())];
    let pinned = Options { allow_growth: true, pins, ..Options::default() };
    let free = Options { allow_growth: true, ..Options::default() };
    for (declaration, options) in [
        ("struct rec { long first; long second; };\nstruct rec r;\n", &pinned),
        ("struct rec { long first; long second; /* do not move */ };\nstruct rec r;\n", &free),
        (
            "#include <stddef.h>\nstruct rec { long first; long second; };\nstruct rec r;\n\
             _Static_assert(offsetof(struct rec, second) == 8, \"the offset\");\n",
            &free,
        ),
    ] {
        let advice = advice_by(declaration, &EACH_OWN, Some(true), options, &[], |one| one);
        assert!(advice.orders.is_empty(), "{declaration}: {:?}", advice.edited);
        let refusals = format!("{:?}", advice.refusals);
        assert!(refusals.contains("second"), "{declaration}: {refusals}");
    }
}

#[test]
fn room_is_an_array_by_the_files_name_for_it_and_the_guard_holds_what_was_built() {
    for (declaration, room) in [
        ("struct rec {\n\tlong first;\n\tlong second;\n};\nstruct rec r;\n", "\tchar pad[52]; /* other"),
        (
            "struct wire { char _pad[3]; };\nstruct rec {\n\tlong first;\n\tlong second;\n};\nstruct rec r;\n",
            "\tchar _pad1[52]; /* other",
        ),
    ] {
        let advice = advice(declaration, &EACH_OWN, Some(true), true);
        let proposal = parted(&advice);
        assert_eq!(at(proposal, "second") - at(proposal, "first"), 64, "{declaration}");
        assert!(advice.edited["a.c"].contains(room), "{}", advice.edited["a.c"]);
        let groups: Vec<_> =
            advice.guard.groups.iter().map(|one| (&one.members[..], &one.apart[..])).collect();
        let own = |name: &str| [name.to_owned()];
        let (first, second) = (own("first"), own("second"));
        assert_eq!(groups, [(&first[..], &second[..]), (&second[..], &first[..])]);
    }
}

#[test]
fn members_of_one_thread_stay_together_and_what_is_read_is_apart_from_what_is_written() {
    let text = "struct rec {\n\tlong a;\n\tchar b;\n\tlong c;\n\tlong d;\n\tint name;\n};\nstruct rec r;\n";
    let used: [Used<'_>; 4] = [("a", &[0], &[0]), ("b", &[1], &[1]), ("c", &[0], &[0]), ("d", &[0, 1], &[])];
    let advice = advice(text, &used, Some(true), true);
    let proposal = parted(&advice);
    let line = |member| at(proposal, member) / 64;
    assert!(at(proposal, "a").abs_diff(at(proposal, "c")) <= 8, "{proposal:?}");
    let mut lines = vec![line("a"), line("b"), line("d")];
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(lines.len(), 3, "{proposal:?}");
}

#[test]
fn what_is_added_to_now_and_then_is_apart_from_what_is_read_all_the_time() {
    let text = "struct rec {\n\tlong limit;\n\tlong errors;\n\tlong rate;\n};\nstruct rec r;\n";
    let both: &[u32] = &[0, 1];
    let used: [Used<'_>; 3] = [("limit", both, &[]), ("errors", both, both), ("rate", both, both)];
    // `errors` is written in one of 129 accesses; `rate` as often, but read a hundred times as often.
    let lines = |rate_loads, errors| {
        let counts = [(0, 10_000, 0), (8, errors, errors), (16, rate_loads, 100)];
        let counted = |one: ThreadUse| {
            let (_, loads, stores) =
                counts.into_iter().find(|(offset, ..)| *offset == one.offset).expect("counts");
            ThreadUse { loads, stores, ..one }
        };
        let advice = advice_counted(text, &used, Some(true), true, &[], counted);
        let order = advice.orders.first()?;
        Some(["limit", "errors", "rate"].map(|member| at(order, member) / 64))
    };
    let [limit, errors, rate] = lines(10_000, 160).expect("a proposal");
    assert!(limit == rate && errors != limit, "{limit} {errors} {rate}");
    // Written in one of two thousand accesses it makes nobody wait: nothing is left to part.
    assert_eq!(lines(10_000, 10), None);
}

#[test]
fn objects_beside_each_other_get_room_behind() {
    let text = "struct rec {\n\tlong done;\n\tlong failed;\n\tlong waited;\n};\nstruct rec r[4];\n";
    let used: [Used<'_>; 2] = [("done", &[0, 1], &[0, 1]), ("waited", &[0, 1], &[0, 1])];
    let advice = advice(text, &used, Some(false), true);
    // An object may begin at any multiple of eight: 56 bytes are between the last of one and the first of the next.
    assert_eq!(parted(&advice).sizes[0].after_bytes, 24 + 56);
}

#[test]
fn nothing_grows_unless_that_is_allowed() {
    let text = "struct rec {\n\tlong first;\n\tlong second;\n};\nstruct rec r;\n";
    let advice = advice(text, &EACH_OWN, Some(true), false);
    assert!(advice.orders.is_empty() && advice.edited.is_empty());
    let told = advice.descriptions.iter().find(|one| one.kind.slug == "part").expect("it is told");
    assert!(told.summary.contains("(first) and (second)") && !told.is_in_patch, "{told:?}");
}

#[test]
fn members_of_different_threads_that_are_apart_are_not_packed() {
    let text = "struct rec {\n\tlong first;\n\tchar room[56];\n\tlong second;\n};\nstruct rec r;\n";
    let of_one: [Used<'_>; 2] = [("first", &[0], &[0]), ("second", &[0], &[0])];
    let packed = advice(text, &of_one, None, false);
    assert_eq!(at(&packed.orders[0], "first").abs_diff(at(&packed.orders[0], "second")), 8);
    let advice = advice(text, &EACH_OWN, None, false);
    assert!(advice.orders.is_empty(), "{:?}", advice.orders);
}

#[test]
fn a_size_that_the_program_asserts_refuses_the_room() {
    let text = "struct rec {\n\tlong first;\n\tlong second;\n};\nstruct rec r;\n_Static_assert(sizeof(struct rec) == 16, \"\");\n";
    let advice = advice(text, &EACH_OWN, Some(true), true);
    assert!(advice.orders.is_empty() && advice.refusals[0].owner == "rec", "{:?}", advice.refusals);
}

#[test]
fn an_order_that_packs_puts_nothing_of_another_owner_beside_a_lock() {
    let text = "struct rec {\n\tlong lock;\n\tchar room[56];\n\tlong count;\n};\nstruct rec r;\n";
    // Both threads write both: only the lock distinguishes the members.
    let used: [Used<'_>; 2] = [("lock", &[0, 1], &[0, 1]), ("count", &[0, 1], &[0, 1])];
    assert_eq!(advice(text, &used, None, false).orders.len(), 1, "without a lock they are packed");
    let packed = advice_with(text, &used, None, false, &[("lock", &["count"])]);
    assert_eq!(packed.orders.len(), 1, "so they are where it guards the other: {:?}", packed.refusals);
    let apart = advice_with(text, &used, None, true, &[("lock", &[])]);
    assert!(apart.orders.is_empty(), "{:?}", apart.orders);
}

#[test]
fn the_end_of_a_lock_that_nobody_accesses_makes_no_neighbour_of_the_lock() {
    // The lock ends on the line of the member `asked`, and its word lies on the line before: so it stays.
    let text = "struct rec { char cold[32]; char lock[40]; long asked; long balance; long rest[5]; };\n\
                struct rec r __attribute__((aligned(64)));\n";
    let used: [Used<'_>; 3] =
        [("lock", &[0, 1], &[0, 1]), ("asked", &[1], &[1]), ("balance", &[0, 1], &[0, 1])];
    let advice = advice_with(text, &used, None, false, &[("lock", &["balance"])]);
    for order in &advice.orders {
        assert_ne!(at(order, "lock") / 64, at(order, "asked") / 64, "{order:?}");
    }
}

#[test]
fn what_was_parted_stays_parted_when_nobody_is_seen_to_fight_any_more() {
    let parted = advice(
        "struct rec {\n\tlong first;\n\tlong second;\n};\nstruct rec r;\n",
        &EACH_OWN,
        Some(true),
        true,
    );
    for allow_growth in [false, true] {
        let again = advice(&parted.edited["a.c"], &EACH_OWN, None, allow_growth);
        assert!(again.orders.is_empty() && again.edited.is_empty(), "{:?}", again.orders);
    }
    // A lock that was put apart from a counter to which another thread only adds.
    let text = "struct rec {\n\tlong lock, guarded;\n\tlong count;\n};\nstruct rec r;\n";
    let both: &[u32] = &[0, 1];
    let used: [Used<'_>; 3] = [("lock", both, both), ("guarded", both, both), ("count", both, both)];
    let locks: Locks<'_> = &[("lock", &["guarded"])];
    let parted = advice_with(text, &used, Some(true), true, locks);
    let proposal = self::parted(&parted);
    assert!(at(proposal, "guarded").abs_diff(at(proposal, "lock")) == 8, "{proposal:?}");
    assert!(at(proposal, "count") >= 64 + 8, "{proposal:?}");
    let again = advice_with(&parted.edited["a.c"], &used, None, false, locks);
    assert!(again.orders.is_empty(), "{:?}", again.orders);
}
