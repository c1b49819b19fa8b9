//! A declaration as a program has it: the type's layout, where members lie, how they were used.

use crate::evidence::{Evidence, Use, UsedLine};
use crate::freshness::Freshness;
use crate::program::Program;
use lineup_advise::data_model::DataModel;
use lineup_model::layout::{Gap, Layout, Row};
use lineup_model::line::LineSize;
use lineup_model::types::{TypeId, TypeKind};
use std::ops::Range;

/// The depth to which nested types are looked into.
const MAX_NESTING: usize = 16;

/// A type of a program that a declaration is.
pub(crate) struct View<'p> {
    pub(crate) program: &'p Program,
    /// The program's file, as a person knows it.
    pub(crate) program_name: String,
    /// The type; where a typedef names it, that.
    pub(crate) id: TypeId,
    pub(crate) layout: Layout,
    pub(crate) freshness: Freshness,
}

/// A member's place in an object.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct MemberPlace {
    pub(crate) ty: TypeId,
    pub(crate) offset_bits: u64,
    /// `None` when debug information leaves the type incomplete.
    pub(crate) size_bytes: Option<u64>,
    pub(crate) bit_size: Option<u32>,
    pub(crate) gap_before: Gap,
    /// True when it lies in an element of an array: then it is the first element's.
    pub(crate) is_of_first_element: bool,
}

impl MemberPlace {
    /// The bytes that hold part of it; empty for a member of no size.
    pub(crate) fn bytes(&self) -> Range<u64> {
        let start = self.offset_bits / 8;
        let size = match self.bit_size {
            Some(bits) => (self.offset_bits % 8 + u64::from(bits)).div_ceil(8),
            None => self.size_bytes.unwrap_or(0),
        };
        start..start.saturating_add(size)
    }
}

impl View<'_> {
    /// The name in documents: without a keyword.
    pub(crate) fn type_name(&self) -> &str {
        self.program.name(self.id)
    }

    pub(crate) fn line(&self) -> LineSize {
        self.layout.line_size
    }

    /// Alignment in bytes; `None` when the rules of the machine do not explain the layout.
    pub(crate) fn align_bytes(&self) -> Option<u64> {
        let model = DataModel::new(&self.program.types, self.program.abi, self.program.abi);
        let shape = model.shape(self.id)?;
        (shape.size_bytes == self.layout.size_bytes && shape.size_bytes.is_multiple_of(shape.align_bytes))
            .then_some(shape.align_bytes)
    }

    /// A member's place, by its names from the type inwards.
    pub(crate) fn place(&self, path: &[String]) -> Option<MemberPlace> {
        let (first, rest) = path.split_first()?;
        let mut place = self.direct(&self.layout, first, 0, 0)?;
        for name in rest {
            let (element, is_array) = self.element(place.ty)?;
            let layout = Layout::of(&self.program.types, element, self.line())?;
            let inner = self.direct(&layout, name, place.offset_bits, 0)?;
            let is_of_first_element = place.is_of_first_element || is_array;
            place = MemberPlace { is_of_first_element, ..inner };
        }
        Some(place)
    }

    /// A member of a type, or of its members without a name.
    fn direct(&self, layout: &Layout, name: &str, base_bits: u64, depth: usize) -> Option<MemberPlace> {
        let at = |row: &Row| base_bits.checked_add(row.offset_bits?);
        if let Some(row) = layout.rows.iter().find(|row| row.name.as_deref() == Some(name)) {
            return Some(MemberPlace {
                ty: row.ty,
                offset_bits: at(row)?,
                size_bytes: row.size_bytes,
                bit_size: row.bit_size,
                gap_before: row.gap_before,
                is_of_first_element: false,
            });
        }
        let nameless = layout.rows.iter().filter(|row| row.name.is_none() && depth < MAX_NESTING);
        nameless
            .filter_map(|row| Some((Layout::of(&self.program.types, row.ty, self.line())?, at(row)?)))
            .find_map(|(inner, base)| self.direct(&inner, name, base, depth + 1))
    }

    fn element(&self, id: TypeId) -> Option<(TypeId, bool)> {
        let types = &self.program.types;
        let mut id = types.strip(id)?;
        for depth in 0..MAX_NESTING {
            match types.get(id).map(|ty| &ty.kind) {
                Some(TypeKind::Array { element, .. }) => id = types.strip(*element)?,
                _ => return Some((id, depth > 0)),
            }
        }
        None
    }

    /// Its members' offsets, in bits.
    pub(crate) fn places(&self) -> Vec<(Option<&str>, Option<u64>)> {
        self.layout.rows.iter().map(|row| (row.name.as_deref(), row.offset_bits)).collect()
    }

    /// The lines of its objects that were used.
    pub(crate) fn used<'e>(&self, evidence: Option<&'e Evidence>) -> &'e [UsedLine] {
        evidence.map_or(&[], |evidence| evidence.lines(self.type_name()))
    }
}

/// A region's accesses to some bytes of objects of a type.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Share {
    /// Loads and stores per call.
    pub(crate) accesses: Use,
    /// Their share of the region's accesses to the type, from 0 to 1.
    pub(crate) share: f64,
}

/// Each region's accesses to bytes of objects, the greatest share first.
pub(crate) fn shares(lines: &[UsedLine], bytes: &Range<u64>) -> Vec<Share> {
    let parts = || lines.iter().flat_map(|line| &line.parts);
    let mut of_bytes: Vec<Use> = Vec::new();
    // A member without a size stands for the data at its offset.
    let holds = |offset: u64| bytes.contains(&offset) || bytes.is_empty() && offset == bytes.start;
    for one in parts().filter(|part| holds(part.offset)).flat_map(|part| &part.uses) {
        match of_bytes.iter_mut().find(|known| known.region == one.region) {
            Some(known) => {
                known.loads += one.loads;
                known.stores += one.stores;
            }
            None => of_bytes.push(*one),
        }
    }
    let share = |accesses: Use| {
        let all = parts().flat_map(|part| &part.uses).filter(|one| one.region == accesses.region);
        let all: f64 = all.map(|one| one.loads + one.stores).sum();
        Share { accesses, share: (accesses.loads + accesses.stores) / all.max(f64::MIN_POSITIVE) }
    };
    let mut shares: Vec<Share> = of_bytes.into_iter().map(share).collect();
    shares.sort_by(|a, b| b.share.total_cmp(&a.share).then(a.accesses.region.cmp(&b.accesses.region)));
    shares
}
