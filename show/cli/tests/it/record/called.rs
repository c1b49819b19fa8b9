//! The names by which a program is called: it sees the words that were typed, as without Lineup.

use super::program::{X86_64, c};
use crate::installed::lineup;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

const SOURCE: &str = r#"
    #include <stdio.h>
    #include <sys/auxv.h>
    static volatile long cell;
    __attribute__((noinline)) void work(long n) { cell += n; }
    int main(int count, char **words) {
        for (long n = 0; n < 50; n++) work(n);
        printf("called %s in %s\n", words[0], (char *)getauxval(AT_EXECFN));
        return 0;
    }
"#;

/// Ways to record.
const WAYS: [&[&str]; 5] = [
    &["record", "--whole-program", "--engine", "native"],
    &["record", "--engine", "native", "--region", "work"],
    &["record", "--engine", "qemu", "--region", "work"],
    &["find", "--no-clock", "--engine", "native"],
    &["time", "--region", "work"],
];

#[test]
fn a_recorded_program_is_called_as_it_was_typed() {
    let program = c(X86_64, SOURCE, &[]);
    let folder = program.folder.path();
    let script = folder.join("script");
    fs::write(&script, "#!/bin/sh\necho \"called $0\"\n./program\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let printed = |mut command: Command| {
        let output = command.current_dir(folder).env("PATH", &path).output().expect("it runs");
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        let lines =
            text.lines().filter(|line| line.starts_with("called ")).map(str::to_owned).collect::<Vec<_>>();
        assert!(!lines.is_empty(), "{text}");
        lines
    };
    for typed in ["./program", "program", "../{}/program", "./script", "script"] {
        let typed = typed.replace("{}", folder.file_name().unwrap().to_str().unwrap());
        // A shell searches the folders of this PATH; a program started here would search those of ours.
        let mut alone = Command::new("sh");
        alone.args(["-c", "exec \"$0\"", &typed]);
        let expected = printed(alone);
        for way in WAYS {
            if typed.ends_with("script") && way.contains(&"work") {
                continue;
            }
            let mut recorded = lineup();
            recorded.args(way).args(["--", &typed]);
            assert_eq!(printed(recorded), expected, "{way:?} {typed}");
        }
    }
}
