//! Messages of a program that was built without clusters.

use std::process::Command;

#[test]
fn without_the_feature_a_cluster_is_refused_with_what_to_build() {
    for command in [&["query", "SELECT 1"][..], &["report"], &["advise", "task"]] {
        let mut program = Command::new(env!("CARGO_BIN_EXE_lineup-fleet"));
        let output =
            program.args(command).args(["--store", "store", "--cluster", "127.0.0.1:50050"]).output();
        let output = output.expect("the command");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        let next = "build it with: cargo install --locked --path fleet --features cluster\n";
        assert!(
            said.starts_with("lineup-fleet: this lineup-fleet was built without --cluster; ")
                && said.ends_with(next),
            "{said}"
        );
    }
}
