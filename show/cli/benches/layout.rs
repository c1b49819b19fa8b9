//! The cost of a whole kernel's layouts: `cargo bench -p lineup --bench layout`.
//!
//! `lineup layout --full`, `pahole` and `pahole -j2` take turns on Debian's vmlinux with DWARF 5, which apt downloads
//! once (LINEUP_BENCH_VMLINUX names another file to use). The bench prints time and peak memory side by side (goal: at
//! most a fifth of those of `pahole -j2`). Then it prints every named struct for which the two report different
//! numbers, and the number of compared structs.
//!
//! Then both are asked for one type: `lineup` without and with its index from an earlier look, and with BTF. `pahole
//! -C` stops at the first unit that describes the type; `lineup` shows every distinct type of that name.

#[path = "../tests/it/pahole/mod.rs"]
mod pahole;
mod setup;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use wait4::Wait4;

const ROUNDS: usize = 3;

fn main() {
    let lineup = setup::release_build();
    let vmlinux = setup::vmlinux();
    let file = vmlinux.to_str().expect("a UTF-8 path");
    let folder = tempfile::tempdir().expect("a scratch folder");
    let ours = folder.path().join("lineup");
    let theirs = folder.path().join("pahole");
    let lineup = lineup.to_str().expect("a UTF-8 path").to_owned();
    let commands: [(&str, Vec<&str>, &Path); 3] = [
        ("lineup layout --full", vec![&lineup, "layout", "--full", file], &ours),
        ("pahole", vec!["pahole", "-F", "dwarf", file], &theirs),
        ("pahole -j2", vec!["pahole", "-j2", "-F", "dwarf", file], Path::new("/dev/null")),
    ];
    let mut costs: [Vec<Cost>; 3] = Default::default();
    for _ in 0..ROUNDS {
        for (costs, (_, command, output)) in costs.iter_mut().zip(&commands) {
            costs.push(run(command, output));
        }
    }
    let peer = Cost::median(&costs[2]);
    println!("the layouts of {file}, {ROUNDS} rounds in turn, medians");
    for ((name, ..), costs) in commands.iter().zip(&costs) {
        let cost = Cost::median(costs);
        println!(
            "  {name:<22} {:7.2} s ({:4.2} of pahole -j2)  {:7.2} s of processors ({:4.2})  {:6} MB ({:4.2})",
            cost.wall.as_secs_f64(),
            cost.wall.as_secs_f64() / peer.wall.as_secs_f64(),
            cost.busy.as_secs_f64(),
            cost.busy.as_secs_f64() / peer.busy.as_secs_f64(),
            cost.peak_bytes >> 20,
            cost.peak_bytes as f64 / peer.peak_bytes as f64,
        );
    }
    println!("  goal: 0.20 of the time and of the memory of pahole -j2");
    one_type(&lineup, file, folder.path());
    compare(file, &read(&ours), &read(&theirs));
}

/// The number of looks at one type, each way.
const LOOKS: usize = 15;

/// The kernel's own BTF.
const BTF: &str = "/sys/kernel/btf/vmlinux";

/// Prints the cost of a look at one type, next to pahole's.
fn one_type(lineup: &str, file: &str, folder: &Path) {
    let cache = folder.join("cache");
    let lineup_on = |file: &str, name: &str, is_first: bool| {
        if is_first && cache.exists() {
            fs::remove_dir_all(&cache).expect("an empty cache");
        }
        let kept = format!("XDG_CACHE_HOME={}", cache.display());
        run(&["env", &kept, lineup, "layout", file, name], Path::new("/dev/null"))
    };
    let pahole_on = |file: &str, name: &str| run(&["pahole", "-C", name, file], Path::new("/dev/null"));
    println!("one type, {LOOKS} looks in turn, medians");
    let mut rows: Vec<(&str, &str)> =
        ["task_struct", "sk_buff", "list_head", "rq"].map(|name| (file, name)).into();
    rows.extend(Path::new(BTF).exists().then_some((BTF, "task_struct")));
    for (file, name) in rows {
        let mut costs: [Vec<Cost>; 3] = Default::default();
        for _ in 0..LOOKS {
            costs[0].push(lineup_on(file, name, true));
            costs[1].push(lineup_on(file, name, false));
            costs[2].push(pahole_on(file, name));
        }
        let [first, later, pahole] = costs.map(|costs| Cost::median(&costs));
        let ratio = |cost: &Cost| cost.wall.as_secs_f64() / pahole.wall.as_secs_f64();
        let shown = |cost: &Cost| {
            let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
            format!("{:6.1} ms ({:6.1} of processors)", milliseconds(cost.wall), milliseconds(cost.busy))
        };
        println!(
            "  {name:<12} of {file}: first {} = {:.2} of pahole, later {} = {:.2}, pahole {}",
            shown(&first),
            ratio(&first),
            shown(&later),
            ratio(&later),
            shown(&pahole),
        );
    }
}

fn read(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).expect("what a command printed")).into_owned()
}

/// The cost of one run.
struct Cost {
    wall: Duration,
    /// Time of all processors.
    busy: Duration,
    peak_bytes: u64,
}

impl Cost {
    fn median(costs: &[Cost]) -> Cost {
        let middle = |mut values: Vec<u128>| {
            values.sort_unstable();
            values[values.len() / 2]
        };
        let time = |of: fn(&Cost) -> Duration| {
            Duration::from_nanos(middle(costs.iter().map(|cost| of(cost).as_nanos()).collect()) as u64)
        };
        Cost {
            wall: time(|cost| cost.wall),
            busy: time(|cost| cost.busy),
            peak_bytes: middle(costs.iter().map(|cost| cost.peak_bytes.into()).collect()) as u64,
        }
    }
}

fn run(command: &[&str], output: &Path) -> Cost {
    let begun = Instant::now();
    let mut child = Command::new(command[0])
        .args(&command[1..])
        .stdin(Stdio::null())
        .stdout(File::create(output).expect("a file for what it prints"))
        .stderr(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| {
            panic!("cannot run {}: {error}; install it: apt install dwarves", command[0])
        });
    let used = child.wait4().expect("a child to wait for");
    assert!(used.status.success(), "{command:?} failed");
    let usage = used.rusage;
    Cost { wall: begun.elapsed(), busy: usage.utime + usage.stime, peak_bytes: usage.maxrss }
}

/// Prints every difference between the two listings and the count of the structs in both.
fn compare(file: &str, ours: &str, theirs: &str) {
    let mut theirs = pahole::read(theirs);
    // Structs that only a typedef names are shown when asked for, those of the first unit that has any.
    let asked = pahole::typedef_names(ours).join(",");
    let by_typedef = setup::shown(Command::new("pahole").args(["-F", "dwarf", "-C", &asked, file]));
    theirs.extend(pahole::read(&by_typedef));
    let mut known_to_us: BTreeMap<String, Vec<pahole::Printed>> = BTreeMap::new();
    for printed in pahole::read(ours) {
        known_to_us.entry(printed.name.clone()).or_default().push(printed);
    }
    let mut different = 0;
    for printed in &theirs {
        let candidates = known_to_us.get(&printed.name).map(Vec::as_slice).unwrap_or_default();
        let differences: Vec<String> =
            candidates.iter().filter_map(|ours| pahole::difference(printed, ours)).collect();
        if candidates.is_empty() || differences.len() == candidates.len() {
            different += 1;
            println!("  differs: {}: {}", printed.name, differences.join(" / "));
        }
    }
    let shown: BTreeSet<&str> = theirs.iter().map(|printed| printed.name.as_str()).collect();
    let only_ours: Vec<&String> = known_to_us.keys().filter(|name| !shown.contains(name.as_str())).collect();
    println!("  {} named structs of pahole compared, {different} differ", theirs.len());
    println!("  {} typedef names that pahole does not show unless asked one by one", only_ours.len());
}
