//! The variables of this process, their sites, and the way they are patched.

use super::arch::{Form, Kind, Site};
use super::patch::{self, Mode, Scratch};
use super::record::{Defined, Image, own_image};
use super::status::{Applied, Error, Fallback, ListedVariable, Status};
use super::value::Class;
use super::write::{WritePath, Writer, page_bytes};
use super::{barrier, cell, trap, trial};
use std::collections::BTreeMap;

struct Variable {
    name: String,
    size_bytes: u8,
    class: Class,
    /// Mirrors in images that import the variable.
    mirrors: Vec<usize>,
    sites: Vec<Site>,
    /// Sites whose bytes were not as the macros emit them; they read the variable.
    plain_sites: usize,
}

/// Everything behind the lock.
pub(super) struct Registry {
    images: Vec<Image>,
    /// By the address of the defining cell.
    variables: BTreeMap<usize, Variable>,
    /// From a mirror to the defining cell.
    origins: BTreeMap<usize, usize>,
    writer: Result<Writer, Fallback>,
    mode: Mode,
    scratch: Scratch,
    /// Kept between sets for its room.
    changes: Vec<(Site, u64)>,
}

impl Registry {
    /// Reads this image's records, finds a way to patch that works, and patches.
    pub(super) fn start() -> Self {
        let writer = Err(Fallback::NotTried);
        let mut registry = Self {
            images: Vec::new(),
            variables: BTreeMap::new(),
            origins: BTreeMap::new(),
            writer,
            mode: Mode::Direct,
            scratch: Scratch::default(),
            changes: Vec::new(),
        };
        registry.register(own_image());
        registry.choose_writer(None);
        registry
    }

    /// Tries the ways to write, or the given one, on a site of our own; keeps the first whose change a read sees. When
    /// none works, a writer that worked before stays.
    pub(super) fn choose_writer(&mut self, wanted: Option<WritePath>) {
        let all = WritePath::BY_PREFERENCE;
        let candidates = wanted.as_ref().map_or(&all[..], std::slice::from_ref);
        if let Ok(old) = &mut self.writer
            && old.path() == WritePath::Alias
            && old.make_private().is_err()
        {
            return;
        }
        let writer = if !cfg!(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(lineup_generic)))
        {
            Err(Fallback::Architecture)
        } else if !barrier::register() {
            Err(Fallback::Barrier)
        } else {
            let site =
                self.variables.get(&trial::cell()).and_then(|variable| variable.sites.first().copied());
            candidates
                .iter()
                .filter_map(|path| Writer::open(*path).ok())
                .find_map(|writer| site.and_then(|site| trial::passes(writer, site)))
                .ok_or(Fallback::Write)
        };
        if writer.is_err() && self.writer.is_ok() {
            return;
        }
        self.writer = writer;
        for site in self.variables.get_mut(&trial::cell()).into_iter().flat_map(|trial| &mut trial.sites) {
            if self.writer.is_ok() {
                site.form = Form::Immediate;
            }
        }
        self.activate();
        // Every page is written once now, so that a later set finds everything that its writer needs.
        let _ = self.rewrite();
    }

    pub(super) fn set_mode(&mut self, mode: Mode) {
        self.mode = mode;
    }

    /// Adds an image. A second call for the same image does nothing.
    pub(super) fn register(&mut self, image: Image) {
        if self.images.contains(&image) {
            return;
        }
        for defined in image.defined() {
            self.define(defined);
        }
        for site in image.read_sites() {
            let origin = self.origins.get(&site.cell).copied().unwrap_or(site.cell);
            let variable = self.variables.entry(origin).or_insert_with(|| Variable::unnamed(site.size_bytes));
            match patch::analyse(site) {
                Some(site) => variable.sites.push(site),
                None => variable.plain_sites += 1,
            }
        }
        self.publish();
        let sites = image.sites.clone();
        self.images.push(image);
        if !sites.is_empty() {
            self.activate();
        }
    }

    fn define(&mut self, defined: Defined) {
        let origin = defined.origin.unwrap_or(defined.cell);
        let variable = self.variables.entry(origin).or_insert_with(|| Variable::unnamed(defined.size_bytes));
        match defined.origin {
            Some(origin) => {
                cell::store(defined.cell, defined.size_bytes, cell::load(origin, defined.size_bytes));
                variable.mirrors.push(defined.cell);
                self.origins.insert(defined.cell, origin);
            }
            None => {
                variable.class = defined.class;
                variable.name = defined.name;
            }
        }
    }

    /// Removes an image that is about to be unmapped.
    pub(super) fn unregister(&mut self, image: &Image) {
        let Some(at) = self.images.iter().position(|known| known == image) else { return };
        self.images.remove(at);
        let cells: Vec<usize> = image.defined().iter().map(|defined| defined.cell).collect();
        let gone: Vec<usize> = image.read_sites().iter().map(|site| site.address).collect();
        for variable in self.variables.values_mut() {
            variable.sites.retain(|site| !gone.contains(&site.address));
            variable.mirrors.retain(|mirror| !cells.contains(mirror));
        }
        for cell in &cells {
            self.variables.remove(cell);
            self.origins.remove(cell);
        }
        self.publish();
        if let (Ok(writer), Some(first), Some(last)) =
            (&mut self.writer, gone.iter().min(), gone.iter().max())
        {
            writer.forget(first & !(page_bytes() - 1)..last + 1);
        }
    }

    /// Hands the trap handler the sites, sorted, and makes room to change all of them.
    fn publish(&mut self) {
        let mut sites: Vec<Site> =
            self.variables.values().flat_map(|variable| variable.sites.iter().copied()).collect();
        sites.sort_by_key(|site| site.address);
        self.scratch.reserve(sites.len());
        self.changes.clear();
        self.changes.reserve(sites.len());
        trap::publish(sites);
    }

    /// Collects the sites that are (or are not yet) patched, with the values of their variables.
    fn collect(&mut self, patched: bool) {
        self.changes.clear();
        let sites = self.variables.values().flat_map(|variable| &variable.sites);
        let wanted = sites.filter(|site| site.is_patched() == patched);
        self.changes.extend(wanted.map(|site| (*site, site.cell_value())));
    }

    /// Patches every site that still reads its variable. Where the system refuses in the middle, the sites that were
    /// changed are remembered as such: later sets must reach them, or fail.
    fn activate(&mut self) {
        self.collect(false);
        if self.writer.is_err() || self.changes.is_empty() {
            return;
        }
        let is_done = self.patch().is_ok();
        for site in self.variables.values_mut().flat_map(|variable| &mut variable.sites) {
            if is_done {
                site.form = Form::Immediate;
            } else if !site.is_patched() && patch::is_changed(site) {
                site.form = Form::Partial;
            }
        }
        if !is_done {
            self.writer = Err(Fallback::Write);
        }
    }

    /// Writes every patched site again.
    fn rewrite(&mut self) -> Result<(), Error> {
        self.collect(true);
        self.patch()
    }

    /// Sets variables, given by their cell or by a mirror of it, all in one batch. Does not allocate.
    pub(super) fn set(&mut self, values: impl Iterator<Item = (usize, u8, u64)>) -> Result<Applied, Error> {
        self.changes.clear();
        let mut plain_sites = 0;
        for (address, size_bytes, value) in values {
            let origin = self.origins.get(&address).copied().unwrap_or(address);
            cell::store(origin, size_bytes, value);
            let Some(variable) = self.variables.get(&origin) else { continue };
            variable.mirrors.iter().for_each(|mirror| cell::store(*mirror, size_bytes, value));
            plain_sites +=
                variable.plain_sites + variable.sites.iter().filter(|site| !site.is_patched()).count();
            let patched = variable.sites.iter().filter(|site| site.is_patched());
            self.changes.extend(patched.map(|site| (*site, value)));
        }
        self.patch()?;
        Ok(Applied { patched_sites: self.changes.len(), plain_sites })
    }

    /// Makes the collected changes. When the chosen way to write fails or is missing, tries all ways before giving up.
    fn patch(&mut self) -> Result<(), Error> {
        if self.changes.is_empty() {
            return Ok(());
        }
        let mut refused = match &mut self.writer {
            Ok(writer) => patch::apply(writer, &mut self.scratch, &self.changes, self.mode).err(),
            Err(_) => Some(std::io::ErrorKind::PermissionDenied.into()),
        };
        for path in WritePath::BY_PREFERENCE {
            if refused.is_none() {
                break;
            }
            let other = Writer::open(path).and_then(|mut other| {
                patch::apply(&mut other, &mut self.scratch, &self.changes, self.mode).map(|()| other)
            });
            if let Ok(other) = other {
                self.writer = Ok(other);
                refused = None;
            }
        }
        match refused {
            None => {
                self.completed();
                Ok(())
            }
            Some(source) => Err(Error::Stuck { source: Some(source) }),
        }
    }

    /// Sites that a change had left half-way are whole now that they were written again.
    fn completed(&mut self) {
        if !self.changes.iter().any(|(site, _)| site.form == Form::Partial) {
            return;
        }
        for site in self.variables.values_mut().flat_map(|variable| &mut variable.sites) {
            if self.changes.iter().any(|(changed, _)| changed.address == site.address) {
                site.form = Form::Immediate;
            }
        }
    }

    /// In a forked child: own pages, holding this process's own values.
    pub(super) fn after_fork(&mut self) {
        let Ok(writer) = &mut self.writer else { return };
        let was_shared = writer.path() == WritePath::Alias;
        if writer.make_private().is_err() {
            self.writer = Writer::open(WritePath::Swap).map_err(|_| Fallback::Write);
        }
        if was_shared && self.rewrite().is_err() {
            self.writer = Err(Fallback::Write);
        }
    }

    pub(super) fn status(&self) -> Status {
        let sites = || self.variables.values().flat_map(|variable| &variable.sites);
        Status {
            mode: self.mode,
            writing: self.writer.as_ref().map(Writer::path).map_err(|fallback| *fallback),
            images: self.images.len(),
            patched_sites: sites().filter(|site| site.is_patched()).count(),
            plain_sites: sites().filter(|site| !site.is_patched()).count()
                + self.variables.values().map(|variable| variable.plain_sites).sum::<usize>(),
            traps_taken: trap::taken(),
        }
    }

    /// The named variables, by name.
    pub(super) fn entries(&self) -> Vec<ListedVariable> {
        let named = self.variables.iter().filter(|(_, variable)| !variable.name.is_empty());
        let mut entries: Vec<ListedVariable> = named
            .map(|(address, variable)| ListedVariable {
                name: variable.name.clone(),
                class: variable.class,
                size_bytes: variable.size_bytes,
                bits: cell::load(*address, variable.size_bytes),
                patched_sites: variable.sites.iter().filter(|site| site.is_patched()).count(),
                plain_sites: variable.sites.iter().filter(|site| !site.is_patched()).count()
                    + variable.plain_sites,
                branches: variable.sites.iter().filter(|site| site.kind == Kind::Branch).count(),
                address: *address,
            })
            .collect();
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        entries
    }
}

impl Variable {
    fn unnamed(size_bytes: u8) -> Self {
        Self {
            name: String::new(),
            size_bytes,
            class: Class::Unsigned,
            mirrors: Vec::new(),
            sites: Vec::new(),
            plain_sites: 0,
        }
    }
}
