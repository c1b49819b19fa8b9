//! Headers that belong to a compiler and not to a C library: `stddef.h`, `emmintrin.h`, `omp.h`.
//!
//! libclang understands its own; those of GCC call functions that only GCC has built in. The rest of GCC's folder, such
//! as `omp.h`, has no counterpart there and reads unchanged.

use crate::libclang::Library;
use std::fs;
use std::path::{Path, PathBuf};

/// A header that every version of clang comes with.
const MARK: &str = "include/stddef.h";

/// The compiler's headers with which units are read.
#[derive(Debug, Default)]
pub(crate) struct Headers {
    /// The folder that clang calls its resource directory.
    own: Option<PathBuf>,
    /// Links to headers of the build's compiler that libclang has not; its whole folder where libclang has none.
    others: Option<Others>,
}

#[derive(Debug)]
enum Others {
    Links(tempfile::TempDir),
    All(PathBuf),
}

impl Headers {
    /// For this library and a build whose compiler has its own headers in `of_compiler`.
    pub(crate) fn new(library: &Library, of_compiler: Option<&Path>) -> Headers {
        let own = own_headers(library);
        let others = of_compiler.and_then(|folder| match &own {
            Some(own) => links(folder, &own.join("include")).map(Others::Links),
            None => Some(Others::All(folder.to_owned())),
        });
        Headers { own, others }
    }

    /// The arguments with which libclang finds them.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let own = self.own.iter().map(|own| format!("-resource-dir={}", own.display()));
        // After all others: the C++ library has a `stdatomic.h` of its own, which GCC's would hide.
        let others = self.others.iter().flat_map(|others| {
            let folder = match others {
                Others::Links(folder) => folder.path(),
                Others::All(folder) => folder,
            };
            ["-idirafter".into(), folder.to_string_lossy().into_owned()]
        });
        own.chain(others).collect()
    }

    /// True when libclang came without its own.
    pub(crate) fn are_borrowed(&self) -> bool {
        self.own.is_none()
    }
}

/// A folder of links to the files that `folder` has and `own` lacks.
fn links(folder: &Path, own: &Path) -> Option<tempfile::TempDir> {
    let links = tempfile::tempdir().ok()?;
    for entry in fs::read_dir(folder).ok()?.flatten() {
        if !own.join(entry.file_name()).exists() {
            std::os::unix::fs::symlink(entry.path(), links.path().join(entry.file_name())).ok()?;
        }
    }
    Some(links)
}

/// The folder with the headers that belong to a library. Distributions keep them apart from it, in another package.
pub(crate) fn own_headers(library: &Library) -> Option<PathBuf> {
    let version = Version::read(&library.version())?;
    let loaded = library.path();
    let real = loaded.canonicalize().unwrap_or_else(|_| loaded.to_owned());
    let beside = [loaded, &real].into_iter().filter_map(Path::parent).flat_map(|folder| version.near(folder));
    let usual = ["/usr/lib", "/usr/lib64", "/usr/local/lib"].map(Path::new);
    let usual = usual.into_iter().flat_map(|folder| version.near(folder));
    beside.chain(usual).find_map(|folder| version.in_folder(&folder))
}

/// The package with the headers of the libclang that is installed, when they are missing.
pub(crate) fn missing_package(library: &Library) -> Option<String> {
    if own_headers(library).is_some() {
        return None;
    }
    let version = Version::read(&library.version())?;
    Some(format!("libclang-common-{}-dev", version.major))
}

/// A version of clang.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Version {
    major: u32,
    /// The full version, as written: `14.0.6`.
    full: String,
}

impl Version {
    /// From `Debian clang version 14.0.6`.
    fn read(text: &str) -> Option<Version> {
        let (_, rest) = text.split_once("clang version ")?;
        let full: String = rest.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
        let major = full.split('.').next()?.parse().ok()?;
        Some(Version { major, full })
    }

    /// The places where distributions put the folder `clang` of a library in `folder`.
    fn near(&self, folder: &Path) -> Vec<PathBuf> {
        let above = folder.parent().unwrap_or(folder);
        let major = self.major;
        let roots = [folder, above].into_iter().flat_map(|root| {
            [
                root.join("clang"),
                root.join("lib/clang"),
                root.join(format!("llvm-{major}/lib/clang")),
                root.join(format!("llvm{major}/lib/clang")),
            ]
        });
        roots.collect()
    }

    /// The headers of this version in such a folder: 14 and 15 name it `14.0.6`, later ones `16`.
    fn in_folder(&self, folder: &Path) -> Option<PathBuf> {
        let has_mark = |path: &PathBuf| path.join(MARK).exists();
        let by_name = [self.full.clone(), self.major.to_string()].map(|name| folder.join(name));
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let start = format!("{}.", self.major);
        let others = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(&start));
        let mut others: Vec<PathBuf> = others.map(|entry| entry.path()).collect();
        others.sort();
        by_name.into_iter().chain(others).find(has_mark)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> Version {
        Version::read(text).expect("a version")
    }

    /// A folder with these headers' folders, and where a library in `library` finds the ones of `text`.
    fn found(made: &[&str], library: &str, text: &str) -> Option<String> {
        let root = tempfile::tempdir().expect("a folder");
        for folder in made {
            let include = root.path().join(folder).join("include");
            fs::create_dir_all(&include).expect("makes");
            fs::write(include.join("stddef.h"), "").expect("writes");
        }
        let version = version(text);
        let near = version.near(&root.path().join(library));
        let found = near.iter().find_map(|folder| version.in_folder(folder))?;
        Some(found.strip_prefix(root.path()).expect("inside").to_string_lossy().into_owned())
    }

    #[test]
    fn versions_are_read_from_what_each_distribution_prints() {
        assert_eq!(version("Debian clang version 14.0.6").major, 14);
        assert_eq!(version("Ubuntu clang version 18.1.3 (1ubuntu1)").full, "18.1.3");
        assert_eq!(version("clang version 19.1.7 (Fedora 19.1.7-3.fc41)").full, "19.1.7");
        assert_eq!(Version::read("something else"), None);
    }

    #[test]
    fn headers_are_found_where_each_distribution_puts_them() {
        let debian_14 = ["usr/lib/llvm-14/lib/clang/14.0.6", "usr/lib/llvm-19/lib/clang/19"];
        let multiarch = "usr/lib/x86_64-linux-gnu";
        assert_eq!(found(&debian_14, multiarch, "clang version 14.0.6").as_deref(), Some(debian_14[0]));
        assert_eq!(found(&debian_14, multiarch, "clang version 19.1.7").as_deref(), Some(debian_14[1]));
        assert_eq!(found(&debian_14, multiarch, "clang version 16.0.6"), None, "of another version");
        assert_eq!(
            found(&debian_14, "usr/lib/llvm-14/lib", "clang version 14.0.6").as_deref(),
            Some(debian_14[0])
        );
        let fedora = ["usr/lib/clang/19"];
        assert_eq!(found(&fedora, "usr/lib64", "clang version 19.1.7").as_deref(), Some(fedora[0]));
        let rebuilt = ["usr/lib/clang/15.0.7"];
        assert_eq!(found(&rebuilt, "usr/lib", "clang version 15.0.6").as_deref(), Some(rebuilt[0]));
    }

    #[test]
    fn only_what_libclang_has_not_is_taken_from_another_compiler() {
        let root = tempfile::tempdir().expect("a folder");
        let (theirs, own) = (root.path().join("theirs"), root.path().join("own"));
        for (folder, names) in [(&theirs, ["emmintrin.h", "omp.h"]), (&own, ["emmintrin.h", "stddef.h"])] {
            fs::create_dir(folder).expect("makes");
            names.iter().for_each(|name| fs::write(folder.join(name), "").expect("writes"));
        }
        let links = links(&theirs, &own).expect("links");
        assert!(links.path().join("omp.h").exists());
        assert!(!links.path().join("emmintrin.h").exists());
    }
}
