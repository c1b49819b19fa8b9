//! Plans that are worth a trial, made of a profile.

use crate::classes::{LARGEST, STEP};
use crate::frame::{BuildId, CALLERS, Frame};
use crate::plan::{HEADER, Pages, PoolLine};
use crate::profile::{Profile, SiteCounts};
use std::collections::BTreeMap;
use std::fmt::Write;

/// How objects are parted into pools.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Style {
    /// A pool for each size, whoever allocates.
    BySize,
    /// A pool for each site that allocates much.
    BySite,
}

/// Larger objects of mixed sizes stay where they are: their headers cost little.
const LARGEST_MIXED: u64 = 1024;

/// Fewer objects than these are not worth a pool.
const FEWEST_OBJECTS: u64 = 1000;

/// A site with less memory at one time has its own pool only for many objects.
const LEAST_LIVE_BYTES: u64 = 64 << 10;

/// A pool with less memory at one time gets no huge pages, which are as large as two of it.
const LEAST_HUGE_BYTES: u64 = 1 << 20;

/// The most sites of a plan; those with the most memory come first.
const MOST_SITES: usize = 64;

/// A plan's text. `with_huge_pages` gives them to pools that are large enough.
///
/// # Errors
/// The reason why there is no such plan.
pub fn plan_of(profile: &Profile, style: Style, with_huge_pages: bool) -> Result<String, String> {
    let mut plan = format!("{HEADER}\n");
    let is_huge = match style {
        Style::BySize => by_size(&mut plan, profile, with_huge_pages)?,
        Style::BySite => by_site(&mut plan, profile, with_huge_pages)?,
    };
    match with_huge_pages && !is_huge {
        true => Err("no pool has 1 MiB of objects at one time".into()),
        false => Ok(plan),
    }
}

/// Adds a line; writing to a text does not fail.
fn push(plan: &mut String, line: PoolLine<'_>) {
    let _ = writeln!(plan, "{line}");
}

fn by_size(plan: &mut String, profile: &Profile, with_huge_pages: bool) -> Result<bool, String> {
    let small = profile.classes.range(..=LARGEST_MIXED);
    let objects: u64 = small.clone().map(|(_, class)| class.objects).sum();
    if objects < FEWEST_OBJECTS {
        return Err(format!("the program allocates {objects} objects of at most {LARGEST_MIXED} bytes"));
    }
    let mut is_huge = false;
    let huge = small.filter(|(_, class)| with_huge_pages && class.live_bytes >= LEAST_HUGE_BYTES);
    for (class, _) in huge {
        let largest = *class as usize;
        let smallest = if largest == 2 * STEP { 0 } else { largest + 1 - 2 * STEP };
        push(plan, PoolLine::of_all(smallest, largest, Pages::Huge));
        is_huge = true;
    }
    push(plan, PoolLine::of_all(0, LARGEST_MIXED as usize, Pages::Usual));
    Ok(is_huge)
}

fn by_site(plan: &mut String, profile: &Profile, with_huge_pages: bool) -> Result<bool, String> {
    let all = profile.objects();
    let mut sites = Vec::new();
    split(&profile.sites.iter().collect::<Vec<_>>(), 0, &mut sites);
    let mut sites = grouped(sites);
    sites.retain(|Group { site, .. }| {
        let is_frequent = site.objects >= FEWEST_OBJECTS && site.objects >= all / 100;
        site.smallest <= LARGEST as u64 && (site.live_bytes >= LEAST_LIVE_BYTES || is_frequent)
    });
    if sites.is_empty() {
        return Err("no site allocates many objects, in modules that have a build id".into());
    }
    sites.sort_by(|a, b| b.site.live_bytes.cmp(&a.site.live_bytes).then_with(|| a.at.cmp(&b.at)));
    sites.truncate(MOST_SITES);
    let mut is_huge = false;
    for Group { site, at } in &sites {
        let pages = match with_huge_pages && site.live_bytes >= LEAST_HUGE_BYTES {
            true => Pages::Huge,
            false => Pages::Usual,
        };
        is_huge |= pages == Pages::Huge;
        push(plan, PoolLine::of_sites(site.smallest as usize, site.largest as usize, pages, at));
    }
    Ok(is_huge)
}

/// Sites that share a pool.
struct Group {
    /// The sum of their counts.
    site: SiteCounts,
    /// Their frames, as a plan has them.
    at: String,
}

/// Puts sites together that differ only in the place inside their functions: a compiler copies a call.
fn grouped(sites: Vec<SiteCounts>) -> Vec<Group> {
    let mut groups: BTreeMap<_, Group> = BTreeMap::new();
    for site in sites {
        let modules: Vec<BuildId> = site.frames.iter().map(|frame| frame.module).collect();
        let key = (modules, site.functions.clone(), site.smallest, site.largest);
        let mut at = "at".to_owned();
        for frame in &site.frames {
            let _ = write!(at, " {frame}");
        }
        match groups.get_mut(&key) {
            Some(group) => {
                group.site.add(&site);
                group.at += " ";
                group.at += &at;
            }
            None => {
                groups.insert(key, Group { site, at });
            }
        }
    }
    groups.into_values().collect()
}

impl SiteCounts {
    fn add(&mut self, other: &SiteCounts) {
        self.objects += other.objects;
        self.bytes += other.bytes;
        self.frees += other.frees;
        // Sites need not have their most at one time: an upper bound.
        self.live_objects += other.live_objects;
        self.live_bytes += other.live_bytes;
        self.smallest = self.smallest.min(other.smallest);
        self.largest = self.largest.max(other.largest);
    }
}

/// Parts counts by as many callers as it takes until each site's objects have one size.
fn split(counts: &[&SiteCounts], depth: usize, sites: &mut Vec<SiteCounts>) {
    let mut groups: BTreeMap<Frame, Vec<&SiteCounts>> = BTreeMap::new();
    for one in counts {
        if let Some(frame) = one.frames.get(depth) {
            groups.entry(Frame { distance: None, ..*frame }).or_default().push(one);
        }
    }
    for group in groups.values() {
        let Some(mut site) = together(group, depth) else { continue };
        let has_callers = depth + 1 < CALLERS && group.iter().any(|one| one.frames.len() > depth + 1);
        if site.smallest != site.largest && has_callers {
            split(group, depth + 1, sites);
            let last: Vec<_> = group.iter().filter(|one| one.frames.len() == depth + 1).copied().collect();
            match together(&last, depth) {
                Some(rest) => site = rest,
                None => continue,
            }
        }
        if site.smallest != site.largest {
            site.largest = site.largest.min(LARGEST_MIXED);
        }
        if site.smallest <= site.largest {
            sites.push(site);
        }
    }
}

/// One site of several counts that agree in their frames up to `depth`.
fn together(counts: &[&SiteCounts], depth: usize) -> Option<SiteCounts> {
    let mut site = (*counts.first()?).clone();
    site.frames.truncate(depth + 1);
    site.functions.truncate(depth + 1);
    if let Some(last) = site.frames.last_mut() {
        last.distance = None;
    }
    counts[1..].iter().for_each(|one| site.add(one));
    Some(site)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::lines;

    fn profile(sites: &[(&str, u64, u64)]) -> Profile {
        let mut text = "lineup heap profile 1\n".to_owned();
        for (frames, size, objects) in sites {
            let bytes = size * objects;
            let class = size.next_multiple_of(16);
            let _ = writeln!(text, "size {class} objects {objects} bytes {bytes} live {bytes}");
            // Functions of 256 bytes.
            let offsets = frames.split(' ').filter_map(|frame| Some(Frame::parse(frame)?.offset & !0xff));
            let starts: Vec<String> = offsets.map(|offset| format!("{offset:#x}")).collect();
            let _ = writeln!(
                text,
                "site objects {objects} bytes {bytes} frees 0 live-objects {objects} live-bytes {bytes} sizes {size}-{size} at {frames} in {}",
                starts.join(" ")
            );
        }
        let mut profile = Profile::default();
        profile.add(&text).expect("a profile");
        profile
    }

    fn written(profile: &Profile, style: Style, with_huge_pages: bool) -> Vec<String> {
        let plan = plan_of(profile, style, with_huge_pages).expect("a plan");
        lines(&plan).map(|line| line.expect("a line").to_string()).collect()
    }

    #[test]
    fn a_wrapper_is_parted_by_its_callers_and_a_site_of_one_size_is_not() {
        let of = profile(&[
            // Recursive, but always of one size.
            ("aa+0x1/32 aa+0x2/32 aa+0x3", 24, 10_000),
            ("aa+0x1/32 aa+0x2/32 aa+0x4", 24, 20_000),
            // A wrapper: two callers, two sizes.
            ("bb+0x7/16 aa+0x105", 40, 5_000),
            ("bb+0x7/16 aa+0x206", 72, 9_000),
            ("bb+0x7/16 aa+0x309", 72, 3),
        ]);
        assert_eq!(
            written(&of, Style::BySite, false),
            [
                "pool sizes 24-24 at aa+0x1",
                "pool sizes 72-72 at bb+0x7/16 aa+0x206",
                "pool sizes 40-40 at bb+0x7/16 aa+0x105"
            ]
        );
    }

    #[test]
    fn copies_of_a_call_in_one_function_share_a_pool() {
        let of = profile(&[
            ("aa+0x1", 24, 5_000),
            ("aa+0x2", 24, 6_000),
            ("aa+0x102", 24, 7_000),
            ("aa+0x3", 40, 2_000),
        ]);
        assert_eq!(
            written(&of, Style::BySite, false),
            [
                "pool sizes 24-24 at aa+0x1 at aa+0x2",
                "pool sizes 24-24 at aa+0x102",
                "pool sizes 40-40 at aa+0x3"
            ]
        );
    }

    #[test]
    fn huge_pages_are_for_pools_that_fill_half_of_one() {
        let of = profile(&[("aa+0x1", 24, 100_000), ("aa+0x2", 40, 2_000)]);
        assert_eq!(
            written(&of, Style::BySite, true),
            ["pool sizes 24-24 pages huge at aa+0x1", "pool sizes 40-40 at aa+0x2"]
        );
        assert_eq!(written(&of, Style::BySize, true), ["pool sizes 17-32 pages huge", "pool sizes 0-1024"]);
        let small = profile(&[("aa+0x1", 24, 2_000)]);
        assert!(plan_of(&small, Style::BySite, true).is_err());
        assert!(plan_of(&small, Style::BySize, true).is_err());
        assert_eq!(written(&small, Style::BySize, false), ["pool sizes 0-1024"]);
    }

    #[test]
    fn a_program_that_allocates_little_gets_no_plan_and_a_reason() {
        let of = profile(&[("aa+0x1", 24, 10), ("aa+0x2", 20_000, 100)]);
        assert!(plan_of(&of, Style::BySize, false).expect_err("few").contains("10 objects"));
        assert!(plan_of(&of, Style::BySite, false).is_err(), "large objects have no pool");
    }
}
