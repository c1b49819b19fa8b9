//! `lineup study --kernel-source` on a tree of our own that builds in a second: with a change that helps, and with
//! changes that do not build, do not boot, do something else, or help nothing.

use crate::installed;
use crate::schema;

use crate::looking::Looking;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

/// The tree, in a folder where it may be changed.
struct Tree {
    folder: tempfile::TempDir,
}

impl Tree {
    fn new() -> Tree {
        let tree = Tree { folder: tempfile::tempdir().expect("a folder") };
        copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/kernel_tree"), &tree.path("linux"));
        tree
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Replaces a text in a file of the tree.
    fn change(&self, name: &str, from: &str, to: &str) {
        let text = self.read(name);
        assert!(text.contains(from), "{name}: no {from:?}");
        fs::write(self.path(name), text.replace(from, to)).expect("writes");
    }

    /// Studies it, and returns the exit code and the messages.
    fn study(&self, more: &[&str]) -> (Option<i32>, String) {
        let mut lineup = installed::lineup();
        lineup.args(["study", "--kernel-source", "linux", "--memory", "64", "--jobs", "2", "--out", "out"]);
        let Output { status, stdout, stderr } =
            lineup.args(more).current_dir(self.folder.path()).output().expect("lineup runs");
        let said = [stdout, stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        (status.code(), said)
    }

    fn report(&self) -> Value {
        serde_json::from_str(&self.read("out/report.json")).expect("JSON")
    }

    /// Checks that the change was refused; returns the reason.
    fn refused(&self, more: &[&str]) -> String {
        let (code, said) = self.study(&[&["--region", "walk_devices"], more].concat());
        assert_eq!(code, Some(1), "{said}");
        assert!(!self.path("out/fix.patch").exists(), "a change that failed is not proposed");
        assert!(self.read("out/rejected.patch").contains("+++ b/include/device.h"));
        assert_eq!(self.report()["proof"], Value::Null);
        said
    }
}

/// Checks that a report is whole and usable in a browser.
fn assert_usable(page: &Path, name: &str) {
    let Some(mut looking) = Looking::begin() else { return };
    let problems = looking.at(page, name);
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target).expect("copies")),
        }
    }
}

#[test]
fn a_patch_to_a_kernel_is_built_booted_and_compared() {
    let tree = Tree::new();
    let untouched = tree.read("linux/include/device.h");
    let (code, said) = tree.study(&["--region", "walk_devices"]);
    assert_eq!(code, Some(0), "{said}");
    let patch = tree.read("out/fix.patch");
    assert!(patch.starts_with("device: ") && !patch.contains("NOT BUILT"), "{patch}");
    assert!(patch.contains("walk_devices                       200   192.00    64.00"), "{patch}");
    let report = tree.report();
    let (lines, proof) = (&report["guest"]["types"][0], &report["proof"]);
    assert_eq!(
        (&lines["before"], &lines["predicted"], &lines["after"]),
        (&192.0.into(), &64.0.into(), &64.0.into())
    );
    assert_eq!((&proof["output"]["outcome"], &proof["time"]), (&"equal".into(), &Value::Null));
    let stalls = report["guest"]["costs"][0]["means"].as_array().expect("costs");
    assert!(stalls.iter().any(|cost| cost["after"].as_f64() < cost["before"].as_f64()), "{stalls:#?}");
    assert!(said.contains("offsets: read back from the debug information"), "{said}");
    for variant in ["before", "after"] {
        assert!(tree.read(&format!("out/{variant}/boot.log")).contains("Linux version 6.1.0-small"));
        assert!(tree.read(&format!("out/{variant}/workload.log")).contains("sum 11054920800"));
    }
    assert_usable(&tree.path("out/report.html"), "kernel-study");
    // The tree is unchanged, and the copy has the tree's content.
    assert_eq!(tree.read("linux/include/device.h"), untouched);
    assert_eq!(tree.read("out/build/source/include/device.h"), untouched);
    assert!(!tree.path("linux/.config").exists());

    // A second study compiles only the files that its own edits reach, and a file that changed meanwhile.
    tree.change("linux/kernel/main.c", "turn < 200", "turn < 210");
    let (code, said) = tree.study(&["--region", "walk_devices"]);
    assert_eq!(code, Some(0), "{said}");
    // The first study's results stay.
    assert!(tree.read("out/before/workload.log").contains("sum 11054920800"), "{said}");
    let log = tree.read("out-2/before/workload.log");
    assert!(log.contains("sum ") && !log.contains("sum 11054920800"), "the change was built");
    assert!(!tree.path("out-2/build").exists(), "the earlier build is used again");
    let report: Value = serde_json::from_str(&tree.read("out-2/report.json")).expect("JSON");
    assert_eq!(report["guest"]["costs"][0]["calls_before"], 210);
}

#[test]
fn without_a_recorder_nothing_is_built() {
    let tree = Tree::new();
    let mut lineup = installed::lineup();
    lineup.args(["study", "--kernel-source", "linux", "--region", "walk_devices", "--out", "out"]);
    lineup.env("LINEUP_PLUGIN", tree.path("none.so")).current_dir(tree.folder.path());
    let output = lineup.output().expect("lineup runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("LINEUP_PLUGIN names") && said.contains("none.so"), "{said}");
    assert!(!tree.path("out/build").exists(), "the sources were not even copied");
}

#[test]
fn a_change_that_does_not_boot_is_refused() {
    let tree = Tree::new();
    tree.change("linux/kernel/main.c", "#ifdef CHECKS_PROBE", "#if 1");
    let said = tree.refused(&[]);
    assert!(said.contains("the kernel panicked before the guest's init ran"), "{said}");
    assert!(said.contains("the first device is not what it was"), "{said}");
    assert!(tree.read("out/after/boot.log").contains("Kernel panic"));
}

#[test]
fn a_change_with_which_the_workload_prints_something_else_is_refused() {
    let tree = Tree::new();
    tree.change("linux/kernel/main.c", "say_number(sum);", "say_number(probe());");
    let said = tree.refused(&[]);
    assert!(said.contains("the kernels do not do the same: the workload prints"), "{said}");
}

#[test]
fn a_change_with_which_the_kernel_says_something_else_is_refused() {
    let tree = Tree::new();
    let from = "__switch_to_asm();\n#ifdef";
    tree.change(
        "linux/kernel/main.c",
        from,
        "__switch_to_asm();\n\tif (probe() != 1000)\n\t\tsay(\"[    0.1] WARNING: odd\\n\");\n#ifdef",
    );
    let said = tree.refused(&[]);
    assert!(said.contains("only the changed kernel says \"WARNING: odd\""), "{said}");
}

#[test]
fn a_change_that_does_not_build_is_refused_with_the_words_and_the_log() {
    let tree = Tree::new();
    let from = "\t@cd $(O) && $(CC)";
    let check = "\t@grep -A1 'unsigned long id' $(S)/include/device.h | grep -q mult && { echo 'error: mult moved'; exit 1; } || true\n";
    tree.change("linux/Makefile", from, &format!("{check}{from}"));
    let said = tree.refused(&[]);
    assert!(
        said.contains("building the changed kernel failed") && said.contains("error: mult moved"),
        "{said}"
    );
    assert!(tree.read("out/after/build.log").contains("error: mult moved"));
}

/// The build's layout of the changed declaration is not the predicted one: another macro is set then.
#[test]
fn an_image_with_another_layout_than_predicted_is_refused() {
    let tree = Tree::new();
    let odd = "#ifdef ODD\ntypedef unsigned long word;\n#else\ntypedef unsigned int word;\n#endif\n\nstruct device {";
    tree.change("linux/include/device.h", "struct device {", odd);
    tree.change("linux/include/device.h", "unsigned int shift;", "word shift;");
    let flag = "CFLAGS += $(shell grep -A1 'unsigned long id' $(S)/include/device.h | grep -q mult && echo -DODD)\nunits :=";
    tree.change("linux/Makefile", "units :=", flag);
    let said = tree.refused(&[]);
    assert!(said.contains("the built image has another layout of device than predicted"), "{said}");
}

#[test]
fn a_kernel_that_does_not_build_as_it_is_says_which_step_failed() {
    let tree = Tree::new();
    tree.change("linux/kernel/devices.c", "return sum;", "return sun;");
    let (code, said) = tree.study(&["--region", "walk_devices"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("building the kernel failed") && said.contains("before/build.log"), "{said}");
    assert!(said.contains("sun"), "{said}");
}

#[test]
fn what_cannot_be_studied_is_said_before_anything_is_booted() {
    let tree = Tree::new();
    let said = |more: &[&str], expected: &str| {
        let (code, said) = tree.study(more);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains(expected), "{said}");
    };
    said(&[], "name the regions of the study with --region");
    said(&["--region", "walk_device"], "walk_devices");
    said(&["--region", "walk_devices", "--config", "nosuchconfig"], "configuring the kernel failed");
    said(&["--region", "probe"], "made no call of probe");
    fs::write(tree.path("poor"), "CONFIG_PRINTK=y\n").expect("writes");
    said(&["--region", "walk_devices", "--config", "poor"], "CONFIG_BLK_DEV_INITRD: is not set to y");
    said(&["--kernel-source", "out"], "cannot be used multiple times");
    fs::remove_file(tree.path("linux/Kconfig")).expect("removes");
    said(&["--region", "walk_devices"], "holds no Kconfig");
}

/// A tree that was built in place: its outputs are for another configuration, and are not used.
#[test]
fn what_was_built_in_the_tree_is_not_used() {
    let tree = Tree::new();
    fs::create_dir_all(tree.path("linux/include/generated")).expect("a folder");
    for (name, text) in [
        ("include/generated/device.h", "#error stale\n"),
        ("kernel/main.o", "stale"),
        ("boot/flat", "stale"),
        ("boot/.flat.cmd", "savedcmd_boot/flat := objcopy\n"),
        ("vmlinux", "stale"),
    ] {
        fs::write(tree.path(&format!("linux/{name}")), text).expect("writes");
    }
    let (code, said) = tree.study(&["--region", "walk_devices"]);
    assert_eq!(code, Some(0), "{said}");
    for name in ["include/generated", "kernel/main.o", "boot/flat", "boot/.flat.cmd", "vmlinux"] {
        assert!(!tree.path(&format!("out/build/source/{name}")).exists(), "{name}");
        assert!(tree.path(&format!("linux/{name}")).exists(), "{name}");
    }

    // Where nothing changes there is nothing to read with clang, and no patch.
    let (code, said) = tree.study(&["--region", "walk_devices", "--keep", "device"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("not checked with clang: no type changes that a unit names"), "{said}");
    assert!(said.contains("this one writes to out-2"), "{said}");
    assert!(!tree.path("out-2/fix.patch").exists() && !tree.path("out-2/rejected.patch").exists());
}

/// The kernel's own macros, as 6.12 has them.
const MACROS: &str = "#define __aligned(x) __attribute__((__aligned__(x)))\n\
    #define __cacheline_group_begin(GROUP) unsigned char __cacheline_group_begin__##GROUP[0]\n\
    #define __cacheline_group_end(GROUP) unsigned char __cacheline_group_end__##GROUP[0]\n\
    #define __cacheline_group_begin_aligned(GROUP, ...) __cacheline_group_begin(GROUP) __aligned((__VA_ARGS__ + 0) ? : 64)\n\
    #define __cacheline_group_end_aligned(GROUP, ...) __cacheline_group_end(GROUP) __aligned(sizeof(long)); \\\n\
    \tstruct { } __cacheline_group_pad__##GROUP __aligned((__VA_ARGS__ + 0) ? : 64)\n\nstruct device {";

#[test]
fn an_order_with_a_group_is_written_with_the_kernels_macros_and_built_and_compared() {
    let tree = Tree::new();
    tree.change("linux/include/device.h", "struct device {", MACROS);
    fs::write(tree.path("orders"), "device:\n  align(64) group device_walk { id, mult, shift },\n  rest\n")
        .expect("writes");
    let (code, said) = tree.study(&["--region", "walk_devices", "--order", "orders"]);
    assert_eq!(code, Some(0), "{said}");
    let patch = tree.read("out/fix.patch");
    for line in [
        "+\t__cacheline_group_begin_aligned(device_walk, 64);",
        "+\t__cacheline_group_end_aligned(device_walk, 64);",
    ] {
        assert!(patch.contains(line), "{patch}");
    }
    let lines = &tree.report()["guest"]["types"][0];
    let figures = ["before", "predicted", "after"].map(|name| lines[name].as_f64().expect("a figure"));
    assert_eq!(figures, [192.0, 64.0, 64.0]);

    // The same order, tried on the kernel's recorded accesses: when not all calls are kept, the replay covers those
    // that are.
    let run = |arguments: &[&str]| {
        let output = installed::lineup()
            .args(arguments)
            .current_dir(tree.folder.path())
            .output()
            .expect("lineup runs");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let kernel = ["--kernel", "out/before/image", "--debug", "out/before/vmlinux", "--memory", "64"];
    let wanted = ["--region", "walk_devices", "--calls", "20", "--stream", "--out", "calls.rec"];
    run(&[&["record"], &kernel[..], &wanted[..]].concat());
    let tried = run(&["advise", "calls.rec", "--what-if", "orders", "--json"]);
    let tried: Value = serde_json::from_str(&tried).expect("JSON");
    assert_eq!(
        (&tried["reproduces_recording"], &tried["regions"][0]["calls"]),
        (&true.into(), &20.into()),
        "{tried:#}"
    );
    assert_eq!(
        (&tried["types"][0]["lines"][0]["before"], &tried["types"][0]["lines"][0]["after"]),
        (&192.0.into(), &64.0.into())
    );
}

/// Functions of two units that a walk calls, each with some thousand bytes before it that nothing runs.
fn with_helpers(tree: &Tree) {
    let filler = |name: &str, factor: u32| {
        format!(
            "void {name}(volatile unsigned *x)\n{{\n{}}}\n",
            format!("\t*x = *x * {factor} + 1;\n").repeat(600)
        )
    };
    let helper = |name: &str, add: u32| {
        format!(
            "__attribute__((noinline)) unsigned long {name}(unsigned long x)\n{{\n\treturn (x >> 1) + {add};\n}}\n"
        )
    };
    let declared = "unsigned long near(unsigned long x);\nunsigned long far(unsigned long x);\n";
    let prototypes =
        ["one", "two", "three"].map(|name| format!("void {name}(volatile unsigned *x);\n")).concat();
    tree.change("linux/include/device.h", "extern struct", &format!("{declared}{prototypes}extern struct"));
    let after = "\treturn sum;\n}\n";
    tree.change(
        "linux/kernel/devices.c",
        after,
        &format!("{after}{}{}", filler("one", 3), helper("near", 1)),
    );
    tree.change("linux/kernel/devices.c", "sum += (", "sum ^= near(sum & 7) + far(sum & 3);\n\t\tsum += (");
    let first = "void begin(void);\n";
    let text = [first, &filler("two", 5), &helper("far", 2), &filler("three", 7)].concat();
    tree.change("linux/kernel/main.c", first, &text);
}

#[test]
fn functions_that_calls_go_into_come_into_one_row_of_the_image() {
    let tree = Tree::new();
    with_helpers(&tree);
    let script = "linux/include/asm-generic/vmlinux.lds.h";
    let untouched = tree.read(script);
    let (code, said) = tree.study(&["--code", "--region", "walk_devices"]);
    assert_eq!(code, Some(0), "{said}");
    let patch = tree.read("out/fix.patch");
    for told in [
        "+++ b/include/asm-generic/vmlinux.lds.h",
        "*(.text.walk_devices)",
        "*(.text.far)",
        "+++ b/kernel/Makefile",
        "+CFLAGS_devices.o += -ffunction-sections",
        "+CFLAGS_main.o += -ffunction-sections",
        "pages\n",
    ] {
        assert!(patch.contains(told), "{told}: {patch}");
    }
    assert_usable(&tree.path("out/report.html"), "kernel-study-code");
    let report = schema::checked(tree.read("out/report.json").as_bytes());
    let call = &report["code"]["calls"][0];
    let figure = |what: &str, side: usize| call[what][side].as_f64().expect("a mean");
    assert!(figure("pages", 1) < figure("pages", 0), "{call}");
    assert!(figure("lines", 1) < figure("lines", 0), "{call}");
    let made =
        "3 functions of 2 units in one row of the kernel's linker script, 3 of which the built image has so";
    assert_eq!(report["code"]["optimiser"], made);
    assert_eq!(
        (&report["proof"]["output"]["outcome"], &report["code"]["evidence"]),
        (&"equal".into(), &"calls".into())
    );
    assert!(said.contains("3 functions of 2 units") && said.contains("modelled L1I misses"), "{said}");
    assert_eq!(
        (tree.read(script), tree.read("out/build/source/kernel/Makefile").contains("CFLAGS")),
        (untouched, false)
    );
}

#[test]
fn a_kernel_whose_script_is_written_otherwise_is_refused_in_words() {
    let tree = Tree::new();
    tree.change("linux/include/asm-generic/vmlinux.lds.h", ".text.unknown .text.unknown.*", ".text.other");
    let (code, said) = tree.study(&["--code", "--region", "walk_devices"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("does not list sections of code as those of Linux 5.x and 6.x do"), "{said}");
}
