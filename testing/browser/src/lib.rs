//! Opens Lineup's pages in headless Chromium, for tests.
//!
//! [`Browser`] is a Chromium that is told what to do by its DevTools protocol, over two pipes. [`check`] opens a page
//! in every [`Look`] and says what is wrong with it: errors in the console, controls that the keyboard does not reach
//! or whose focus cannot be seen, text that is cut off, and what axe-core calls serious or critical. Each look leaves
//! a picture.
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
