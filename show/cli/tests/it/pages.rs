//! Every kind of page that `lineup` writes, opened in a headless Chromium: nothing in the console, every control
//! reached by the keyboard with its focus seen, nothing cut off, and nothing that axe-core calls serious or critical.
//! Pictures of each stay in `target/pages`.

use crate::served;
use crate::whole_system;

use crate::looking::Looking;
use crate::place::Place;
use lineup_recording::Mode;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Sender, channel};

/// A walk that reads two members of devices on two lines, a list, two threads with neighbouring counters, and code that
/// runs and code that does not.
const PROGRAM: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
struct device { long id; char name_of_the_device_in_full[52]; long hits; char more[60]; int flags; };
struct node { struct node *next; char text[56]; int key; };
struct counters { long of_the_first_thread, of_the_second_thread; };
static struct device devices[400] __attribute__((aligned(64)));
static struct counters counters __attribute__((aligned(64)));
static struct node *head;
__attribute__((noinline)) long walk(int turn) { long sum = 0; for (int i = 0; i < 400; i++) { sum += devices[i].hits; if (devices[i].flags > turn) devices[i].flags--; } return sum; }
__attribute__((noinline)) long list(int key) { long sum = 0; for (struct node *node = head; node; node = node->next) if (node->key == key) sum++; return sum; }
__attribute__((noinline)) void count(long own) { volatile long *one = own ? &counters.of_the_second_thread : &counters.of_the_first_thread; for (int i = 0; i < 3000; i++) ++*one; }
static void *run(void *own) { for (int turn = 0; turn < 20; turn++) count((long)own); return 0; }
int main(int argc, char **argv)
{
	if (argc > 5) { puts("too many arguments"); return 1; }
	for (int i = 0; i < 400; i++) { devices[i].hits = i; devices[i].flags = i % 3; }
	for (int i = 0; i < 150; i++) { struct node *node = malloc(sizeof *node); node->next = head; node->key = i; head = node; }
	pthread_t threads[2];
	for (long own = 0; own < 2; own++) pthread_create(&threads[own], 0, run, (void *)own);
	for (int own = 0; own < 2; own++) pthread_join(threads[own], 0);
	long sum = 0;
	for (int turn = 0; turn < 60; turn++) sum += walk(turn) + list(turn);
	printf("%ld\n", sum);
	return 0;
}
"#;

/// Runs `lineup` there; it succeeds.
fn lineup(place: &Place, arguments: &str) {
    let words: Vec<&str> = arguments.split(' ').collect();
    let output = place.lineup(&words).output().expect("lineup runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "lineup {arguments}: {said}");
}

/// Traces `served` until it ends.
fn traced(place: &Place) {
    let mut child = Command::new(served::program(&place.source()))
        .arg(place.source().join("served.trace"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    assert_eq!(lines.next().expect("a line").expect("text"), "ready");
    drop(child.stdin.take());
    assert!(child.wait().expect("it ends").success());
}

/// Writes a page of every kind, and reports each kind's file as soon as it is there.
fn write_pages(place: &Place, written: &Sender<(&'static str, PathBuf)>) {
    let tell = |kind, file: &str| written.send((kind, place.source().join(file))).expect("a reader");
    lineup(
        place,
        "study --region list --region count --source . --build make --out study --max-time 1 --margin 1000% -- ./program",
    );
    tell("study", "study/report.html");
    lineup(place, "study --placement --out placement --max-time 1 -- ./program");
    tell("placement", "placement/report.html");
    lineup(place, "find --no-clock --html find.html -- ./program");
    tell("find", "find.html");
    lineup(place, "compare -n 5 --html comparison.html ./program ./program");
    tell("comparison", "comparison.html");
    lineup(place, "record --region count --engine native --out count.rec -- ./program");
    lineup(place, "threads count.rec --html threads.html");
    tell("threads", "threads.html");
    lineup(place, "record --region walk --region list --engine native --out calls.rec -- ./program");
    lineup(place, "record --whole-program --out program.rec -- ./program");
    lineup(place, "explain program.rec --html code.html --calls calls.rec");
    tell("code", "code.html");
    let few =
        "--cpus 4 --group g:shares=2,tasks=8,busy=~9ms,sleep=~9ms --resolution 0,10 --seeds 2 --time 1s";
    lineup(place, &format!("sched {few} --html sched.html"));
    tell("sched", "sched.html");
    lineup(place, &format!("sched {few} --sweep shares=2,64 --html sched-sweep.html"));
    tell("sched-sweep", "sched-sweep.html");
    std::fs::write(place.source().join("busy.rec"), whole_system::recording(Mode::System, 150))
        .expect("a file");
    lineup(place, "trace report busy.rec --html calls.html");
    tell("calls", "calls.html");
    traced(place);
    lineup(place, "trace report served.trace served.trace --html trace.html");
    tell("trace", "trace.html");
    place.assert_clean();
}

/// The kinds that the sources name: a page's name after `page(`.
fn kinds_in_the_sources() -> BTreeSet<String> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../report/src");
    let mut folders = vec![sources];
    let mut kinds = BTreeSet::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("the sources") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("a source");
            let named = text.split(" page(\"").skip(1).filter_map(|rest| rest.split('"').next());
            kinds.extend(named.map(str::to_owned));
        }
    }
    kinds
}

/// The kind that a page says it is of, in its title.
fn kind(page: &Path) -> String {
    let text = std::fs::read_to_string(page).expect("the page");
    let title = text.split("<title>").nth(1).and_then(|rest| rest.split("</title>").next()).expect("a title");
    title.rsplit(' ').next().expect("its kind").to_owned()
}

#[test]
fn every_kind_of_page_is_whole_and_usable_in_a_browser() {
    let Some(mut looking) = Looking::begin() else { return };
    let place = Place::new(PROGRAM, &["-pthread"]);
    let mut problems = Vec::new();
    let mut opened = BTreeSet::new();
    let (written, pages) = channel();
    // The browser checks one page while the next is written.
    std::thread::scope(|scope| {
        let place = &place;
        scope.spawn(move || write_pages(place, &written));
        for (name, file) in pages {
            problems.extend(looking.at(&file, name));
            opened.insert(kind(&file));
        }
    });
    assert_eq!(opened, kinds_in_the_sources());
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
