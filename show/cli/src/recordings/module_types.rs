//! The debug information of a kernel's modules, where the kernel had put them.

use crate::kernels::module_file::unpacked;
use crate::kernels::symbols;
use crate::recordings::debug_info::told;
use crate::terminal::progress::Stages;
use anyhow::{Context, Result};
use lineup_debuginfo::btf::{self, Btf};
use lineup_debuginfo::{Bytes, Companion, Companions, DebugInfo, Placement};
use lineup_kernel::modules::module_name;
use lineup_model::image::LoadedImage;
use lineup_study::companions::{self, DEBUG_ROOT, DiskCompanions};
use lineup_study::guest::modules::find;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

/// The debug information of every file in a recording. `sections` holds the addresses of a kernel's modules, by their
/// positions among the images. `file_of` returns the present path of an image's file, and `read` reads files that are
/// not modules: an image and its file.
pub(crate) fn debug_infos(
    images: &[LoadedImage],
    sections: &BTreeMap<usize, BTreeMap<u64, u64>>,
    file_of: impl Fn(&Path) -> PathBuf,
    mut read: impl FnMut(&Path, &Path) -> Option<DebugInfo>,
    stages: &Stages,
) -> Vec<Option<DebugInfo>> {
    let kernel = images.first().filter(|_| !sections.is_empty());
    let mut loader = kernel.map(|kernel| Loader::of(Path::new(&kernel.path)));
    let mut all = Vec::new();
    for (position, image) in images.iter().enumerate() {
        let image = Path::new(&image.path);
        let file = file_of(image);
        let info = match (sections.get(&position), &mut loader) {
            (Some(sections), Some(loader)) => loader.debug_info(&file, sections, stages),
            _ => read(image, &file),
        };
        if let (Some(loader), Some(info)) = (&mut loader, &info) {
            loader.take_in(info);
        }
        all.push(info);
    }
    all
}

/// The context of a module: the kernel, and the modules that were loaded before.
struct Loader<'a> {
    kernel: &'a Path,
    /// The kernel's BTF, once a module has asked for it.
    base: Option<Bytes>,
    /// Addresses by name. The kernel's own come first, as when it loads a module.
    exported: HashMap<String, u64>,
}

impl<'a> Loader<'a> {
    /// The context with only the kernel in this file.
    fn of(kernel: &'a Path) -> Loader<'a> {
        Loader { kernel, base: None, exported: HashMap::new() }
    }

    /// Adds the symbols that later modules may refer to.
    fn take_in(&mut self, info: &DebugInfo) {
        for symbol in info.symbols() {
            if !self.exported.contains_key(&symbol.name) {
                self.exported.insert(symbol.name.clone(), symbol.address);
            }
        }
    }

    /// The debug information of one module: DWARF of its debug file, else the BTF that it holds, which continues the
    /// kernel's, else its symbols alone. `None`, with a message, when the file cannot be read.
    fn debug_info(
        &mut self,
        file: &Path,
        sections: &BTreeMap<u64, u64>,
        stages: &Stages,
    ) -> Option<DebugInfo> {
        told(file, stages, || {
            let symbol = |name: &str| self.exported.get(name).copied();
            let placement = Placement { sections: sections.clone(), symbol: &symbol };
            let mut companions = OfModule { file, kernel: self.kernel, usual: DiskCompanions::of(file) };
            let info = DebugInfo::placed(unpacked(file)?, &mut companions, &placement)?;
            if info.has_debug_info() {
                return Ok(info);
            }
            Ok(match self.own_types(&info)? {
                Some(types) => info.described_by(types),
                None => info,
            })
        })
    }

    /// A module's own BTF; `None` when it has none.
    fn own_types(&mut self, module: &DebugInfo) -> Result<Option<Btf>> {
        let own = module.btf_section()?;
        if own.is_empty() {
            return Ok(None);
        }
        let base = match self.base.take() {
            Some(base) => base,
            None => base_types(self.kernel)?,
        };
        let base = self.base.insert(base);
        let types = btf::parse(&own, Some(base)).context("the module's BTF, which continues the kernel's")?;
        Ok(Some(types))
    }
}

/// The BTF of a kernel's file.
fn base_types(kernel: &Path) -> Result<Bytes> {
    let bytes = companions::read(kernel)?;
    Ok(match symbols::distributed(&bytes)? {
        Some(image) => lineup_kernel::btf::find(&image)?.to_vec().into(),
        None => DebugInfo::parse(bytes, &mut lineup_debuginfo::NoCompanions)?.btf_section()?,
    })
}

/// The debug file of a module: where distributions put debug files, and below the folder of the kernel's own, which may
/// be a package's that was only unpacked.
struct OfModule<'a> {
    file: &'a Path,
    kernel: &'a Path,
    usual: DiskCompanions,
}

impl OfModule<'_> {
    /// Finds the debug file by the module's name and the release in its folder's name. The caller checks its build id.
    fn by_name(&self) -> Option<PathBuf> {
        let name = module_name(self.file.file_name()?.to_str()?)?;
        let release = self.file.iter().skip_while(|part| *part != "modules").nth(1)?;
        let beside = self.kernel.parent().and_then(Path::parent);
        let roots = beside.into_iter().chain([Path::new(DEBUG_ROOT)]);
        let folders = roots.map(|root| root.join("lib/modules").join(release));
        folders.filter(|folder| folder.is_dir()).find_map(|folder| find(&folder, &name))
    }
}

impl Companions for OfModule<'_> {
    fn find(&mut self, wanted: &Companion) -> Option<Bytes> {
        self.usual.find(wanted).or_else(|| match wanted {
            Companion::BuildId(_) => unpacked(&self.by_name()?).ok(),
            _ => None,
        })
    }
}
