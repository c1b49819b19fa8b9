//! The number of links that a verdict covers.
//!
//! The places that the linker gives to code and data change the time of many programs by one or two per cent (Mytkowicz
//! and others, ASPLOS 2009; Curtsinger and Berger, ASPLOS 2013). Two programs of one link each differ by that as well.

use lineup_model::figure;
use lineup_stats::clusters::share_between;
use lineup_stats::random::{Seed, shuffle};
use std::collections::BTreeMap;

/// The words of a verdict on programs that were linked once.
pub const OF_ONE_LINK: &str = "of this one link";

/// The meaning of [`OF_ONE_LINK`], as a sentence.
pub const ONE_LINK_MEANS: &str = "Of this one link: the linker's placement of code and data changes the time too, and \
                                  another link of the same sources may give another verdict.";

/// The words of a verdict on programs with this number of links each.
pub fn of_links(links: u64) -> String {
    match links {
        0 | 1 => OF_ONE_LINK.to_owned(),
        links => format!("over {links} links of each"),
    }
}

/// The meaning of [`of_links`], as a sentence.
pub fn links_mean(links: u64) -> String {
    match links {
        0 | 1 => ONE_LINK_MEANS.to_owned(),
        links => format!(
            "Over {links} links of each program, with objects in other orders and padding between them: the interval \
             covers the differences between links."
        ),
    }
}

/// The number of links of each variant, and the seed by which blocks get theirs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkPlan {
    /// The number of links of each variant.
    pub links: u64,
    /// The plan's seed.
    pub seed: Seed,
}

impl LinkPlan {
    /// Every run uses the same one.
    pub const ONE: LinkPlan = LinkPlan { links: 1, seed: Seed(0) };

    /// The group that a block counts in. Blocks of one link form one group, since what they share says nothing about
    /// other links.
    pub fn group(self, block: u64) -> u64 {
        match self.links {
            0 | 1 => block,
            links => link_of(block, links, self.seed),
        }
    }

    /// The share of the spread of blocks that lies between links; `None` with one link, and where it cannot be
    /// estimated. The changes are those of blocks in their order.
    pub fn share(self, changes: &[f64]) -> Option<f64> {
        if self.links < 2 {
            return None;
        }
        let mut by_link: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        for (block, change) in (0..).zip(changes) {
            by_link.entry(self.group(block)).or_default().push(*change);
        }
        share_between(&by_link.into_values().collect::<Vec<_>>())
    }
}

/// The words a verdict adds about the share of the spread that lies between links.
pub fn share_in_words(share: Option<f64>) -> String {
    share.map_or_else(String::new, |share| {
        format!(", which are {} of the spread of blocks", figure::share(share))
    })
}

/// The link, from 0, that all runs of a block use. Each link is used once in `links` blocks, in random order.
pub fn link_of(block: u64, links: u64, seed: Seed) -> u64 {
    let links = links.max(1);
    let mut order: Vec<u64> = (0..links).collect();
    // Another stream than that of the order of runs.
    shuffle(&mut order, Seed(!seed.0).part(block / links));
    usize::try_from(block % links).ok().and_then(|place| order.get(place).copied()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_link_has_its_turn_in_every_pass() {
        for pass in 0..5 {
            let links: BTreeSet<u64> =
                (7 * pass..7 * (pass + 1)).map(|block| link_of(block, 7, Seed(3))).collect();
            assert_eq!(links, (0..7).collect());
        }
        let order = |pass: u64| (7 * pass..7 * (pass + 1)).map(|block| link_of(block, 7, Seed(3)));
        assert!(!order(0).eq(order(1)), "no pass is like the next");
        assert_eq!((link_of(5, 1, Seed(1)), link_of(5, 0, Seed(1))), (0, 0));
    }
}
