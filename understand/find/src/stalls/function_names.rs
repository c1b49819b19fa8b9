//! The names of functions, by the addresses of their code.

use crate::recorded::Recorded;
use lineup_debuginfo::{DebugInfo, spelled};

/// The symbol of the function that a compiler has split a part off, or made another version of: `f` for `f.part.0` or
/// `f.cold`.
fn whole_name(symbol: &str) -> &str {
    const MADE: [&str; 6] = [".cold", ".part.", ".isra.", ".constprop.", ".lto_priv.", ".llvm."];
    let ends = MADE.iter().filter_map(|made| symbol.find(made)).filter(|end| *end > 0);
    ends.min().map_or(symbol, |end| &symbol[..end])
}

/// The function and the file at a runtime address, by the symbols that link it.
pub(crate) fn function_at(recorded: &Recorded, debug: &[Option<DebugInfo>], pc: u64) -> (String, String) {
    let Some((image, link)) = recorded.place_of(pc) else {
        return ("(outside every file)".to_owned(), String::new());
    };
    (symbol_at(debug.get(image).and_then(Option::as_ref), link), recorded.images[image].path.clone())
}

/// The name of code that no symbol names.
pub(crate) const NO_SYMBOL: &str = "(no symbol)";

/// The function at a link address of a file.
pub(crate) fn symbol_at(debug: Option<&DebugInfo>, link: u64) -> String {
    let symbol = debug.and_then(|debug| {
        let stub = debug.plt_name(link).map(|name| format!("{name}@plt"));
        stub.or_else(|| debug.symbol_at(link).map(|symbol| spelled(whole_name(&symbol.name))))
    });
    symbol.unwrap_or_else(|| NO_SYMBOL.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_and_versions_of_a_function_are_counted_with_it() {
        let symbols =
            ["f", "f.cold", "f.part.0.constprop.1", "_ZN1a1fEv.cold", ".cold", "a.f", "f.isra.0.part.2"];
        assert_eq!(symbols.map(whole_name), ["f", "f", "f", "_ZN1a1fEv", ".cold", "a.f", "f"]);
    }
}
