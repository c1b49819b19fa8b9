//! `lineup study --audit`: facts that only a run of the whole program shows constrain a type, and a clean program's run
//! constrains none. The check of the sources is switched off.

use crate::installed;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Output;

/// The file that declares the objects does not show their further use.
const KEEP: &str = r#"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>
struct other { long kind; char text[40]; long rest; };
void give(const void *bytes, unsigned long size) {
    struct iovec part = { (void *)bytes, size };
    int out = open("given.bin", O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (writev(out, &part, 1) < 0) _exit(1);
    close(out);
}
void save(const void *bytes, unsigned long size) {
    FILE *out = fopen("saved.bin", "w");
    fwrite(bytes, size, 1, out);
    fclose(out);
}
void fill(void *bytes, unsigned long size) {
    int in = open("input.bin", O_RDONLY);
    if (read(in, bytes, size) < 0) _exit(1);
    close(in);
}
void *map(void) {
    int file = open("shared.bin", O_RDWR | O_CREAT | O_TRUNC, 0644);
    if (ftruncate(file, 4096)) _exit(1);
    return mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
}
long peek(void *any) { struct other *other = any; return other->kind; }
"#;

/// Declares a type with two hot members far apart, and four objects of it.
fn declaration(name: &str) -> String {
    let letter = &name[..1];
    format!(
        "struct {name} {{ long {letter}1; char {letter}2[120]; long {letter}3; }};\nstatic struct {name} *{name}s;\n"
    )
}

/// A program with these types; `main` uses them in addition to `work`.
fn program(types: &[&str], main: &str) -> String {
    let declarations: String = types.iter().map(|name| declaration(name)).collect();
    let uses: String = types
        .iter()
        .map(|name| {
            let l = &name[..1];
            format!("    {{ struct {name} *o = &{name}s[n % 4]; o->{l}1 += n; o->{l}3 += o->{l}1; sum += o->{l}3; }}\n")
        })
        .collect();
    let made: String =
        types.iter().map(|name| format!("    {name}s = calloc(4, sizeof *{name}s);\n")).collect();
    format!(
        "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\
         void give(const void *, unsigned long); void save(const void *, unsigned long);\n\
         void fill(void *, unsigned long); void *map(void); long peek(void *);\n{declarations}\
         __attribute__((noinline)) long work(int n) {{\n    long sum = 0;\n{uses}    return sum;\n}}\n\
         int main(void) {{\n    long sum = 0;\n{made}{main}    printf(\"%ld\\n\", sum);\n    return 0;\n}}\n"
    )
}

/// Studies `work` with an audit of the whole program.
fn study(folder: &Path, main: &str) -> Output {
    let source = folder.join("source");
    fs::create_dir(&source).expect("a folder");
    fs::write(source.join("main.c"), main).expect("a file");
    fs::write(source.join("keep.c"), KEEP).expect("a file");
    fs::write(source.join("input.bin"), vec![1; 600]).expect("a file");
    let makefile = "program: main.c keep.c\n\tgcc -g -O2 -o program main.c keep.c\n";
    fs::write(source.join("Makefile"), makefile).expect("a file");
    let mut lineup = installed::lineup();
    lineup.args([
        "study",
        "--no-clang",
        "--json",
        "--max-time",
        "1",
        "--margin",
        "1000%",
        "--region",
        "work",
        "--calls",
        "100",
    ]);
    lineup.args(["--audit", "./program > printed.txt && test -s printed.txt", "--source"]).arg(source);
    lineup.arg("--out").arg(folder.join("out")).args(["--", "program"]);
    lineup.output().expect("lineup runs")
}

fn report(output: &Output) -> Value {
    let said = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"))
}

/// The audit's evidence against a type; empty when there is none.
fn evidence(report: &Value, name: &str) -> Vec<String> {
    let refusals = report["refusals"].as_array().expect("refusals").iter();
    let own = refusals.filter(|refusal| refusal["target"] == name).map(Value::to_string);
    own.filter(|words| words.contains("an audited run showed it")).collect()
}

#[test]
fn every_kind_of_evidence_holds_its_type_and_names_the_code() {
    let folder = tempfile::tempdir().expect("a folder");
    let main = "\
    mappeds = map();
    fill(filleds, 4 * sizeof *filleds);
    for (int n = 0; n < 400; n++) sum += work(n);
    for (int n = 0; n < 4; n++) { give(&givens[n], sizeof *givens); save(&saveds[n], sizeof *saveds); }
    for (int n = 0; n < 4; n++) sum += peek(&aliaseds[n]);
";
    // The letters of their members differ: types that begin alike are constrained in any case.
    let types = ["mapped", "filled", "given", "saved", "aliased", "clean"];
    let output = study(folder.path(), &program(&types, main));
    let report = report(&output);
    let expected = [
        ("mapped", "accessed in a shared mapping"),
        ("filled", "is read from bytes that read delivered"),
        ("given", "writev takes the bytes from given.g1 to given.g3"),
        ("saved", "write takes a copy of the bytes from saved.s1 to saved.s3"),
        ("aliased", "bytes stored as aliased.a1 are read as other.kind: 4 times, 32 bytes in all"),
    ];
    for (name, words) in expected {
        let found = evidence(&report, name).join("\n");
        assert!(found.contains(words) && found.contains(".c"), "{name}: {found}\n{report}");
    }
    assert_eq!(evidence(&report, "clean"), [""; 0]);
    let patch = fs::read_to_string(folder.path().join("out/fix.patch")).expect("a patch");
    assert!(patch.contains(" struct clean") || patch.contains("struct clean {"), "{patch}");
    assert!(report["setting"].to_string().contains("1 processes of the whole program"), "{report}");
}

/// Reused memory, printed strings, one member that is written, objects that are copied, part of others and on the
/// stack: nothing of this depends on an order.
#[test]
fn a_clean_program_yields_no_evidence() {
    let folder = tempfile::tempdir().expect("a folder");
    let main = "\
    struct { long before; struct part inner; } whole = { .before = 1, .inner = { .p1 = 2, .p3 = 3 } };
    struct part *part = &whole.inner;
    for (int n = 0; n < 400; n++) sum += work(n);
    for (int n = 0; n < 4; n++) {
        strcpy(cleans[n].c2, \"a name\");
        printf(\"%s %ld %ld\\n\", cleans[n].c2, cleans[n].c1, cleans[n].c3);
        save(cleans[n].c2, sizeof cleans[n].c2);
        part->p1 += whole.inner.p3;
        whole.inner.p3 += part->p1;
    }
    for (int n = 0; n < 50; n++) {
        struct clean *one = malloc(sizeof *one);
        *one = cleans[n % 4];
        sum += one->c1 + one->c3;
        free(one);
        struct part *other = malloc(sizeof *other);
        *other = parts[n % 4];
        sum += other->p1 + other->p3;
        free(other);
        char *text = malloc(136);
        memset(text, 'x', 136);
        save(text, 136);
        free(text);
    }
    sum += whole.inner.p1;
";
    let output = study(folder.path(), &program(&["clean", "part"], main));
    let report = report(&output);
    for name in ["clean", "part"] {
        assert_eq!(evidence(&report, name), [""; 0], "{report}");
    }
    let setting = report["setting"].to_string();
    assert!(setting.contains("1 processes of the whole program: 0 types held"), "{setting}");
    assert!(report["proposals"].to_string().contains("accesses to it outside the regions"), "{report}");
}

/// An audit that does not run the program is no audit.
#[test]
fn a_command_that_does_not_run_the_program_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder.path().join("source");
    fs::create_dir(&source).expect("a folder");
    fs::write(source.join("main.c"), "int main(void) { return 0; }\n").expect("a file");
    let mut lineup = installed::lineup();
    lineup.args(["study", "--no-clang", "--build", "gcc -g -O2 -o program main.c", "--region", "main"]);
    lineup.args(["--audit", "true", "--source"]).arg(source).arg("--out").arg(folder.path().join("out"));
    let output = lineup.args(["--", "program"]).output().expect("lineup runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("so nothing was audited"), "{said}");
}
