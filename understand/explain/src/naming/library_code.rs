//! Code of libraries: the only known fact about its accesses is the function that made them.

use crate::code::variable_locations::Names;
use crate::images::loaded_images::LoadedImages;
use crate::naming::access_context::AccessContext;
use crate::naming::name::Name;
use foldhash::HashMap;
use lineup_model::program::Function;
use lineup_model::types::Language;

/// True when debug information describes more than a function's existence, unlike that of an assembler.
fn is_told_of(function: &Function) -> bool {
    !(matches!(function.language, Language::Assembly | Language::Other)
        && function.parameters.is_empty()
        && function.variables.is_empty()
        && function.inlined.is_empty())
}

/// Cached facts about program counters.
#[derive(Default, Debug)]
pub(crate) struct LibraryCode {
    /// Whether a described function of the studied code covers it.
    described: HashMap<u64, bool>,
    /// Outside described functions: the symbol, by name number.
    symbols: HashMap<u64, Option<u32>>,
}

impl LibraryCode {
    /// The library function that a program counter is in: always in a shared library, since debug information
    /// that happens to be installed for it must not leave more accesses without a name; else when no described
    /// function covers it.
    pub(crate) fn at(
        &mut self,
        images: &LoadedImages<'_>,
        names: &mut Names,
        pc: u64,
        context: &mut AccessContext,
    ) -> Option<Name> {
        let (index, link) = images.at(pc)?;
        let image = images.get(index)?;
        let is_described = *self.described.entry(pc).or_insert_with(|| {
            let mut around = images.functions_at(index, link);
            !image.is_shared_library() && around.any(|(_, function)| is_told_of(function))
        });
        if is_described {
            return None;
        }
        let symbol = *self.symbols.entry(pc).or_insert_with(|| {
            let symbol = image.symbol_at(link)?;
            Some(names.number(symbol.name.clone()))
        });
        Some(Name::Library { image: index, symbol: context.entered(index, symbol) })
    }
}
