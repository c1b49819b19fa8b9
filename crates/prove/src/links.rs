//! Of how many links of a program a verdict is.
//!
//! Where the linker puts code and data changes how fast it runs, by one or two per cent for many programs (Mytkowicz
//! and others, ASPLOS 2009; Curtsinger and Berger, ASPLOS 2013). Two programs of one link each differ by that as well.

/// What every verdict says of programs that were linked once.
pub const OF_ONE_LINK: &str = "of this one link";

/// What that means, as a sentence.
pub const ONE_LINK_MEANS: &str = "Of this one link: where the linker puts code and data changes the time too, and another link of the same \
     sources may give another verdict.";
