//! Any bytes as an ELF file with debug information, and as the sections of a sound one, so that entries, line programs,
//! expressions and stubs are reached: an error or values, never a panic.

#![no_main]

mod container;
mod cutter;
mod dwarf;
mod lengthen;

use libfuzzer_sys::fuzz_target;
use lineup_debuginfo::{DebugInfo, NoCompanions, Placement};
use lineup_model::layout::Layout;
use lineup_model::line::LineSize;

fuzz_target!(|data: &[u8]| {
    for file in [data.to_vec(), container::elf(data)] {
        let Ok(info) = DebugInfo::parse(file.clone(), &mut NoCompanions) else { continue };
        // As a kernel's module, each section where no other is.
        let starts = info.sections().iter().map(|section| section.addresses.start);
        let sections = starts.map(|start| (start, start.wrapping_mul(0x1_0001))).collect();
        let placement = Placement { sections, symbol: &|name| Some(name.len() as u64) };
        if let Ok(placed) = DebugInfo::placed(file, &mut NoCompanions, &placement) {
            look(&placed);
        }
        look(&info);
    }
});

fn look(info: &DebugInfo) {
    for (id, _) in info.types().iter().take(1000) {
        Layout::of(info.types(), id, LineSize::B64);
        info.types().spell(Some(id), "x");
        info.types().declaration(id);
    }
    info.globals();
    info.find_functions("main");
    info.find_functions("f(int)");
    info.addresses_of_lines("a.c", 1..=100);
    info.thread_slots();
    info.first_executable_segment();
    let sections = info.sections().iter().map(|section| section.addresses.start);
    let symbols = info.symbols().iter().map(|symbol| symbol.address);
    let pcs: Vec<u64> = sections.chain(symbols).chain([info.entry()]).take(100).collect();
    for &pc in &pcs {
        info.line_of(pc);
        info.compiler_of(pc);
        info.plt_name(pc);
        info.symbol_at(pc);
        info.mapping_at(pc);
        info.code(pc..pc.saturating_add(16));
    }
    info.functions_covering(&mut pcs.into_iter());
    info.damage();
}
