//! Types that are declared outside a program's own sources.

use crate::types::Type;
use std::fmt;

/// Types by which the C library's allocator keeps its blocks.
const OF_ALLOCATORS: [&str; 4] = ["malloc_chunk", "malloc_state", "_heap_info", "tcache_perthread_struct"];

/// Parts of paths, and the library in each.
const PLACES: [(&str, &str); 13] = [
    ("/rustc/", "Rust's standard library"),
    ("/lib/rustlib/src/", "Rust's standard library"),
    ("/.cargo/registry/", "a crate that the program depends on"),
    ("/cargo/registry/", "a crate that the program depends on"),
    ("/.cargo/git/", "a crate that the program depends on"),
    ("/include/c++/", "the C++ standard library"),
    ("/libstdc++", "the C++ standard library"),
    ("/libcxx/", "the C++ standard library"),
    ("/glibc", "the C library"),
    ("/musl", "the C library"),
    ("/usr/include/", "a system header"),
    ("/usr/lib/", "a system header"),
    ("/usr/local/include/", "a system header"),
];

/// Prefixes of names, and the library that declares them. They are the only evidence for types that compilers describe
/// without a file.
const NAMES: [(&str, &str); 9] = [
    ("std::", "the standard library"),
    ("core::", "Rust's standard library"),
    ("alloc::", "Rust's standard library"),
    ("hashbrown::", "Rust's standard library"),
    ("__gnu_cxx::", "the C++ standard library"),
    ("__gnu_debug::", "the C++ standard library"),
    ("__cxxabiv1::", "the C++ standard library"),
    ("__cxx11::", "the C++ standard library"),
    ("boost::", "Boost"),
];

/// The library that declares a type, when the program's own sources do not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Library {
    /// The C library, for its allocator.
    Allocator,
    /// A library or header known by its path, with that path.
    Known(&'static str, String),
    /// A library known by the name of the type's namespace.
    Named(&'static str),
    /// A library that the program loads, by its file.
    Loaded(String),
    /// A file outside the folder of sources: the file, then the folder.
    Outside(String, String),
}

impl Library {
    /// True for the types by which the C library's allocator keeps its blocks.
    pub fn is_of_allocator(name: &str) -> bool {
        OF_ALLOCATORS.contains(&name)
    }

    /// The library that a type belongs to; `None` when it may be the program's own. `image` is the file that describes
    /// it when that is not the program.
    pub fn of(ty: &Type, image: Option<&str>) -> Option<Library> {
        if ty.name.as_deref().is_some_and(Library::is_of_allocator) {
            return Some(Library::Allocator);
        }
        let file = ty.declared_at.as_ref().map(|at| &*at.file);
        let known = file.and_then(|file| {
            let (_, what) = PLACES.iter().find(|(part, _)| file.contains(part))?;
            Some(Library::Known(what, file.to_owned()))
        });
        let named = || {
            let name = ty.name.as_deref()?;
            let (_, what) = NAMES.iter().find(|(begin, _)| name.starts_with(begin))?;
            Some(Library::Named(what))
        };
        known.or_else(named).or_else(|| {
            let image = image.filter(|path| path.starts_with("/usr/lib") || path.starts_with("/lib"))?;
            Some(Library::Loaded(image.to_owned()))
        })
    }
}

impl fmt::Display for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Library::Allocator => f.write_str("the C library"),
            Library::Known(what, file) => write!(f, "{what} ({file})"),
            Library::Named(what) => f.write_str(what),
            Library::Loaded(file) => write!(f, "the library {file}"),
            Library::Outside(file, folder) => write!(f, "{file}, outside the sources in {folder}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{Language, SourceLocation, TypeKind};

    fn declared(name: &str, file: &str) -> Type {
        Type {
            name: Some(name.into()),
            size_bytes: Some(8),
            declared_align: None,
            declared_at: Some(SourceLocation { file: file.into(), line: 1 }),
            unit: None,
            language: Language::C,
            kind: TypeKind::Opaque,
        }
    }

    #[test]
    fn a_types_file_tells_whose_it_is() {
        let said = |name: &str, file: &str, image| {
            Library::of(&declared(name, file), image).map(|library| library.to_string())
        };
        assert_eq!(said("item", "/home/me/game/item.h", None), None);
        assert_eq!(said("malloc_chunk", "./malloc/malloc.c", None).as_deref(), Some("the C library"));
        for (file, what) in [
            ("/usr/include/c++/12/bits/stl_tree.h", "the C++ standard library"),
            ("/usr/include/x86_64-linux-gnu/bits/types/struct_FILE.h", "a system header"),
            (
                "/rustc/90b35a6239c3d8bdabc530a6a0816f7ff89a0aaf/library/alloc/src/vec/mod.rs",
                "Rust's standard library",
            ),
            (
                "/root/.cargo/registry/src/index-1/hashbrown-0.14/src/raw.rs",
                "a crate that the program depends on",
            ),
            ("/build/glibc-6iIyft/glibc-2.28/libio/libio.h", "the C library"),
        ] {
            assert_eq!(said("one", file, None), Some(format!("{what} ({file})")));
        }
        for (name, what) in [
            ("std::__detail::_Hash_node<int, false>", "the standard library"),
            ("alloc::collections::btree::node::LeafNode<u32, u32>", "Rust's standard library"),
            ("boost::intrusive::list_node<void *>", "Boost"),
        ] {
            assert_eq!(said(name, "node.h", None).as_deref(), Some(what));
        }
        for own in ["standard::item", "coreset::Node", "allocator::Chunk", "game::std::Item"] {
            assert_eq!(said(own, "node.h", None), None, "{own}");
        }
        let image = "/usr/lib/x86_64-linux-gnu/libz.so.1";
        assert_eq!(said("state", "deflate.h", Some(image)), Some(format!("the library {image}")));
        assert_eq!(said("state", "deflate.h", Some("/home/me/libmine.so")), None);
    }
}
