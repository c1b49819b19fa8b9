//! `lineup study` on the programs under `studies/`: its required findings, that its patch applies, builds and changes
//! no output, and that the user's folder stays unchanged.

use crate::installed;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The least share of data accesses that a study must name.
const LEAST_COVERAGE: f64 = 0.95;

/// A copy of a study's folder, without build outputs.
struct Folder {
    root: tempfile::TempDir,
}

impl Folder {
    fn of(study: &str) -> Folder {
        let folder = Folder { root: tempfile::tempdir().expect("a folder") };
        copy(&studies().join(study), &folder.source());
        folder
    }

    fn source(&self) -> PathBuf {
        self.root.path().join("source")
    }

    /// Studies a program of the folder.
    fn study(&self, regions: &[&str], more: &[&str], build: &str, command: &[&str]) -> Studied {
        let before = contents(&self.source());
        let out = tempfile::tempdir().expect("a folder");
        let mut lineup = installed::lineup();
        lineup.arg("study").arg("--json").arg("--source").arg(self.source()).arg("--out").arg(out.path());
        lineup.args(["--max-time", "1", "--margin", "1000%", "--build", build]).args(more);
        lineup.args(regions.iter().flat_map(|region| ["--region", region])).arg("--").args(command);
        let output = lineup.output().expect("lineup runs");
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{message}");
        assert_eq!(contents(&self.source()), before, "the user's folder was changed");
        let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
        let named = report["coverage"]["share"].as_f64().expect("coverage");
        println!("{}: {:.2} % of the accesses are named", command[0], 100.0 * named);
        assert!(named >= LEAST_COVERAGE, "{named}");
        Studied { report, out }
    }

    /// Applies a study's patch where a user would, builds, and holds the output against the unpatched one.
    fn apply(&self, studied: &Studied, build: &str, command: &[&str]) {
        let [before, after] = ["before", "after"].map(|name| self.root.path().join(name));
        copy(&self.source(), &before);
        copy(&self.source(), &after);
        run(&after, &["git", "apply", &studied.out.path().join("fix.patch").to_string_lossy()]);
        let [before, after] = [before, after].map(|folder| {
            run(&folder, &["sh", "-c", build]);
            run(&folder, command)
        });
        assert!(!before.is_empty());
        assert_eq!(before, after);
        assert_eq!(studied.report["proof"]["output"]["outcome"], "equal");
    }
}

/// A study's results.
struct Studied {
    report: Value,
    out: tempfile::TempDir,
}

impl Studied {
    /// Mean data lines per call of a region, `before` or `after` the change.
    fn lines(&self, region: usize, line_bytes: u64, when: &str) -> f64 {
        let footprints = self.report["regions"][region]["footprints"].as_array().expect("footprints");
        let of_size = |found: &&Value| found["kind"] == "data" && found["line_bytes"] == line_bytes;
        let found = footprints.iter().find(of_size).expect("the line size");
        found[when]["mean"].as_f64().unwrap_or_else(|| panic!("lines {when}"))
    }

    /// No region needs more lines of 64 bytes than before.
    fn needs_no_more_lines(&self) {
        for region in 0..self.report["regions"].as_array().expect("regions").len() {
            let [before, after] = ["before", "after"].map(|when| self.lines(region, 64, when));
            println!("region {region}: {before} lines before, {after} after");
            assert!(after <= before);
        }
    }

    fn proposals(&self, kind: &str) -> Vec<&Value> {
        let all = self.report["proposals"].as_array().expect("proposals");
        all.iter().filter(|proposal| proposal["kind"] == kind && proposal["status"] == "in-patch").collect()
    }
}

fn studies() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies")
}

fn run(folder: &Path, command: &[&str]) -> Vec<u8> {
    let output = Command::new(command[0]).args(&command[1..]).current_dir(folder).output();
    let output = output.unwrap_or_else(|error| panic!("{} does not run: {error}", command[0]));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Copies a folder without the outputs of `make`.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name())).expect("an entry");
        match path.is_dir() {
            true if name == "build" || name == "target" => {}
            true => copy(&path, &to.join(name)),
            false => drop(fs::copy(&path, to.join(name)).expect("a copy")),
        }
    }
}

/// Every file below a folder with its bytes.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => all.extend(contents(&path)),
            false => drop(all.insert(path.clone(), fs::read(&path).expect("a file"))),
        }
    }
    all
}

const CLOCKEVENTS: [&str; 2] = ["clockevents_adjust_all_freqs", "clockevents_program_event"];
const SMALL: [&str; 8] = ["--devices", "16", "--adjustments", "40", "--events", "32", "--load", "16"];

/// Studies the order before the 2016 patch and records that patch's order; returns lines per call of both regions:
/// before, Lineup's, the patch's.
fn three_orders(make: &str, suffix: &str) -> [[f64; 3]; 2] {
    let folder = Folder::of("clockevents");
    let own = format!("./clockevents{suffix}");
    let ours = folder.study(&CLOCKEVENTS, &[], make, &[&[own.as_str()], &SMALL[..]].concat());
    // Under the same name: a longer one would move the stack, which is part of the lines.
    let patched = format!("{make} LAYOUT=patch && cp {own}-patch {own}");
    let theirs = folder.study(
        &CLOCKEVENTS,
        &["--keep", "clock_event_device"],
        &patched,
        &[&[own.as_str()], &SMALL[..]].concat(),
    );
    println!("{:32} {:>8} {:>8} {:>8}", "lines of 64 bytes per call", "before", "Lineup", "patch");
    let rows = [0, 1].map(|region| {
        [
            ours.lines(region, 64, "before"),
            ours.lines(region, 64, "after"),
            theirs.lines(region, 64, "before"),
        ]
    });
    for (region, [before, lineup, patch]) in CLOCKEVENTS.iter().zip(rows) {
        println!("{region:32} {before:8.2} {lineup:8.2} {patch:8.2}");
    }
    if suffix.is_empty() {
        folder.apply(&ours, make, &[&[own.as_str()], &SMALL[..]].concat());
    } else {
        assert_eq!(ours.report["proof"]["time"], Value::Null);
        assert_eq!(ours.report["proof"]["time_not_claimed"], "runs under an emulator");
        folder.apply(&ours, make, &[&["qemu-arm", own.as_str()], &SMALL[..]].concat());
    }
    rows
}

/// Where the build does not let others choose its linker, the verdict is of one link, and the report says why.
#[test]
fn a_verdict_is_over_links_where_the_build_makes_them_and_else_of_one() {
    let folder = Folder::of("clockevents");
    let studied = |build: &str| {
        let command = [&["./clockevents"], &SMALL[..]].concat();
        let report = folder.study(&CLOCKEVENTS, &["--links", "3"], build, &command).report;
        let conclusion = report["proof"]["conclusion"].as_str().expect("a conclusion").to_owned();
        (report["proof"]["time"]["links"].as_u64(), conclusion, report["setting"].to_string())
    };
    let (links, conclusion, _) = studied("make");
    assert_eq!(links, Some(3));
    assert!(conclusion.contains("over 3 links of each") && !conclusion.contains("one link"), "{conclusion}");
    let (links, conclusion, setting) = studied("env -u COMPILER_PATH make");
    assert_eq!(links, Some(1));
    assert!(conclusion.ends_with("of this one link"), "{conclusion}");
    assert!(setting.contains("clockevents was not linked in other layouts"), "{setting}");
}

#[test]
fn lineups_order_of_the_clock_event_device_beats_the_patch_on_lp64() {
    let [adjust, program] = three_orders("make", "");
    assert!(adjust[1] < adjust[2], "{adjust:?}");
    assert!(program[1] <= program[2], "{program:?}");
}

#[test]
fn lineups_order_of_the_clock_event_device_is_no_worse_than_the_patch_on_ilp32() {
    let [adjust, program] = three_orders("make ARCH=arm", "-arm");
    assert!(adjust[1] <= adjust[2], "{adjust:?}");
    assert!(program[1] <= program[2], "{program:?}");
}

#[test]
fn the_scheduler_clock_becomes_one_aligned_struct_on_one_line() {
    let folder = Folder::of("sched-clock");
    let command = ["./sched_clock", "--reads", "20000"];
    let studied = folder.study(&["sched_clock"], &["--calls", "500"], "make", &command);
    let gathered = studied.proposals("gather");
    let [gather] = gathered.as_slice() else { panic!("{gathered:?}") };
    for name in ["cd", "read_sched_clock", "sched_clock_mask"] {
        assert!(gather["target"].as_str().expect("names").split(", ").any(|one| one == name), "{gather}");
    }
    let gains = gather["gains"].as_array().expect("gains");
    let after = |line_bytes: u64| {
        let of_size = |gain: &&Value| gain["data_model"] == "LP64" && gain["line_bytes"] == line_bytes;
        gains.iter().find(of_size).expect("a gain")["after"].as_f64()
    };
    // 45 hot bytes: one line of 64, and no fewer than two of 32.
    assert_eq!((after(64), after(32)), (Some(1.0), Some(2.0)));
    studied.needs_no_more_lines();
    assert!(studied.lines(0, 64, "after") <= studied.lines(0, 64, "before") - 1.0);
    folder.apply(&studied, "make", &command);
}

#[test]
fn lua_gets_a_patch_that_changes_no_output() {
    run(&studies().join("lua"), &["make", "--quiet", "sources"]);
    let folder = Folder::of("lua");
    let regions = ["luaD_poscall", "luaS_newlstr"];
    let studied = folder.study(&regions, &["--calls", "300"], "make", &["./lua", "bench.lua", "1"]);
    assert!(!studied.proposals("reorder").is_empty());
    studied.needs_no_more_lines();
    folder.apply(&studied, "make", &["./lua", "bench.lua", "1"]);
}

#[test]
fn a_cpp_program_gets_a_patch_that_changes_no_output() {
    let folder = Folder::of("cpp");
    let command = ["./exchange", "--orders", "1000"];
    let studied = folder.study(&["market::Book::imbalance"], &["--calls", "100"], "make", &command);
    assert!(!studied.proposals("reorder").is_empty());
    studied.needs_no_more_lines();
    folder.apply(&studied, "make", &command);
}

#[test]
fn cold_members_of_particles_leave_their_objects() {
    let folder = Folder::of("particles");
    let command = ["./particles", "2000", "4"];
    let studied = folder.study(&["step"], &["--calls", "4"], "make", &command);
    let splits = studied.proposals("split");
    let [split] = splits.as_slice() else { panic!("{}", studied.report["proposals"]) };
    assert_eq!(split["target"], "Particle");
    let patch = fs::read_to_string(studied.out.path().join("fix.patch")).expect("a patch");
    assert!(patch.contains("+    made.cold->mass = 1.0 + random_number();"), "{patch}");
    assert!(!patch.contains("cold->alive") && !patch.contains("cold->vx"), "{patch}");
    studied.needs_no_more_lines();
    assert!(studied.lines(0, 64, "after") <= 0.6 * studied.lines(0, 64, "before"));
    folder.apply(&studied, "make", &command);
}

#[test]
fn cold_members_of_parcels_leave_their_objects() {
    let folder = Folder::of("parcels");
    let command = ["./parcels", "20000", "2"];
    let studied = folder.study(&["depot_lookup"], &["--calls", "200"], "make", &command);
    let splits = studied.proposals("split");
    let [split] = splits.as_slice() else { panic!("{}", studied.report["proposals"]) };
    assert_eq!(split["target"], "parcel");
    let patch = fs::read_to_string(studied.out.path().join("fix.patch")).expect("a patch");
    for line in [
        "+    struct parcel *parcel = parcel_new();",
        "+    parcel->cold->price = 3 + 2 * parcel->cold->weight_kg;",
        "+    parcel_free(gone);",
    ] {
        assert!(patch.contains(line), "{line}\n{patch}");
    }
    assert!(!patch.contains("cold->next") && !patch.contains("cold->number"), "{patch}");
    studied.needs_no_more_lines();
    folder.apply(&studied, "make", &command);
}

#[test]
fn cold_members_of_stations_leave_their_array() {
    let folder = Folder::of("stations");
    let command = ["./stations", "2000", "40"];
    let studied = folder.study(&["network_nearest"], &["--calls", "20"], "make", &command);
    let splits = studied.proposals("split");
    let [split] = splits.as_slice() else { panic!("{}", studied.report["proposals"]) };
    assert_eq!(split["target"], "station");
    let patch = fs::read_to_string(studied.out.path().join("fix.patch")).expect("a patch");
    for line in [
        "+extern struct station_cold stations_cold[STATIONS];",
        "+        station_cold_of(station)->posts = 2 + (int)(next_number() % 6);",
        "+    return stations_cold[index].price * kwh;",
    ] {
        assert!(patch.contains(line), "{line}\n{patch}");
    }
    assert!(!patch.contains("stations_cold[i].x"), "{patch}");
    studied.needs_no_more_lines();
    assert!(studied.lines(0, 64, "after") <= 0.3 * studied.lines(0, 64, "before"));
    folder.apply(&studied, "make", &command);
}

#[test]
fn members_of_cells_get_arrays_of_their_own() {
    let folder = Folder::of("grid");
    let command = ["./grid", "5000", "4"];
    let regions = ["grid_flow", "grid_salt", "grid_fish", "grid_depth"];
    let studied = folder.study(&regions, &["--calls", "4"], "make", &command);
    let columns = studied.proposals("columns");
    let [columns] = columns.as_slice() else { panic!("{}", studied.report["proposals"]) };
    assert_eq!(columns["target"], "cell");
    let patch = fs::read_to_string(studied.out.path().join("fix.patch")).expect("a patch");
    for line in [
        "+extern struct cell_salt cells_salt[CELLS];",
        "+struct cell_cold cells_cold[CELLS];",
        "+        all += cells_salt[i].salt;",
        "+        cell_fish_of(cell)->fish = next_number() % 50;",
    ] {
        assert!(patch.contains(line), "{line}\n{patch}");
    }
    assert!(!patch.contains("+        cells[i].heat"), "{patch}");
    studied.needs_no_more_lines();
    for (region, most) in [0.25, 0.125, 0.125, 0.125].into_iter().enumerate() {
        let [before, after] = ["before", "after"].map(|of| studied.lines(region, 64, of));
        assert!(after <= 1.02 * most * before, "{}: {before} to {after}", regions[region]);
    }
    folder.apply(&studied, "make", &command);
}

#[test]
fn unread_members_of_cells_leave_and_the_others_become_bytes() {
    let folder = Folder::of("cells");
    let command = ["./cells", "20000", "40"];
    let studied = folder.study(&["grid_step"], &["--calls", "4"], "make", &command);
    let narrowed = studied.proposals("narrow");
    let [narrowed] = narrowed.as_slice() else { panic!("{}", studied.report["proposals"]) };
    assert_eq!(narrowed["target"], "cell");
    let patch = fs::read_to_string(studied.out.path().join("fix.patch")).expect("a patch");
    for line in [
        "+    unsigned char is_burning;",
        "-    long visits;",
        "-        cell->last_tick = tick;",
        "+        if (cell->is_burning && (unsigned)cell->owner - 1 < OWNERS / 2)",
    ] {
        assert!(patch.contains(line), "{line}\n{patch}");
    }
    studied.needs_no_more_lines();
    assert!(studied.lines(0, 64, "after") <= 0.3 * studied.lines(0, 64, "before"));
    folder.apply(&studied, "make", &command);
}

#[test]
fn cold_fields_of_accounts_leave_for_a_box() {
    let folder = Folder::of("accounts");
    let command = ["./accounts", "2000", "12"];
    let region = ["accounts::bank::Bank::add_interest"];
    let studied = folder.study(&region, &["--calls", "4"], "make", &command);
    let splits = studied.proposals("split");
    let [split] = splits.as_slice() else { panic!("{}", studied.report["proposals"]) };
    assert_eq!(split["target"], "accounts::account::Account");
    let patch = fs::read_to_string(studied.out.path().join("fix.patch")).expect("a patch");
    for line in [
        "+    pub cold: Box<AccountCold>,",
        "+            cold: Box::new(AccountCold {",
        "+        self.cold.turnover[0] += cents;",
        "+            .field(\"turnover\", &self.cold.turnover)",
        "+        assert_eq!(account.cold.turnover[0], 50);",
        "one.cold.opened < day",
    ] {
        assert!(patch.contains(line), "{line}\n{patch}");
    }
    assert!(!patch.contains("cold.balance") && !patch.contains("cold.rate"), "{patch}");
    studied.needs_no_more_lines();
    assert!(studied.lines(0, 64, "after") <= 0.3 * studied.lines(0, 64, "before"));
    folder.apply(&studied, "make", &command);
}

#[test]
fn a_rust_program_is_explained_and_left_as_it_is() {
    let folder = Folder::of("rust");
    let region = ["events::network::Network::arrive"];
    // No cold part saves all lines.
    let more = ["--calls", "100", "--least-share", "100%"];
    let studied = folder.study(&region, &more, "make", &["./events", "--packets", "500"]);
    assert_eq!((&studied.report["patch"], &studied.report["proof"]), (&Value::Null, &Value::Null));
    let refusals = studied.report["refusals"].as_array().expect("refusals");
    // The true reason, for structs and for enums, whose variants overlap as packed members would.
    let says_why = |refusal: &Value| {
        let because = refusal["because"].to_string();
        because.contains("Rust's compiler orders the members") && !because.contains("packed")
    };
    let targets: Vec<&str> = refusals.iter().filter_map(|refusal| refusal["target"].as_str()).collect();
    assert!(targets.contains(&"events::network::Node"), "{targets:?}");
    assert!(targets.iter().any(|target| target.starts_with("core::option::Option<")), "{targets:?}");
    assert!(refusals.iter().all(says_why), "{refusals:?}");
}

#[test]
fn the_guard_of_an_advice_names_the_member_that_a_later_edit_moves() {
    let folder = Folder::of("clockevents");
    let source = folder.source();
    run(&source, &["make"]);
    let [recording, patch, lock] =
        ["calls.rec", "fix.patch", "lineup.lock"].map(|name| folder.root.path().join(name));
    let lineup = |arguments: &[&str]| {
        let output = installed::lineup().current_dir(&source).args(arguments).output().expect("lineup runs");
        (
            output.status.code(),
            [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()),
        )
    };
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let (recording, patch, lock) = (text(&recording), text(&patch), text(&lock));
    let record = ["record", "--region", CLOCKEVENTS[0], "--out", &recording, "--", "./clockevents"];
    let (code, said) = lineup(&[&record[..], &SMALL].concat());
    assert_eq!(code, Some(0), "{said:?}");
    let (code, said) = lineup(&["advise", &recording, "--source", ".", "--patch", &patch, "--guard", &lock]);
    assert_eq!(code, Some(0), "{said:?}");
    run(&source, &["git", "apply", &patch]);
    run(&source, &["make"]);
    let (code, said) = lineup(&["layout", "--check", &lock, "clockevents"]);
    assert_eq!(code, Some(0), "{said:?}");
    run(&source, &["git", "apply", "--reverse", &patch]);
    run(&source, &["make"]);
    let (code, [stdout, _]) = lineup(&["layout", "--check", &lock, "clockevents"]);
    assert_eq!(code, Some(1), "{stdout}");
    assert!(stdout.contains("broken: ") && stdout.contains("mult"), "{stdout}");
}
