//! Any bytes as an ELF file with debug information: an error or values, never a panic.

#![no_main]

use libfuzzer_sys::fuzz_target;
use lineup_debuginfo::{DebugInfo, NoCompanions};
use lineup_model::layout::Layout;
use lineup_model::line::LineSize;

fuzz_target!(|data: &[u8]| {
    let Ok(info) = DebugInfo::parse(data.to_vec(), &mut NoCompanions) else { return };
    for (id, _) in info.types().iter().take(1000) {
        Layout::of(info.types(), id, LineSize::B64);
        info.types().spell(Some(id), "x");
    }
    info.globals();
    info.find_functions("main");
    let pcs: Vec<u64> = info.symbols().iter().take(100).map(|symbol| symbol.address).collect();
    for &pc in &pcs {
        info.line_of(pc);
        info.plt_name(pc);
        info.code(pc..pc.saturating_add(16));
    }
    info.functions_covering(&mut pcs.into_iter());
    info.damage();
});
