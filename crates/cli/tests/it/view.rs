//! `lineup view`: the terminal view driven by keys in tmux, and pages given to the browser.

use crate::place::Place;
use crate::whole_system;
use lineup_recording::Mode;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// Devices of which a walk reads two members.
const PROGRAM: &str = r#"
#include <stdio.h>
struct device { long id; char name[48]; long hits; char more[60]; int flags; };
static struct device devices[40] __attribute__((aligned(64)));
__attribute__((noinline)) long walk(int turn) { long sum = 0; for (int i = 0; i < 40; i++) { sum += devices[i].hits; if (devices[i].flags > turn) devices[i].flags--; } return sum; }
int main(void)
{
	long sum = 0;
	for (int turn = 0; turn < 60; turn++) sum += walk(turn);
	printf("%ld\n", sum);
	return 0;
}
"#;

/// A terminal in tmux, with a server of its own. It ends when this is dropped.
struct Terminal<'p> {
    place: &'p Place,
}

impl<'p> Terminal<'p> {
    /// A shell in a terminal of so many cells.
    fn start(place: &'p Place, columns: u16, rows: u16) -> Terminal<'p> {
        let terminal = Terminal { place };
        let [columns, rows] = [columns, rows].map(|cells| cells.to_string());
        terminal.tmux(&["new-session", "-d", "-x", &columns, "-y", &rows, "sh"]);
        // A prompt that is not seen where it is typed.
        terminal.line("PS1=$(printf 'rea''dy$ ')");
        terminal.shows("ready$");
        terminal.line("stty -g >settings");
        terminal
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let mut tmux = Command::new("tmux");
        tmux.arg("-f").arg("/dev/null").arg("-S").arg(self.place.root.path().join("tmux")).args(arguments);
        let output = tmux.current_dir(self.place.source()).output().expect("tmux runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "tmux {arguments:?}: {said}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// Waits for a text on the screen, and gives the screen.
    fn shows(&self, text: &str) -> String {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let screen = self.screen();
            if screen.contains(text) {
                return screen;
            }
            assert!(Instant::now() < deadline, "{text:?} does not come:\n{screen}");
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    /// Types a command and Enter.
    fn line(&self, text: &str) {
        self.tmux(&["send-keys", "-l", text]);
        self.keys(&["Enter"]);
    }

    fn keys(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    /// What tmux says of the pane.
    fn state(&self, format: &str) -> String {
        self.tmux(&["display-message", "-p", format]).trim().to_owned()
    }

    /// The terminal has the settings that it had, its usual screen and its cursor.
    fn is_as_before(&self) {
        self.line("stty -g | cmp - settings && echo sa''me");
        self.shows("same");
        assert_eq!(self.state("#{alternate_on} #{cursor_flag}"), "0 1");
    }
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        let mut tmux = Command::new("tmux");
        let _ = tmux.arg("-S").arg(self.place.root.path().join("tmux")).arg("kill-server").status();
    }
}

/// Why the terminal view cannot be driven here, when it cannot.
fn lacks_tmux() -> bool {
    let is_there = Command::new("tmux").arg("-V").output().is_ok();
    let why = "tmux is missing: make setup-test installs it";
    assert!(is_there || std::env::var_os("CI").is_none(), "{why}");
    if !is_there {
        println!("skipped: {why}");
    }
    !is_there
}

fn recorded(place: &Place) {
    let words = ["record", "--engine", "native", "--region", "walk", "--out", "calls.rec", "--", "./program"];
    let output = place.lineup(&words).output().expect("lineup runs");
    assert!(output.status.success(), "{}", said(&output));
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// The command as a shell takes it.
fn view(file: &str) -> String {
    format!("{} view {file}", env!("CARGO_BIN_EXE_lineup"))
}

#[test]
fn keys_lead_from_functions_to_calls_and_from_types_to_lines_at_any_size() {
    if lacks_tmux() {
        return;
    }
    let place = Place::new(PROGRAM, &[]);
    recorded(&place);
    let terminal = Terminal::start(&place, 100, 30);
    terminal.line(&view("calls.rec"));
    let screen = terminal.shows("[1 Functions]");
    assert!(screen.contains("A walk") && screen.contains("q quits"), "{screen}");
    assert_eq!(terminal.state("#{alternate_on}"), "1");
    terminal.keys(&["Enter"]);
    let screen = terminal.shows("60 calls of walk");
    assert!(screen.contains("#0 walk") && screen.contains("#3 walk"), "{screen}");
    terminal.keys(&["End"]);
    terminal.shows("#59 walk");
    terminal.keys(&["2"]);
    terminal.shows("variables of program");
    terminal.keys(&["Enter"]);
    let screen = terminal.shows("lines of ");
    assert!(screen.contains("line "), "{screen}");
    // Narrower, and wider again, while it is open.
    terminal.tmux(&["resize-window", "-x", "40", "-y", "10"]);
    let screen = terminal.shows("[Lines]");
    assert!(screen.lines().all(|row| row.chars().count() <= 40) && screen.contains(" q"), "{screen}");
    terminal.tmux(&["resize-window", "-x", "120", "-y", "30"]);
    terminal.shows("[3 Lines]");
    terminal.keys(&["q"]);
    terminal.shows("ready$");
    terminal.is_as_before();
}

/// The lines of a call are counted as `lineup explain` counts them.
#[test]
fn calls_have_as_many_lines_as_are_explained() {
    if lacks_tmux() {
        return;
    }
    let place = Place::new(PROGRAM, &[]);
    recorded(&place);
    let output = place.lineup(&["explain", "--json", "calls.rec"]).output().expect("lineup runs");
    let explained: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let lines = explained["regions"][0]["lines"].as_array().expect("lines of each size");
    let of_64 = lines.iter().find(|lines| lines["line_bytes"] == 64).expect("lines of 64 bytes");
    // Every walk does the same.
    let [data, code] = ["data", "code"].map(|kind| of_64[kind]["median"].as_u64().expect("a figure"));
    let terminal = Terminal::start(&place, 100, 30);
    terminal.line(&view("calls.rec"));
    terminal.shows("[1 Functions]");
    terminal.keys(&["4", "Down", "Down", "Down"]);
    let screen = terminal.shows("#5 walk");
    let row = screen.lines().find(|row| row.contains("#5 walk")).expect("the call");
    let figures: Vec<&str> = row.split_whitespace().skip(2).take(2).collect();
    assert_eq!(figures, [data.to_string(), code.to_string()], "{screen}");
}

#[test]
fn the_terminal_is_given_back_after_a_signal_and_after_a_panic() {
    if lacks_tmux() {
        return;
    }
    let place = Place::new(PROGRAM, &[]);
    recorded(&place);
    let terminal = Terminal::start(&place, 80, 24);
    terminal.line(&view("calls.rec"));
    terminal.shows("[1 Functions]");
    let shell = terminal.state("#{pane_pid}");
    let ended = Command::new("pkill").args(["-TERM", "-P", &shell]).status().expect("pkill runs");
    assert!(ended.success());
    terminal.shows("ready$");
    terminal.is_as_before();
    terminal.line("clear");
    let panics = lineup_fixtures::beside("examples/panics");
    terminal.line(&panics.display().to_string());
    terminal.shows("taken");
    let screen = terminal.shows("on purpose");
    assert!(!screen.contains("taken"), "{screen}");
    terminal.is_as_before();
}

#[test]
fn a_view_whose_terminal_is_closed_ends() {
    if lacks_tmux() {
        return;
    }
    let place = Place::new(PROGRAM, &[]);
    recorded(&place);
    let terminal = Terminal::start(&place, 80, 24);
    // The view notices the closed terminal by itself: no signal tells it.
    terminal.line(&format!("trap '' HUP; {}", view("calls.rec")));
    terminal.shows("[1 Functions]");
    let shell = terminal.state("#{pane_pid}");
    let found = Command::new("pgrep").args(["-P", &shell]).output().expect("pgrep runs");
    let process = String::from_utf8_lossy(&found.stdout).trim().to_owned();
    let folder = Path::new("/proc").join(&process);
    assert!(!process.is_empty() && folder.exists(), "{found:?}");
    drop(terminal);
    let deadline = Instant::now() + Duration::from_secs(60);
    while folder.exists() {
        assert!(Instant::now() < deadline, "the view goes on without a terminal");
        std::thread::sleep(Duration::from_millis(30));
    }
}

/// A function whose name is changed in the program that was built, to one that sets a terminal's title and rings.
const HOSTILE: &str = r#"
#include <stdio.h>
__attribute__((noinline)) long walk_hostile_name(long of) { static long sum; return sum += of; }
int main(void) { for (long turn = 0; turn < 9; turn++) walk_hostile_name(turn); puts("done"); return 0; }
"#;

#[test]
fn a_symbol_that_steers_terminals_is_spelled_out() {
    if lacks_tmux() {
        return;
    }
    let place = Place::new(HOSTILE, &[]);
    let (harmless, name) = (b"walk_hostile_name", "walk\u{1b}]0;owned\u{7}abc");
    assert_eq!(harmless.len(), name.len());
    let program = place.source().join("program");
    let mut bytes = std::fs::read(&program).expect("the program");
    while let Some(at) = bytes.windows(harmless.len()).position(|bytes| bytes == harmless) {
        bytes[at..at + name.len()].copy_from_slice(name.as_bytes());
    }
    std::fs::write(&program, bytes).expect("the program");
    let words = ["record", "--engine", "native", "--region", name, "--out", "calls.rec", "--", "./program"];
    let output = place.lineup(&words).output().expect("lineup runs");
    assert!(output.status.success(), "{}", said(&output));
    let terminal = Terminal::start(&place, 100, 20);
    terminal.line(&view("calls.rec"));
    let screen = terminal.shows("[1 Functions]");
    assert!(screen.contains(r"walk\u{1b}]0;owned\u{7}"), "{screen}");
    assert_ne!(terminal.state("#{pane_title}"), "owned");
}

#[test]
fn an_empty_recording_says_so() {
    if lacks_tmux() {
        return;
    }
    let place = Place::new(PROGRAM, &[]);
    let recording = whole_system::recording(Mode::OnePass, 0);
    std::fs::write(place.source().join("calls.rec"), recording).expect("a file");
    let terminal = Terminal::start(&place, 80, 24);
    terminal.line(&view("calls.rec"));
    let screen = terminal.shows("nothing was recorded here");
    assert!(screen.contains("No call was recorded"), "{screen}");
    terminal.keys(&["Tab", "Enter", "Tab", "Enter", "End", "q"]);
    terminal.shows("ready$");
    terminal.is_as_before();
}

/// A folder with an `xdg-open` that notes what it is given, and ends so.
fn opener(place: &Place, status: u8) -> String {
    let folder = place.root.path().join("bin");
    std::fs::create_dir_all(&folder).expect("a folder");
    let script = format!("#!/bin/sh\nprintf '%s\\n' \"$@\" >>\"$OPENED\"\nexit {status}\n");
    std::fs::write(folder.join("xdg-open"), script).expect("a file");
    std::fs::set_permissions(folder.join("xdg-open"), PermissionsExt::from_mode(0o755)).expect("a mode");
    format!("{}:{}", folder.display(), std::env::var("PATH").expect("PATH"))
}

#[test]
fn pages_are_opened_with_the_desktop_s_browser_and_it_is_said_which() {
    let place = Place::new(PROGRAM, &[]);
    recorded(&place);
    let opened = place.root.path().join("opened");
    let run = |arguments: &[&str], path: &str| {
        let mut lineup = place.lineup(arguments);
        lineup.env("PATH", path).env("OPENED", &opened).output().expect("lineup runs")
    };
    let path = opener(&place, 0);
    // A recording without a terminal: a page on request.
    let refused = run(&["view", "calls.rec"], &path);
    assert_eq!(refused.status.code(), Some(2));
    assert!(said(&refused).contains("lineup view --page calls.rec"), "{}", said(&refused));
    let shown = run(&["view", "--page", "calls.rec"], &path);
    assert_eq!(shown.status.code(), Some(0), "{}", said(&shown));
    let file = std::fs::read_to_string(&opened).expect("what was opened");
    let page = std::fs::read_to_string(file.trim()).expect("the page");
    assert!(
        page.starts_with("<!DOCTYPE html>")
            && page.contains("device")
            && page.contains("nothing on this page is proven")
    );
    assert!(said(&shown).contains(file.trim()), "{}", said(&shown));
    std::fs::remove_file(file.trim()).expect("the page");
    // A page that is there, by its name and by its folder.
    std::fs::create_dir(place.source().join("study")).expect("a folder");
    let written = run(&["view", "calls.rec", "--out", "study/report.html"], &path);
    assert!(said(&written).contains("written: study/report.html"), "{}", said(&written));
    for name in ["study/report.html", "study"] {
        std::fs::remove_file(&opened).expect("the note");
        let shown = run(&["view", name], &path);
        assert_eq!(shown.status.code(), Some(0), "{}", said(&shown));
        let file = std::fs::read_to_string(&opened).expect("what was opened");
        assert_eq!(Path::new(file.trim()), place.source().join("study/report.html"));
    }
    // What is not told as opened when it was not.
    let failed = run(&["view", "study"], &opener(&place, 3));
    assert_eq!(failed.status.code(), Some(2));
    assert!(
        said(&failed).contains("report.html") && said(&failed).contains("exit status: 3"),
        "{}",
        said(&failed)
    );
    let other = run(&["view", "main.c"], &path);
    assert_eq!(other.status.code(), Some(2));
    place.assert_clean();
}
