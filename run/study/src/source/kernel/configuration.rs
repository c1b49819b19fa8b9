//! The configuration of a kernel: of its tree, of its build, or of the image that was recorded.

use lineup_advise::randomisation::Randomisation;
use lineup_kernel::{Configuration, KernelImage};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The files of a tree or of a build folder that hold its configuration.
const OF_BUILDS: [&str; 3] = [".config", "include/config/auto.conf", "include/generated/autoconf.h"];

/// The configuration of the running kernel.
const OF_THIS_MACHINE: &str = "/proc/config.gz";

/// The release of the running kernel.
const RELEASE_OF_THIS_MACHINE: &str = "/proc/sys/kernel/osrelease";

/// Packages put `boot/config-RELEASE` or `lib/modules/RELEASE/config` into the same root as the image and its debug file,
/// which may lie this deep.
const MOST_FOLDERS: usize = 6;

/// No configuration is longer.
const MOST_BYTES: u64 = 16 << 20;

/// The places where a kernel's configuration may lie.
#[derive(Clone, Copy, Default, Debug)]
pub struct KernelPlaces<'p> {
    /// A folder of the tree or of a build; its parents count up to the tree's top.
    pub folder: Option<&'p Path>,
    /// The image, or its debug file.
    pub image: Option<&'p Path>,
    /// The kernel's release.
    pub release: &'p str,
}

/// Whether the compiler randomises layouts. An option that is on in any of the configurations decides: the recorded
/// kernel and the tree may differ.
pub fn randomisation(places: &KernelPlaces<'_>) -> Randomisation {
    let mut result = Randomisation::Unknown;
    for (configuration, found) in configurations(places) {
        match found.randomising_option() {
            Some(Some(option)) => return Randomisation::On { option: option.to_owned(), configuration },
            Some(None) if result == Randomisation::Unknown => result = Randomisation::Off { configuration },
            _ => {}
        }
    }
    result
}

/// Every configuration that is found, with its place in words.
fn configurations(places: &KernelPlaces<'_>) -> Vec<(String, Configuration)> {
    let mut files: Vec<PathBuf> = Vec::new();
    if let Some(folder) = places.folder {
        files.extend(
            folders_of_tree(folder).iter().flat_map(|folder| OF_BUILDS.map(|name| folder.join(name))),
        );
    }
    if let (Some(image), false) = (places.image, places.release.is_empty()) {
        let name = format!("config-{}", places.release);
        let image = std::path::absolute(image).unwrap_or_else(|_| image.to_owned());
        for folder in image.ancestors().skip(1).take(MOST_FOLDERS) {
            files.extend([folder.join(&name), folder.join("boot").join(&name)]);
            let modules =
                ["lib/modules", "usr/lib/modules"].map(|path| folder.join(path).join(places.release));
            files.extend(modules.map(|modules| modules.join("config")));
        }
    }
    let is_this_machine =
        fs::read_to_string(RELEASE_OF_THIS_MACHINE).is_ok_and(|release| release.trim() == places.release);
    files.extend(is_this_machine.then(|| PathBuf::from(OF_THIS_MACHINE)));
    let read = |file: PathBuf| Some((file.display().to_string(), Configuration::parse(&read_short(&file)?)?));
    let mut found: Vec<(String, Configuration)> = files.into_iter().filter_map(read).collect();
    found.extend(places.image.and_then(in_image));
    found
}

/// The folder and its parents, up to the top of a kernel's tree, which has a `Kconfig`. Outside of a tree the folder
/// alone.
fn folders_of_tree(folder: &Path) -> Vec<PathBuf> {
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let is_top = |folder: &&Path| folder.join("Kconfig").is_file() && folder.join("Makefile").is_file();
    match folder.ancestors().take(MOST_FOLDERS).collect::<Vec<_>>().iter().rposition(is_top) {
        Some(top) => folder.ancestors().take(top + 1).map(Path::to_owned).collect(),
        None => vec![folder],
    }
}

fn read_short(file: &Path) -> Option<Vec<u8>> {
    if !file.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    fs::File::open(file).ok()?.take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn in_image(image: &Path) -> Option<(String, Configuration)> {
    let bytes = crate::companions::read(image).ok()?;
    let found = match bytes.starts_with(b"\x7fELF") {
        true => Configuration::in_image(&bytes),
        false => Configuration::in_image(&KernelImage::parse(&bytes).ok()?.vmlinux),
    };
    found.map(|found| (format!("the configuration in {}", image.display()), found))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "# Automatically generated file; DO NOT EDIT.\nCONFIG_64BIT=y\n";

    fn write(root: &Path, name: &str, text: &str) {
        let path = root.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("makes");
        fs::write(path, text).expect("writes");
    }

    fn of_tree(folder: &Path) -> Randomisation {
        randomisation(&KernelPlaces { folder: Some(folder), ..KernelPlaces::default() })
    }

    #[test]
    fn a_folder_of_the_tree_has_the_configuration_of_its_top() {
        let root = tempfile::tempdir().expect("a folder");
        let tree = root.path().join("linux");
        write(root.path(), ".config", HEAD);
        for name in ["Kconfig", "Makefile", "include/linux/fs.h", "fs/Kconfig", "fs/Makefile"] {
            write(&tree, name, "");
        }
        assert_eq!(of_tree(&tree), Randomisation::Unknown, "a folder above the tree says nothing");
        write(&tree, ".config", HEAD);
        for folder in ["", "include", "include/linux", "fs"] {
            assert!(matches!(of_tree(&tree.join(folder)), Randomisation::Off { .. }), "{folder}");
        }
        write(
            &tree,
            "include/generated/autoconf.h",
            "/* Automatically generated */\n#define CONFIG_RANDSTRUCT 1\n",
        );
        let Randomisation::On { option, configuration } = of_tree(&tree) else { panic!("on in the build") };
        assert_eq!(option, "CONFIG_RANDSTRUCT");
        assert!(configuration.ends_with("linux/include/generated/autoconf.h"), "{configuration}");
    }

    #[test]
    fn a_packages_configuration_lies_beside_the_image_and_its_debug_file() {
        let root = tempfile::tempdir().expect("a folder");
        write(root.path(), "boot/config-6.1.0-x", HEAD);
        write(root.path(), "boot/config-6.1.0-y", "# Automatically generated\nCONFIG_RANDSTRUCT_FULL=y\n");
        for image in ["boot/vmlinuz-6.1.0-x", "usr/lib/debug/boot/vmlinux-6.1.0-x"] {
            let image = root.path().join(image);
            let places = |release| KernelPlaces { folder: None, image: Some(&image), release };
            assert!(matches!(randomisation(&places("6.1.0-x")), Randomisation::Off { .. }));
            assert!(matches!(randomisation(&places("6.1.0-y")), Randomisation::On { .. }));
            assert_eq!(randomisation(&places("6.1.0-z")), Randomisation::Unknown);
        }
        write(root.path(), "usr/lib/modules/7.2.13/config", HEAD);
        for image in ["usr/lib/modules/7.2.13/vmlinuz", "usr/lib/debug/boot/vmlinux-7.2.13"] {
            let image = root.path().join(image);
            let places = KernelPlaces { folder: None, image: Some(&image), release: "7.2.13" };
            assert!(matches!(randomisation(&places), Randomisation::Off { .. }), "{}", image.display());
        }
    }
}
