//! The study `immediate-values`: it builds, its sites are patched, and it prints every row of the tables in the form
//! that its README and `lineup measure --derive` rely on.

use std::path::Path;
use std::process::{Command, Output};

fn build(folder: &Path) -> std::path::PathBuf {
    let own = std::env::current_exe().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = folder.join("immediate_values");
    let output = Command::new("gcc")
        .args(["-g", "-O2", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(root.join("include"))
        .arg(root.join("../../studies/immediate-values/immediate_values.c"))
        .arg("-o")
        .arg(&program)
        .arg(own.parent().unwrap().join("liblineup_runtime.a"))
        .args(["-lpthread", "-ldl", "-lm"])
        .output()
        .expect("gcc; apt install gcc");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

fn run(program: &Path, argument: &str) -> Output {
    Command::new(program).arg(argument).output().unwrap()
}

#[test]
fn every_row_of_the_tables_is_printed_with_its_deviation() {
    let folder = tempfile::tempdir().unwrap();
    let program = build(folder.path());
    let output = run(&program, "2");
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let rows: Vec<&str> = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    let markers = ["no_markers", "immediate_markers", "global_markers"];
    let calls = ["calm", "linear", "random"]
        .iter()
        .flat_map(|pressure| markers.map(|marker| format!("{pressure}_{marker}")));
    let branches = ["base", "instruction_stream", "l1_hit", "memory_read"].map(str::to_owned);
    let expected: Vec<String> = branches.into_iter().chain(calls).collect();
    let names: Vec<&str> = rows.iter().filter_map(|row| row.split_whitespace().next()).collect();
    assert_eq!(names, expected, "{text}");
    for row in rows {
        let numbers: Vec<f64> =
            row.split_whitespace().skip(1).map(|number| number.parse().unwrap()).collect();
        assert!(matches!(numbers[..], [median, deviation] if median > 0.0 && deviation >= 0.0), "{row}");
    }
    assert!(text.starts_with("# patching through") && text.contains(" sites patched, 0 plain"), "{text}");
    for wrong in ["1", "101", "many"] {
        assert_eq!(run(&program, wrong).status.code(), Some(2), "{wrong}");
    }
}
