//! Immediate values: variables that live in the instruction stream of the code that reads them.
//!
//! A read is one instruction that carries the value; a set changes every such instruction while threads run. The
//! crate's user guide lists the operations that may run concurrently.
//!
//! ```
//! use lineup_runtime::{define_imv, imv, imv_cond, imv_read};
//!
//! define_imv! {
//!     static LIMIT: u64 = 10;
//!     static VERBOSE: bool = false;
//! }
//!
//! fn main() -> Result<(), imv::Error> {
//!     assert_eq!(imv_read!(LIMIT), 10);
//!     assert!(!imv_cond!(VERBOSE));
//!     imv::Batch::new().with(&LIMIT, 20).with(&VERBOSE, true).apply()?;
//!     assert_eq!(imv_read!(LIMIT), 20);
//!     assert!(imv_cond!(VERBOSE));
//!     Ok(())
//! }
//! ```

mod arch;
mod barrier;
pub mod c_api;
mod cell;
mod lock;
mod macros;
mod operations;
mod pass_on;
mod patch;
mod record;
mod registry;
mod serve;
mod status;
mod trap;
mod trial;
mod value;
mod write;

pub use operations::{Batch, get, list, set_mode, set_text, set_write_path, status};
pub use patch::Mode;
pub use serve::serve;
pub use status::{Applied, Error, Fallback, ListedVariable, Status};
pub use value::{Class, Imv, Value};
#[doc(hidden)]
pub use value::{from_register, size_of_value};
pub use write::WritePath;
