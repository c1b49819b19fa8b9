//! A browser and the page that it shows.

use crate::error::BrowserError;
use crate::pipe::Pipe;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::fmt;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// The tallest picture, in CSS pixels; the part below it is in no picture, but in every check.
const TALLEST_PICTURE: f64 = 12_000.0;

/// The settings under which a page is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Width of the window in CSS pixels.
    pub width: u32,
    /// Dark colours are preferred.
    pub is_dark: bool,
}

impl fmt::Display for Look {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.width, if self.is_dark { "dark" } else { "light" })
    }
}

/// A headless Chromium. It ends when this is dropped.
pub struct Browser {
    pipe: Pipe,
    _folder: TempDir,
}

impl Browser {
    /// Starts the browser, with a profile of its own in a temporary folder.
    pub fn start() -> Result<Browser, BrowserError> {
        let folder = tempfile::tempdir().map_err(BrowserError::io("a temporary folder"))?;
        let pipe = Pipe::start(folder.path())?;
        Ok(Browser { pipe, _folder: folder })
    }

    /// Opens a file as a page, and waits until it is loaded.
    pub fn open(&mut self, file: &Path, look: Look) -> Result<Page<'_>, BrowserError> {
        let target = self.pipe.call(None, "Target.createTarget", json!({"url": "about:blank"}))?;
        let target = target["targetId"].clone();
        let attached =
            self.pipe.call(None, "Target.attachToTarget", json!({"targetId": target, "flatten": true}))?;
        let session = attached["sessionId"].as_str().unwrap_or_default().to_owned();
        let mut page = Page { pipe: &mut self.pipe, session, target };
        for domain in ["Page", "Runtime", "Log"] {
            page.call(&format!("{domain}.enable"), json!({}))?;
        }
        page.show(look)?;
        page.pipe.take_events();
        page.call("Page.navigate", json!({"url": format!("file://{}", file.display())}))?;
        page.pipe.wait("Page.loadEventFired")?;
        Ok(page)
    }
}

/// A page that is shown. It is closed when this is dropped.
pub struct Page<'b> {
    pipe: &'b mut Pipe,
    session: String,
    target: Value,
}

impl Page<'_> {
    pub(crate) fn call(&mut self, method: &str, parameters: Value) -> Result<Value, BrowserError> {
        self.pipe.call(Some(&self.session), method, parameters)
    }

    /// Sets the window's width and the preferred colours.
    pub fn show(&mut self, look: Look) -> Result<(), BrowserError> {
        let metrics = json!({"width": look.width, "height": 900, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", metrics)?;
        let scheme = if look.is_dark { "dark" } else { "light" };
        let media = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.call("Emulation.setEmulatedMedia", media)?;
        Ok(())
    }

    /// The value of an expression in JavaScript; waits for a promise's value.
    pub fn evaluate(&mut self, expression: &str) -> Result<Value, BrowserError> {
        let asked = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let mut answer = self.call("Runtime.evaluate", asked)?;
        if let Some(thrown) = answer.get("exceptionDetails") {
            let said = thrown["exception"]["description"].as_str().unwrap_or("an exception").to_owned();
            return Err(BrowserError::Refused { method: "Runtime.evaluate".into(), said });
        }
        Ok(answer["result"]["value"].take())
    }

    /// Presses and releases a key.
    pub fn press(&mut self, key: &str, code: u32) -> Result<(), BrowserError> {
        let text = if key == "Enter" { "\r" } else { "" };
        for kind in ["keyDown", "keyUp"] {
            let mut event = json!({"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code});
            if kind == "keyDown" && !text.is_empty() {
                event["text"] = json!(text);
            }
            self.call("Input.dispatchKeyEvent", event)?;
        }
        Ok(())
    }

    /// A picture of a part of the page, as PNG: left, top, width, height in CSS pixels from the page's beginning.
    pub fn picture(&mut self, [x, y, width, height]: [f64; 4]) -> Result<Vec<u8>, BrowserError> {
        let clip = json!({"x": x, "y": y, "width": width, "height": height, "scale": 1});
        let asked = json!({"format": "png", "captureBeyondViewport": true, "clip": clip});
        let answer = self.call("Page.captureScreenshot", asked)?;
        let refused = |said: String| BrowserError::Refused { method: "Page.captureScreenshot".into(), said };
        STANDARD
            .decode(answer["data"].as_str().unwrap_or_default())
            .map_err(|error| refused(error.to_string()))
    }

    /// Writes a picture of the whole page to a file.
    pub fn keep_picture(&mut self, file: &Path) -> Result<(), BrowserError> {
        let size = self.evaluate(
            "[document.documentElement.scrollWidth, document.documentElement.scrollHeight].map(Number)",
        )?;
        let [width, height] = [0, 1].map(|side| size[side].as_f64().unwrap_or(1.0));
        let picture = self.picture([0.0, 0.0, width, height.min(TALLEST_PICTURE)])?;
        fs::write(file, picture).map_err(BrowserError::io(file.display().to_string()))
    }

    /// The console's new messages since the last call, and every exception: our pages write none.
    pub fn console(&mut self) -> Vec<String> {
        let told = |event: &Value| match event["method"].as_str() {
            Some("Runtime.exceptionThrown") => Some(event["params"]["exceptionDetails"].to_string()),
            Some("Runtime.consoleAPICalled") => Some(event["params"]["args"].to_string()),
            Some("Log.entryAdded") => Some(event["params"]["entry"]["text"].to_string()),
            _ => None,
        };
        self.pipe.take_events().iter().filter_map(told).collect()
    }
}

impl Drop for Page<'_> {
    fn drop(&mut self) {
        // A browser that has ended has no page to close.
        let _ = self.pipe.call(None, "Target.closeTarget", json!({"targetId": self.target}));
        self.pipe.take_events();
    }
}
