//! The output of `--version`: the version, the commit it was built from, and the places of its libraries.

use lineup_bundle::{Library, built_from};
use std::sync::LazyLock;

static IN_FULL: LazyLock<String> = LazyLock::new(|| {
    let of = |library: Library| match library.packed() {
        Some(_) => "in this program",
        None => "next to this program",
    };
    format!(
        "{} ({})\nnative engine: {}\nplugin for QEMU: {}\nheap library: {}",
        env!("CARGO_PKG_VERSION"),
        built_from(),
        of(Library::Engine),
        of(Library::Plugin),
        of(Library::Heap)
    )
});

/// All of it, for `--version`; `-V` prints the number alone.
pub(crate) fn in_full() -> &'static str {
    &IN_FULL
}
