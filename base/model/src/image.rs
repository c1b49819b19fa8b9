//! The addresses at which a program's files were loaded.

/// One file mapped into the running program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoadedImage {
    /// The path as the program saw it. Empty when the mapping had none (`[vdso]` and the like keep
    /// their bracketed name).
    pub path: String,
    /// Runtime address of the first byte mapped.
    pub start: u64,
    /// Runtime address after the last byte mapped.
    pub end: u64,
    /// Runtime address minus link address. Wraps.
    pub bias: u64,
    /// The build id of the file, when it has one.
    pub build_id: Option<Vec<u8>>,
}

impl LoadedImage {
    /// True when `runtime` lies inside this image.
    pub fn contains(&self, runtime: u64) -> bool {
        (self.start..self.end).contains(&runtime)
    }

    /// True for a kernel, which spans from its first address to the last possible one. Its modules lie inside.
    pub fn is_kernel(&self) -> bool {
        self.end == u64::MAX
    }

    /// True for a shared library, by the name of its file: `libc.so.6`.
    pub fn is_shared_library(&self) -> bool {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        name.ends_with(".so") || name.contains(".so.")
    }

    /// The link address of a runtime address.
    pub fn to_link(&self, runtime: u64) -> u64 {
        runtime.wrapping_sub(self.bias)
    }

    /// The runtime address of a link address.
    pub fn to_runtime(&self, link: u64) -> u64 {
        link.wrapping_add(self.bias)
    }
}
