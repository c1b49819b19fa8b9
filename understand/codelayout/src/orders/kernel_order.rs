//! An order of functions in a kernel's image: by its own linker script, and by sections of their own for the functions
//! of the units that hold them.
//!
//! Text in, text out. GNU ld puts a section where the script's first line that fits it stands, so the lines with the
//! names come before the kernel's own.

use crate::orders::cold_order::Fetched;
use lineup_debuginfo::DebugInfo;
use lineup_model::access::CODE_GRANULE_BYTES;
use lineup_model::program::SymbolKind;
use std::cmp::Reverse;
use std::fmt::Write;
use std::ops::Range;

/// The script that all machines' scripts take the order of code from.
pub const KERNEL_SCRIPT: &str = "include/asm-generic/vmlinux.lds.h";

/// Marks in the script: the macro of functions' sections, its line before which the row goes, and its line behind which
/// all other functions go.
/// that no line names.
const FIRST: &str = "#define TEXT_TEXT";
const HOT: &str = "*(.text.hot .text.hot.*)";
const LAST: &str = "*(.text.unknown .text.unknown.*)";

/// A function that recorded calls went into.
#[derive(Clone, PartialEq, Debug)]
pub struct FetchedFunction {
    /// Its symbol.
    pub name: String,
    /// Link addresses.
    pub addresses: Range<u64>,
    /// The share of a region's calls that went into it: of the region where it is largest.
    pub share: f64,
}

/// The functions that calls went into: those that most calls need first, equal ones in the order of the image.
pub fn fetched_functions(debug: &DebugInfo, fetched: &Fetched) -> Vec<FetchedFunction> {
    let mut all: Vec<FetchedFunction> = Vec::new();
    for symbol in
        debug.symbols().iter().filter(|symbol| symbol.kind == SymbolKind::Function && symbol.size_bytes > 0)
    {
        let addresses = symbol.address..symbol.address.saturating_add(symbol.size_bytes);
        let share = fetched.share_of(own_granule(&addresses));
        let is_second_name = all.last().is_some_and(|last| last.addresses.end > addresses.start);
        if share > 0.0 && !is_second_name {
            all.push(FetchedFunction { name: symbol.name.clone(), addresses, share });
        }
    }
    // In steps of a tenth, so that functions with nearly equal shares keep the image's order.
    all.sort_by_key(|one| Reverse((one.share * 10.0).ceil() as u32));
    all
}

/// An address that only calls of the function fetch, as far as there is one: the last bytes of the function before may
/// lie in its first granule.
fn own_granule(addresses: &Range<u64>) -> u64 {
    let next = (addresses.start / CODE_GRANULE_BYTES + 1) * CODE_GRANULE_BYTES;
    let is_shared = !addresses.start.is_multiple_of(CODE_GRANULE_BYTES);
    if is_shared && next < addresses.end { next } else { addresses.start }
}

/// The kernel's script with a row of functions before all others. `None` when it is not written as those of 5.x and 6.x
/// are.
pub fn with_row<'n>(script: &str, names: impl Iterator<Item = &'n str>) -> Option<String> {
    let begin = script.find(FIRST)?;
    let hot = begin + script.get(begin..)?.find(HOT)?;
    let line = script.get(..hot)?.rfind('\n')? + 1;
    let last = hot + script.get(hot..)?.find(LAST)?;
    let after = last + script.get(last..)?.find('\n')? + 1;
    let is_one_macro = !script.get(begin..last)?.contains("\n#");
    let mut row = String::new();
    for name in names.filter(|name| is_plain(name)) {
        // Writing into a String cannot fail.
        let _ = writeln!(row, "\t\t*(.text.{name})\t\t\t\t\t\\");
    }
    let rest = "\t\t*(.text.[0-9a-zA-Z_]*)\t\t\t\t\t\\\n";
    is_one_macro.then(|| [&script[..line], &row, &script[line..after], rest, &script[after..]].concat())
}

/// A folder's Makefile by which these units, named without `.c`, get a section for each function.
pub fn with_sections<'n>(makefile: &str, units: impl Iterator<Item = &'n str>) -> String {
    let mut text = makefile.to_owned();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    for unit in units {
        let _ = writeln!(text, "CFLAGS_{unit}.o += -ffunction-sections");
    }
    text
}

/// True for a name that means itself in a linker script.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str = "#define OTHER\n#define TEXT_TEXT\t\\\n\t\tALIGN_FUNCTION();\t\\\n\t\t*(.text.hot .text.hot.*)\t\\\n\
                          \t\t*(TEXT_MAIN .text.fixup)\t\\\n\t\t*(.text.unlikely .text.unlikely.*)\t\\\n\
                          \t\t*(.text.unknown .text.unknown.*)\t\\\n\t\tNOINSTR_TEXT\n#define SCHED_TEXT\n";

    #[test]
    fn a_row_comes_before_all_code_and_what_it_leaves_behind_what_never_runs() {
        let script = with_row(SCRIPT, ["tick", "a b", "run.isra.0"].into_iter()).expect("a script");
        let at = |what: &str| script.find(what).unwrap_or_else(|| panic!("no {what}: {script}"));
        assert!(at("ALIGN_FUNCTION") < at("*(.text.tick)"));
        assert!(at("*(.text.tick)") < at("*(.text.run.isra.0)") && at("*(.text.run.isra.0)") < at(HOT));
        assert!(at(LAST) < at("*(.text.[0-9a-zA-Z_]*)") && at("*(.text.[0-9a-zA-Z_]*)") < at("NOINSTR_TEXT"));
        assert!(!script.contains("a b"), "{script}");
        let continued = script.lines().skip(2).take_while(|line| !line.contains("NOINSTR"));
        assert!(continued.into_iter().all(|line| line.ends_with('\\')), "{script}");
    }

    #[test]
    fn another_script_is_left() {
        for script in [
            "",
            "#define TEXT_TEXT\n",
            &SCRIPT.replace("unknown", "x"),
            &SCRIPT.replace("\t\t*(TEXT", "\n#if X\n*(TEXT"),
        ] {
            assert_eq!(with_row(script, ["f"].into_iter()), None, "{script}");
        }
    }

    #[test]
    fn a_function_is_told_by_bytes_that_no_other_shares() {
        assert_eq!(
            [0x1000..0x1010, 0x1010..0x1080, 0x1010..0x1020].map(|range| own_granule(&range)),
            [0x1000, 0x1020, 0x1010]
        );
    }

    #[test]
    fn units_get_sections_behind_what_a_makefile_holds() {
        let expected = "obj-y += a.o\nCFLAGS_a.o += -ffunction-sections\n";
        assert_eq!(with_sections("obj-y += a.o", ["a"].into_iter()), expected);
        assert_eq!(with_sections("", ["sub/a"].into_iter()), "CFLAGS_sub/a.o += -ffunction-sections\n");
    }
}
