//! Functions of libraries that a program loads by `dlopen`: they are recorded natively, and studied where the build makes
//! the library.

use crate::installed::lineup;
use crate::place::Place;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// A program that loads libraries in turn, calls `apply` of each, and closes them.
const HOST: &str = r#"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include "filter.h"
int main(int count, char **names) {
    struct pixel *all = calloc(2000, sizeof *all);
    for (int i = 0; i < 2000; i++) all[i].r = i;
    long sum = 0;
    for (int turn = 0; turn < 8; turn++) {
        void *library = dlopen(names[1 + turn % (count - 1)], RTLD_LAZY);
        if (!library) { fprintf(stderr, "%s\n", dlerror()); return 1; }
        struct filter *filter = dlsym(library, "filter");
        for (int i = 0; i < 5; i++) sum += filter->apply(all, 2000);
        if (turn % 2) dlclose(library);
    }
    printf("sum %ld\n", sum);
    return 0;
}
"#;

const FILTER_H: &str = r#"
struct pixel {
    unsigned char r;
    unsigned char g;
    float depth;
    char tag[100];
    int label;
};
struct filter { const char *name; long (*apply)(struct pixel *, int); };
"#;

const BLUR: &str = r#"
#include "filter.h"
static long apply(struct pixel *p, int n) {
    long s = 0;
    for (int i = 0; i < n; i++) { p[i].label += p[i].r; s += p[i].label; }
    return s;
}
struct filter filter = { "blur", apply };
"#;

/// The program `program` of these libraries: their paths, below folders that are there.
fn with_libraries(libraries: &[(&str, &str)]) -> Place {
    let place = Place::new("int main(void) { return 0; }", &[]);
    let source = place.source();
    fs::write(source.join("main.c"), HOST).expect("a file");
    fs::write(source.join("filter.h"), FILTER_H).expect("a file");
    let mut makefile = "program: main.c filter.h\n\tgcc -g -O2 -o program main.c -ldl\n".to_owned();
    let mut all = "all: program".to_owned();
    for (path, text) in libraries {
        let path = Path::new(path);
        fs::create_dir_all(source.join(path.parent().expect("a folder"))).expect("a folder");
        let file = path.with_extension("c");
        fs::write(source.join(&file), text).expect("a file");
        let (path, file) = (path.display(), file.display());
        all += &format!(" {path}");
        makefile += &format!("{path}: {file} filter.h\n\tgcc -I. -g -O2 -shared -fPIC -o {path} {file}\n");
    }
    fs::write(source.join("Makefile"), format!("{all}\n{makefile}")).expect("a file");
    let made = Command::new("make").args(["-s", "all"]).current_dir(&source).status().expect("make runs");
    assert!(made.success());
    place
}

fn json(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn record(place: &Place, libraries: &[&str]) -> Value {
    let mut command = place.lineup(&["record", "--json", "--region", "apply", "--", "./program"]);
    json(&command.args(libraries).output().expect("lineup runs"))
}

fn notes(report: &Value) -> String {
    report["notes"].to_string()
}

#[test]
fn a_function_of_a_library_that_is_loaded_later_is_recorded_natively() {
    let place = with_libraries(&[("plugins/blur.so", BLUR), ("plugins/other.so", BLUR)]);
    let absolute = place.source().join("plugins/blur.so");
    for path in ["plugins/blur.so", absolute.to_str().expect("a name")] {
        let report = record(&place, &[path]);
        assert_eq!(report["recorder"], "native engine", "{report:#}");
        assert_eq!(
            (&report["regions"][0]["recorded"], &report["regions"][0]["seen"]),
            (&40.into(), &40.into())
        );
        assert!(!notes(&report).contains("emulator"), "{report:#}");
    }
    // Functions of one name in two files.
    let report = record(&place, &["plugins/blur.so", "plugins/other.so"]);
    assert_eq!(report["recorder"], "native engine", "{report:#}");
    assert_eq!(report["regions"][0]["recorded"], 40);
    let said = notes(&report);
    assert!(said.contains("plugins/blur.so") && said.contains("plugins/other.so"), "{said}");
}

#[test]
fn a_function_that_a_library_has_inlined_is_named_with_its_callers() {
    let inlined = BLUR
        .replace(
            "long apply(",
            "inline __attribute__((always_inline)) long twice(long x) { return 2 * x; }\nstatic long apply(",
        )
        .replace("s += p[i].label;", "s += twice(p[i].label);");
    let place = with_libraries(&[("plugins/blur.so", &inlined)]);
    let mut command = place.lineup(&["record", "--engine", "native", "--region", "twice", "--", "./program"]);
    let output = command.arg("plugins/blur.so").output().expect("lineup runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("inlined into apply"), "{said}");
}

#[test]
fn a_study_changes_the_types_of_a_library_that_the_build_makes_and_keeps_it() {
    let place = with_libraries(&[("plugins/blur.so", BLUR)]);
    let build = ["--build", "make all", "--max-time", "1", "--margin", "1000%", "--calls", "5"];
    let mut command = place.lineup(&["study", "--json", "--out", "out", "--region", "apply"]);
    let report =
        json(&command.args(build).args(["--", "./program", "plugins/blur.so"]).output().expect("lineup"));
    let proposals = report["proposals"].as_array().expect("proposals");
    let of_pixel =
        proposals.iter().any(|one| one["target"].as_str().is_some_and(|name| name.contains("pixel")));
    assert!(of_pixel, "{report:#}");
    let out = place.source().join("out");
    for kept in ["before/program", "before/plugins/blur.so", "after/program", "after/plugins/blur.so"] {
        assert!(out.join(kept).is_file(), "{kept}");
    }
    // The kept program finds its library, and the recording its types.
    let alone = Command::new("./program").arg("plugins/blur.so").current_dir(out.join("before")).output();
    assert!(alone.expect("it runs").status.success());
    let explained =
        lineup().args(["explain", "--json", "out/before/calls.rec"]).current_dir(place.source()).output();
    assert!(json(&explained.expect("lineup runs")).to_string().contains("pixel"));
}
