//! The records that the macros leave in an image's sections, read into values.

use super::arch::{Form, Kind, SITE_BYTES_MAX, Site};
use super::value::Class;
use std::ffi::CStr;
use std::ops::Range;

/// The sections of one image (the program or a shared object).
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Image {
    /// Addresses of pointers to [`Definition`]s.
    pub(super) definitions: Range<usize>,
    /// Addresses of [`SiteRecord`]s.
    pub(super) sites: Range<usize>,
}

/// A variable's definition or import. Layout shared with `lineup/imv.h` and `define_imv!`.
#[repr(C)]
pub(super) struct Definition {
    cell: usize,
    name: *const libc::c_char,
    /// For an import: where the address of the exporter's variable is. Null for a definition.
    origin: *const usize,
    size_bytes: u8,
    class: u8,
    is_signed: u8,
    padding: [u8; 5],
}

/// A site. Addresses are relative to the field that holds them, so the section needs no relocation at load time.
#[repr(C)]
struct SiteRecord {
    site: i64,
    cell: i64,
    target: i64,
    size_bytes: u8,
    kind: u8,
    padding: [u8; 6],
}

/// The contents of a [`Definition`].
pub(super) struct Defined {
    pub(super) cell: usize,
    pub(super) origin: Option<usize>,
    pub(super) name: String,
    pub(super) size_bytes: u8,
    pub(super) class: Class,
}

impl Image {
    /// The variables that this image defines or imports.
    pub(super) fn defined(&self) -> Vec<Defined> {
        let pointers = self.definitions.clone().step_by(size_of::<usize>());
        // SAFETY: the section holds aligned pointers to records, emitted by our macros alone; the image is mapped
        // while it is registered, and its relocations are done before its constructors run.
        pointers.filter_map(|at| unsafe { (*(at as *const *const Definition)).as_ref() }).map(read).collect()
    }

    /// The sites of this image, not yet analysed.
    pub(super) fn read_sites(&self) -> Vec<Site> {
        let records = self.sites.clone().step_by(size_of::<SiteRecord>());
        records
            .map(|at| {
                // SAFETY: as for `defined`: the section is an array of records.
                let record = unsafe { &*(at as *const SiteRecord) };
                let absolute = |field: &i64| (&raw const *field as usize).wrapping_add(*field as usize);
                Site {
                    address: absolute(&record.site),
                    cell: absolute(&record.cell),
                    size_bytes: record.size_bytes,
                    kind: if record.kind == 0 { Kind::Value } else { Kind::Branch },
                    target: absolute(&record.target),
                    register: 0,
                    form: Form::Dormant,
                    dormant: [0; SITE_BYTES_MAX],
                }
            })
            .collect()
    }
}

fn read(definition: &Definition) -> Defined {
    // SAFETY: `name` points to a string constant of the image, `origin` to a pointer that the loader filled.
    let (name, origin) = unsafe {
        (CStr::from_ptr(definition.name).to_string_lossy().into_owned(), definition.origin.as_ref().copied())
    };
    Defined {
        cell: definition.cell,
        origin,
        name,
        size_bytes: definition.size_bytes,
        class: Class::from_record(definition.class, definition.is_signed),
    }
}

// The linker makes these two from the sections' names, one pair per image. `hidden` keeps each image to its own.
#[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(lineup_generic)))]
std::arch::global_asm!(
    ".hidden __start_lineup_imv_defs",
    ".hidden __stop_lineup_imv_defs",
    ".hidden __start_lineup_imv_sites",
    ".hidden __stop_lineup_imv_sites",
);

#[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(lineup_generic)))]
unsafe extern "C" {
    #[link_name = "__start_lineup_imv_defs"]
    static DEFINITIONS_START: [usize; 0];
    #[link_name = "__stop_lineup_imv_defs"]
    static DEFINITIONS_STOP: [usize; 0];
    #[link_name = "__start_lineup_imv_sites"]
    static SITES_START: [usize; 0];
    #[link_name = "__stop_lineup_imv_sites"]
    static SITES_STOP: [usize; 0];
}

/// The image this copy of the runtime is linked into.
pub(super) fn own_image() -> Image {
    #[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(lineup_generic)))]
    let image = Image {
        definitions: &raw const DEFINITIONS_START as usize..&raw const DEFINITIONS_STOP as usize,
        sites: &raw const SITES_START as usize..&raw const SITES_STOP as usize,
    };
    #[cfg(any(not(any(target_arch = "x86_64", target_arch = "aarch64")), lineup_generic))]
    let image = Image { definitions: 0..0, sites: 0..0 };
    image
}
