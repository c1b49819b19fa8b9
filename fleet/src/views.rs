//! Questions that are asked often, each in a file of SQL that other engines read as well.

use crate::tables;

/// A question with a name.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// Its name.
    pub name: &'static str,
    /// The question. A comment before it gives the meaning of a row.
    pub sql: &'static str,
}

macro_rules! views {
    ($($name:literal),* $(,)?) => {
        [$(View { name: $name, sql: include_str!(concat!("../views/", $name, ".sql")) }),*]
    };
}

/// All of them; one may ask those before it.
pub const ALL: [View; 8] = views![
    "hottest_members",
    "places",
    "moved_members",
    "regions_by_commit",
    "grown_regions",
    "member_shares",
    "disputed_types",
    "guard_breaks",
];

/// The name of a table's files in the engine. The table itself is the rows among them whose run is there.
pub fn stored(table: &str) -> String {
    format!("stored_{table}")
}

/// The question that makes a table of its files. A run is one row of `runs`, and the small table comes first: engines
/// that know nothing of sizes keep that one in memory.
pub fn counted(table: &str) -> String {
    let stored_runs = stored(tables::RUNS.name);
    match table {
        name if name == tables::RUNS.name => format!("SELECT * FROM {stored_runs}"),
        name => format!("SELECT t.* FROM {stored_runs} c JOIN {} t ON t.run = c.run", stored(name)),
    }
}
