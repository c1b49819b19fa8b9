//! Orders of functions as linkers take them.
//!
//! Each needs sections of their own for functions (`-ffunction-sections`). Functions that were not executed follow in
//! the linker's own order.

use crate::code::Code;
use std::fmt::Write;

/// For `ld.lld --symbol-ordering-file=`: a symbol a line.
pub fn symbol_order(code: &Code<'_>) -> String {
    lines(code.order().into_iter().map(|function| function.name.clone()))
}

/// For `ld.lld --call-graph-ordering-file=`: caller, callee and calls, a line each.
pub fn call_graph(code: &Code<'_>) -> String {
    let name = |number: usize| code.functions.get(number).map_or("", |function| &function.name);
    let calls = code.call_counts().into_iter().filter(|call| call.times > 0);
    lines(calls.map(|call| format!("{} {} {}", name(call.caller), name(call.callee), call.times)))
}

/// For `ld.gold --section-ordering-file=`: a pattern for the section of each function.
pub fn section_order(code: &Code<'_>) -> String {
    lines(code.order().into_iter().map(|function| format!(".text*.{}", function.name)))
}

/// For `ld.bfd -T`: a script that puts a section before the others and leaves the rest of GNU ld's own script
/// unchanged.
pub fn linker_script(code: &Code<'_>) -> String {
    let mut out = "SECTIONS\n{\n  .text.lineup :\n  {\n".to_owned();
    for function in code.order().into_iter().filter(|function| is_plain(&function.name)) {
        let _ = writeln!(out, "    *(.text.{0} .text.*.{0})", function.name);
    }
    out + "  }\n}\nINSERT BEFORE .text;\n"
}

/// True for a name that means itself in a linker script.
fn is_plain(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.$".contains(&byte))
}

fn lines(all: impl Iterator<Item = String>) -> String {
    all.map(|line| line + "\n").collect()
}
