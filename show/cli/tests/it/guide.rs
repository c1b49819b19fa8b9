//! The commands of the user's guide print what its pages show.
//!
//! A page's files are the blocks below lines such as `` `orders.c`: ``. Blocks of `console` hold commands behind `$ `
//! and their output. In an output, `…` stands for any text on a line, and a line with only `…` for any lines. `make
//! guide` runs the blocks that are marked `long`.

use crate::fetched;
use crate::installed;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page(name: &str) -> String {
    let path = repository().join("docs/guide/src").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A block between fences: the line above it, the fence's text, and its lines.
struct Block<'p> {
    above: &'p str,
    info: &'p str,
    lines: Vec<&'p str>,
}

fn blocks(page: &str) -> Vec<Block<'_>> {
    let mut blocks: Vec<Block<'_>> = Vec::new();
    let (mut above, mut is_inside) = ("", false);
    for line in page.lines() {
        match line.strip_prefix("```") {
            Some(info) if !is_inside => blocks.push(Block { above, info, lines: Vec::new() }),
            Some(_) => above = "",
            None if is_inside => blocks.last_mut().expect("a block").lines.push(line),
            None if line.is_empty() => {}
            None => above = line,
        }
        is_inside ^= line.starts_with("```");
    }
    assert!(!is_inside, "a fence is not closed");
    blocks
}

/// The commands of a block, each with the output on the page.
fn commands<'p>(block: &Block<'p>) -> Vec<(&'p str, Vec<&'p str>)> {
    let mut commands: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in &block.lines {
        match line.strip_prefix("$ ") {
            Some(command) => commands.push((command, Vec::new())),
            None => commands.last_mut().expect("a command above what it prints").1.push(line),
        }
    }
    commands
}

/// True when a line matches the page's, where `…` stands for any text.
fn is_as_shown(shown: &str, line: &str) -> bool {
    let mut pieces = shown.split('…');
    let Some(mut rest) = pieces.next().and_then(|first| line.strip_prefix(first)) else { return false };
    let mut pieces = pieces.peekable();
    if pieces.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(piece) = pieces.next() {
        if pieces.peek().is_none() {
            return rest.ends_with(piece);
        }
        let Some(at) = rest.find(piece) else { return false };
        rest = &rest[at + piece.len()..];
    }
    true
}

/// True when lines match the page's, where a line `…` stands for any lines.
fn are_as_shown(shown: &[&str], lines: &[&str]) -> bool {
    match (shown, lines) {
        ([], lines) => lines.is_empty(),
        (["…", shown @ ..], lines) => {
            (0..=lines.len()).any(|skipped| are_as_shown(shown, &lines[skipped..]))
        }
        ([first, shown @ ..], [line, lines @ ..]) => is_as_shown(first, line) && are_as_shown(shown, lines),
        (_, []) => false,
    }
}

/// The major version of GCC with which the pages' programs were compiled.
const SHOWN_GCC: &str = "12";

/// A line with one figure for all: other compilers make other numbers of instructions and lines.
fn without_figures(line: &str) -> String {
    let mut text = String::new();
    for word in line.split_whitespace() {
        text.push_str(if text.is_empty() { "" } else { " " });
        for part in word.split_inclusive(|c: char| !c.is_ascii_digit() && c != ',') {
            let figures = part.trim_start_matches(|c: char| c.is_ascii_digit() || c == ',');
            text.push_str(if figures.len() < part.len() { "0" } else { "" });
            text.push_str(figures);
        }
    }
    // The rest of a line may follow one space that stands for many.
    text.replace("… ", "…")
}

/// Runs the commands of a page in a folder with its files, and compares standard output.
fn run(name: &str, with_long: bool, environment: &[(&str, &str)]) {
    let text = page(name);
    let folder = tempfile::tempdir().expect("a folder");
    let lineup = PathBuf::from(installed::lineup().get_program());
    let path = std::env::var("PATH").expect("PATH");
    let path = format!("{}:{path}", lineup.parent().expect("a folder").display());
    let version = Command::new("gcc").arg("-dumpversion").output().expect("gcc").stdout;
    let is_shown_gcc = String::from_utf8_lossy(&version).trim().split('.').next() == Some(SHOWN_GCC);
    let mut count = 0;
    for block in blocks(&text) {
        if let Some(file) = block.above.strip_prefix('`').and_then(|above| above.strip_suffix("`:")) {
            fs::write(folder.path().join(file), block.lines.join("\n") + "\n").expect("a file");
        }
        if block.info != "console" && !(with_long && block.info == "console,long") {
            continue;
        }
        for (command, shown) in commands(&block) {
            let mut shell = Command::new("sh");
            shell
                .args(["-c", command])
                .current_dir(folder.path())
                .env("PATH", &path)
                .envs(environment.iter().copied());
            let output = shell.output().expect("a shell");
            let [out, error] =
                [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
            assert!(output.status.success(), "{name}: $ {command}\n{out}{error}");
            let lines: Vec<&str> = out.lines().collect();
            let is_as_shown = match is_shown_gcc {
                true => are_as_shown(&shown, &lines),
                false => {
                    let [shown, lines] = [&shown, &lines]
                        .map(|all| all.iter().map(|line| without_figures(line)).collect::<Vec<_>>());
                    let [shown, lines] =
                        [&shown, &lines].map(|all| all.iter().map(String::as_str).collect::<Vec<_>>());
                    are_as_shown(&shown, &lines)
                }
            };
            assert!(is_as_shown, "{name}: $ {command}\n{out}is shown as\n{}", shown.join("\n"));
            count += 1;
        }
    }
    assert!(count > 0, "{name} has no commands");
}

#[test]
fn first_ten_minutes() {
    run("first.md", false, &[]);
}

#[test]
fn a_server_under_load() {
    run("server.md", false, &[]);
}

#[test]
fn threads() {
    run("threads.md", false, &[]);
}

#[test]
fn pull_requests() {
    run("review.md", false, &[]);
}

/// Boots a kernel: `make guide`.
#[test]
#[ignore = "boots a kernel"]
fn a_kernel() {
    let image = fetched::by("kernel-fetch", &["cloud"]).display().to_string();
    run("kernel.md", true, &[("KERNEL", &image)]);
}

/// The fleet's commands are run by the test of docs/fleet.md, which builds the program for them.
#[test]
fn the_commands_of_a_fleet_stand_where_they_are_run() {
    let manual = fs::read_to_string(repository().join("docs/fleet.md")).expect("the page");
    let run: Vec<&str> = blocks(&manual)
        .into_iter()
        .filter(|block| block.info == "sh")
        .flat_map(|block| block.lines)
        .collect();
    let text = page("fleet.md");
    let shown: Vec<&str> =
        blocks(&text).into_iter().filter(|block| block.info == "sh").flat_map(|block| block.lines).collect();
    assert!(!shown.is_empty());
    assert_eq!(shown, run);
}

/// Every page is in the contents, and every link leads to a file.
#[test]
fn the_contents_name_every_page_and_links_lead_somewhere() {
    let folder = repository().join("docs/guide/src");
    let contents = page("SUMMARY.md");
    for entry in fs::read_dir(&folder).expect("the pages") {
        let name = entry.expect("a page").file_name().into_string().expect("a name");
        assert!(name == "SUMMARY.md" || contents.contains(&format!("({name})")), "{name}");
        let text = page(&name);
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            assert!(folder.join(target).is_file(), "{name}: {target}");
        }
    }
}

/// mdBook is not needed to run the tests: where it is, the book has to be built without a complaint.
#[test]
fn the_book_is_built_where_mdbook_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut mdbook = Command::new("mdbook");
    mdbook.arg("build").arg(repository().join("docs/guide")).arg("--dest-dir").arg(folder.path());
    let Ok(output) = mdbook.output() else {
        return println!("skipped: mdbook is missing; the guide's other tests do not need it");
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(folder.path().join("trust.html").is_file());
}

#[test]
fn an_ellipsis_stands_for_any_text_and_for_any_lines() {
    assert!(is_as_shown("time … s, …", "time 1.5 s, quiet"));
    assert!(is_as_shown("a … b", "a x b b"));
    assert!(!is_as_shown("time … s", "time 1.5 ms"));
    assert!(!is_as_shown("all of it", "all of it and more"));
    assert!(are_as_shown(&["a", "…", "c"], &["a", "b", "b", "c"]));
    assert!(are_as_shown(&["a", "…", "c"], &["a", "c"]));
    assert!(!are_as_shown(&["a", "…", "c"], &["a", "b"]));
    assert!(!are_as_shown(&["a"], &["a", "b"]));
}
