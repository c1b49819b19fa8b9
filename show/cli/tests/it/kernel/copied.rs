//! A kernel's copies for programs are a class of their own: programs' addresses identify them, and the functions that
//! copy.

use super::guests::{QUICK, kernel};
use super::record::{bench, printed, read};
use lineup_model::access::CallEnd;

#[test]
#[ignore = "boots a kernel; make test-kernel runs it"]
fn what_is_copied_for_programs_is_a_class_of_its_own() {
    let bench = bench();
    let image = bench.copy(&kernel("cloud"));
    let workload = "i=0; while [ $i -lt 20 ]; do i=$((i+1)); ls -R /bin | cat > /dev/null; done";
    let regions = ["--region", "ksys_write", "--region", "handle_mm_fault"];
    let guest =
        ["--cmdline", QUICK, "--workload", workload, "--no-caches", "--calls", "100", "--out", "copies.rec"];
    bench.json(&image, &[&regions[..], &guest].concat());
    let recording = read(&bench.folder.path().join("copies.rec"));
    let explained = printed(&bench, &["explain", "copies.rec"]);
    for region in explained["regions"].as_array().expect("regions") {
        let name = region["name"].as_str().expect("a name");
        let id = recording.header.regions.id_of(name).expect("the region");
        let ended = recording.calls.iter().filter(|call| call.end != CallEnd::Unfinished);
        let calls = ended.filter(|call| call.region == id);
        let accesses = calls.flat_map(|call| &call.accesses);
        // Every access to a program's half of the addresses, and no other, has that evidence.
        let of_programs = accesses.filter(|access| access.address < 1 << 63).count();
        let coverage = &region["coverage"];
        let told = |key: &str, of: &str| coverage[key][of].as_u64().unwrap_or(0);
        assert_eq!(told("by_evidence", "program_address"), of_programs as u64, "{name}: {coverage}");
        let copied = told("by_class", "copied");
        match name {
            // Its argument is copied into a pipe: both sides.
            "ksys_write" => assert!(of_programs >= 20 && copied > of_programs as u64, "{coverage}"),
            // A page is cleared or copied, which touches no program's address.
            _ => assert!(copied > of_programs as u64, "{coverage}"),
        }
    }
}
