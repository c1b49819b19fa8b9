//! axe-core: a library that judges how accessible a page is.

use crate::browser::Page;
use crate::error::BrowserError;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// The script of axe-core.
pub struct Axe {
    script: String,
}

/// The reason why pages cannot be checked on this machine; `None` when they can.
pub fn missing() -> Option<String> {
    let is_there = |program: &str| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
    };
    if !is_there("chromium") {
        return Some("chromium is missing: make setup-test installs it".to_owned());
    }
    Axe::fetched().err().map(|error| error.to_string())
}

impl Axe {
    /// Fetches axe-core with `scripts/axe-fetch` where that was not done yet.
    pub fn fetched() -> Result<Axe, BrowserError> {
        let repository = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        let output = Command::new(repository.join("scripts/axe-fetch"))
            .output()
            .map_err(BrowserError::io("scripts/axe-fetch"))?;
        if !output.status.success() {
            return Err(BrowserError::Axe(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
        }
        let file = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let script = std::fs::read_to_string(&file).map_err(BrowserError::io(file))?;
        Ok(Axe { script })
    }

    /// axe-core's serious or critical problems, one sentence each.
    pub(crate) fn judge(&self, page: &mut Page<'_>) -> Result<Vec<String>, BrowserError> {
        // The value of the script itself is of no use; `0` keeps it from being sent.
        page.evaluate(&format!("{}\n0", self.script))?;
        let found = page.evaluate(include_str!("axe.js"))?;
        let sentences = found.as_array().into_iter().flatten().filter_map(Value::as_str);
        Ok(sentences.map(|one| format!("axe: {one}")).collect())
    }
}
