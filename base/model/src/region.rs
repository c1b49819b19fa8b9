//! Regions: the functions whose calls are studied, numbered once and for all.
//!
//! Lineup builds a [`Regions`] table when it parses the user's arguments. The table goes into the recording, and later
//! results refer to it by [`RegionId`]. Names and weights are looked up in the table, never copied from one result into
//! the next.

use std::fmt;
use std::ops::Index;
use std::str::FromStr;

/// A region's place in its table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct RegionId(pub u16);

/// A function to be studied, callees included.
#[derive(Clone, PartialEq, Debug)]
pub struct Region {
    /// The function's name. Kernels also have regions that are no functions, such as spans with interrupts off.
    pub name: String,
    /// The weight of one of its calls relative to calls of other regions.
    pub weight: f64,
    /// Path of the file that holds the function; empty until it was looked for, and when it is in a library that is not
    /// loaded yet.
    pub image: String,
    /// Link addresses of its entries (a function may have been cloned). Empty while `image` is empty, and for a region
    /// that is no function.
    pub entries: Vec<u64>,
}

/// A weight that is not a positive number.
#[derive(Clone, PartialEq, Debug)]
pub struct BadWeight {
    /// The text that the user typed.
    pub text: String,
}

impl fmt::Display for BadWeight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: the weight behind = is not a positive number", self.text)
    }
}

impl std::error::Error for BadWeight {}

impl Region {
    /// A region that was not looked for yet, of weight 1.
    pub fn named(name: impl Into<String>) -> Region {
        Region { name: name.into(), weight: 1.0, image: String::new(), entries: Vec::new() }
    }

    /// In the recording of a whole system, whose functions are all found before it begins: true for spans of execution
    /// that are no calls, such as spans with interrupts off.
    pub fn is_span(&self) -> bool {
        self.entries.is_empty()
    }
}

/// `F` or `F=WEIGHT`. Rust and C++ names may hold `=` (`operator==`), so only a number counts.
///
/// ```
/// use lineup_model::region::Region;
/// let region: Region = "lookup=3".parse()?;
/// assert_eq!((region.name.as_str(), region.weight), ("lookup", 3.0));
/// assert_eq!("a::operator==".parse::<Region>()?, Region::named("a::operator=="));
/// # Ok::<(), lineup_model::region::BadWeight>(())
/// ```
impl FromStr for Region {
    type Err = BadWeight;

    fn from_str(text: &str) -> Result<Self, BadWeight> {
        let weighted =
            text.rsplit_once('=').and_then(|(name, weight)| Some((name, weight.parse::<f64>().ok()?)));
        match weighted {
            None => Ok(Region::named(text)),
            Some((name, weight)) if weight > 0.0 && weight.is_finite() => {
                Ok(Region { weight, ..Region::named(name) })
            }
            Some(_) => Err(BadWeight { text: text.to_owned() }),
        }
    }
}

/// All regions of one recording or study, in the order the user gave them: at most [`Regions::MOST`].
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Regions(Vec<Region>);

impl Regions {
    /// Ids have 16 bits.
    pub const MOST: usize = u16::MAX as usize;

    /// The number of regions.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True when the table has no region.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds one at the end; a full table takes no more.
    pub fn push(&mut self, region: Region) {
        if self.0.len() < Self::MOST {
            self.0.push(region);
        }
    }

    /// The last one added.
    pub fn last_mut(&mut self) -> Option<&mut Region> {
        self.0.last_mut()
    }

    /// Gives a region another weight; nothing for an id of another table.
    pub fn weigh(&mut self, id: RegionId, weight: f64) {
        if let Some(region) = self.0.get_mut(usize::from(id.0)) {
            region.weight = weight;
        }
    }

    /// A region; `None` for an id of another table.
    pub fn get(&self, id: RegionId) -> Option<&Region> {
        self.0.get(usize::from(id.0))
    }

    /// A region's name for people; `?` for an id of another table.
    pub fn name(&self, id: RegionId) -> &str {
        self.get(id).map_or("?", |region| &region.name)
    }

    /// The first region of a name.
    pub fn id_of(&self, name: &str) -> Option<RegionId> {
        self.iter().find(|(_, region)| region.name == name).map(|(id, _)| id)
    }

    /// All ids.
    pub fn ids(&self) -> impl Iterator<Item = RegionId> + use<> {
        (0..self.0.len()).map(|index| RegionId(index as u16))
    }

    /// All regions with their ids.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (RegionId, &Region)> {
        self.0.iter().enumerate().map(|(index, region)| (RegionId(index as u16), region))
    }
}

/// Panics for an id of another table, as slices do.
impl Index<RegionId> for Regions {
    type Output = Region;

    fn index(&self, id: RegionId) -> &Region {
        &self.0[usize::from(id.0)]
    }
}

impl FromIterator<Region> for Regions {
    fn from_iter<I: IntoIterator<Item = Region>>(regions: I) -> Self {
        Regions(regions.into_iter().take(Self::MOST).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_may_carry_a_weight() {
        let read = |text: &str| text.parse::<Region>().map(|region| (region.name, region.weight));
        assert_eq!(read("f"), Ok(("f".into(), 1.0)));
        assert_eq!(read("f=3"), Ok(("f".into(), 3.0)));
        assert_eq!(read("a::operator=="), Ok(("a::operator==".into(), 1.0)));
        for bad in ["f=0", "f=-1", "f=inf", "f=nan"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn ids_lead_to_their_regions() {
        let table: Regions = ["f", "g", "f"].map(Region::named).into_iter().collect();
        assert_eq!(table.id_of("f"), Some(RegionId(0)));
        assert_eq!(table.id_of("h"), None);
        assert_eq!(table.name(RegionId(1)), "g");
        assert_eq!(table.name(RegionId(9)), "?");
        assert!(table.iter().all(|(id, region)| table.get(id) == Some(region)));
        assert_eq!(table.ids().collect::<Vec<_>>(), [RegionId(0), RegionId(1), RegionId(2)]);
    }
}
