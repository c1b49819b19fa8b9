//! All that a page is held to.

use crate::axe::Axe;
use crate::browser::{Browser, Look, Page};
use crate::error::BrowserError;
use crate::keyboard;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// The looks at every page: each width, and both colours of the widest.
pub const LOOKS: [Look; 4] = [
    Look { width: 400, is_dark: false },
    Look { width: 800, is_dark: true },
    Look { width: 1400, is_dark: false },
    Look { width: 1400, is_dark: true },
];

/// The looks in which the keyboard goes through the page. Each press takes a moment, and the controls it reaches depend
/// on neither width nor colours alone.
const WALKED: [Look; 2] = [LOOKS[0], LOOKS[3]];

/// A page's problems, in words; a picture of each look goes to `pictures` as `NAME-WIDTH-COLOURS.png`.
pub fn check(
    browser: &mut Browser,
    axe: &Axe,
    file: &Path,
    name: &str,
    pictures: &Path,
) -> Result<Vec<String>, BrowserError> {
    fs::create_dir_all(pictures).map_err(BrowserError::io(pictures.display().to_string()))?;
    let mut problems = Vec::new();
    for look in LOOKS {
        let mut page = browser.open(file, look)?;
        page.keep_picture(&pictures.join(format!("{name}-{look}.png")))?;
        let found = looked_at(&mut page, axe, WALKED.contains(&look))?;
        problems.extend(found.into_iter().map(|problem| format!("{name}, {look}: {problem}")));
    }
    Ok(problems)
}

fn looked_at(page: &mut Page<'_>, axe: &Axe, is_walked: bool) -> Result<Vec<String>, BrowserError> {
    let mut problems = cut_off(page)?;
    problems.extend(keyboard::unfold(page)?);
    // From here on everything is unfolded, so that nothing is left unseen.
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; }); 0")?;
    problems.extend(cut_off(page)?);
    if is_walked {
        problems.extend(keyboard::walk(page)?);
    }
    problems.extend(page.console().into_iter().map(|line| format!("console: {line}")));
    problems.extend(axe.judge(page)?);
    problems.sort();
    problems.dedup();
    Ok(problems)
}

fn cut_off(page: &mut Page<'_>) -> Result<Vec<String>, BrowserError> {
    let found = page.evaluate(include_str!("cut_off.js"))?;
    Ok(found.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect())
}
