//! Variables of which every CPU has a copy: Linux puts them in one section and gives each CPU a copy of it, found
//! through the thread's base.

use crate::image::Image;
use std::collections::BTreeSet;
use std::ops::Range;

/// The section of Linux kernels.
const SECTION: &str = ".data..percpu";

/// Where the copies are, learned from accesses relative to the thread's base.
#[derive(Clone, Default, Debug)]
pub(crate) struct PerCpu {
    /// The image that has the section, and the section's link addresses.
    section: Option<(usize, Range<u64>)>,
    /// What is added to a link address of the section, for each CPU seen.
    bases: BTreeSet<u64>,
}

impl PerCpu {
    /// Looks for the section.
    pub(crate) fn new(images: &[Image<'_>]) -> Self {
        let range = |image: &Image<'_>| image.section_named(SECTION).map(|section| section.addresses.clone());
        let found = images.iter().enumerate().find_map(|(index, image)| Some((index, range(image)?)));
        PerCpu { section: found, bases: BTreeSet::new() }
    }

    /// Learns from an access to `address` that the code made at `offset` from the thread's base.
    pub(crate) fn see(&mut self, offset: i64, address: u64) {
        let link = offset as u64;
        if self.section.as_ref().is_some_and(|(_, section)| section.contains(&link)) {
            self.bases.insert(address.wrapping_sub(link));
        }
    }

    /// The image and link address of which an address is a CPU's copy.
    pub(crate) fn at(&self, address: u64) -> Option<(usize, u64)> {
        let (image, section) = self.section.as_ref()?;
        // Copies do not overlap, so the nearest base below is the only one possible.
        let base = self.bases.range(..=address.wrapping_sub(section.start)).next_back()?;
        let link = address.wrapping_sub(*base);
        section.contains(&link).then_some((*image, link))
    }
}
