//! Variables of which every CPU has a copy: Linux puts them in one section and gives each CPU a copy of it, found
//! through the thread's base.

use crate::images::image::Image;
use std::collections::BTreeSet;
use std::ops::Range;

/// The section of Linux kernels.
const SECTION: &str = ".data..percpu";

/// Variables that hold how far a CPU's copies lie from the section: each CPU's own (x86), and those of all.
const BASES: [&str; 2] = ["this_cpu_off", "__per_cpu_offset"];

/// The places of the copies, learned from accesses relative to the thread's base.
#[derive(Clone, Default, Debug)]
pub(crate) struct PerCpu {
    /// The image that has the section, and the section's link addresses.
    section: Option<(usize, Range<u64>)>,
    /// The distance to add to a link address of the section, for each CPU seen.
    bases: BTreeSet<u64>,
    /// Link addresses of the variables that hold such numbers.
    holders: Vec<Range<u64>>,
}

impl PerCpu {
    /// Looks for the section.
    pub(crate) fn new(images: &[Image<'_>]) -> Self {
        let range = |image: &Image<'_>| image.section_named(SECTION).map(|section| section.addresses.clone());
        let found = images.iter().enumerate().find_map(|(index, image)| Some((index, range(image)?)));
        let symbols = found.as_ref().and_then(|(index, _)| images.get(*index)).map(Image::symbols);
        let holders = symbols.unwrap_or_default().iter().filter(|one| BASES.contains(&one.name.as_str()));
        let holders = holders.map(|one| one.address..one.address.saturating_add(one.size_bytes)).collect();
        PerCpu { section: found, bases: BTreeSet::new(), holders }
    }

    /// True when the data this far from the thread's base is a CPU's copy, for code of an image.
    pub(crate) fn is_of(&self, image: usize, from_base: i64) -> bool {
        self.section
            .as_ref()
            .is_some_and(|(own, section)| *own == image && section.contains(&(from_base as u64)))
    }

    /// True when a link address of an image holds how far a CPU's copies lie from the section.
    pub(crate) fn holds_base(&self, image: usize, link: u64) -> bool {
        self.section.as_ref().is_some_and(|(own, _)| *own == image)
            && self.holders.iter().any(|holder| holder.contains(&link))
    }

    /// Learns how far a CPU's copies lie from the section.
    pub(crate) fn see_base(&mut self, base: u64) {
        if self.section.is_some() {
            self.bases.insert(base);
        }
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
