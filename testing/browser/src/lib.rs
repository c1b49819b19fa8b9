//! Opens Lineup's pages in headless Chromium, for tests.
//!
//! [`Browser`] is a Chromium that is controlled by its DevTools protocol, over two pipes. [`check`] opens a page in
//! every [`Look`] and returns its problems: errors in the console, controls that the keyboard does not reach or whose
//! focus cannot be seen, cut-off text, and axe-core's serious or critical problems. Each look leaves a picture.
//!
//! The library is used by tests alone; no program of ours needs a browser.

mod axe;
mod browser;
mod check;
mod error;
mod keyboard;
mod pipe;

pub use axe::{Axe, missing};
pub use browser::{Browser, Look, Page};
pub use check::{LOOKS, check};
pub use error::BrowserError;
