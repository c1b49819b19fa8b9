//! Checks that the keyboard reaches every control, and that its focus is visible. axe-core checks that Tab follows the
//! order of the page.

use crate::browser::Page;
use crate::error::BrowserError;
use serde_json::Value;
use std::collections::BTreeMap;

/// The Tab key.
const TAB: u32 = 9;
/// The Enter key.
const ENTER: u32 = 13;
/// The number of similar controls whose focus is checked.
const ALIKE: usize = 3;
/// The space around a control in which its focus may be drawn.
const AROUND: f64 = 6.0;

/// Marks every control, and returns their number.
const MARK: &str = r#"(() => {
  const usable = 'a[href], button, input, select, textarea, summary, [tabindex]';
  const all = [...document.querySelectorAll(usable)].filter((one) => one.tabIndex >= 0 && one.checkVisibility());
  all.forEach((one, index) => { one.dataset.control = index; });
  // Tab begins where the focus was last: at the beginning of the page.
  document.body.tabIndex = -1;
  document.body.focus();
  document.body.removeAttribute('tabindex');
  window.scrollTo(0, 0);
  return all.length;
})()"#;

/// The control with the focus: its number, its kind and text, its place on the page, and whether it is in the window.
const FOCUSED: &str = r#"(() => {
  const one = document.activeElement;
  const rect = one.getBoundingClientRect();
  const inside = rect.bottom > 0 && rect.top < window.innerHeight && rect.right > 0 && rect.left < window.innerWidth;
  return { number: one.dataset.control ?? null, kind: one.tagName + '.' + (one.getAttribute('class') ?? ''),
           text: one.textContent.trim().slice(0, 40), inside,
           box: [rect.left + window.scrollX, rect.top + window.scrollY, rect.width, rect.height] };
})()"#;

/// The problems: controls that Tab does not reach, and focus that cannot be seen.
pub(crate) fn walk(page: &mut Page<'_>) -> Result<Vec<String>, BrowserError> {
    let count = page.evaluate(MARK)?.as_u64().unwrap_or(0);
    let mut problems = Vec::new();
    let mut reached = Vec::new();
    let mut alike: BTreeMap<String, usize> = BTreeMap::new();
    // Elements that scroll take the focus too, marked or not; after the last control it leaves the page.
    for _ in 0..4 * count + 20 {
        page.press("Tab", TAB)?;
        let focused = page.evaluate(FOCUSED)?;
        let kind = focused["kind"].as_str().unwrap_or_default().to_owned();
        let number = focused["number"].as_str().and_then(|number| number.parse::<u64>().ok());
        let Some(number) = number else {
            if kind.starts_with("BODY") || kind.starts_with("HTML") {
                break;
            }
            continue;
        };
        if reached.contains(&number) {
            break;
        }
        reached.push(number);
        let name = format!("{kind} \"{}\"", focused["text"].as_str().unwrap_or_default());
        if focused["inside"] != Value::Bool(true) {
            problems.push(format!("keyboard: {name} has the focus outside the window"));
        }
        let seen = alike.entry(kind).or_default();
        *seen += 1;
        if *seen <= ALIKE && !shows_focus(page, &focused["box"])? {
            problems.push(format!("keyboard: {name} looks the same with the focus and without"));
        }
    }
    if reached.len() as u64 != count {
        problems.push(format!("keyboard: Tab reaches {} of {count} controls", reached.len()));
    }
    Ok(problems)
}

/// True when the control looks different without the focus. It has the focus again afterwards.
fn shows_focus(page: &mut Page<'_>, place: &Value) -> Result<bool, BrowserError> {
    let [x, y, width, height] = [0, 1, 2, 3].map(|part| place[part].as_f64().unwrap_or(0.0));
    let top = (y - AROUND).max(0.0);
    let clip = [(x - AROUND).max(0.0), top, width + 2.0 * AROUND, (height + 2.0 * AROUND).min(700.0)];
    let with = page.picture(clip)?;
    page.evaluate("window.focused = document.activeElement; window.focused.blur(); 0")?;
    let without = page.picture(clip)?;
    page.evaluate("window.focused.focus({focusVisible: true, preventScroll: true}); 0")?;
    Ok(with != without)
}

/// Opens the first folded part with the keyboard; there may be none.
pub(crate) fn unfold(page: &mut Page<'_>) -> Result<Vec<String>, BrowserError> {
    let first = "document.querySelector('details:not([open]) > summary')";
    if page.evaluate(&format!("{first} === null"))? == Value::Bool(true) {
        return Ok(Vec::new());
    }
    page.evaluate(&format!("window.folded = {first}; window.folded.focus(); 0"))?;
    page.press("Enter", ENTER)?;
    let is_open = page.evaluate("window.folded.parentElement.open")? == Value::Bool(true);
    Ok(if is_open {
        Vec::new()
    } else {
        vec!["keyboard: Enter does not open what is folded away".to_owned()]
    })
}
