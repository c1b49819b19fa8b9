//! The tables of a store. A version may gain tables and columns. A removed or redefined one makes a new version.

use crate::table::{Column, Kind, Table};

/// Version of the tables.
pub const VERSION: &str = "lineup.fleet/1";

const fn text(name: &'static str, what: &'static str) -> Column {
    Column { name, kind: Kind::Text, what }
}

const fn whole(name: &'static str, what: &'static str) -> Column {
    Column { name, kind: Kind::Whole, what }
}

const fn number(name: &'static str, what: &'static str) -> Column {
    Column { name, kind: Kind::Number, what }
}

const fn flag(name: &'static str, what: &'static str) -> Column {
    Column { name, kind: Kind::Flag, what }
}

const RUN: Column = text("run", "the run that says so: a row of `runs`");

/// All tables. Files of `runs` are written last: rows of the others count once their run is there.
pub const ALL: [&Table; 9] =
    [&REGIONS, &MEMBERS, &PATTERNS, &LAYOUTS, &SHARED_LINES, &VERDICTS, &GUARDS, &FINDINGS, &RUNS];

/// The added files.
pub const RUNS: Table = Table {
    name: "runs",
    what: "a file that was added",
    columns: &[
        text("run", "SHA-256 of the file that was recorded, sampled or found: the same file counts once"),
        text("source", "`recording`, `find`, `samples`, `layout`, `study` or `guard`"),
        text("service", "what the program is part of: `--service`, else the program's file name"),
        text("host", "the machine: `--host`, else as the file says"),
        text("build_id", "build id of the program, in hexadecimal"),
        text("commit_id", "the commit it was built from: `--commit`"),
        whole("commit_time_s", "its time, in seconds since 1970: `--commit-time`"),
        whole("recorded_at_s", "when the file was written, in seconds since 1970"),
        text("program", "path of the program"),
        text("machine", "its machine"),
        text("data_model", "`LP64` or `ILP32`"),
        text("file", "the file as it was named when it was added"),
    ],
};

/// Functions whose calls were recorded, or that were sampled.
pub const REGIONS: Table = Table {
    name: "regions",
    what: "a function whose calls were recorded, or that was sampled",
    columns: &[
        RUN,
        text("region", "the function"),
        number("weight", "its weight in the recording"),
        whole("calls", "recorded calls"),
        whole("calls_made", "calls that the program made"),
        number("calls_per_second", "from `--seconds`"),
        number("instructions_per_call", "mean, callees included"),
        number("data_lines_32", "data lines of 32 bytes that a call needs, mean"),
        number("data_lines_64", "the same of 64 bytes"),
        number("data_lines_128", "the same of 128 bytes"),
        number("code_lines_64", "lines of code that a call fetches, mean"),
        number("data_misses_per_call", "modelled"),
        number("stall_cycles_per_call", "modelled"),
        whole("samples", "samples in the function"),
        number("sampled_share", "its share of the event's period, from 0 to 1"),
    ],
};

/// Members and variables that were accessed.
pub const MEMBERS: Table = Table {
    name: "members",
    what: "a member of a type, or a variable, that a region or a whole program accessed",
    columns: &[
        RUN,
        text("region", "the function; empty for whole programs and samples"),
        text("owner", "the type, or the variable"),
        text("class", "`member`, `variable`, `stack` and so on"),
        text("member", "the member; empty of a variable"),
        whole("offset_bytes", "its offset"),
        whole("size_bytes", "its size"),
        number("accesses", "loads and stores that were counted or sampled"),
        whole("loads", "of them"),
        whole("stores", "of them"),
        number("l1_misses", "modelled"),
        number("l2_misses", "modelled"),
        number("stall_cycles", "modelled"),
        whole("sampled_weight", "weight of samples: cycles on most machines"),
        whole("hitm", "sampled loads of a line that another CPU had changed"),
    ],
};

/// Sets of bytes that calls used together.
pub const PATTERNS: Table = Table {
    name: "patterns",
    what: "bytes of an object that one call touched: rows with one `pattern` were touched together",
    columns: &[
        RUN,
        text("region", "the function"),
        text("type_name", "the type"),
        text("build_id", "of the file that describes the type: its row of `layouts`"),
        whole("pattern", "number of the pattern in the run"),
        whole("calls", "recorded calls of the region"),
        whole("occurrences", "pairs of a call and an object that showed the pattern"),
        whole("base_in_line", "where the object began, modulo 128"),
        whole("neighbour_distance_bytes", "distance to the object before it that was used alike"),
        whole("offset_bytes", "first byte touched"),
        whole("size_bytes", "how many"),
        whole("loads", "over all occurrences"),
        whole("stores", "over all occurrences"),
        whole(
            "first_line_needed",
            "pairs whose call also used something else on the object's first line of 64 bytes",
        ),
        whole("last_line_needed", "pairs whose call also used something else on its last one"),
        whole("both_lines_needed", "pairs with both"),
    ],
};

/// Layouts of types.
pub const LAYOUTS: Table = Table {
    name: "layouts",
    what: "a member of a type in a build",
    columns: &[
        RUN,
        text("build_id", "of the file that describes the type; empty where that is not known"),
        text("type_name", "the type"),
        text("kind", "`struct`, `class`, `union` or `variants`"),
        whole("type_size_bytes", "its size"),
        whole("type_align_bytes", "its alignment"),
        flag("first_is_held", "objects were used as their first member's type, which has to stay first"),
        whole("member_index", "place in the declaration, from 0"),
        text("member", "`(anonymous)` without a name"),
        text("member_type", "as the language spells it"),
        whole("offset_bits", "from the start of the type"),
        whole("bit_size", "width of a bit-field"),
        whole("size_bytes", "size of its type"),
        whole("align_bytes", "alignment of its type"),
    ],
};

/// Lines between threads.
pub const SHARED_LINES: Table = Table {
    name: "shared_lines",
    what: "a line that threads of a recording passed between them",
    columns: &[
        RUN,
        text("address", "of the line"),
        text("parts", "what was touched on it; `*` marks what was written"),
        whole("readers", "threads"),
        whole("writers", "threads"),
        whole("true_handovers", "a call needed bytes that another thread had written"),
        whole("false_handovers", "it needed other bytes of the line"),
    ],
};

/// Results of studies.
pub const VERDICTS: Table = Table {
    name: "verdicts",
    what: "what a comparison of a program with the changed one showed",
    columns: &[
        RUN,
        text("subject", "title of the study"),
        text("quantity", "`time` of the whole program, or `data_lines` of a region's calls"),
        text("region", "the function; empty for the whole program"),
        whole("line_bytes", "size of the lines"),
        number("before", "median of the runs in nanoseconds, or mean lines of a call"),
        number("after", "the same with the change"),
        number("ratio", "after ÷ before"),
        number("ratio_low", "lower end of its interval"),
        number("ratio_high", "upper end"),
        text("verdict", "of time: `changed`, `equivalent` or `inconclusive`"),
    ],
};

/// Promises of guards.
pub const GUARDS: Table = Table {
    name: "guards",
    what: "a member that a `lineup.lock` holds on a line",
    columns: &[
        RUN,
        whole("group_index", "number of the group in the file, from 0"),
        text("type_name", "the type"),
        whole("line_bytes", "size of the line"),
        text("data_model", "the group is for files of this one"),
        text("member", "the member"),
        flag("is_apart", "it must not be on the line of the others"),
    ],
};

/// Proposals of `find`.
pub const FINDINGS: Table = Table {
    name: "findings",
    what: "what `lineup find` says is worth fixing in a whole program",
    columns: &[
        RUN,
        text("subject", "the type or the function; empty for all code"),
        text("kind", "kind of layout"),
        whole("rank", "1 gains most"),
        number("stall_share", "of all modelled stalls"),
        number("gain_share", "of all modelled stalls"),
    ],
};

/// A table by its name.
pub fn named(name: &str) -> Option<&'static Table> {
    ALL.into_iter().find(|table| table.name == name)
}
