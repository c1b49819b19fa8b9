//! The files of the program by where they were mapped.

use crate::code::instruction::{Atomic, InstructionSet, asked_alignment, atomic};
use crate::images::functions_by_place::FunctionsByPlace;
use crate::images::image::{Image, Placed};
use crate::images::lack::Lack;
use lineup_model::program::Function;
use std::collections::BTreeMap;

/// The images, and where each was.
#[derive(Debug)]
pub(crate) struct LoadedImages<'a> {
    all: Vec<Image<'a>>,
    /// The functions of each image.
    functions: Vec<FunctionsByPlace>,
    /// By the start of its runtime range.
    placed: BTreeMap<u64, Placed>,
    /// Whether some lie inside others, as modules do in the kernel's address range.
    are_nested: bool,
}

impl<'a> LoadedImages<'a> {
    /// These images, and where they were besides.
    pub(crate) fn new(all: Vec<Image<'a>>, places: &[Placed]) -> Self {
        let own = all.iter().enumerate();
        let own = own.map(|(image, described)| Placed { image, loaded: described.loaded.clone() });
        let placed: BTreeMap<u64, Placed> =
            own.chain(places.iter().cloned()).map(|placed| (placed.loaded.start, placed)).collect();
        let followers = placed.values().zip(placed.keys().skip(1));
        let are_nested = followers.into_iter().any(|(placed, next)| placed.loaded.end > *next);
        let functions = all.iter().map(|image| FunctionsByPlace::new(&image.functions)).collect();
        LoadedImages { all, functions, placed, are_nested }
    }

    /// All of them.
    pub(crate) fn all(&self) -> &[Image<'a>] {
        &self.all
    }

    /// The places of all images.
    pub(crate) fn places(&self) -> impl Iterator<Item = &Placed> {
        self.placed.values()
    }

    /// One by its index.
    pub(crate) fn get(&self, index: usize) -> Option<&Image<'a>> {
        self.all.get(index)
    }

    /// The functions of an image that cover a link address, with their positions in it.
    pub(crate) fn functions_at(&self, image: usize, link: u64) -> impl Iterator<Item = (usize, &Function)> {
        let numbers = self.functions.get(image).map(|functions| functions.at(link)).unwrap_or_default();
        numbers
            .into_iter()
            .filter_map(move |number| Some((number, self.all.get(image)?.functions.get(number)?)))
    }

    /// The image that is mapped at a runtime address, and the link address there.
    pub(crate) fn at(&self, runtime: u64) -> Option<(usize, u64)> {
        let before = self.placed.range(..=runtime).rev().map(|(_, placed)| placed);
        let mut near = before.take(if self.are_nested { usize::MAX } else { 1 });
        let placed = near.find(|placed| runtime < placed.loaded.end)?;
        Some((placed.image, placed.loaded.to_link(runtime)))
    }

    /// The function that a program counter is in: its name as the source spells it, and the path of its
    /// image.
    pub(crate) fn function_at(&self, pc: u64) -> (String, String) {
        let Some((number, link)) = self.at(pc) else {
            return ("(outside every file)".to_owned(), String::new());
        };
        let Some(image) = self.get(number) else { return Default::default() };
        let name = self.functions_at(number, link).next().map(|(_, function)| &function.name);
        let name = name.or_else(|| image.symbol_at(link).map(|symbol| &symbol.name));
        let name = name.map(|name| lineup_debuginfo::spelled(name));
        (name.unwrap_or_else(|| "(no symbol)".to_owned()), image.loaded.path.clone())
    }

    /// The functions of which copies are inlined at a program counter.
    pub(crate) fn inlined_at(&self, pc: u64) -> Vec<String> {
        let Some((image, link)) = self.at(pc) else { return Vec::new() };
        let inlined = self.functions_at(image, link).flat_map(|(_, function)| &function.inlined);
        let here = inlined.filter(|copy| copy.ranges.iter().any(|range| range.contains(&link)));
        here.map(|copy| lineup_debuginfo::spelled(&copy.name)).collect()
    }

    /// The effect of the instruction at a program counter, when it changes memory in one step that no other processor
    /// comes between.
    pub(crate) fn atomic_at(&self, pc: u64) -> Option<Atomic> {
        self.instruction_at(pc).and_then(|(set, bytes)| atomic(set, bytes))
    }

    /// The alignment that the instruction at a program counter asks of its operand in memory.
    pub(crate) fn asked_alignment_at(&self, pc: u64) -> Option<u64> {
        self.instruction_at(pc).and_then(|(set, bytes)| asked_alignment(set, bytes))
    }

    /// The bytes that an instruction begins with, and how they are to be read.
    fn instruction_at(&self, pc: u64) -> Option<(InstructionSet, &[u8])> {
        const LONGEST_BYTES: u64 = 15;
        let (image, link) = self.at(pc)?;
        let image = self.get(image)?;
        let set = image.code_runs(&(link..link + 1)).first().map(|(_, set)| *set);
        // At the end of the file's bytes fewer are there.
        let bytes = (1..=LONGEST_BYTES).rev().find_map(|length| image.bytes(&(link..link + length)));
        set.zip(bytes)
    }

    /// Whether calls by the code at a program counter store the return address, as on x86. On other machines the called
    /// function does.
    pub(crate) fn calls_store_at(&self, pc: u64) -> bool {
        let at = self.at(pc).and_then(|(image, link)| Some((self.get(image)?, link)));
        let set = at.and_then(|(image, link)| Some(image.code_runs(&(link..link + 1)).first()?.1));
        matches!(set, None | Some(InstructionSet::X86_64 | InstructionSet::I386))
    }

    /// The missing part of debug information without which accesses of the code at a program counter get no names.
    /// `None` for shared libraries, which are not expected to have more.
    pub(crate) fn lack_at(&self, pc: u64) -> Option<Lack> {
        let (image, link) = self.at(pc)?;
        let image = self.get(image).filter(|image| !image.is_shared_library())?;
        match image.debug {
            Some(debug) if debug.has_debug_info() => {
                (debug.has_types_at(link) == Some(false)).then_some(Lack::Types)
            }
            Some(debug) if debug.has_types_at(link) == Some(true) => Some(Lack::Places),
            _ => Some(Lack::DebugInfo),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lineup_model::image::LoadedImage;

    fn loaded(path: &str, start: u64, end: u64) -> LoadedImage {
        LoadedImage { path: path.into(), start, end, bias: 0, build_id: None }
    }

    fn image(path: &str, start: u64, end: u64) -> Image<'static> {
        Image { loaded: loaded(path, start, end), debug: None, functions: Vec::new() }
    }

    #[test]
    fn modules_lie_in_what_is_the_kernels_and_their_sections_between_each_other() {
        let images = vec![
            image("vmlinux", 0x1000, 0x9000),
            image("a.ko", 0x2000, 0x5000),
            image("b.ko", 0x3000, 0x6000),
        ];
        let place = |image, path: &str, start, end| Placed { image, loaded: loaded(path, start, end) };
        let places = [
            place(1, "a.ko", 0x2000, 0x2800),
            place(1, "a.ko", 0x4000, 0x5000),
            place(2, "b.ko", 0x3000, 0x3100),
            place(2, "b.ko", 0x5000, 0x6000),
        ];
        let images = LoadedImages::new(images, &places);
        let at = |runtime| images.at(runtime).map(|(image, _)| image);
        assert_eq!(
            [0x1000, 0x2000, 0x3050, 0x4000, 0x5000].map(at),
            [Some(0), Some(1), Some(2), Some(1), Some(2)]
        );
        // Between sections, and behind them, there is the kernel.
        assert_eq!([0x2900, 0x3100, 0x7000, 0x9000].map(at), [Some(0), Some(0), Some(0), None]);
    }
}
