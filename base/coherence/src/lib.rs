//! A model of coherence traffic: the caches of threads, each on its own processor, and the lines that they share.
//!
//! Design constraints:
//!
//! * Pure: accesses in, counts out. Threads are numbered from 0; the caller identifies an access by a number, its tag.
//! * The protocol is MESI: a line is modified in one cache, exclusive in one, shared by several, or invalid. A store
//!   takes the line from all other caches; each copy that goes is an invalidation.
//! * A miss on a line that a store of another thread took away is *true* when the thread then uses bytes that another
//!   thread has written since this thread last needed the line for such bytes. That use must precede the next time that
//!   the line is taken away. Else it is *false*: the thread needed nothing of the other. This is the classification of
//!   Dubois and others (ISCA 1993).
//! * The time of a transfer is not modelled: the caller multiplies counts by a cost.
//!
//! ```
//! use lineup_coherence::{Access, Kind, Lines, Model};
//!
//! // Two threads, each with a counter of its own; both lie on one line.
//! let mut model = Model::new(Lines::of(64), 2);
//! for turn in 0..10 {
//!     for thread in 0..2 {
//!         let address = 0x1000 + 8 * u64::from(thread);
//!         model.access(&Access { thread, address, size_bytes: 8, kind: Kind::Update, tag: 0 });
//!     }
//! }
//! let outcome = model.finish();
//! let line = &outcome.lines[&0x40];
//! assert_eq!((line.misses_true, line.misses_false, line.invalidations), (0, 18, 19));
//! ```

mod model;
mod schedule;
mod shared_line_cost;

pub use model::{Access, Kind, Line, Lines, Model, Outcome, Pair, PairCounts};
pub use schedule::{Orders, Span, Timed};
pub use shared_line_cost::WAIT_CYCLES;
