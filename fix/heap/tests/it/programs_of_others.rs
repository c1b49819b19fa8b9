//! Programs that people use print the same with pools.

use crate::place::{BY_SIZE, HUGE, Place, library};
use std::process::Command;

/// A program with its arguments.
const PROGRAMS: [&[&str]; 5] = [
    &[
        "python3",
        "-S",
        "-c",
        "import re,json\nprint(len(json.dumps({str(i): [i] * 5 for i in range(9000)})), re.sub('a+', 'b', 'caat'))",
    ],
    &["git", "diff", "--no-index", "--patience", "model.c", "forks.c"],
    &["gcc", "-O2", "-S", "-o", "-", "model.c"],
    &["g++", "-O1", "-S", "-o", "-", "forms.cc"],
    &[
        "sqlite3",
        ":memory:",
        "create table t(a, b); with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000) insert into t select i, hex(i * 7) from n; create index x on t(b); select count(*), sum(a), max(b) from t where b > '3';",
    ],
];

#[test]
fn programs_print_the_same_with_pools_by_size_on_huge_pages_and_while_they_are_counted() {
    let place = Place::new("model.c");
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/programs");
    for words in PROGRAMS {
        let make = || {
            let mut command = Command::new(words[0]);
            command.args(&words[1..]);
            command.current_dir(folder).env("LC_ALL", "C");
            command
        };
        let Ok(without) = make().output() else {
            // Not every machine has all of them.
            assert_ne!(words[0], "gcc", "gcc is needed");
            continue;
        };
        assert!(!without.stdout.is_empty(), "{words:?}: {}", String::from_utf8_lossy(&without.stderr));
        for plan in [BY_SIZE, HUGE] {
            let mut command = make();
            let with = place.preload(&mut command, plan).current_dir(folder).output().expect("it runs");
            assert!(with == without, "{words:?} with {plan}: {}", String::from_utf8_lossy(&with.stderr));
        }
        let mut command = make();
        command.env("LD_PRELOAD", library()).env("LINEUP_HEAP_PROFILE", place.folder().join("of-others"));
        assert!(command.output().expect("it runs") == without, "{words:?} while it is counted");
    }
}
