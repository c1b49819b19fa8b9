//! Functions of modules as regions: where a guest puts its modules is found out by a boot of its own.

use crate::kernels::module_file::unpacked;
use anyhow::{Context, Error, Result, anyhow, bail};
use lineup_debuginfo::{DebugInfo, NoCompanions};
use lineup_kernel::modules::is_for_devices;
use lineup_kernel::{KernelImage, KernelSymbol, KernelSymbols, region_sets};
use lineup_model::abi::Machine;
use lineup_model::image::LoadedImage;
use lineup_model::program::SymbolKind;
use lineup_model::region::{Region, Regions};
use lineup_study::guest::boot::ModuleSection;
use lineup_study::guest::modules::{ModuleFile, ToLoad};
use std::borrow::Cow;
use std::path::Path;

/// The prefix of sections that the kernel frees when a module has been loaded.
const FREED: &str = ".init";

/// Modules that a guest loads before the workload begins, by their files' metadata.
#[derive(Default)]
pub(crate) struct Modules {
    all: Vec<Described>,
    /// The addresses of their sections; empty when no region needs them.
    pub(crate) sections: Vec<ModuleSection>,
}

/// A module that was read by itself.
struct Described {
    name: String,
    path: String,
    info: DebugInfo,
    is_network_driver: bool,
}

impl Modules {
    /// Reads the modules that a guest loads.
    pub(crate) fn read(to_load: &ToLoad<'_>) -> Result<Modules> {
        if to_load.named.is_empty() && !to_load.has_root {
            return Ok(Modules::default());
        }
        let all = to_load.files()?.into_iter().map(described).collect::<Result<_>>()?;
        Ok(Modules { all, sections: Vec::new() })
    }

    /// Refuses regions that no guest can call: it has no network device.
    pub(crate) fn refuse_network_drivers(&self, wanted: &Regions) -> Result<()> {
        let drivers = || self.all.iter().filter(|module| module.is_network_driver);
        for (_, region) in wanted.iter() {
            if let Some(driver) = drivers().find(|driver| is_known(region, &functions(&driver.info))) {
                return Err(of_network_driver(region, &driver.name));
            }
        }
        Ok(())
    }

    /// True when the guest loads none.
    pub(crate) fn are_none(&self) -> bool {
        self.all.is_empty()
    }

    /// True when their addresses are needed: a region is a function of one, or the user named one. False when a region
    /// exists nowhere: that is refused.
    pub(crate) fn are_of_use(&self, wanted: &Regions, symbols: &KernelSymbols, named: &[String]) -> bool {
        let foreign = || wanted.iter().map(|(_, region)| region).filter(|region| !is_known(region, symbols));
        let is_here =
            |region: &Region| self.all.iter().any(|module| is_known(region, &functions(&module.info)));
        foreign().all(is_here) && (!named.is_empty() || foreign().next().is_some())
    }

    /// Takes in where a guest has put them.
    pub(crate) fn place(&mut self, sections: Vec<ModuleSection>) -> Result<()> {
        let is_told = |module: &Described| sections.iter().any(|section| section.module == module.name);
        if let Some(silent) = self.all.iter().find(|module| !is_told(module)) {
            bail!(
                "the guest does not report the address of the module {}; its kernel has no /sys/module/{}/sections",
                silent.name,
                silent.name
            );
        }
        self.sections = sections;
        Ok(())
    }

    /// Their sections as images, each with the address that it has when its file is read by itself.
    pub(crate) fn images(&self) -> Vec<LoadedImage> {
        let placed = self.all.iter().flat_map(|module| {
            module.info.sections().iter().filter_map(|section| {
                let start = self.address(module, &section.name)?;
                let size = section.addresses.end - section.addresses.start;
                Some(LoadedImage {
                    path: module.path.clone(),
                    start,
                    end: start.checked_add(size).filter(|end| *end > start)?,
                    bias: start.wrapping_sub(section.addresses.start),
                    build_id: None,
                })
            })
        });
        placed.collect()
    }

    fn address(&self, module: &Described, section: &str) -> Option<u64> {
        let mut told = self.sections.iter().filter(|one| one.module == module.name);
        let found = told.find(|one| one.section == section && !section.starts_with(FREED))?;
        Some(found.address)
    }

    /// The kernel's symbols with those of the modules.
    pub(crate) fn with_symbols<'k>(&self, symbols: &'k KernelSymbols) -> Cow<'k, KernelSymbols> {
        if self.sections.is_empty() {
            return Cow::Borrowed(symbols);
        }
        let images = self.images();
        let of_module = |module: &Described| {
            let own: Vec<&LoadedImage> = images.iter().filter(|image| image.path == module.path).collect();
            let functions = functions(&module.info);
            let placed = functions.all().iter().filter_map(|symbol| {
                let mut runtime = own.iter().map(|image| (image, image.to_runtime(symbol.address)));
                let (_, address) = runtime.find(|(image, runtime)| image.contains(*runtime))?;
                Some(KernelSymbol { address, ..symbol.clone() })
            });
            placed.collect::<Vec<_>>()
        };
        let own = symbols.all().iter().cloned();
        Cow::Owned(KernelSymbols::new(own.chain(self.all.iter().flat_map(of_module)).collect()))
    }

    /// The regions, those of modules in the modules' files.
    pub(crate) fn in_their_files(&self, regions: &Regions) -> Regions {
        let images = self.images();
        let file = |region: &Region| {
            let first = *region.entries.first()?;
            images.iter().find(|image| image.contains(first)).map(|image| image.path.clone())
        };
        let placed = |(_, region): (_, &Region)| Region {
            image: file(region).unwrap_or_else(|| region.image.clone()),
            ..region.clone()
        };
        regions.iter().map(placed).collect()
    }
}

/// Refuses features that not every machine supports.
pub(crate) fn check_machine(kernel: &KernelImage) -> Result<()> {
    match kernel.machine {
        Machine::X86_64 | Machine::AArch64 => Ok(()),
        other => bail!(
            "functions of modules are recorded of kernels for x86-64 and aarch64; the image is for {other}"
        ),
    }
}

/// Why a region cannot be: neither the kernel nor a module that the guest loads has it. Another module may.
pub(crate) fn refusal(
    (modules, to_load): (&Modules, &ToLoad<'_>),
    wanted: &Regions,
    symbols: &KernelSymbols,
) -> Option<Error> {
    let of_modules = modules.all.iter().flat_map(|module| functions(&module.info).all().to_vec());
    let all = KernelSymbols::new(symbols.all().iter().cloned().chain(of_modules).collect());
    let (_, region) = wanted.iter().find(|(_, region)| !is_known(region, &all))?;
    let has = |path: &Path| read(path).is_ok_and(|info| is_known(region, &functions(&info)));
    let is_driver = |path: &Path| unpacked(path).is_ok_and(|contents| is_network_driver(path, &contents));
    match to_load.all().ok()?.into_iter().find(|(_, path)| has(path)) {
        Some((module, path)) if is_driver(&path) => Some(of_network_driver(region, &module)),
        Some((module, _)) => Some(anyhow!(
            "{} is a function of the module {module}: give --module {module} as well",
            region.name
        )),
        // With names like it that modules have.
        None => Some(region_sets::find(wanted, &all, "").err()?.into()),
    }
}

/// True when a module drives network devices, except for those without hardware such as `veth` and `tun`.
fn is_network_driver(path: &Path, contents: &[u8]) -> bool {
    let is_below = |path: &Path| path.ends_with("drivers/net");
    path.ancestors().any(is_below) && is_for_devices(contents).unwrap_or(false)
}

fn of_network_driver(region: &Region, module: &str) -> Error {
    anyhow!(
        "{} is a function of the network driver {module}, which is not supported: the guest has no network device, since the \
         host's packets would come at no fixed instruction; the sets net-rx and tcp are what lies above, over the loopback",
        region.name
    )
}

/// True when a region is a set, or one of these functions.
fn is_known(region: &Region, symbols: &KernelSymbols) -> bool {
    region_sets::find(&Regions::from_iter([region.clone()]), symbols, "").is_ok()
}

/// The functions of a module that stay in memory, by their link addresses.
fn functions(info: &DebugInfo) -> KernelSymbols {
    let stays =
        |address: u64| info.section_at(address).is_some_and(|section| !section.name.starts_with(FREED));
    let own = info.symbols().iter().filter(|symbol| symbol.kind == SymbolKind::Function);
    let own = own.filter(|symbol| stays(symbol.address)).map(|symbol| KernelSymbol {
        address: symbol.address,
        kind: 't',
        name: symbol.name.clone(),
    });
    KernelSymbols::new(own.collect())
}

fn described(file: ModuleFile) -> Result<Described> {
    let path = std::path::absolute(&file.path).with_context(|| file.path.display().to_string())?;
    let is_network_driver = is_network_driver(&path, &file.module.contents);
    let info = DebugInfo::parse(file.module.contents, &mut NoCompanions)
        .with_context(|| path.display().to_string())?;
    Ok(Described { name: file.module.name, path: text_of(&path)?, info, is_network_driver })
}

fn read(path: &Path) -> Result<DebugInfo> {
    Ok(DebugInfo::parse(unpacked(path)?, &mut NoCompanions)?)
}

pub(crate) fn text_of(path: &Path) -> Result<String> {
    Ok(path.to_str().with_context(|| format!("the path {} is not UTF-8", path.display()))?.to_owned())
}
