//! Evidence about branches, calls and inlined copies from the counts, for hints in the sources.

mod branches;
mod descriptions;
mod executed_places;
mod hints;
mod never_called;
mod unused_copies;
mod unused_paths;
