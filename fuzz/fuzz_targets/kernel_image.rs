//! Any bytes as a kernel image, or as a module: an error or a value, never a panic. BTF is searched for in the
//! unpacked image.

#![no_main]

use libfuzzer_sys::fuzz_target;
use lineup_kernel::{KernelImage, btf, image, modules};

fuzz_target!(|data: &[u8]| {
    if let Ok(kernel) = KernelImage::parse(data) {
        let _ = (kernel.release().len(), btf::find(&kernel).map(<[u8]>::len));
    }
    let _ = (image::build_id(data), btf::search(data));
    let mut read = |name: &str| (name == "fuzzed").then(|| data.to_vec());
    let _ = modules::in_order(&["fuzzed"], "6.1", &mut read);
});
