//! The libraries that Lineup loads into other programs: the native engine, the emulator's plugin, and the heap library.
//!
//! A program can load a library only from a file. An optimised `lineup` embeds them as gzip files, so that one file is all
//! that has to be installed, and unpacks them on demand. A development build embeds none: cargo puts them next to it.
//!
//! Design constraints:
//!
//! * A file that a program gets holds the very bytes that this `lineup` was built with. Its folder's name separates it
//!   from files of other versions, and its length and checksum are compared each time.
//! * A file is there whole or not at all, whichever processes unpack it at once.
//! * Other users' programs can read it when the superuser unpacks it.

use flate2::read::GzDecoder;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

include!(concat!(env!("OUT_DIR"), "/built.rs"));

/// The commit this was built from, where it is known.
pub const fn built_from() -> &'static str {
    BUILT_FROM
}

/// A library that is brought into other programs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Library {
    /// Records calls in a program.
    Engine,
    /// Records calls in an emulator.
    Plugin,
    /// Places objects in pools.
    Heap,
}

impl Library {
    /// The name of its file, as cargo builds it.
    pub const fn file_name(self) -> &'static str {
        match self {
            Library::Engine => "liblineup_engine.so",
            Library::Plugin => "liblineup_plugin.so",
            Library::Heap => "liblineup_heap.so",
        }
    }

    /// The package that it is built from.
    pub const fn package(self) -> &'static str {
        match self {
            Library::Engine => "lineup-engine",
            Library::Plugin => "lineup-plugin",
            Library::Heap => "lineup-heap",
        }
    }

    /// Its file in gzip's format; `None` in a development build.
    pub const fn packed(self) -> Option<&'static [u8]> {
        match self {
            Library::Engine => ENGINE,
            Library::Plugin => PLUGIN,
            Library::Heap => HEAP,
        }
    }

    /// The file, unpacked into the cache folder, or where that cannot be written into one of this user's for temporary
    /// files; `None` in a development build.
    ///
    /// # Errors
    /// When it cannot be written to either.
    pub fn unpacked(self) -> io::Result<Option<PathBuf>> {
        let Some(packed) = self.packed() else { return Ok(None) };
        unpack_in_one(cache_folder(), &std::env::temp_dir(), self.file_name(), packed).map(Some)
    }
}

/// The folder for files that can be made anew: below `XDG_CACHE_HOME`, else below `/var/cache` for the superuser (other
/// users' programs can read it there), else below `~/.cache`.
///
/// # Errors
/// When no variable names one.
pub fn cache_folder() -> io::Result<PathBuf> {
    const OURS: &str = "lineup";
    let given = |name| std::env::var_os(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
    let of_all = || rustix::process::geteuid().is_root().then(|| PathBuf::from("/var/cache"));
    let own = || Some(given("HOME")?.join(".cache"));
    let none =
        || io::Error::other("neither XDG_CACHE_HOME nor HOME names a folder for what can be made anew");
    Ok(given("XDG_CACHE_HOME").or_else(of_all).or_else(own).ok_or_else(none)?.join(OURS))
}

/// As [`unpack`]; where the cache folder cannot be written, in a folder of this user's among those for temporary files.
fn unpack_in_one(
    cache: io::Result<PathBuf>,
    temporary: &Path,
    name: &str,
    packed: &[u8],
) -> io::Result<PathBuf> {
    let in_cache = cache.and_then(|folder| unpack(&folder, name, packed));
    in_cache.or_else(|error| {
        let in_temporary = private_folder(temporary).and_then(|folder| unpack(&folder, name, packed));
        in_temporary.map_err(|second| {
            let next = "set XDG_CACHE_HOME to a folder that you can write to";
            io::Error::new(error.kind(), format!("{error}, and {second}; {next}"))
        })
    })
}

/// A folder among those for temporary files into which no other user can write: the libraries in it are loaded into
/// programs.
fn private_folder(temporary: &Path) -> io::Result<PathBuf> {
    let user = rustix::process::geteuid().as_raw();
    let folder = temporary.join(format!("lineup-{user}"));
    let in_folder =
        |error: io::Error| io::Error::new(error.kind(), format!("cannot make {}: {error}", folder.display()));
    match fs::DirBuilder::new().mode(0o700).create(&folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(in_folder(error)),
        _ => {}
    }
    // Of a link this is the link's own.
    let data = fs::symlink_metadata(&folder).map_err(in_folder)?;
    if data.is_dir() && data.uid() == user && data.mode() & 0o077 == 0 {
        return Ok(folder);
    }
    Err(io::Error::other(format!("{} is not a folder of this user alone", folder.display())))
}

/// A file of this name with the bytes of this gzip file, in a folder that is named after them and made.
fn unpack(folder: &Path, name: &str, packed: &[u8]) -> io::Result<PathBuf> {
    let folder = &folder.join(format!("{:016x}", fnv_1a(packed)));
    let in_folder = |error: io::Error| {
        io::Error::new(error.kind(), format!("cannot unpack {name} into {}: {error}", folder.display()))
    };
    let path = folder.join(name);
    if fs::read(&path).is_ok_and(|there| is_content(packed, &there)) {
        return Ok(path);
    }
    fs::create_dir_all(folder).map_err(in_folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(in_folder)?;
    let mut write = || -> io::Result<()> {
        io::copy(&mut GzDecoder::new(packed), &mut file)?;
        file.as_file().set_permissions(fs::Permissions::from_mode(0o644))?;
        file.as_file().sync_all()
    };
    write().map_err(in_folder)?;
    let _: File = file.persist(&path).map_err(|error| in_folder(error.error))?;
    Ok(path)
}

/// Whether these bytes have the checksum and the length that stand in the last eight bytes of the gzip file (RFC 1952).
fn is_content(packed: &[u8], there: &[u8]) -> bool {
    let mut trailer = crc32fast::hash(there).to_le_bytes().to_vec();
    trailer.extend((there.len() as u32).to_le_bytes());
    packed.ends_with(&trailer)
}

/// A hash of the bytes (FNV-1a, 64 bits). It separates versions; nothing is trusted for it.
fn fnv_1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).expect("compresses");
        encoder.finish().expect("compresses")
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("a folder");
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn it_is_unpacked_once_and_anew_when_its_bytes_are_not_those_any_more() {
        let home = tempfile::tempdir().expect("a folder");
        let folder = home.path().join("not/there/yet");
        let path = unpack(&folder, "libx.so", &gzip(b"first")).expect("unpacks");
        let written = || fs::metadata(&path).and_then(|data| data.modified()).expect("a file");
        let own = path.parent().expect("a folder");
        assert_eq!(path.file_name().and_then(|name| name.to_str()), Some("libx.so"));
        assert_eq!(fs::metadata(&path).expect("a file").permissions().mode() & 0o777, 0o644);
        let before = written();
        assert_eq!(unpack(&folder, "libx.so", &gzip(b"first")).expect("unpacks"), path);
        assert_eq!(written(), before, "nothing is written twice");
        fs::write(&path, b"cut").expect("writes");
        assert_eq!(unpack(&folder, "libx.so", &gzip(b"first")).expect("unpacks"), path);
        assert_eq!(fs::read(&path).expect("a file"), b"first");
        assert_eq!(names(own).len(), 1, "nothing else is left there");
        assert_ne!(unpack(&folder, "libx.so", &gzip(b"second")).expect("unpacks"), path);
    }

    #[test]
    fn without_a_cache_folder_it_is_unpacked_into_a_folder_that_others_cannot_write_to() {
        let home = tempfile::tempdir().expect("a folder");
        let file = home.path().join("a-file");
        fs::write(&file, "").expect("writes");
        let unpack = || unpack_in_one(Ok(file.join("below")), home.path(), "libx.so", &gzip(b"first"));
        let path = unpack().expect("unpacks");
        assert_eq!(fs::read(&path).expect("a file"), b"first");
        let own = path.parent().and_then(Path::parent).expect("a folder");
        assert_eq!(fs::metadata(own).expect("a folder").permissions().mode() & 0o777, 0o700);
        assert_eq!(unpack().expect("is there"), path);

        fs::set_permissions(own, fs::Permissions::from_mode(0o770)).expect("own");
        let refused = unpack().expect_err("others can write there").to_string();
        assert!(refused.contains("of this user alone; set XDG_CACHE_HOME"), "{refused}");
        let elsewhere = home.path().join("elsewhere");
        fs::rename(own, &elsewhere).expect("renames");
        fs::set_permissions(&elsewhere, fs::Permissions::from_mode(0o700)).expect("own");
        std::os::unix::fs::symlink(&elsewhere, own).expect("a link");
        assert!(unpack().is_err(), "a link may lead anywhere");
    }

    #[test]
    fn where_nothing_can_be_written_the_message_names_the_folder() {
        let home = tempfile::tempdir().expect("a folder");
        let file = home.path().join("a-file");
        fs::write(&file, "").expect("writes");
        let error = unpack(&file.join("below"), "libx.so", &gzip(b"")).expect_err("no folder");
        assert!(error.to_string().contains("a-file/below"), "{error}");
    }
}
