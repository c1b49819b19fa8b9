//! The kernel's modules: their own metadata, and the order in which several are loaded.

use crate::error::Error;
use crate::image::Compression;
use object::{Object, ObjectSection};
use std::collections::BTreeMap;

/// A module that a guest loads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Module {
    /// Its name, with underscores.
    pub name: String,
    /// Its ELF file, unpacked.
    pub contents: Vec<u8>,
}

/// A module's name as the kernel writes it: files may have dashes, and endings such as `.ko.xz`.
pub fn module_name(file_name: &str) -> Option<String> {
    let (name, packed) = file_name.split_once(".ko")?;
    matches!(packed, "" | ".xz" | ".zst" | ".gz").then(|| name.replace('-', "_"))
}

/// The modules of these names and their dependencies, in the order in which they are loaded. `read` gives the bytes of
/// a module's file, or nothing when it does not exist: then the module is part of the kernel, or missing, which the
/// guest will report.
///
/// # Errors
///
/// When a module is damaged, or belongs to another kernel than the one of this release.
pub fn in_order(
    wanted: &[&str],
    release: &str,
    read: &mut dyn FnMut(&str) -> Option<Vec<u8>>,
) -> Result<Vec<Module>, Error> {
    let mut order = Order { release, read, begun: BTreeMap::new(), loaded: Vec::new() };
    for name in wanted {
        order.load(name)?;
    }
    Ok(order.loaded)
}

struct Order<'a> {
    release: &'a str,
    read: &'a mut dyn FnMut(&str) -> Option<Vec<u8>>,
    begun: BTreeMap<String, ()>,
    loaded: Vec<Module>,
}

impl Order<'_> {
    fn load(&mut self, name: &str) -> Result<(), Error> {
        // A module that is requested again is loaded, or waits for its dependencies.
        let mut waiting = vec![(name.to_owned(), None::<Vec<u8>>)];
        while let Some((name, contents)) = waiting.pop() {
            if let Some(contents) = contents {
                self.loaded.push(Module { name, contents });
                continue;
            }
            if self.begun.insert(name.clone(), ()).is_some() {
                continue;
            }
            let Some(bytes) = (self.read)(&name) else { continue };
            let contents = match Compression::of(&bytes) {
                Some(compression) => compression.unpack(&bytes)?,
                None => bytes,
            };
            let needs = self.needs(&name, &contents)?;
            waiting.push((name, Some(contents)));
            waiting.extend(needs.into_iter().rev().map(|name| (name, None)));
        }
        Ok(())
    }

    fn needs(&self, name: &str, contents: &[u8]) -> Result<Vec<String>, Error> {
        let what = || format!("the module {name}");
        let said: BTreeMap<String, String> = said(contents)
            .map_err(|error| Error::Elf { what: what(), why: error.to_string() })?
            .into_iter()
            .collect();
        if let Some(built_for) = said.get("vermagic").and_then(|magic| magic.split(' ').next())
            && built_for != self.release
        {
            let (module, built_for) = (name.to_owned(), built_for.to_owned());
            return Err(Error::ForeignModule { module, built_for, release: self.release.to_owned() });
        }
        let depends = said.get("depends").map(String::as_str).unwrap_or_default().split(',');
        let soft = said.get("softdep").and_then(|text| text.strip_prefix("pre: "));
        let soft = soft.unwrap_or_default().split(' ');
        let names = depends.chain(soft).filter(|name| !name.is_empty());
        Ok(names.map(|name| name.replace('-', "_")).collect())
    }
}

/// True when a module is loaded for devices of a bus, such as `pci:…` and `virtio:…`, and not only by its name or for a
/// file of `/dev`.
///
/// # Errors
///
/// When the file is damaged.
pub fn is_for_devices(contents: &[u8]) -> object::Result<bool> {
    let aliases = said(contents)?.into_iter().filter(|(key, _)| key == "alias");
    let mut buses = aliases.filter_map(|(_, alias)| Some(alias.split_once(':')?.0.to_owned()));
    Ok(buses.any(|bus| bus != "devname"))
}

/// A module's own metadata: lines `key=value`, each ended by a zero. A key may occur more than once.
fn said(contents: &[u8]) -> object::Result<Vec<(String, String)>> {
    let file = object::File::parse(contents)?;
    let section = file.section_by_name(".modinfo").map(|section| section.data()).transpose()?;
    let lines = section.unwrap_or_default().split(|byte| *byte == 0);
    let pairs = lines.filter_map(|line| std::str::from_utf8(line).ok()?.split_once('='));
    Ok(pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::write::{Object as NewObject, StandardSection};
    use object::{Architecture, BinaryFormat, Endianness};

    fn module(lines: &[&str]) -> Vec<u8> {
        let mut file = NewObject::new(BinaryFormat::Elf, Architecture::X86_64, Endianness::Little);
        file.section_id(StandardSection::Text);
        let section = file.add_section(Vec::new(), b".modinfo".to_vec(), object::SectionKind::ReadOnlyData);
        let text: Vec<u8> = lines.iter().flat_map(|line| [line.as_bytes(), &[0]].concat()).collect();
        file.append_section_data(section, &text, 1);
        file.write().unwrap()
    }

    fn loaded(files: &[(&str, Vec<u8>)], wanted: &[&str]) -> Result<Vec<String>, Error> {
        let mut read = |name: &str| Some(files.iter().find(|(file, _)| *file == name)?.1.clone());
        Ok(in_order(wanted, "6.1", &mut read)?.into_iter().map(|module| module.name).collect())
    }

    #[test]
    fn a_driver_of_a_bus_names_its_devices_and_a_virtual_device_does_not() {
        let is_for_devices = |lines: &[&str]| is_for_devices(&module(lines)).unwrap();
        assert!(is_for_devices(&["name=virtio_net", "alias=virtio:d00000001v*", "depends="]));
        assert!(is_for_devices(&["alias=pci:v00008086d00001539sv*", "alias=other"]));
        assert!(!is_for_devices(&["alias=rtnl-link-veth"]));
        assert!(!is_for_devices(&["alias=devname:net/tun", "alias=char-major-10-200"]));
        assert!(super::is_for_devices(b"no module").is_err());
    }

    #[test]
    fn what_a_module_needs_is_loaded_before_it_and_once() {
        let files = [
            ("virtio_pci", module(&["vermagic=6.1 SMP", "depends=virtio_ring,virtio"])),
            ("virtio", module(&["depends=virtio-ring"])),
            ("virtio_ring", module(&["license=GPL", "depends="])),
            ("ext4", module(&["softdep=pre: crc32c", "depends=jbd2"])),
            ("jbd2", module(&[])),
            // Two modules that depend on each other are loaded all the same; the kernel will report the problem.
            ("one", module(&["depends=other"])),
            ("other", module(&["depends=one"])),
        ];
        let names = loaded(&files, &["virtio_pci", "virtio", "ext4", "one"]).unwrap();
        assert_eq!(names, ["virtio_ring", "virtio", "virtio_pci", "jbd2", "ext4", "other", "one"]);
    }

    #[test]
    fn what_is_damaged_or_of_another_kernel_is_refused() {
        let said = |bytes: Vec<u8>| loaded(&[("ext4", bytes)], &["ext4"]).unwrap_err().to_string();
        let other = said(module(&["vermagic=6.12.1-amd64 SMP"]));
        assert!(other.contains("6.12.1-amd64") && other.contains("6.1"), "{other}");
        assert!(said(b"no module".to_vec()).contains("the module ext4 is damaged"));
        assert!(loaded(&[], &["ext4"]).unwrap().is_empty());
    }

    #[test]
    fn names_of_files_are_read() {
        assert_eq!(module_name("nd_pmem.ko").as_deref(), Some("nd_pmem"));
        assert_eq!(module_name("virtio-rng.ko.xz").as_deref(), Some("virtio_rng"));
        assert_eq!(module_name("ext4.kobject"), None);
        assert_eq!(module_name("modules.dep"), None);
    }
}
