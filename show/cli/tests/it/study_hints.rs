//! `lineup study --code --hints`: hints from counts, written into the sources, and proven.

use crate::installed;
use crate::schema;

use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Output;

/// Conditions with known outcomes, each on a line with its expected result.
const PROGRAM: &str = r#"#include <stdio.h>
#include <stdlib.h>
#include "own.h"
static unsigned errors;
static volatile unsigned clear = ~1u, set = 1;
void complain(unsigned x);
void greet(unsigned x);
static inline __attribute__((always_inline)) unsigned copied(unsigned x)
{
	if (x & 1) /* copies disagree */
		errors += x;
	return x * 3;
}
__attribute__((noinline)) unsigned never(unsigned x)
{
	if (x == 0xdeadbeef) /* hint: rare */
		complain(x);
	return x * 2654435761u;
}
__attribute__((noinline)) unsigned always(unsigned x)
{
	if (x != 0xdeadbeef) { /* hint: usual */
		x ^= x >> 7;
	} else {
		complain(x);
		x = 0;
	}
	return x;
}
__attribute__((noinline)) unsigned even(unsigned x)
{
	if (x & 8) /* both ways */
		errors += 2;
	return x + errors % 3;
}
__attribute__((noinline)) unsigned seldom(unsigned x, unsigned i)
{
	if (i % 500 == 0) /* one in 500 */
		errors += x;
	return x ^ i;
}
__attribute__((noinline)) unsigned both(unsigned x, unsigned y)
{
	if (x == 0xdeadbeef && y == 0xcafe) /* several conditions */
		complain(y);
	return x ^ y;
}
#define CHECK(x) if ((x) == 0xdeadbeef) complain(x)
__attribute__((noinline)) unsigned in_a_macro(unsigned x)
{
	CHECK(x); /* a macro's */
	return x + 5;
}
__attribute__((noinline)) unsigned hinted(unsigned x)
{
	if (unlikely(x == 0xdeadbeef)) /* has one */
		complain(x);
	return x + 9;
}
__attribute__((noinline)) unsigned once(unsigned x)
{
	if (x == 0xdeadbeef) /* too few */
		complain(x);
	return x + 1;
}
__attribute__((noinline)) unsigned two_copies(unsigned x)
{
	unsigned y = copied(x & clear);
	return y + copied(x | set);
}
int main(int count, char **words)
{
	unsigned x = 1, rounds = count > 1 ? atoi(words[1]) : 10;
	for (unsigned i = 1; i <= rounds; i++) {
		x = never(x | 1); x = always(x | 1); x = even(x); x = seldom(x, i);
		x = both(x | 1, i); x = in_a_macro(x | 1); x = hinted(x | 1); x = two_copies(x) | 1;
	}
	x = once(x);
	greet(x);
	return 0;
}
"#;

/// The functions that it calls, or does not.
const OTHER: &str = "#include <stdio.h>\n#include \"own.h\"\nvoid complain(unsigned x)\n{\n\tfprintf(stderr, \"odd: %u\\n\", x);\n}\n\
                     void greet(unsigned x)\n{\n\tprintf(\"%u\\n\", x);\n}\n";

/// The project's own words.
const OWN: &str =
    "#define unlikely(x) __builtin_expect(!!(x), 0)\n#define likely(x) __builtin_expect(!!(x), 1)\n";

fn study(folder: &Path, program: &str, more: &[&str], rounds: &str) -> Output {
    let source = folder.join("source");
    fs::create_dir(&source).expect("a folder");
    for (name, text) in [("planted.c", program), ("other.c", OTHER), ("own.h", OWN)] {
        fs::write(source.join(name), text).expect("a file");
    }
    let mut lineup = installed::lineup();
    lineup.args([
        "study",
        "--code",
        "--hints",
        "--json",
        "--max-time",
        "1",
        "--margin",
        "1000%",
        "--calls",
        "40",
    ]);
    lineup.args(["--cache", "l1i=4K,4,64", "--cache", "l1d=32K,8,64", "--cache", "l2=256K,8,64"]);
    lineup.args(["--region", "always", "--build", "gcc -O2 -g -o planted planted.c other.c"]);
    lineup.arg("--source").arg(&source).arg("--out").arg(folder.join("out")).args(more);
    let output = lineup.args(["--", "./planted", rounds]).output().expect("lineup runs");
    assert_eq!(fs::read_dir(&source).expect("the folder").count(), 3, "the user's folder was changed");
    assert_eq!(fs::read_to_string(source.join("planted.c")).expect("a text"), program);
    output
}

fn report(output: &Output) -> Value {
    assert!(!output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    schema::checked(&output.stdout)
}

/// The line that ends with this comment.
fn line(comment: &str) -> u64 {
    let found = PROGRAM.lines().position(|line| line.contains(comment)).expect("a line");
    found as u64 + 1
}

#[test]
fn what_is_planted_gets_a_hint_and_nothing_else() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = study(folder.path(), PROGRAM, &["--test-arguments", "50000"], "40000");
    let report = report(&output);
    let hints = &report["code"]["hints"];
    let given: BTreeSet<(String, String, u64)> = hints["given"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| {
            let text = |name: &str| one[name].as_str().expect("a text").to_owned();
            let path = one["at"]["path"].as_str().expect("a path");
            (text("hint"), format!("{path}: {}", text("of")), one["at"]["line"].as_u64().expect("a line"))
        })
        .collect();
    let expected = [
        ("__attribute__((cold))", "other.c: complain", 3),
        ("likely", "planted.c: x != 0xdeadbeef", line("hint: usual")),
        ("unlikely", "planted.c: x == 0xdeadbeef", line("hint: rare")),
    ];
    let expected = expected.map(|(hint, of, line)| (hint.to_owned(), of.to_owned(), line));
    // The text uses `unlikely` elsewhere and never `likely`.
    let expected: BTreeSet<_> = expected
        .into_iter()
        .map(|(hint, of, line)| {
            (if hint == "likely" { "__builtin_expect(1)".into() } else { hint }, of, line)
        })
        .collect();
    assert_eq!(given, expected, "{hints}");
    let refused = hints["refused"].as_array().expect("a list");
    let refused: Vec<(u64, &str)> = refused
        .iter()
        .map(|one| (one["at"]["line"].as_u64().expect("a line"), one["because"].as_str().expect("a reason")))
        .collect();
    assert!(
        refused.contains(&(line("several conditions"), "its condition consists of several")),
        "{refused:?}"
    );
    // Each copy's condition has one outcome, and they differ.
    let copies = "copies of it in the machine code come out differently";
    assert!(refused.contains(&(line("copies disagree"), copies)), "{refused:?}");
    assert!(
        refused.iter().all(|(at, _)| ![line("both ways"), line("one in 500"), line("too few")].contains(at))
    );
    assert_eq!(
        (&report["not_proven"], &report["proof"]["output"]["outcome"]),
        (&Value::Null, &"equal".into())
    );
    assert_eq!(report["code"]["is_held_out"], true);
    assert!(!report["code"]["whole_run"].as_array().expect("figures").is_empty());
    if output.status.code() == Some(0) {
        let patch = fs::read_to_string(folder.path().join("out/fix.patch")).expect("the patch");
        for told in [
            "+\tif (unlikely(x == 0xdeadbeef)) /* hint: rare */",
            "+\tif (__builtin_expect(!!(x != 0xdeadbeef), 1)) { /* hint: usual */",
            "+__attribute__((cold)) void complain(unsigned x);",
            "held 0 times of 40,000",
        ] {
            assert!(patch.contains(told), "{told}: {patch}");
        }
    } else {
        assert_eq!(output.status.code(), Some(1));
        assert!(folder.path().join("out/rejected.patch").is_file());
    }
}

/// With a thousand rounds nothing is beyond doubt.
#[test]
fn what_ran_too_seldom_gets_no_hint_and_there_is_no_patch() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = study(folder.path(), PROGRAM, &[], "1000");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let report = report(&output);
    assert_eq!(report["code"]["hints"]["given"], Value::Array(Vec::new()));
    assert_eq!((&report["patch"], &report["proof"]), (&Value::Null, &Value::Null));
    assert!(!folder.path().join("out/fix.patch").exists());
}

/// A path that never ran and that its own hint puts between code that runs is reported; the targets of a `switch` are
/// not.
#[test]
fn code_that_never_ran_between_code_that_does_is_told_with_its_size_and_counts() {
    let work = "errors += x * 31; errors ^= errors >> 3; errors *= 2654435761u; ".repeat(6);
    let program = format!(
        "#include <stdlib.h>\n\
         static volatile unsigned errors;\n\
         void greet(unsigned x);\n\
         __attribute__((noinline)) unsigned always(unsigned x)\n\
         {{\n\
         \tif (__builtin_expect(x == 0xdeadbeef, 1)) {{\n\
         \t\t{work} /* path */\n\
         \t}}\n\
         \treturn x * 7;\n\
         }}\n\
         int main(int count, char **words)\n\
         {{\n\
         \tunsigned x = 1, rounds = count > 1 ? atoi(words[1]) : 10;\n\
         \tfor (unsigned i = 1; i <= rounds; i++) x = always(x | 1);\n\
         \tgreet(x);\n\
         \treturn 0;\n\
         }}\n"
    );
    let folder = tempfile::tempdir().expect("a folder");
    let report = report(&study(folder.path(), &program, &[], "40000"));
    let paths = report["code"]["hints"]["unused_paths"].as_array().expect("an array").clone();
    assert_eq!(paths.len(), 1, "{paths:?}");
    let path = &paths[0];
    assert_eq!((&path["function"], &path["at"]), (&"always".into(), &"planted.c:7".into()));
    assert_eq!(path["decisions"], 40_000);
    assert!(path["bytes"].as_u64().is_some_and(|bytes| (128..2000).contains(&bytes)), "{path}");
}
