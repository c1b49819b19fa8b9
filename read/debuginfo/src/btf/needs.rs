//! The BTF records needed to show the types of some names.

use super::image::{RECORD_BYTES, Record, Sections, sections, string_at};
use super::words::Words;
use crate::Error;
use memchr::memmem::Finder;

/// The part of a type that is needed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Need {
    Nothing,
    /// Others point to it.
    Name,
    Whole,
}

/// The need for each type.
pub(super) enum Needs {
    All,
    /// By id.
    Some(Vec<Need>),
}

impl Needs {
    pub(super) fn of(&self, id: u32) -> Need {
        match self {
            Needs::All => Need::Whole,
            Needs::Some(needs) => needs.get(id as usize).copied().unwrap_or(Need::Nothing),
        }
    }
}

/// The needs of all structs, unions and typedefs in whose name one of `names` occurs.
pub(super) fn by_types_named(bytes: &[u8], base: Option<&[u8]>, names: &[&str]) -> Result<Needs, Error> {
    let mut images = Images { images: Vec::new(), records: vec![(0, 0)] };
    for image in base.into_iter().chain([bytes]) {
        images.add(sections(image)?)?;
    }
    let finders: Vec<Finder<'_>> = names.iter().map(|name| Finder::new(name.as_bytes())).collect();
    let mut needs = vec![Need::Nothing; images.records.len()];
    let mut open = Vec::new();
    for id in 1..images.records.len() as u32 {
        let Some(record) = images.record(id)? else { continue };
        // Scalars are few, and their records give the size of pointers.
        let is_scalar = record.0.kind == 1;
        if is_scalar || matches!(record.0.kind, 4 | 5 | 8) && images.is_named(record.0.name, &finders) {
            open.push((id, Need::Whole));
        }
    }
    while let Some((id, need)) = open.pop() {
        let Some(known) = needs.get_mut(id as usize).filter(|known| **known < need) else { continue };
        *known = need;
        images.needs_of(id, need, &mut open)?;
    }
    Ok(Needs::Some(needs))
}

/// Images whose ids and strings run on.
struct Images<'a> {
    images: Vec<Sections<'a>>,
    /// Image and place in its types, by id. Id 0 is `void` and has no record.
    records: Vec<(u32, u32)>,
}

impl<'a> Images<'a> {
    fn add(&mut self, image: Sections<'a>) -> Result<(), Error> {
        let number = self.images.len() as u32;
        self.records.reserve(image.types.len() / RECORD_BYTES);
        let mut words = Words { bytes: image.types, at: 0 };
        while words.at < image.types.len() {
            let at = words.at as u32;
            let record = Record::next(self.records.len() as u32, &mut words)?;
            words.skip(record.rest_bytes(image.shapes)?)?;
            self.records.push((number, at));
        }
        self.images.push(image);
        Ok(())
    }

    /// A record and the words behind its fixed part; `None` for `void` and for an id that no image has.
    fn record(&self, id: u32) -> Result<Option<(Record, Words<'a>)>, Error> {
        let Some(&(image, at)) = self.records.get(id as usize).filter(|_| id != 0) else { return Ok(None) };
        let Some(image) = self.images.get(image as usize) else { return Ok(None) };
        let mut words = Words { bytes: image.types, at: at as usize };
        Ok(Some((Record::next(id, &mut words)?, words)))
    }

    /// True when one of the names occurs in the string at an offset.
    fn is_named(&self, offset: u32, names: &[Finder<'_>]) -> bool {
        let string = string_at(self.images.iter().map(|image| image.strings), offset);
        string.is_some_and(|name| names.iter().any(|wanted| wanted.find(name).is_some()))
    }

    /// Adds a type's needs of others: embedded types to the same extent as itself, pointed-to types by name.
    fn needs_of(&self, id: u32, need: Need, open: &mut Vec<(u32, Need)>) -> Result<(), Error> {
        let Some((record, mut words)) = self.record(id)? else { return Ok(()) };
        match record.kind {
            2 => open.push((record.size_or_type, Need::Name)),
            3 => open.push((words.next()?, need)),
            4 | 5 if need == Need::Whole => {
                for _ in 0..record.count {
                    let (_name, ty, _offset) = (words.next()?, words.next()?, words.next()?);
                    open.push((ty, need));
                }
            }
            8..=11 | 18 => open.push((record.size_or_type, need)),
            13 => {
                open.push((record.size_or_type, Need::Name));
                for _ in 0..record.count {
                    let (_name, ty) = (words.next()?, words.next()?);
                    open.push((ty, Need::Name));
                }
            }
            _ => {}
        }
        Ok(())
    }
}
