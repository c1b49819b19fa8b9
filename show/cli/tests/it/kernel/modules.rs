//! Functions of modules as regions: under Debian's kernel, overlayfs is one.

use super::guests::{Bench, QUICK, busybox, kernel};
use super::record::{bench, kept, printed, read};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Mounts an overlay, lists it, and looks up an existing name and a missing one. Last it prints a function's address in
/// the kernel.
const OVERLAY: &str = "mkdir /low /memory /over; echo text > /low/file; mount -t tmpfs memory /memory; \
    mkdir /memory/up /memory/work; \
    mount -t overlay -o lowerdir=/low,upperdir=/memory/up,workdir=/memory/work overlay /over || exit 3; \
    i=0; while [ $i -lt 20 ]; do i=$((i + 1)); ls -l /over > /dev/null; cat /over/file > /dev/null; \
    echo new > /over/new$i; [ ! -e /over/none$i ] || exit 4; done; \
    grep 'ovl_lookup.*overlay' /proc/kallsyms | tr '\\t' ' '";

/// A guest that does this, with overlayfs from a folder of modules.
fn overlaid(modules: &str) -> [&str; 8] {
    ["--module", "overlay", "--modules", modules, "--workload", OVERLAY, "--cmdline", QUICK]
}

const REGIONS: [&str; 4] = ["--region", "ovl_lookup", "--region", "ovl_permission"];

/// The folder of a fetched kernel's modules.
fn modules_folder(name: &str) -> String {
    let root = kernel(name).parent().and_then(Path::parent).expect("a folder").join("lib/modules");
    let release = std::fs::read_dir(root).expect("modules").next().expect("a release").expect("a folder");
    release.path().display().to_string()
}

#[test]
#[ignore = "boots a kernel four times; make test-kernel runs it"]
fn functions_of_a_module_are_recorded_where_the_kernel_has_put_it_and_named_by_its_own_types() {
    let bench = bench();
    let image = bench.copy(&kernel("cloud"));
    let modules = modules_folder("cloud");
    let guest = overlaid(&modules);
    let run = |out: &str| {
        let arguments =
            [&REGIONS[..], &guest, &["--no-caches", "--console", "--timeout", "1500", "--out", out]].concat();
        let output = bench.run(&image, &arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        said
    };
    let said = run("one.rec");
    run("two.rec");
    let bytes = |name: &str| std::fs::read(bench.folder.path().join(name)).expect("a recording");
    assert!(bytes("one.rec") == bytes("two.rec"), "two recordings differ");

    // The guest's own table of symbols.
    let address = |line: &str| {
        let mut words = line.split_whitespace();
        let (address, _, name) = (words.next()?, words.next()?, words.next()?);
        (name == "ovl_lookup").then(|| u64::from_str_radix(address, 16).ok())?
    };
    let listed = said.lines().find_map(address).expect("the guest lists the function");
    let recording = read(&bench.folder.path().join("one.rec"));
    let region =
        recording.header.regions.iter().find(|(_, region)| region.name == "ovl_lookup").expect("a region").1;
    assert_eq!(region.entries, [listed]);
    assert!(region.image.ends_with("/overlay.ko"), "{}", region.image);
    assert!(kept(&recording, "ovl_lookup").len() >= 40 && kept(&recording, "ovl_permission").len() >= 40);

    are_named_by_types_of_both(&printed(&bench, &["explain", "one.rec"]));
}

fn are_named_by_types_of_both(explained: &Value) {
    for region in explained["regions"].as_array().expect("regions") {
        let named = region["coverage"]["named_off_stack"].as_f64().expect("a share");
        assert!(named > 0.85, "{}: {named}", region["name"]);
        let code = region["code"].as_array().expect("code").iter();
        let functions: BTreeSet<&str> = code.filter_map(|line| line["function"].as_str()).collect();
        let name = region["name"].as_str().expect("a name");
        assert!(functions.iter().any(|one| one.split(" | ").any(|one| one == name)), "{functions:?}");
    }
    // Types that only the module has, and those that it has in common with the kernel.
    let lookup = &explained["regions"][0]["map"];
    let types: BTreeSet<&str> =
        lookup.as_array().expect("lines").iter().filter_map(|line| line["type_name"].as_str()).collect();
    assert!(types.contains("ovl_fs") && types.contains("dentry"), "{types:?}");
}

/// Functions of a module are counted in its file, and its own variables have names.
#[test]
#[ignore = "boots a kernel twice; make test-kernel runs it"]
fn what_a_whole_guest_stalls_for_is_told_by_functions_and_variables_of_modules() {
    let modules = modules_folder("cloud");
    let bench = Bench::new(&["find", "--kernel"]);
    let found = bench.json(&bench.copy(&kernel("cloud")), &overlaid(&modules));
    let mut instructions: BTreeMap<&str, u64> = BTreeMap::new();
    for function in found["functions"].as_array().expect("functions") {
        let (name, file) = (text(&function["name"]), text(&function["image"]));
        *instructions.entry(file).or_default() += function["instructions"].as_u64().expect("a count");
        assert!(!name.starts_with("ovl_") || file.ends_with("/overlay.ko"), "{name} of {file}");
    }
    let of_module = instructions.iter().find(|(file, _)| file.ends_with("/overlay.ko"));
    let (module, of_module) = of_module.expect("functions of the module");
    let of_kernel: u64 =
        instructions.iter().filter(|(file, _)| *file != module).map(|(_, count)| count).sum();
    assert!(*of_module > 10_000 && of_kernel > 10 * of_module, "{instructions:?}");
    let owners: BTreeSet<(&str, &str)> = found["owners"]
        .as_array()
        .expect("owners")
        .iter()
        .map(|owner| (text(&owner["class"]), text(&owner["name"])))
        .collect();
    let expected = [("variable", "ovl_inode_cachep"), ("member", "dentry"), ("member", "inode")];
    assert!(expected.iter().all(|owner| owners.contains(owner)), "{owners:?}");
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

#[test]
fn a_module_that_is_needed_or_is_none_is_told_before_any_boot() {
    let bench = bench();
    let image = kernel("cloud");
    let said = bench.refused(&image, &["--region", "ovl_lookup"]);
    assert!(said.contains("ovl_lookup is a function of the module overlay: give --module overlay"), "{said}");
    let said = bench.refused(&image, &["--region", "ovl_lookup", "--module", "overlai"]);
    assert!(said.contains("--module overlai") && said.contains("there are overlay"), "{said}");
    let said = bench.refused(&image, &["--region", "ovl_lokup", "--module", "overlay"]);
    assert!(said.contains("no function ovl_lokup"), "{said}");
    // Code that is freed when the module has been loaded is not a region.
    let said = bench.refused(&image, &["--region", "ovl_init", "--module", "overlay"]);
    assert!(said.contains("no function ovl_init"), "{said}");
    // Nothing calls a network driver where there is no device.
    for module in [&[][..], &["--module", "virtio_net"]] {
        let said = bench.refused(&image, &[&["--region", "virtnet_poll"], module].concat());
        assert!(said.contains("virtnet_poll is a function of the network driver virtio_net"), "{said}");
        assert!(said.contains("not supported"), "{said}");
    }
}

/// Its accesses have names through the relocated code of the module.
#[test]
#[ignore = "boots a kernel for Arm twice; make test-kernel runs it"]
fn functions_of_a_module_for_64_bit_arm_are_recorded_and_named_too() {
    let bench = bench();
    let fetched = kernel("arm64");
    let (image, busybox, modules) = (bench.copy(&fetched), busybox(&fetched), modules_folder("arm64"));
    let own = ["--busybox", &busybox, "--no-caches", "--timeout", "1500", "--out", "one.rec"];
    let output = bench.run(&image, &[&REGIONS[..], &overlaid(&modules), &own].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    are_named_by_types_of_both(&printed(&bench, &["explain", "one.rec"]));
}

#[test]
#[ignore = "fetches a kernel for Arm; make test-kernel runs it"]
fn modules_of_other_machines_are_refused_before_any_boot() {
    let said = bench().refused(&kernel("armmp"), &["--region", "ovl_lookup", "--module", "overlay"]);
    assert!(said.contains("x86-64 and aarch64; the image is for arm"), "{said}");
}
