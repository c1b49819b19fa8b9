//! The guard: the promises of a lock, their violations, and the answers to texts that are no lock.

use crate::pahole;
use crate::pahole::{Folder, pointer, structure};
use lineup_advise::assertions::{Dialect, assertions};
use lineup_advise::error::AdviseError;
use lineup_advise::guard::{Group, Lock, Why};
use lineup_model::abi::Abi;
use lineup_model::types::Types;

fn lock() -> Lock {
    Lock {
        groups: vec![Group {
            type_name: "rec".to_string(),
            line_bytes: 64,
            data_model: "LP64".to_string(),
            members: vec!["a".to_string(), "b".to_string()],
            apart: vec!["counter".to_string()],
            why: vec![Why { region: "lookup".to_string(), lines_per_call: 1.0 }],
        }],
    }
}

fn types(a: u64, b: u64, counter: u64) -> Types {
    let mut types = Types::new();
    let word = pointer(&mut types, Abi::X86_64);
    let members = vec![("a", a), ("b", b), ("counter", counter)];
    let members = members.into_iter().map(|(name, at)| pahole::member(name, word, at * 8)).collect();
    structure(&mut types, "rec", 256, members);
    types
}

fn messages(lock: &Lock, types: &Types) -> Vec<String> {
    lock.check(types, Abi::X86_64).violations.into_iter().map(|violation| violation.message).collect()
}

#[test]
fn a_lock_reads_back_what_it_wrote() {
    let text = lock().to_text();
    assert!(text.contains("schema = \"lineup.lock/1\"") && text.contains("region = \"lookup\""), "{text}");
    assert_eq!(Lock::parse("lineup.lock", &text), Ok(lock()));
}

#[test]
fn the_member_that_moved_is_named_with_its_place() {
    assert_eq!(messages(&lock(), &types(0, 8, 128)), [""; 0]);
    assert_eq!(
        messages(&lock(), &types(0, 64, 128)),
        [
            "member b of rec moved to offset 64, 64-byte line 1; line 0 holds a (lines: lookup used 1 per call)"
        ]
    );
    assert!(messages(&lock(), &types(0, 60, 128))[0].contains("64-byte lines 0 and 1"));
    assert!(
        messages(&lock(), &types(0, 8, 16))[0].contains("member counter of rec moved onto 64-byte line 0")
    );
}

#[test]
fn a_missing_member_or_type_breaks_the_promise() {
    let mut renamed = lock();
    renamed.groups[0].members[1] = "gone".to_string();
    assert!(messages(&renamed, &types(0, 8, 128))[0].contains("gone of rec is gone"));
    assert!(messages(&lock(), &Types::new())[0].contains("type rec is not in the file"));
}

#[test]
fn groups_for_another_data_model_are_counted_not_checked() {
    let report = lock().check(&types(0, 64, 0), Abi::ARM);
    assert_eq!((report.violations.len(), report.kept, report.not_checked), (0, 0, 1));
}

#[test]
fn groups_that_a_build_does_not_keep_are_left_out_and_named() {
    let mut kept = lock();
    assert_eq!(kept.leave_out_broken(&types(0, 8, 128), Abi::X86_64), [""; 0]);
    assert_eq!(kept, lock());
    assert_eq!(kept.leave_out_broken(&Types::new(), Abi::X86_64), [""; 0], "nothing is known of the type");
    assert_eq!(kept.leave_out_broken(&types(0, 64, 128), Abi::X86_64), ["rec"]);
    assert!(kept.groups.is_empty());
}

#[test]
fn a_text_that_is_no_lock_is_refused_with_its_line() {
    let cases = [
        ("schema = \"lineup.lock/1\"\n[[group]]\ntype = \"t\"\n", 2, "missing field"),
        ("schema = \"lineup.lock/1\"\nnonsense = 1\n", 2, "unknown field"),
        ("schema = \n", 1, ""),
        (&lock().to_text().replace("line_bytes = 64", "line_bytes = 48"), 5, "no power of two"),
        (&lock().to_text().replace("LP64", "LLP64"), 5, "data_model"),
    ];
    for (text, line, what) in cases {
        match Lock::parse("lineup.lock", text) {
            Err(AdviseError::LockSyntax { line: found, what: message, .. }) => {
                assert_eq!(found, line, "{text}\n{message}");
                assert!(message.contains(what), "{message}");
            }
            other => panic!("{text}: {other:?}"),
        }
    }
    let newer = Lock::parse("lineup.lock", "schema = \"lineup.lock/2\"\n").expect_err("newer");
    assert!(newer.to_string().contains("lineup.lock/2"), "{newer}");
}

#[test]
fn assertions_compile_for_the_good_order_and_fail_for_the_bad_one() {
    for (order, good) in [
        ("void *a; void *b; char cold[120]; int c : 3;", true),
        ("void *a; char cold[120]; void *b; int c : 3;", false),
    ] {
        let mut lock = lock();
        lock.groups[0].members.push("c".to_string());
        lock.groups[0].apart.clear();
        let text = format!("struct rec {{ {order} }};\n#include \"guard.h\"\nstruct rec r;\n");
        let mut folder = Folder::new(&[("a.c", &text)], "a.c", &["rec"]);
        let mut types = Types::new();
        let word = pointer(&mut types, Abi::X86_64);
        let mut bits = pahole::member("c", word, 0);
        bits.bit_size = Some(3);
        structure(&mut types, "rec", 8, vec![bits]);
        let asserts = assertions(&lock, &types, Dialect::C);
        assert!(asserts.contains("/* bit-field c belongs to the same line */"), "{asserts}");
        folder.files.insert("guard.h".to_string(), asserts);
        folder.write(&Default::default());
        let built = folder.object(Abi::X86_64);
        assert_eq!(built.is_ok(), good, "{built:?}");
        folder.abis = vec![Abi::ARM];
        assert!(folder.object(Abi::ARM).is_ok(), "ILP32 is not asserted");
    }
}

/// Whether `rustc` accepts a library of this text.
fn is_rust(text: &str) -> bool {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("a.rs");
    std::fs::write(&file, text).expect("a file");
    let mut rustc = std::process::Command::new("rustc");
    rustc.args(["--edition=2021", "--crate-type=lib", "--emit=metadata", "--out-dir"]).arg(folder.path());
    rustc.arg(&file).output().expect("rustc runs").status.success()
}

#[test]
fn assertions_in_rust_hold_what_shares_a_line_and_what_stays_off_it() {
    let mut types = types(0, 8, 128);
    for id in types.iter().map(|(id, _)| id).collect::<Vec<_>>() {
        types.get_mut(id).expect("a type").language = lineup_model::types::Language::Rust;
    }
    assert_eq!(Dialect::of(&lock(), &types), Dialect::Rust);
    let asserted = assertions(&lock(), &types, Dialect::Rust);
    for (order, is_kept) in [
        ("a: u64, b: u64, cold: [u8; 112], counter: u64", true),
        ("a: u64, cold: [u8; 120], b: u64, counter: u64", false),
        ("a: u64, b: u64, counter: u64, cold: [u8; 112]", false),
        ("a: u64, b: [u8; 64], cold: [u8; 112], counter: u64", false),
    ] {
        let text =
            format!("#![allow(non_camel_case_types)]\n#[repr(C)] pub struct rec {{ {order} }}\n{asserted}");
        assert_eq!(is_rust(&text), is_kept, "{text}");
    }
}

#[test]
fn assertions_in_c_hold_what_stays_off_the_line() {
    for (order, is_kept) in [
        ("void *a; void *b; char cold[112]; void *counter;", true),
        ("void *a; void *b; void *counter; char cold[112];", false),
        ("void *a; void *b; char cold[44]; char counter[8];", false),
    ] {
        let text = format!("struct rec {{ {order} }};\n#include \"guard.h\"\nstruct rec r;\n");
        let mut folder = Folder::new(&[("a.c", &text)], "a.c", &["rec"]);
        let asserted = assertions(&lock(), &types(0, 8, 128), Dialect::C);
        folder.files.insert("guard.h".to_string(), asserted);
        folder.write(&Default::default());
        let built = folder.object(Abi::X86_64);
        assert_eq!(built.is_ok(), is_kept, "{built:?}");
    }
}

#[test]
fn assertions_for_linux_name_the_group_that_the_type_declares() {
    let mut types = Types::new();
    let word = pointer(&mut types, Abi::X86_64);
    let empty = structure(&mut types, "", 0, Vec::new());
    let marks = ["__cacheline_group_begin__hot", "__cacheline_group_end__hot"];
    let members = vec![
        pahole::member(marks[0], empty, 0),
        pahole::member("a", word, 0),
        pahole::member(marks[1], empty, 64),
        pahole::member("b", word, 64),
        pahole::member("counter", word, 1024),
    ];
    structure(&mut types, "rec", 256, members);
    let text = assertions(&lock(), &types, Dialect::Kernel);
    assert!(text.contains("CACHELINE_ASSERT_GROUP_MEMBER(struct rec, hot, a);"), "{text}");
    assert!(!text.contains("hot, b)"), "{text}");
    assert!(
        text.contains("static_assert(offsetof(struct rec, a) / 64 == offsetof(struct rec, b) / 64"),
        "{text}"
    );
    assert!(text.contains("#if defined(CONFIG_64BIT) && SMP_CACHE_BYTES == 64"), "{text}");
}
