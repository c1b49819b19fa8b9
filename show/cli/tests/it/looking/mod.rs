//! A browser that pages are held to.

use lineup_browser::{Axe, Browser, check, missing};
use std::path::{Path, PathBuf};

/// A browser, the judge of pages in it, and the folder of their pictures.
pub(crate) struct Looking {
    browser: Browser,
    axe: Axe,
    pictures: PathBuf,
}

impl Looking {
    /// `None`, with a message, where this machine lacks a needed program; CI has to have them all.
    pub(crate) fn begin() -> Option<Looking> {
        if let Some(why) = missing() {
            assert!(std::env::var_os("CI").is_none(), "{why}");
            println!("skipped: {why}");
            return None;
        }
        Some(Looking {
            browser: Browser::start().expect("Chromium starts"),
            axe: Axe::fetched().expect("axe-core"),
            pictures: Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("target").join("pages"),
        })
    }

    /// A page's problems. Its pictures are called by the name.
    pub(crate) fn at(&mut self, page: &Path, name: &str) -> Vec<String> {
        check(&mut self.browser, &self.axe, page, name, &self.pictures).expect("the page is looked at")
    }
}
