//! Data that a kernel copies for programs, and the pages that it copies and clears. This memory has no members, and
//! nobody can choose its layout.

use crate::images::loaded_images::LoadedImages;
use foldhash::{HashMap, HashSet};

/// Functions that copy to or from a program's memory, or copy or clear it or whole pages, and do nothing else. Some use
/// other instructions for either side.
const COPYING: [&str; 28] = [
    "__arch_clear_user",
    "__arch_copy_from_user",
    "__arch_copy_to_user",
    "__clear_user",
    "__copy_user_nocache",
    "__pi_clear_page",
    "__pi_copy_page",
    "arm_clear_user",
    "arm_copy_from_user",
    "arm_copy_to_user",
    "clear_page",
    "clear_page_erms",
    "clear_page_orig",
    "clear_page_rep",
    "clear_user_erms",
    "clear_user_original",
    "clear_user_rep_good",
    "copy_from_user_page",
    "copy_page",
    "copy_page_regs",
    "copy_to_user_page",
    "copy_user_enhanced_fast_string",
    "copy_user_fast_string",
    "copy_user_generic_string",
    "copy_user_generic_unrolled",
    "copy_user_short_string",
    "rep_movs_alternative",
    "rep_stos_alternative",
];

/// The known facts about a kernel's copying; empty for a program.
#[derive(Default, Debug)]
pub(crate) struct Copied {
    /// The end of programs' part of the addresses.
    programs_end: u64,
    /// Instructions that accessed a program's memory.
    crossing: HashSet<u64>,
    /// Whether an instruction is in one of the functions, cached.
    by_function: HashMap<u64, bool>,
}

impl Copied {
    /// The code is a kernel's, whose part of the addresses begins here.
    pub(crate) fn see_kernel(&mut self, start: u64) {
        // With 64-bit addresses, the kernel has the upper half.
        self.programs_end = start.min(1 << 63);
    }

    /// Whether an address is in a program's memory.
    pub(crate) fn is_programs(&self, address: u64) -> bool {
        address < self.programs_end
    }

    /// First pass: takes in an access.
    pub(crate) fn observe(&mut self, pc: u64, address: u64) {
        if self.is_programs(address) {
            self.crossing.insert(pc);
        }
    }

    /// Whether an instruction copies or clears such memory: it accessed a program's as well, or its function does
    /// nothing else.
    pub(crate) fn is_by(&mut self, pc: u64, images: &LoadedImages<'_>) -> bool {
        let is_copying = || {
            let symbol = images.at(pc).and_then(|(image, link)| images.get(image)?.symbol_at(link));
            symbol.is_some_and(|symbol| COPYING.contains(&symbol.name.as_str()))
        };
        self.programs_end > 0
            && (self.crossing.contains(&pc) || *self.by_function.entry(pc).or_insert_with(is_copying))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instruction_that_crosses_copies_on_both_sides() {
        let images = LoadedImages::new(Vec::new(), &[]);
        let mut copied = Copied::default();
        copied.observe(0x10, 0x7fff_0000);
        assert!(!copied.is_programs(0) && !copied.is_by(0x10, &images), "a program has no kernel's half");
        copied.see_kernel(0xffff_8000_0000_0000);
        copied.observe(0x10, 0x7fff_0000);
        copied.observe(0x20, 0xffff_8880_0000_0000);
        assert!(copied.is_programs(0x7fff_0000) && !copied.is_programs(0xffff_8880_0000_0000));
        assert!(copied.is_by(0x10, &images) && !copied.is_by(0x20, &images));
    }

    #[test]
    fn the_halves_of_a_32_bit_kernel_part_where_its_addresses_begin() {
        let mut copied = Copied::default();
        copied.see_kernel(0xbf00_0000);
        assert!(copied.is_programs(0xbeff_ffff) && !copied.is_programs(0xbf00_0000));
    }
}
