//! Runs the commands of docs/fleet.md and compares its tables with the store's.

use lineup_fleet::{tables, views};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the repository").to_owned()
}

fn manual() -> String {
    fs::read_to_string(repository().join("docs/fleet.md")).expect("the page")
}

fn shell(line: &str, folder: &Path, path: &str) -> Output {
    Command::new("sh").args(["-c", line]).current_dir(folder).env("PATH", path).output().expect("a shell")
}

/// The lines of a page between fences of `sh`.
fn commands(page: &str) -> Vec<String> {
    let blocks = page.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    blocks.flat_map(str::lines).map(str::to_owned).collect()
}

#[test]
fn the_commands_of_the_manual_run_as_they_are_written() {
    let folder = tempfile::tempdir().expect("a folder");
    for file in fs::read_dir(repository().join("fleet/example")).expect("the example") {
        let file = file.expect("a file");
        fs::copy(file.path(), folder.path().join(file.file_name())).expect("a copy");
    }
    let own = Path::new(env!("CARGO_BIN_EXE_lineup-fleet")).parent().expect("a folder");
    let path = format!(
        "{}:{}:{}",
        lineup_fixtures::lineup_folder(&repository()).display(),
        own.display(),
        std::env::var("PATH").expect("PATH")
    );
    let mut said = String::new();
    for line in commands(&manual()) {
        let output = shell(&line, folder.path(), &path);
        let [out, error] =
            [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        assert!(output.status.success(), "{line}\n{out}{error}");
        said += &format!("$ {line}\n{out}{error}");
    }
    // Each service needs two lines of a task, and one when its three members lie side by side.
    let lines = |service: &str| {
        let row = said.lines().find(|line| line.starts_with(service) && line.ends_with("gains"));
        row.unwrap_or_else(|| panic!("no row of {service}:\n{said}"))
            .split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(lines("web")[2..], ["2.00", "1.00", "1.00", "gains"]);
    assert_eq!(lines("batch")[3..], ["1.00", "1.00", "gains"]);
    assert!(said.contains("was there: web.rec (recording)"), "{said}");
    let patch = fs::read_to_string(folder.path().join("fleet.patch")).expect("the patch");
    assert!(patch.contains("+++ b/task.h") && patch.contains("long deadline;"), "{patch}");
    let page = fs::read_to_string(folder.path().join("fleet.html")).expect("the report");
    assert!(page.starts_with("<!DOCTYPE html>") && !page.contains("http://") && !page.contains("https://"));
}

#[test]
fn the_manual_describes_every_table_and_view() {
    let page = manual();
    for table in tables::ALL {
        let part = page.split(&format!("### {}\n", table.name)).nth(1).unwrap_or_default();
        let part = part.split("\n#").next().unwrap_or_default();
        assert!(part.contains(&format!("A row is {}.", table.what)), "{}", table.name);
        for column in table.columns {
            let row = format!("| `{}` | {} | {} |", column.name, column.kind.sql(), column.what);
            assert!(part.contains(&row), "{}: {row}", table.name);
        }
    }
    for view in views::ALL {
        assert!(page.contains(&format!("| `{}` |", view.name)), "{}", view.name);
        assert!(view.sql.starts_with("-- "), "{}: a comment says what a row is", view.name);
    }
}
