//! Archives of a root: tar, plain or packed with gzip or zstd, one for each layer of a container image.

use super::attributes::{Attributes, refused};
use crate::error::{Doing, Error, Result};
use crate::files::cannot_read;
use crate::process::interrupt::Interrupts;
use std::collections::BTreeMap;
use std::fs::{File, Permissions};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use tar::{Archive, Entry, EntryType};

/// The prefix by which a layer's archive marks the name of a file that it removes.
const REMOVES: &str = ".wh.";

/// The marker in a folder whose content from the layers below is removed.
const EMPTIES: &str = ".wh..wh..opq";

/// Files of an image's archive that describe it and are not layers.
const IMAGE_FILES: [&str; 3] = ["manifest.json", "oci-layout", "index.json"];

/// Lays archives over each other in a folder. Owners, and modes with which we could not read the files, are only noted.
pub(super) fn unpack(archives: &[PathBuf], into: &Path, interrupts: &Interrupts) -> Result<Vec<Attributes>> {
    let mut layers = Layers { into, noted: BTreeMap::new() };
    for path in archives {
        layers.lay(path, interrupts)?;
    }
    Ok(layers.noted.into_values().collect())
}

struct Layers<'a> {
    into: &'a Path,
    noted: BTreeMap<PathBuf, Attributes>,
}

impl Layers<'_> {
    fn lay(&mut self, path: &Path, interrupts: &Interrupts) -> Result<()> {
        let mut archive = Archive::new(reader(path)?);
        archive.set_preserve_ownerships(false);
        archive.set_preserve_permissions(false);
        archive.set_unpack_xattrs(false);
        archive.set_overwrite(true);
        let damaged = |error: std::io::Error| {
            refused(path, format!("is no folder, and cannot be read as a tar archive: {error}"))
        };
        let mut count = 0;
        for entry in archive.entries().map_err(damaged)? {
            interrupts.check()?;
            let mut entry = entry.map_err(damaged)?;
            let name = entry.path().map_err(damaged)?.into_owned();
            let Some(name) = plain(&name) else {
                return Err(refused(path, format!("holds {}, which leads out of the root", name.display())));
            };
            if IMAGE_FILES.iter().any(|file| name == Path::new(file)) {
                let why = "is the archive of an image, with its layers inside; give what `docker export` or \
                           `podman export` writes, or the layers, each with --rootfs, lowest first";
                return Err(refused(path, why));
            }
            self.entry(&mut entry, name).map_err(damaged)?;
            count += 1;
        }
        match count {
            0 => Err(refused(path, "holds no files")),
            _ => Ok(()),
        }
    }

    fn entry(&mut self, entry: &mut Entry<'_, Box<dyn Read>>, name: PathBuf) -> std::io::Result<()> {
        let last = name.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if last == EMPTIES {
            return self.empty(name.parent().unwrap_or(Path::new("")));
        }
        if let Some(removed) = last.strip_prefix(REMOVES) {
            return self.remove(&name.with_file_name(removed));
        }
        let kind = entry.header().entry_type();
        // The guest's kernel makes its own devices.
        if matches!(kind, EntryType::Char | EntryType::Block) || name == Path::new("") {
            return Ok(());
        }
        let place = self.into.join(&name);
        let is_folder = place.symlink_metadata().ok().map(|found| found.is_dir());
        if is_folder.is_some_and(|is_folder| !(is_folder && kind == EntryType::Directory)) {
            self.remove(&name)?;
        }
        entry.unpack_in(self.into)?;
        let header = entry.header();
        let (mode, uid, gid) = (header.mode()? & 0o7777, header.uid()?, header.gid()?);
        match kind {
            EntryType::Symlink | EntryType::Link => {}
            EntryType::Directory => std::fs::set_permissions(&place, Permissions::from_mode(mode | 0o700))?,
            _ => std::fs::set_permissions(&place, Permissions::from_mode(mode | 0o400))?,
        }
        if kind != EntryType::Link {
            self.noted.insert(name.clone(), Attributes { path: name, mode, uid, gid });
        }
        Ok(())
    }

    fn empty(&mut self, folder: &Path) -> std::io::Result<()> {
        let Ok(entries) = std::fs::read_dir(self.into.join(folder)) else { return Ok(()) };
        for entry in entries {
            self.remove(&folder.join(entry?.file_name()))?;
        }
        Ok(())
    }

    fn remove(&mut self, name: &Path) -> std::io::Result<()> {
        // A link on the way could lead out of the root.
        let mut place = self.into.to_owned();
        for part in name.parent().into_iter().flat_map(Path::components) {
            place.push(part);
            if !place.symlink_metadata().is_ok_and(|found| found.is_dir()) {
                return Ok(());
            }
        }
        let place = self.into.join(name);
        self.noted.retain(|noted, _| !noted.starts_with(name));
        match place.symlink_metadata() {
            Ok(found) if found.is_dir() => std::fs::remove_dir_all(&place),
            Ok(_) => std::fs::remove_file(&place),
            Err(_) => Ok(()),
        }
    }
}

/// A name without a leading slash and `.`; nothing when it has `..`.
fn plain(name: &Path) -> Option<PathBuf> {
    let parts = name.components().filter(|part| !matches!(part, Component::RootDir | Component::CurDir));
    parts.map(|part| if part == Component::ParentDir { None } else { Some(part) }).collect()
}

fn reader(path: &Path) -> Result<Box<dyn Read>> {
    let file = File::open(path).doing_with(|| cannot_read(path))?;
    let mut file = BufReader::new(file);
    let begins = file.fill_buf().doing_with(|| cannot_read(path))?;
    Ok(match begins {
        [0x1f, 0x8b, ..] => Box::new(flate2::bufread::MultiGzDecoder::new(file)),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => {
            Box::new(zstd::stream::read::Decoder::with_buffer(file).doing_with(|| cannot_read(path))?)
        }
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] | [b'B', b'Z', b'h', ..] => {
            return Err(packed_otherwise(path));
        }
        _ => Box::new(file),
    })
}

fn packed_otherwise(path: &Path) -> Error {
    refused(path, "is packed with xz or bzip2; unpack it first, or pack it with gzip or zstd")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use tar::{Builder, Header};

    fn layer(files: &[(&str, EntryType, &str, u32)]) -> Vec<u8> {
        let mut builder = Builder::new(Vec::new());
        for (name, kind, contents, mode) in files {
            let mut header = Header::new_gnu();
            header.set_entry_type(*kind);
            header.set_mode(*mode);
            header.set_uid(33);
            header.set_gid(44);
            // The builder refuses names that lead out, which an attacker's would not.
            let bytes = name.as_bytes();
            header.as_gnu_mut().unwrap().name[..bytes.len()].copy_from_slice(bytes);
            if *kind == EntryType::Symlink {
                header.set_link_name(contents).unwrap();
            }
            let data = if *kind == EntryType::Regular { contents.as_bytes() } else { &[] };
            header.set_size(data.len() as u64);
            header.set_cksum();
            builder.append(&header, data).unwrap();
        }
        builder.into_inner().unwrap()
    }

    fn unpacked(layers: &[Vec<u8>]) -> (tempfile::TempDir, Result<Vec<Attributes>>) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        std::fs::create_dir(&root).unwrap();
        let mut paths = Vec::new();
        for (number, layer) in layers.iter().enumerate() {
            let path = folder.path().join(number.to_string());
            std::fs::write(&path, layer).unwrap();
            paths.push(path);
        }
        let attributes = unpack(&paths, &root, &Interrupts::watch().unwrap());
        (folder, attributes)
    }

    #[test]
    fn a_layer_changes_and_removes_what_is_below() {
        let lower = layer(&[
            ("etc/", EntryType::Directory, "", 0o755),
            ("etc/shadow", EntryType::Regular, "secret", 0),
            ("etc/old", EntryType::Regular, "", 0o644),
            ("var/", EntryType::Directory, "", 0o755),
            ("var/kept-below", EntryType::Regular, "", 0o644),
            ("lib", EntryType::Symlink, "usr/lib", 0o777),
        ]);
        let upper = layer(&[
            ("./etc/.wh.old", EntryType::Regular, "", 0o644),
            ("var/.wh..wh..opq", EntryType::Regular, "", 0o644),
            ("lib", EntryType::Regular, "no link now", 0o4755),
        ]);
        let packed = {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(&upper).unwrap();
            encoder.finish().unwrap()
        };
        let (folder, attributes) = unpacked(&[zstd::encode_all(&lower[..], 1).unwrap(), packed]);
        let root = folder.path().join("root");
        let noted: Vec<(PathBuf, u32)> =
            attributes.unwrap().into_iter().map(|noted| (noted.path, noted.mode)).collect();
        let expected = [("etc", 0o755), ("etc/shadow", 0), ("lib", 0o4755), ("var", 0o755)]
            .map(|(path, mode)| (path.into(), mode));
        assert_eq!(noted, expected);
        assert_eq!(std::fs::read(root.join("etc/shadow")).unwrap(), b"secret");
        assert_eq!(std::fs::read(root.join("lib")).unwrap(), b"no link now");
        assert!(!root.join("etc/old").exists() && !root.join("var/kept-below").exists());
    }

    #[test]
    fn nothing_is_written_or_removed_outside_the_root() {
        let (_folder, refused) = unpacked(&[layer(&[("../outside", EntryType::Regular, "", 0o644)])]);
        assert!(refused.unwrap_err().to_string().contains("leads out of the root"));
        let elsewhere = tempfile::tempdir().unwrap();
        std::fs::write(elsewhere.path().join("victim"), "").unwrap();
        let link = layer(&[
            ("link", EntryType::Symlink, elsewhere.path().to_str().unwrap(), 0o777),
            ("link/.wh.victim", EntryType::Regular, "", 0o644),
            ("link/planted", EntryType::Regular, "", 0o644),
        ]);
        let (_folder, attributes) = unpacked(&[link]);
        assert!(elsewhere.path().join("victim").exists(), "{attributes:?}");
        assert!(!elsewhere.path().join("planted").exists(), "{attributes:?}");
    }

    #[test]
    fn what_is_no_root_is_said() {
        let said = |bytes: Vec<u8>| unpacked(&[bytes]).1.unwrap_err().to_string();
        assert!(said(b"\xfd7zXZ\0".to_vec()).contains("gzip or zstd"));
        assert!(said(b"plain text, not an archive".repeat(40)).contains("tar archive"));
        assert!(said(Vec::new()).contains("holds no files"));
        let image = layer(&[("manifest.json", EntryType::Regular, "[]", 0o644)]);
        assert!(said(image).contains("docker export"));
    }
}
