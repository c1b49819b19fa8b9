//! Any bytes as an unpacked kernel with a table of symbols, behind a table of tokens so that the search comes far, and as
//! a guest's list: an error or symbols, never a panic.

#![no_main]

use libfuzzer_sys::fuzz_target;
use lineup_kernel::kallsyms::{decode_bytes, parse_proc_kallsyms};
use lineup_model::abi::Machine;

/// 256 tokens of one byte, and their index.
fn tokens() -> Vec<u8> {
    let texts = (0..=255u8).flat_map(|byte| [byte.max(1), 0]);
    let index = (0..256u16).flat_map(|token| (2 * token).to_le_bytes());
    texts.chain(index).collect()
}

fuzz_target!(|data: &[u8]| {
    let (cut, data) = data.split_first().unwrap_or((&0, data));
    let cut = usize::from(*cut) * 8 % (data.len() + 1);
    let table = [&data[..cut], &tokens(), &data[cut..]].concat();
    for machine in [Machine::X86_64, Machine::Arm] {
        let _ = decode_bytes(data, machine);
        let _ = decode_bytes(&table, machine);
    }
    if let Ok(symbols) = parse_proc_kallsyms(&String::from_utf8_lossy(data)) {
        for symbol in symbols.all().iter().take(1000) {
            symbols.function_at(symbol.address);
            symbols.range_of(symbol);
        }
    }
});
