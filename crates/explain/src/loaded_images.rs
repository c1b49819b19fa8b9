//! The files of the program by where they were mapped.

use crate::explanation::Lack;
use crate::image::Image;
use std::collections::BTreeMap;

/// The images, and where each was.
#[derive(Debug)]
pub(crate) struct LoadedImages<'a> {
    all: Vec<Image<'a>>,
    /// Start of each image's runtime range, with its end and index.
    placed: BTreeMap<u64, (u64, usize)>,
}

impl<'a> LoadedImages<'a> {
    /// These images.
    pub(crate) fn new(all: Vec<Image<'a>>) -> Self {
        let place = |(index, image): (usize, &Image<'a>)| {
            let range = image.runtime_range();
            (range.start, (range.end, index))
        };
        let placed = all.iter().enumerate().map(place).collect();
        LoadedImages { all, placed }
    }

    /// All of them.
    pub(crate) fn all(&self) -> &[Image<'a>] {
        &self.all
    }

    /// One by its index.
    pub(crate) fn get(&self, index: usize) -> Option<&Image<'a>> {
        self.all.get(index)
    }

    /// The image that is mapped at a runtime address, and the link address there.
    pub(crate) fn at(&self, runtime: u64) -> Option<(usize, u64)> {
        let (_, (end, index)) = self.placed.range(..=runtime).next_back()?;
        let image = self.all.get(*index).filter(|_| runtime < *end)?;
        Some((*index, image.loaded.to_link(runtime)))
    }

    /// The function that a program counter is in: its name as the source spells it, and the path of its
    /// image.
    pub(crate) fn function_at(&self, pc: u64) -> (String, String) {
        let Some((image, link)) = self.at(pc) else {
            return ("(outside every file)".to_owned(), String::new());
        };
        let Some(image) = self.get(image) else { return Default::default() };
        let described = image.functions.iter().find(|function| function.contains(link));
        let name = described.map(|function| &function.name);
        let name = name.or_else(|| image.symbol_at(link).map(|symbol| &symbol.name));
        let name = name.map(|name| lineup_debuginfo::spelled(name));
        (name.unwrap_or_else(|| "(no symbol)".to_owned()), image.loaded.path.clone())
    }

    /// What the debug information of the code at a program counter lacks so that its accesses can have names.
    /// Nothing is said of shared libraries, of which no more is expected.
    pub(crate) fn lack_at(&self, pc: u64) -> Option<Lack> {
        let (image, link) = self.at(pc)?;
        let image = self.get(image).filter(|image| !image.is_shared_library())?;
        match image.debug {
            Some(debug) if debug.has_debug_info() => {
                (debug.has_types_at(link) == Some(false)).then_some(Lack::Types)
            }
            _ => Some(Lack::DebugInfo),
        }
    }
}
