//! A recording in the terminal: its functions, types, lines and calls, by the keyboard.
//!
//! Three parts that know nothing of those after them:
//!
//! * [`Subject`]: what is shown, plain values.
//! * [`View`]: which list is open, which row is chosen, what a key does. It needs no terminal.
//! * [`draw`] and [`run`]: a view on a terminal, and the terminal as it was afterwards.
//!
//! Names from a program are hostile: a [`View`] gives no character that steers a terminal.

mod column;
mod draw;
mod error;
mod row;
mod subject;
mod terminal;
mod view;

pub use column::{Column, Fit};
pub use draw::draw;
pub use error::ViewError;
pub use row::{Look, Row};
pub use subject::{CallRow, Subject};
pub use terminal::{run, with_terminal};
pub use view::{Key, List, View};
