//! The compressions that kernels come in, by name.

use std::fmt;

/// The compression of a kernel image.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Compression {
    /// gzip.
    Gzip,
    /// xz, with or without the filter for x86 code.
    Xz,
    /// The older `.lzma` form.
    Lzma,
    /// bzip2.
    Bzip2,
    /// LZ4 in its legacy frame, which the kernel's build uses.
    Lz4,
    /// LZO in the frame of the program lzop.
    Lzo,
    /// Zstandard.
    Zstd,
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Compression::Gzip => "gzip",
            Compression::Xz => "xz",
            Compression::Lzma => "lzma",
            Compression::Bzip2 => "bzip2",
            Compression::Lz4 => "lz4",
            Compression::Lzo => "lzo",
            Compression::Zstd => "zstd",
        })
    }
}
