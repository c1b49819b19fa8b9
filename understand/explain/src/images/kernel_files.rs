//! The files of a kernel: its own, and those of its modules.

use crate::images::image::Placed;
use lineup_model::image::LoadedImage;
use std::collections::BTreeMap;

/// The files of a recorded kernel, each once, where a recording has an image of each section of a module.
#[derive(Clone, PartialEq, Debug)]
pub struct KernelFiles {
    /// The kernel, and then its modules. Addresses in a module are those at which it ran; it reaches from its first
    /// section to the end of its last, and others may lie between.
    pub images: Vec<LoadedImage>,
    /// Each section of a module.
    pub places: Vec<Placed>,
    /// The addresses of sections, by the modules' positions among the images, and by the address that a section has
    /// when the file is read by itself.
    pub sections: BTreeMap<usize, BTreeMap<u64, u64>>,
}

impl KernelFiles {
    /// The files of a recording's images, of which the first is the kernel.
    pub fn of(recorded: Vec<LoadedImage>) -> KernelFiles {
        let mut files = KernelFiles { images: Vec::new(), places: Vec::new(), sections: BTreeMap::new() };
        for image in recorded {
            match files.images.is_empty() {
                true => files.images.push(image),
                false => files.take_section(image),
            }
        }
        files
    }

    fn take_section(&mut self, mut loaded: LoadedImage) {
        let of_module = self.images.iter().position(|file| file.path == loaded.path);
        let image = of_module.unwrap_or(self.images.len());
        self.sections.entry(image).or_default().insert(loaded.to_link(loaded.start), loaded.start);
        loaded.bias = 0;
        match self.images.get_mut(image) {
            Some(file) => {
                (file.start, file.end) = (file.start.min(loaded.start), file.end.max(loaded.end));
            }
            None => self.images.push(loaded.clone()),
        }
        self.places.push(Placed { image, loaded });
    }
}
