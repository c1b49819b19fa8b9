//! Opens a file with types, in any of the formats that describe them.

use super::subject::{Source, Subject};
use crate::kernels::symbols::distributed;
use crate::types::index::{IndexedName, Location};
use crate::types::select;
use anyhow::{Context, Result, bail};
use lineup_debuginfo::btf::{self, Btf};
use lineup_debuginfo::{Bytes, Companion, DebugInfo, Error};
use lineup_model::abi::Abi;
use lineup_model::types::Types;
use lineup_study::companions::{self, DiskCompanions};
use std::path::{Path, PathBuf};

/// The running kernel's own types: the base of all its modules.
const KERNEL_BTF: &str = "/sys/kernel/btf/vmlinux";

impl Subject {
    /// Opens a file with DWARF, an ELF file with BTF, a BTF image, or a kernel image that holds one, and reads all of
    /// its types. `base` is the BTF that split BTF continues. Unless `leaves_none`, the index of units and types is
    /// written.
    pub(crate) fn open(path: &Path, base: Option<&Path>, leaves_none: bool) -> Result<Subject> {
        let subject = Subject { path: path.to_owned(), source: open(path, base, &[])? };
        if let Source::Dwarf(info) = &subject.source {
            warn(info);
            if let Some(index) = subject.index().filter(|_| !leaves_none) {
                // Without it later looks take longer.
                let _ = index.write(info);
            }
        }
        Ok(subject)
    }

    /// As [`Self::open`], for the types of these names. Of a large file it reads only units that are enough to show
    /// them: those that the index has from an earlier time, or else those that a search for the names finds. The result
    /// is written down for the next time.
    pub(crate) fn open_for(path: &Path, base: Option<&Path>, wanted: &[String]) -> Result<Subject> {
        let names = select::plain(wanted);
        let subject = Subject { path: path.to_owned(), source: open(path, base, &names)? };
        let Some(index) = subject.index() else {
            // Only all types show what an unknown name might mean.
            let is_enough =
                matches!(subject.source, Source::Btf(_)) && has_all(&select::named(&subject, wanted), None);
            return if is_enough { Ok(subject) } else { Subject::open(path, base, false) };
        };
        if let Some(found) = index.look_up(&names)
            && subject.read_units(&found.units)
            && has_all(&select::named(&subject, wanted), Some(found.types))
        {
            return Ok(subject);
        }
        let subject = Subject { path: path.to_owned(), source: open(path, base, &names)? };
        if let Source::Dwarf(info) = &subject.source
            && let Some(units) = info.units_of_types(&names)
            && subject.read_units(&units)
            && let selected = select::named(&subject, wanted)
            && has_all(&selected, None)
        {
            // Without it the next look takes as long as this one.
            let _ = index.remember(&names, &IndexedName { units, types: selected.types.len() });
            return Ok(subject);
        }
        Subject::open(path, base, false)
    }

    /// The path of the index of units and types; `None` for a file that is read at once without one.
    fn index(&self) -> Option<Location> {
        match &self.source {
            Source::Dwarf(info) => Location::of(&self.path, info),
            Source::Btf(_) => None,
        }
    }

    fn read_units(&self, units: &[u32]) -> bool {
        matches!(&self.source, Source::Dwarf(info) if info.read_only_units(units))
    }
}

/// True when there is something of every name, and as many types as were `expected`.
fn has_all(selected: &select::Selected<'_>, expected: Option<usize>) -> bool {
    selected.unknown.is_empty() && expected.is_none_or(|types| types == selected.types.len())
}

/// `names`: of BTF only the parts for these types are read, or all where the list is empty.
fn open(path: &Path, base: Option<&Path>, names: &[&str]) -> Result<Source> {
    let bytes = companions::read(path)?;
    if btf::is_btf(&bytes) {
        return Ok(Source::Btf(Box::new(parse_btf(&bytes, path, base, names)?)));
    }
    let context = || path.display().to_string();
    if let Ok(Some(kernel)) = distributed(&bytes) {
        let types = lineup_kernel::btf::find(&kernel).with_context(context)?;
        return Ok(Source::Btf(Box::new(parse_btf(types, path, base, names)?)));
    }
    let info = match DebugInfo::parse(bytes.clone(), &mut DiskCompanions::of(path)) {
        // BTF describes the types of a file for any machine: the kernel's BPF machine is the usual case.
        Err(error @ Error::UnsupportedMachine { .. }) => {
            let section = btf::of_elf(bytes).unwrap_or_else(|_| Bytes::empty());
            if section.is_empty() {
                return Err(error).with_context(context);
            }
            return Ok(Source::Btf(Box::new(parse_btf(&section, path, base, names)?)));
        }
        result => result.with_context(context)?,
    };
    if info.has_debug_info() {
        return Ok(Source::Dwarf(Box::new(info)));
    }
    let section = info.btf_section().with_context(context)?;
    if section.is_empty() {
        info.require_debug_info().with_context(context)?;
        bail!("{}: no type information", path.display());
    }
    Ok(Source::Btf(Box::new(parse_btf(&section, path, base, names)?)))
}

fn parse_btf(bytes: &[u8], path: &Path, base: Option<&Path>, names: &[&str]) -> Result<Btf> {
    let context = || path.display().to_string();
    let parse = |base: Option<&[u8]>| match names {
        [] => btf::parse_types(bytes, base),
        names => btf::parse_named_types(bytes, base, names),
    };
    if let Some(base) = base {
        return parse(Some(&base_btf(base)?)).with_context(context);
    }
    match parse(None) {
        // The modules of the running kernel have their files next to its own.
        Err(Error::BtfBaseNeeded) if path.parent() == Path::new(KERNEL_BTF).parent() => {
            parse(Some(&companions::read(Path::new(KERNEL_BTF))?)).with_context(context)
        }
        result => result.with_context(context),
    }
}

/// The BTF of a base: an image, or the section of an ELF file such as a vmlinux.
fn base_btf(base: &Path) -> Result<Bytes> {
    let bytes = companions::read(base)?;
    if btf::is_btf(&bytes) {
        return Ok(bytes);
    }
    let context = || format!("{} (given by --base)", base.display());
    if let Ok(Some(kernel)) = distributed(&bytes) {
        return Ok(lineup_kernel::btf::find(&kernel).with_context(context)?.to_vec().into());
    }
    let section = btf::of_elf(bytes).with_context(context)?;
    if section.is_empty() {
        bail!("{}: holds no BTF; give the vmlinux or the BTF image of the module's own kernel", context());
    }
    Ok(section)
}

/// Reports parts that could not be read, on standard error.
fn warn(info: &DebugInfo) {
    let split = |wanted: &Companion| match wanted {
        Companion::DwoFile { name, comp_dir, .. } => {
            Some(Path::new(comp_dir.as_deref().unwrap_or_default()).join(name))
        }
        _ => None,
    };
    let split: Vec<PathBuf> = info.missing().iter().filter_map(split).collect();
    if let Some(first) = split.first() {
        let more = if split.len() > 1 { format!(" and {} more", split.len() - 1) } else { String::new() };
        eprintln!(
            "lineup: warning: split debug file {}{more} not found; the types in it are missing \
             (keep such files where the compiler wrote them, or make a .dwp next to the program)",
            lineup_report::visible::one_line(&first.display().to_string())
        );
    }
    for wanted in info.missing() {
        if let Companion::AltLink { name, .. } = wanted {
            eprintln!("lineup: warning: shared debug file {name} not found; types in it are missing");
        }
    }
    let damage = info.damage();
    if damage > 0 {
        eprintln!(
            "lineup: warning: {damage} unit(s) or type(s) of debug information are damaged; the rest is shown"
        );
    }
}

/// All types that a file describes, and the machine it was compiled for.
pub(crate) fn types_of(file: &Path) -> Result<(Types, Abi)> {
    let subject = Subject::open(file, None, true)?;
    let abi =
        subject.abi().with_context(|| format!("{}: no pointer type shows its data model", file.display()))?;
    Ok((subject.types().clone(), abi))
}
