//! Entries of the file system.

/// An entry of the initramfs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum InitramfsEntry {
    /// A folder.
    Directory,
    /// A file.
    File {
        /// Permission bits.
        mode: u32,
        /// Its bytes.
        contents: Vec<u8>,
    },
    /// A symbolic link.
    Symlink {
        /// The target of the link.
        target: String,
    },
    /// A character device.
    Device {
        /// The driver's number.
        major: u32,
        /// The device's number.
        minor: u32,
    },
}
