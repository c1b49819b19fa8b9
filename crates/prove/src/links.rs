//! Of how many links of a program a verdict is.
//!
//! Where the linker puts code and data changes how fast it runs, by one or two per cent for many programs (Mytkowicz
//! and others, ASPLOS 2009; Curtsinger and Berger, ASPLOS 2013). Two programs of one link each differ by that as well.

use lineup_stats::random::{Seed, shuffle};

/// What every verdict says of programs that were linked once.
pub const OF_ONE_LINK: &str = "of this one link";

/// What that means, as a sentence.
pub const ONE_LINK_MEANS: &str = "Of this one link: where the linker puts code and data changes the time too, and another link of the same \
     sources may give another verdict.";

/// What a verdict says of programs that were linked so often each.
pub fn of_links(links: u64) -> String {
    match links {
        0 | 1 => OF_ONE_LINK.to_owned(),
        links => format!("over {links} links of each"),
    }
}

/// What that means, as a sentence.
pub fn links_mean(links: u64) -> String {
    match links {
        0 | 1 => ONE_LINK_MEANS.to_owned(),
        links => format!(
            "Over {links} links of each program, with objects in other orders and padding between them: the interval \
             covers what links differ by."
        ),
    }
}

/// The link, from 0, that all runs of a block use: each once in so many blocks, in an order by lot.
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
