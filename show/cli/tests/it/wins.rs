//! `xtask wins` of a made-up project: a type whose hot members lie apart is found, and one that is full is not.

use crate::place::Place;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// A walk over 40,000 objects that reads two of their members on two lines, and one over whole objects that stay in the
/// first level.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
struct ticket { long id; char note[72]; long price; char more[40]; };
struct full { double a, b, c; };
static struct ticket *tickets;
static struct full *all;
__attribute__((noinline)) static long walk(void) { long s = 0; for (int i = 0; i < 40000; i++) s += tickets[i].id ^ tickets[i].price; return s; }
__attribute__((noinline)) static long sum(void) { double s = 0; for (int i = 0; i < 40000; i++) { struct full *o = &all[i % 100]; s += o->a + o->b; o->c += s; } return s; }
int main(void)
{
	long s = 0;
	tickets = aligned_alloc(64, 40000 * sizeof *tickets);
	all = aligned_alloc(64, 128 * sizeof *all);
	for (int i = 0; i < 40000; i++) { tickets[i].id = i; tickets[i].price = 3 * i; }
	for (int i = 0; i < 100; i++) { struct full *o = &all[i]; o->a = o->b = o->c = i; }
	for (int i = 0; i < 4; i++) s += walk() + sum();
	printf("%ld\n", s);
	return 0;
}
"#;

fn case(cases: &Path, name: &str, data: &str, more: &str) {
    let text = format!(
        "project = \"an/example\"\nparent = \"0\"\nchange = \"1\"\nkind = \"order\"\ndata = [\"{data}\"]\n\
         sentence = \"s\"\nclaim = \"c\"\nworkload = \"w\"\n{more}"
    );
    fs::create_dir_all(cases.join("example")).expect("a folder");
    fs::write(cases.join("example").join(name).with_extension("toml"), text).expect("a case");
}

#[test]
fn a_win_is_found_a_control_is_not_and_a_case_without_a_folder_is_not_run() {
    let place = Place::new(PROGRAM, &[]);
    let cases = place.source().join("cases");
    case(&cases, "ticket-order", "ticket", "");
    case(&cases, "full-order", "full", "control = true\n");
    case(&cases, "elsewhere", "other", "");
    let folder = place.source().join("folder");
    for name in ["ticket-order", "full-order"] {
        let own = folder.join(name);
        fs::create_dir_all(&own).expect("a folder");
        fs::write(own.join("build"), "#!/bin/sh\ncp ../../program .\n").expect("a script");
        fs::set_permissions(own.join("build"), fs::Permissions::from_mode(0o755)).expect("rights");
        fs::write(own.join("command"), "./program\n").expect("a command");
    }
    let lineup = Path::new(env!("CARGO_BIN_EXE_lineup"));
    let xtask = lineup.with_file_name("xtask");
    let table = place.source().join("table.md");
    let mut command = Command::new(&xtask);
    command.arg("wins").args([&folder, Path::new("--cases"), &cases, Path::new("--out"), &table]);
    let output = command.arg("--lineup").arg(lineup).output().expect("`make built` builds xtask");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("text");
    assert_eq!(text, fs::read_to_string(&table).expect("the same table"));
    assert!(text.contains("first 3 findings: 1 of 1. Controls without such a finding: 1 of 1."), "{text}");
    let row =
        |name: &str| text.lines().find(|line| line.starts_with(&format!("| {name} |"))).unwrap_or_default();
    assert!(row("ticket-order").starts_with("| ticket-order | order | 1 | "), "{text}");
    assert!(row("full-order").starts_with("| full-order | order, control | – | "), "{text}");
    assert!(text.contains("Not run: elsewhere."), "{text}");
}
