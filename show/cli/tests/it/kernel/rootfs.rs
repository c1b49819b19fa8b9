//! A guest with a root of its own: programs of packages that were only unpacked, or an archive, under Debian's kernels,
//! one or the other of which has the drivers as modules.

use super::guests::{Bench, QUICK, busybox, kernel};
use crate::fetched;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Starts a server, asks it through a client, and runs a script that needs its library.
const SERVE: &str = "#!/bin/sh\n\
    redis-server --port 7001 --save '' --daemonize yes --logfile /tmp/log --dir /tmp\n\
    tries=0\n\
    until redis-cli -p 7001 ping; do tries=$((tries + 1)); [ $tries -lt 200 ] || exit 3; sleep 0.1; done\n\
    test \"$(redis-cli -p 7001 set key value)\" = OK || exit 4\n\
    test \"$(redis-cli -p 7001 get key)\" = value || exit 5\n\
    redis-cli -p 7001 shutdown\n\
    python3 load.py\n";

/// Opens a file of the root, and writes to the overlay.
const LOAD: &str = "import json\n\
    open('/etc/written', 'w').write(json.dumps({'release': open('/etc/lineup-test').read()}))\n\
    assert json.load(open('/etc/written')) == {'release': 'read from the root\\n'}\n";

fn packages() -> PathBuf {
    fetched::by("root-fetch", &[])
}

#[test]
#[ignore = "boots three times and fetches packages; make test-kernel runs it"]
fn servers_and_scripts_of_a_root_are_recorded_with_their_file_system_and_repeat() {
    let bench = Bench::new(&["record", "--kernel"]);
    let image = bench.copy(&kernel("cloud"));
    let folder = bench.folder.path();
    let root = folder.join("root");
    let copied = Command::new("cp").arg("-a").arg(packages()).arg(&root).status().expect("cp");
    assert!(copied.success());
    std::fs::create_dir_all(root.join("etc")).expect("a folder");
    std::fs::write(root.join("etc/lineup-test"), "read from the root\n").expect("a file");
    std::fs::write(folder.join("serve.sh"), SERVE).expect("a script");
    std::fs::write(folder.join("load.py"), LOAD).expect("a script");
    let modules = kernel("cloud").parent().and_then(Path::parent).expect("a folder").join("lib/modules");
    let release = std::fs::read_dir(modules).expect("modules").next().expect("a release").expect("a folder");
    let modules = release.path().display().to_string();
    let arguments = |out: &'static str| {
        let regions = ["--region", "ext4_file_read_iter", "--region", "generic_file_read_iter"];
        let guest = [
            "--no-caches",
            "--rootfs",
            "root",
            "--modules",
            &modules,
            "--cmdline",
            QUICK,
            "--workload",
            "serve.sh",
            "--out",
            out,
        ];
        [&regions[..], &guest].concat().into_iter().map(str::to_owned).collect::<Vec<String>>()
    };
    let mut recorded = Vec::new();
    for out in ["one.rec", "two.rec"] {
        let words = arguments(out);
        let report = bench.json(&image, &words.iter().map(String::as_str).collect::<Vec<&str>>());
        assert_eq!(report["guest"]["status"], 0, "{report}");
        for region in report["regions"].as_array().expect("regions") {
            assert!(region["calls"].as_u64() > Some(100), "{region}");
        }
        recorded.push(std::fs::read(folder.join(out)).expect("a recording"));
    }
    assert!(recorded[0] == recorded[1], "two recordings differ");
    // The root's own folder was not written to.
    assert!(!root.join("etc/written").exists() && !root.join("lineup").exists());
    // Modules of another release are refused before any boot.
    let other = kernel("cloud-6.12").parent().and_then(Path::parent).expect("a folder").join("lib/modules");
    let mut words = arguments("three.rec");
    let at = words.iter().position(|word| *word == modules).expect("the modules");
    words[at] = other.display().to_string();
    let said = bench.refused(&image, &words.iter().map(String::as_str).collect::<Vec<&str>>());
    assert!(said.contains("is built for"), "{said}");
}

/// An archive of a root that has busybox for its shell.
fn archive(folder: &Path, busybox: &Path) {
    let root = folder.join("made");
    std::fs::create_dir_all(root.join("bin")).expect("a folder");
    std::fs::create_dir_all(root.join("srv")).expect("a folder");
    std::fs::copy(busybox, root.join("bin/busybox")).expect("busybox");
    std::fs::set_permissions(root.join("bin/busybox"), std::fs::Permissions::from_mode(0o755))
        .expect("a mode");
    symlink("busybox", root.join("bin/sh")).expect("a link");
    std::fs::write(root.join("srv/data"), "of the root\n").expect("a file");
    let packed = Command::new("tar")
        .args(["--owner=33", "--group=44", "-czf"])
        .arg(folder.join("root.tar.gz"))
        .arg("-C")
        .arg(&root)
        .arg(".")
        .status()
        .expect("tar");
    assert!(packed.success());
}

#[test]
#[ignore = "boots two guests; make test-kernel runs it"]
fn an_archive_is_a_root_under_kernels_with_drivers_as_modules_or_built_in() {
    let workload = "test \"$(cat /srv/data)\" = 'of the root' && test $(stat -c %u:%g /srv/data) = 33:44 \
                    && echo new > /srv/data && test $(cat /srv/data) = new";
    for name in ["cloud", "cloud-6.12"] {
        let bench = Bench::new(&["kernel"]);
        // By a path of its own, beside its modules: an emulator that another test runs on the file would count as this one's.
        let package = bench.folder.path().join("package");
        let fetched = kernel(name);
        let inside = fetched.ancestors().nth(2).expect("a package");
        symlink(inside, &package).expect("a link");
        let image = package.join(fetched.strip_prefix(inside).expect("inside"));
        let own = Command::new("sh").args(["-c", "command -v busybox"]).output().expect("sh").stdout;
        let own = String::from_utf8(own).expect("a path");
        archive(bench.folder.path(), Path::new(own.trim()));
        let guest = ["--cmdline", QUICK, "--workload", workload, "--timeout", "1500"];
        let report = bench.json(&image, &[&["--boot", "--rootfs", "root.tar.gz"], &guest[..]].concat());
        assert_eq!(report["boot"]["status"], 0, "{name}: {report}");
    }
    let bench = Bench::new(&["kernel"]);
    let image = kernel("arm64");
    let bin = busybox(&image);
    archive(bench.folder.path(), Path::new(&bin));
    let said = bench.refused(&image, &["--boot", "--busybox", &bin, "--rootfs", "root.tar.gz"]);
    assert!(said.contains("--rootfs") && said.contains("x86-64"), "{said}");
}
