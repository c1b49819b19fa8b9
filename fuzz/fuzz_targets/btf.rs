//! Any bytes as a BTF image, alone and as the base of another: an error or types, never a panic.

#![no_main]

use libfuzzer_sys::fuzz_target;
use lineup_debuginfo::btf;
use lineup_model::layout::Layout;
use lineup_model::line::LineSize;

fuzz_target!(|data: &[u8]| {
    let half = data.len() / 2;
    let images = [btf::parse(data, None), btf::parse(&data[half..], Some(&data[..half]))];
    for image in images.into_iter().flatten() {
        for (id, _) in image.types.iter().take(1000) {
            Layout::of(&image.types, id, LineSize::B64);
            image.types.spell(Some(id), "x");
        }
    }
});
