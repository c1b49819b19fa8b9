//! The text of a profile: counts of allocations by site, and by size.
//!
//! ```text
//! lineup heap profile 1
//! size CLASS objects N bytes N live N
//! site objects N bytes N frees N live-objects N live-bytes N sizes MIN-MAX at FRAME… in START…
//! ```
//!
//! `START` is the offset of the function that the frame lies in. `live` are the most bytes that were allocated and not freed at one time. A class is the size rounded up to 16 bytes.

use crate::frame::Frame;
use std::collections::BTreeMap;

/// The first line of a profile.
pub const PROFILE_HEADER: &str = "lineup heap profile 1";

/// Counts of one site.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SiteCounts {
    /// Allocated objects.
    pub objects: u64,
    /// The bytes that were asked for.
    pub bytes: u64,
    /// Freed objects.
    pub frees: u64,
    /// The most objects at one time.
    pub live_objects: u64,
    /// The most bytes at one time.
    pub live_bytes: u64,
    /// The fewest bytes of an object.
    pub smallest: u64,
    /// The most.
    pub largest: u64,
    /// The return address of the call, then those of its callers.
    pub frames: Vec<Frame>,
    /// The begin of each frame's function, as an offset in its module.
    pub functions: Vec<u64>,
}

/// Counts of objects of one size class.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ClassCounts {
    /// Allocated objects.
    pub objects: u64,
    /// The bytes that were asked for.
    pub bytes: u64,
    /// The most bytes at one time.
    pub live_bytes: u64,
}

/// The allocations of the processes of a run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Profile {
    /// Each site of each process.
    pub sites: Vec<SiteCounts>,
    /// By size class: of each the process with the most live bytes.
    pub classes: BTreeMap<u64, ClassCounts>,
}

/// A line of a profile that cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}: {what}; was the profile cut off?")]
pub struct ProfileError {
    /// Its number, from 1.
    pub line: usize,
    /// The fault.
    pub what: &'static str,
}

impl Profile {
    /// Adds the profile of a process.
    ///
    /// # Errors
    /// When a line cannot be read; lines before it are added.
    pub fn add(&mut self, text: &str) -> Result<(), ProfileError> {
        for (line, words) in (1..).zip(text.lines()) {
            let fail = |what| Err(ProfileError { line, what });
            if line == 1 {
                match words == PROFILE_HEADER {
                    true => continue,
                    false => return fail("it is not `lineup heap profile 1`"),
                }
            }
            let is_read = match words.split_once(' ') {
                Some(("size", rest)) => self.add_class(rest),
                Some(("site", rest)) => self.add_site(rest),
                _ => None,
            };
            if is_read.is_none() {
                return fail("expected `size` or `site` with its counts");
            }
        }
        Ok(())
    }

    fn add_class(&mut self, text: &str) -> Option<()> {
        let mut words = text.split(' ');
        let class = words.next()?.parse().ok()?;
        let counts = ClassCounts {
            objects: named(&mut words, "objects")?,
            bytes: named(&mut words, "bytes")?,
            live_bytes: named(&mut words, "live")?,
        };
        let of_all = self.classes.entry(class).or_default();
        of_all.objects += counts.objects;
        of_all.bytes += counts.bytes;
        of_all.live_bytes = of_all.live_bytes.max(counts.live_bytes);
        Some(())
    }

    fn add_site(&mut self, text: &str) -> Option<()> {
        let mut words = text.split(' ');
        let mut counts = SiteCounts {
            objects: named(&mut words, "objects")?,
            bytes: named(&mut words, "bytes")?,
            frees: named(&mut words, "frees")?,
            live_objects: named(&mut words, "live-objects")?,
            live_bytes: named(&mut words, "live-bytes")?,
            ..SiteCounts::default()
        };
        let sizes = words.next().filter(|word| *word == "sizes").and(words.next())?.split_once('-')?;
        (counts.smallest, counts.largest) = (sizes.0.parse().ok()?, sizes.1.parse().ok()?);
        words.next().filter(|word| *word == "at")?;
        let frames = words.by_ref().take_while(|word| *word != "in");
        counts.frames = frames.map(Frame::parse).collect::<Option<_>>()?;
        let starts = words.map(|word| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok());
        counts.functions = starts.collect::<Option<_>>()?;
        if counts.frames.is_empty() || counts.functions.len() != counts.frames.len() {
            return None;
        }
        self.sites.push(counts);
        Some(())
    }

    /// Allocated objects of all sizes.
    pub fn objects(&self) -> u64 {
        self.classes.values().map(|class| class.objects).sum()
    }
}

/// The figure after its name.
fn named<'w>(words: &mut impl Iterator<Item = &'w str>, name: &str) -> Option<u64> {
    words.next().filter(|word| *word == name).and(words.next())?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "lineup heap profile 1\n\
        size 32 objects 10 bytes 240 live 120\n\
        site objects 10 bytes 240 frees 5 live-objects 5 live-bytes 120 sizes 24-24 at aa+0x1/16 bb+0x2 in 0x0 0x1\n";

    #[test]
    fn profiles_of_several_processes_are_one() {
        let mut profile = Profile::default();
        profile.add(TEXT).expect("a profile");
        profile.add(TEXT).expect("a profile");
        assert_eq!((profile.sites.len(), profile.objects()), (2, 20));
        assert_eq!(profile.classes[&32].live_bytes, 120, "processes have memory of their own");
        assert_eq!(profile.sites[0].frames.len(), 2);
        assert_eq!((profile.sites[0].smallest, profile.sites[0].live_objects), (24, 5));
    }

    #[test]
    fn a_profile_that_was_cut_off_is_refused_with_the_line() {
        for (cut, line) in [(TEXT.len() - 30, 3), (40, 2), (5, 1)] {
            let error = Profile::default().add(&TEXT[..cut]).expect_err("cut off");
            assert_eq!(error.line, line, "{error}");
        }
    }
}
