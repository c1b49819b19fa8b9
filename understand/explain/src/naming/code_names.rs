//! The name that the code gives to an access: by the analysis of its function and the choice among an instruction's
//! operands.

use crate::code::access_sites::{AccessTarget, Site};
use crate::code::analysis::{World, analyse};
use crate::error::ExplainError;
use crate::naming::access_context::AccessContext;
use crate::naming::namer::{AnalysedAccess, Namer};
use foldhash::HashMap;
use lineup_model::access::Access;
use std::rc::Rc;

impl Namer<'_> {
    /// The place that the code gives to an access.
    pub(crate) fn seen(
        &mut self,
        access: &Access,
        context: &mut AccessContext,
    ) -> Result<AnalysedAccess, ExplainError> {
        let sites = self.sites_at(access.pc)?;
        let same_kind = || sites.iter().filter(|site| site.kind == access.kind);
        let total: u64 = same_kind().map(|site| u64::from(site.size_bytes)).sum();
        let into = context.before(access, total);
        let size = access.size_bytes;
        let mut fitting = same_kind().filter(|site| site.size_bytes == size || site.size_bytes == 0);
        let place = match (same_kind().count(), fitting.next(), fitting.next()) {
            (0, ..) => AccessTarget::Unknown,
            (1, ..) => {
                return Ok(AnalysedAccess {
                    into,
                    place: same_kind().next().map_or(AccessTarget::Unknown, |site| site.place),
                });
            }
            (_, Some(only), None) => only.place,
            _ => return Ok(self.of_several(&sites, access, into)),
        };
        Ok(AnalysedAccess { into: 0, place })
    }

    /// The choice among several operands. The adjacent ones of a multiple store count as one; else it is the one that
    /// the address can belong to.
    pub(crate) fn of_several(&self, sites: &[Site], access: &Access, into: u64) -> AnalysedAccess {
        let mut same_kind = sites.iter().filter(|site| site.kind == access.kind);
        let Some(first) = same_kind.next() else {
            return AnalysedAccess { into: 0, place: AccessTarget::Unknown };
        };
        let is_stack = |site: &Site| matches!(site.place, AccessTarget::Stack(_));
        if matches!(
            (first.place, same_kind.next().map(|site| site.place)),
            (AccessTarget::Object(a), Some(AccessTarget::Object(b))) if a.target == b.target
        ) || sites.iter().all(is_stack)
        {
            return AnalysedAccess { into, place: first.place };
        }
        let on_stack = self.is_on_stack(access.address);
        let mut possible = sites.iter().filter(|site| site.kind == access.kind && is_stack(site) == on_stack);
        match (possible.next(), possible.next()) {
            (Some(only), None) => AnalysedAccess { into: 0, place: only.place },
            _ => AnalysedAccess { into: 0, place: AccessTarget::Unknown },
        }
    }

    pub(crate) fn sites_at(&mut self, pc: u64) -> Result<Rc<[Site]>, ExplainError> {
        let Some(place) = self.images.at(pc) else { return Ok(Rc::from([])) };
        if let Some(known) = self.sites.get(&place) {
            return Ok(known.clone());
        }
        self.analyse_at(place.0, place.1)?;
        Ok(self.sites.entry(place).or_insert_with(|| Rc::from([])).clone())
    }

    /// The accesses of every instruction of every function of the first image, by address.
    pub(crate) fn all_sites(&mut self) -> Result<HashMap<u64, Rc<[Site]>>, ExplainError> {
        let entries =
            self.images.get(0).map(|image| image.functions.iter().filter_map(|one| one.entry()).collect());
        for entry in Option::<Vec<u64>>::unwrap_or_default(entries) {
            self.analyse_at(0, entry)?;
        }
        Ok(self.sites.iter().map(|((_, link), sites)| (*link, sites.clone())).collect())
    }

    /// Analyses the function that covers a program counter, once.
    pub(crate) fn analyse_at(&mut self, image: usize, link: u64) -> Result<(), ExplainError> {
        let Some((number, function)) = self.images.functions_at(image, link).next() else { return Ok(()) };
        if !self.analysed.insert((image, number)) {
            return Ok(());
        }
        let mut world = World {
            images: self.images.all(),
            catalog: &mut self.catalog,
            globals: &self.globals,
            blocks: &self.blocks,
            names: &mut self.names,
            percpu: &self.percpu,
            callees: &self.callees,
            holders: &mut self.holders,
        };
        let found = analyse(&mut world, image, function)?;
        self.sites.extend(found.into_iter().map(|(link, sites)| ((image, link), Rc::from(sites))));
        Ok(())
    }
}
