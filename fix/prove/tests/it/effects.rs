//! Effects that make two variants differ, and effects left out since they differ from run to run.

use lineup_prove::effects::{
    Call, CallList, CallSite, Content, Effects, FileKind, FileLeft, KEPT_ARGUMENT_BYTES, KEPT_CALLS,
    ProcessPath, RepeatedEffects, Stream, Target,
};
use lineup_prove::run::Ending;

/// A run that prints this and exits with 0.
fn prints(text: &[u8]) -> Effects {
    let mut effects = Effects::default();
    let process = effects.processes.entry(ProcessPath::root()).or_default();
    process.ending = Some(Ending::Exited(0));
    let stream = Stream { written_by: ["write"].into(), content: Content::of(text) };
    process.streams.insert(Target::StandardOutput, stream);
    effects
}

/// A run that makes these requests to one device.
fn requests(arguments: &[&[u8]]) -> Effects {
    let mut effects = prints(b"");
    let process = effects.processes.entry(ProcessPath::root()).or_default();
    let site = CallSite { name: "ioctl", target: Target::Path("/dev/x".into()) };
    for bytes in arguments {
        process.calls.entry(site.clone()).or_default().push(Call::new("request 0x4008550d", bytes));
    }
    effects
}

fn leaves(path: &str, text: &[u8]) -> Effects {
    let mut effects = prints(b"");
    let file = FileLeft {
        kind: FileKind::File,
        permissions: 0o644,
        content: Content::of(text),
        changed_by: ["openat", "write"].into(),
    };
    effects.files.insert(path.into(), file);
    effects
}

fn runs(first: Effects, second: Effects) -> RepeatedEffects {
    RepeatedEffects { first, others: vec![second] }
}

fn twice(effects: &Effects) -> RepeatedEffects {
    runs(effects.clone(), effects.clone())
}

/// The difference between two variants that repeat themselves.
fn difference(before: &Effects, after: &Effects) -> String {
    twice(before).agreement(&twice(after)).unwrap_err().to_string()
}

#[test]
fn equal_effects_agree_and_say_what_was_compared() {
    let mut both = requests(&[b"one", b"two"]);
    both.files = leaves("out", b"content").files;
    let agreement = twice(&both).agreement(&twice(&both)).unwrap();
    assert_eq!(agreement.compared(), ["standard output", "1 file left behind", "2 ioctl", "exit status"]);
    assert!(agreement.not_compared().is_empty());
    assert_eq!(agreement.runs(), 4);
}

#[test]
fn a_difference_names_the_effect_and_the_place() {
    assert_eq!(
        difference(&prints(b"one\ntwo\n"), &prints(b"one\ntoo\n")),
        "bytes written to standard output (write): offset 5: 77 6f 0a against 6f 6f 0a (8 bytes)"
    );
    assert_eq!(
        difference(&requests(&[b"same", b"\x01\0\0\0"]), &requests(&[b"same", b"\x02\0\0\0"])),
        "call 2 of ioctl on /dev/x: offset 0 of 4 bytes: 01 00 00 00 against 02 00 00 00"
    );
    assert_eq!(
        difference(&requests(&[b"12345678"]), &requests(&[b"1234"])),
        "call 1 of ioctl on /dev/x: 8 bytes against 4"
    );
    assert_eq!(
        difference(&requests(&[b"a"]), &requests(&[b"a", b"b"])),
        "ioctl on /dev/x: number of calls: 1 against 2"
    );
    assert_eq!(
        difference(&leaves("out", b"x"), &prints(b"")),
        "file out (changed by openat, write): the first variant does it, the second does not"
    );
}

#[test]
fn a_difference_beyond_the_bytes_that_are_kept_is_found() {
    let mut long = vec![b'x'; 100_000];
    let before = prints(&long);
    long[90_000] = b'y';
    let found = difference(&before, &prints(&long));
    assert!(found.contains("at offset 89856 or soon after it (100000 bytes)"), "{found}");
}

#[test]
fn a_line_that_differs_from_run_to_run_is_left_out_and_the_others_are_compared() {
    let at = |time: &str, rest: &str| prints(format!("start\n{time}\n{rest}\n").as_bytes());
    let before = runs(at("12:01", "same"), at("12:02", "same"));
    let after = runs(at("12:03", "same"), at("12:04", "same"));
    let agreement = before.agreement(&after).unwrap();
    let [left_out] = agreement.not_compared() else { panic!("{:?}", agreement.not_compared()) };
    assert_eq!(left_out.effect, "bytes written to standard output");
    assert_eq!(left_out.share, "1 of 3 lines or pieces");
    let after = runs(at("12:03", "other"), at("12:04", "other"));
    let found = before.agreement(&after).unwrap_err().to_string();
    assert!(found.starts_with("bytes written to standard output (write): offset 12"), "{found}");
}

#[test]
fn a_word_that_differs_from_run_to_run_is_left_out_of_an_argument() {
    let request = |address: u64, value: u32| {
        let bytes: Vec<u8> = address.to_le_bytes().into_iter().chain(value.to_le_bytes()).collect();
        requests(&[&bytes])
    };
    let before = runs(request(0x7ffc_1000, 5), request(0x7ffd_2000, 5));
    let same = runs(request(0x7ffe_3010, 5), request(0x7fff_4010, 5));
    assert_eq!(before.agreement(&same).unwrap().not_compared()[0].effect, "ioctl on /dev/x");
    let other = runs(request(0x7ffe_3010, 6), request(0x7fff_4010, 6));
    let found = before.agreement(&other).unwrap_err();
    assert_eq!(found.how, "offset 8 of 12 bytes: 05 00 00 00 against 06 00 00 00");
}

#[test]
fn what_one_variant_does_differently_each_time_is_left_out_of_the_other_too() {
    let before = twice(&prints(b"1\n"));
    let after = runs(prints(b"2\n"), prints(b"3\n"));
    let agreement = before.agreement(&after).unwrap();
    assert!(!agreement.compared().contains(&"standard output".to_owned()), "{:?}", agreement.compared());
    assert_eq!(agreement.not_compared()[0].share, "all of it");
}

#[test]
fn how_often_a_variant_calls_may_differ_from_run_to_run() {
    let before = runs(requests(&[b"a"]), requests(&[b"a", b"a"]));
    let agreement = before.agreement(&twice(&requests(&[b"a", b"a", b"a"]))).unwrap();
    assert_eq!(agreement.not_compared()[0].effect, "ioctl on /dev/x");
}

#[test]
fn more_runs_show_what_two_equal_ones_hid() {
    let (heads, tails) = (prints(b"heads\n"), prints(b"tails\n"));
    let mut before = twice(&heads);
    let mut after = twice(&tails);
    assert!(before.agreement(&after).is_err());
    before.others.push(tails);
    after.others.push(heads);
    assert!(before.agreement(&after).is_ok());
}

#[test]
fn ends_of_processes_are_compared_each_by_its_place() {
    let with_child = |status| {
        let mut effects = prints(b"");
        let child = effects.processes.entry(ProcessPath::root().child(1)).or_default();
        child.ending = Some(Ending::Exited(status));
        effects
    };
    let found = difference(&with_child(0), &with_child(1));
    assert_eq!(found, "end of process 0.1: exit status 0 against exit status 1");
}

#[test]
fn what_could_not_be_observed_is_kept() {
    let mut before = prints(b"");
    before.not_observed.insert("what goes through io_uring".into());
    let agreement = twice(&before).agreement(&twice(&prints(b""))).unwrap();
    assert_eq!(agreement.not_observed().iter().next().unwrap(), "what goes through io_uring");
}

#[test]
fn calls_are_kept_up_to_their_limit_and_counted_beyond_it() {
    let mut calls = CallList::default();
    (0..KEPT_CALLS + 3).for_each(|_| calls.push(Call::new("request", b"")));
    assert_eq!((calls.kept().len(), calls.count()), (KEPT_CALLS, KEPT_CALLS as u64 + 3));
}

#[test]
fn arguments_that_differ_beyond_the_bytes_that_are_kept_are_different() {
    let argument = |last: u8| [&[1; KEPT_ARGUMENT_BYTES][..], &[last; 8]].concat();
    let said = difference(&requests(&[&argument(2)]), &requests(&[&argument(3)]));
    assert!(said.contains("ioctl"), "{said}");
}

#[test]
fn kinds_of_what_is_left_behind_are_told() {
    let words = [FileKind::File, FileKind::Folder, FileKind::Link, FileKind::Special, FileKind::Gone]
        .map(FileKind::word);
    assert_eq!(words, ["file", "folder", "symbolic link", "special file", "removed"]);
}

#[test]
fn streams_are_told_apart_by_where_they_go() {
    let mut effects = prints(b"out");
    let process = effects.processes.entry(ProcessPath::root()).or_default();
    let stream = |text: &[u8]| Stream { written_by: ["write"].into(), content: Content::of(text) };
    process.streams.insert(Target::Path("/dev/x".into()), stream(b"to a device"));
    process.streams.insert(Target::StandardError, stream(b"a complaint"));
    let agreement = twice(&effects).agreement(&twice(&effects)).unwrap();
    let mut compared = agreement.compared().to_vec();
    compared.sort();
    assert_eq!(compared, ["1 written stream", "exit status", "standard error", "standard output"]);
}
