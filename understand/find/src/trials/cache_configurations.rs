//! The caches that a gain is tried under: the modelled ones, and others of the kinds that machines have.

use lineup_cache::{CacheLevel, CacheSpec, Hierarchy, Missed, Replacement, VariedHierarchy};

/// Caches to replay through.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Configuration {
    /// In words.
    pub(crate) name: String,
    specs: Vec<CacheSpec>,
    replacement: Replacement,
    fetches_next: bool,
}

/// The caches themselves.
pub(crate) enum Caches {
    Usual(Box<Hierarchy>),
    Varied(Box<VariedHierarchy>),
}

impl Caches {
    pub(crate) fn fetch(&mut self, address: u64, size_bytes: u64) -> Missed {
        match self {
            Caches::Usual(caches) => caches.fetch(address, size_bytes),
            Caches::Varied(caches) => caches.fetch(address, size_bytes),
        }
    }

    pub(crate) fn hold(&mut self, level: CacheLevel, address: u64) {
        match self {
            Caches::Usual(caches) => caches.hold(level, address),
            Caches::Varied(caches) => caches.hold(level, address),
        }
    }

    pub(crate) fn data(&mut self, address: u64, size_bytes: u64) -> Missed {
        match self {
            Caches::Usual(caches) => caches.data(address, size_bytes),
            Caches::Varied(caches) => caches.data(address, size_bytes),
        }
    }
}

impl Configuration {
    /// Empty caches.
    pub(crate) fn caches(&self) -> Caches {
        match (self.replacement, self.fetches_next) {
            (Replacement::LeastRecent, false) => Caches::Usual(Box::new(Hierarchy::new(&self.specs))),
            (replacement, fetches_next) => {
                Caches::Varied(Box::new(VariedHierarchy::new(&self.specs, replacement, fetches_next)))
            }
        }
    }
}

/// The modelled caches first, then each of them changed in one way. A change that these sizes do not allow is left out.
pub(crate) fn configurations(modelled: &[CacheSpec]) -> Vec<Configuration> {
    let least_recent = |name: &str, specs: Option<Vec<CacheSpec>>| {
        let (name, replacement) = (name.to_owned(), Replacement::LeastRecent);
        specs.map(|specs| Configuration { name, specs, replacement, fetches_next: false })
    };
    let same = || modelled.to_vec();
    let with = |name: &str, replacement, fetches_next| {
        Some(Configuration { name: name.to_owned(), specs: same(), replacement, fetches_next })
    };
    use CacheLevel::{L1d, L1i, L2};
    let all = [
        least_recent("as modelled", Some(same())),
        least_recent(
            "first level half as large",
            changed(modelled, &[L1i, L1d], |size, ways| (size / 2, ways)),
        ),
        least_recent(
            "first level twice as large",
            changed(modelled, &[L1i, L1d], |size, ways| (size * 2, ways)),
        ),
        least_recent(
            "first level with half the ways",
            changed(modelled, &[L1i, L1d], |size, ways| (size, ways / 2)),
        ),
        least_recent(
            "second level a quarter as large",
            changed(modelled, &[L2], |size, ways| (size / 4, ways)),
        ),
        least_recent(
            "second level four times as large",
            changed(modelled, &[L2], |size, ways| (size * 4, ways)),
        ),
        with("tree-PLRU replacement", Replacement::TreePlru, false),
        with("random replacement", Replacement::Random, false),
        with("next line prefetched", Replacement::LeastRecent, true),
        with("tree-PLRU, next line prefetched", Replacement::TreePlru, true),
    ];
    all.into_iter().flatten().collect()
}

/// The caches with some levels changed; `None` when there are no such levels or the change is not possible.
fn changed(
    modelled: &[CacheSpec],
    levels: &[CacheLevel],
    change: impl Fn(u64, u32) -> (u64, u32),
) -> Option<Vec<CacheSpec>> {
    if !modelled.iter().any(|spec| levels.contains(&spec.level())) {
        return None;
    }
    let each = modelled.iter().map(|spec| match levels.contains(&spec.level()) {
        true => {
            let (size_bytes, ways) = change(spec.size_bytes(), spec.ways());
            CacheSpec::new(spec.level(), size_bytes, ways, spec.line()).ok()
        }
        false => Some(*spec),
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_at_least_eight_unless_a_level_is_missing() {
        let specs =
            |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<CacheSpec>>();
        let usual = configurations(&specs(&["l1i=32K,8,64", "l1d=48K,12,64", "l2=1M,8,64"]));
        assert_eq!(usual.len(), 10);
        assert_eq!(usual[0].specs, specs(&["l1i=32K,8,64", "l1d=48K,12,64", "l2=1M,8,64"]));
        assert_eq!(usual[3].specs, specs(&["l1i=32K,4,64", "l1d=48K,6,64", "l2=1M,8,64"]));
        assert_eq!(configurations(&specs(&["l1d=32K,8,64"])).len(), 8);
        // No half of a single way.
        assert_eq!(configurations(&specs(&["l1d=64,1,64"])).len(), 6);
    }
}
