//! A study's patch comes with a certificate that `lineup-check` accepts again, or with the reason why there is none.

use crate::installed;
use crate::schema;
use lineup_check::certificate::{FORMS, NAME, check_again};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// Three hot members of `item` lie on three lines; `@` is code of `main`.
const MAIN: &str = r#"
#include <stdio.h>
#include <stdlib.h>
void keep(const void *bytes);
struct item { long a; char b[56]; long c; char d[56]; long e; };
static struct item *items;
__attribute__((noinline)) long work(int n) {
    struct item *item = &items[n % 4];
    item->a += n; item->c += item->a; item->e ^= item->c;
    return item->e;
}
int main(void) {
    long sum = 0;
    items = calloc(4, sizeof *items);
    for (int n = 0; n < 400; n++) sum += work(n);
    @
    printf("%ld\n", sum);
    free(items);
    return 0;
}
"#;

struct Studied {
    folder: TempDir,
    output: Output,
}

impl Studied {
    /// Studies `work` of this program, built by `compiler` from a file of this name.
    fn of(compiler: &str, file: &str, main: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let source = folder.path().join("source");
        fs::create_dir(&source).expect("a folder");
        fs::write(source.join(file), MAIN.replace('@', main)).expect("a file");
        fs::write(
            source.join("Makefile"),
            format!("program: {file}\n\t{compiler} -g -O2 -o program {file}\n"),
        )
        .expect("a file");
        let mut lineup: Command = installed::lineup();
        lineup.args([
            "study",
            "--no-clang",
            "--json",
            "--region",
            "work",
            "--max-time",
            "1",
            "--margin",
            "1000%",
        ]);
        lineup.arg("--source").arg(source).arg("--out").arg(folder.path().join("out"));
        let output = lineup.args(["--", "program"]).stdin(Stdio::null()).output().expect("lineup runs");
        Self { folder, output }
    }

    fn out(&self, name: &str) -> PathBuf {
        self.folder.path().join("out").join(name)
    }

    fn report(&self) -> Value {
        let said = String::from_utf8_lossy(&self.output.stderr);
        let report: Value =
            serde_json::from_slice(&self.output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"));
        assert_eq!(schema::faults(&report), [""; 0]);
        report
    }
}

/// Replaces a text in a file, which must have it.
fn replace(file: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(file).expect("a text");
    assert!(text.contains(from), "{from} in {text}");
    fs::write(file, text.replacen(from, to, 1)).expect("written");
}

#[test]
fn plain_code_gets_a_certificate_without_an_open_use_and_no_tampered_one_holds() {
    let studied = Studied::of("gcc", "main.c", "");
    let report = studied.report();
    let of = &report["certificate"];
    assert_eq!((&of["outcome"], &of["open"]), (&json!("written"), &json!(0)), "{of:#}");
    let path = studied.out(NAME);
    let certificate = check_again(&path).expect("it holds");
    assert_eq!(certificate.open().count(), 0);
    let text = fs::read_to_string(&path).expect("a certificate");
    for record in [
        "compiler \"",
        "flags \"main.c\" \"-g -O2",
        "source \"main.c\" ",
        "object \"program\" ",
        "effects \"",
        "time \"",
        "note \"lineup ",
        "type \"item\"",
    ] {
        assert!(text.lines().any(|line| line.starts_with(record)), "{record}: {text}");
    }
    let page = fs::read_to_string(studied.out("report.html")).expect("a page");
    assert!(page.contains("Certificate") && page.contains(NAME), "{page}");

    // A moved member at another place, a count, and a form of another program.
    let kept = studied.folder.path().join("kept.txt");
    fs::copy(&path, &kept).expect("a copy");
    let member = text.lines().find(|line| line.starts_with("member \"c\"")).expect("a member");
    replace(&path, member, &member.replace(" at ", " at 1"));
    check_again(&path).expect_err("a wrong map");
    fs::copy(&kept, &path).expect("a copy");
    replace(&path, "counts functions ", "counts functions 1");
    check_again(&path).expect_err("a wrong count");
    fs::copy(&kept, &path).expect("a copy");
    let forms = studied.folder.path().join("out").join(FORMS);
    fs::copy(forms.join("before/main.c.o.gz"), forms.join("after/main.c.o.gz")).expect("a copy");
    let error = check_again(&path).expect_err("another object");
    assert!(error.to_string().contains("SHA-256"), "{error}");
}

#[test]
fn a_use_of_bytes_is_listed_with_its_place() {
    let uses = "unsigned char *bytes = (unsigned char *)&items[1]; sum += bytes[0] & 0;";
    let studied = Studied::of("gcc", "main.c", uses);
    let report = studied.report();
    let of = &report["certificate"];
    assert_eq!(of["outcome"], "written", "{report:#}");
    assert!(of["open"].as_u64().is_some_and(|open| open > 0), "{of:#}");
    let certificate = check_again(&studied.out(NAME)).expect("it holds");
    let open: Vec<_> = certificate.open().collect();
    assert!(open.iter().any(|one| one.function == "main" && one.place.contains("main.c:16")), "{open:?}");
}

#[test]
fn code_that_the_layout_does_not_explain_rejects_the_patch() {
    let uses = "if ((long)&((struct item *)0)->c < 100) sum += 0 * puts(\"far\");";
    let studied = Studied::of("gcc", "main.c", &format!("if (sum == 1) {{ {uses} }}"));
    let report = studied.report();
    let reason = report["not_proven"].as_str().unwrap_or_else(|| panic!("{report:#}"));
    assert!(reason.contains("main") && reason.contains("main.c:"), "{reason}");
    assert_eq!(studied.output.status.code(), Some(1));
    assert!(studied.out("rejected.patch").exists() && !studied.out("fix.patch").exists());
    assert!(!studied.out(NAME).exists() && report["certificate"].is_null());
}

#[test]
fn cpp_of_gcc_has_no_certificate_and_the_report_says_why() {
    let main = "/* casts are C++'s */";
    let folder = Studied::of("g++ -fpermissive -w", "main.cc", main);
    let report = folder.report();
    assert_eq!(report["certificate"]["outcome"], "not-covered", "{report:#}");
    assert_eq!(report["certificate"]["because"], "main.cc is C++ that GCC compiles");
    assert!(folder.out("fix.patch").exists() && !folder.out(NAME).exists());
}

/// Runs a tool in a folder, which must succeed.
fn tool(folder: &Path, words: &[&str]) {
    let (name, arguments) = words.split_first().expect("a tool");
    let output = Command::new(name).args(arguments).current_dir(folder).output().expect("it starts");
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_review_has_one_line_of_the_certificate_and_refuses_one_of_other_sources() {
    let studied = Studied::of("gcc", "main.c", "");
    let source = studied.folder.path().join("source");
    let commit = |message: &str| {
        tool(&source, &["git", "add", "-A"]);
        let who = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
        tool(&source, &[&["git"][..], &who, &["commit", "-q", "-m", message]].concat());
    };
    tool(&source, &["git", "init", "-q"]);
    commit("before");
    tool(&source, &["patch", "-p1", "-i", &studied.out("fix.patch").display().to_string()]);
    commit("the study's patch");
    let review = || {
        let mut lineup = installed::lineup();
        lineup.args(["review", "--base", "HEAD~1", "--build", "make", "--file", "program", "--certificate"]);
        let output = lineup.arg(studied.out(NAME)).current_dir(&source).output().expect("lineup runs");
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let line = |text: &str| text.lines().find(|line| line.starts_with("**Certificate**")).map(str::to_owned);
    let (code, text) = review();
    let said = line(&text).unwrap_or_else(|| panic!("{text}"));
    assert!(code == Some(0) && said.contains("2 functions") && said.contains("0 open"), "{code:?} {said}");

    replace(&source.join("main.c"), "item->a += n;", "item->a -= n;");
    commit("something else");
    let (code, text) = review();
    let said = line(&text).unwrap_or_else(|| panic!("{text}"));
    assert!(code == Some(1) && said.contains("refused") && said.contains("main.c"), "{code:?} {said}");
}
