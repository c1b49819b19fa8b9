//! The configuration from the editor or the command line.

use crate::error::LspError;
use lineup_model::line::LineSize;
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// The server's inputs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// Programs, libraries or object files with debug information. For a type that several define, the first one's
    /// definition counts.
    pub binaries: Vec<PathBuf>,
    /// A recording, or a document that was made from one.
    pub recording: Option<PathBuf>,
    /// Promises of members' places, as `lineup advise --guard` writes them.
    pub lock: Option<PathBuf>,
    /// The line size.
    pub line: LineSize,
}

/// The options as an editor sends them. Missing options keep the command line's values.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Options {
    binaries: Option<Vec<PathBuf>>,
    recording: Option<PathBuf>,
    lock: Option<PathBuf>,
    line_bytes: Option<u32>,
}

impl Default for Config {
    fn default() -> Self {
        Config { binaries: Vec::new(), recording: None, lock: None, line: LineSize::B64 }
    }
}

impl Config {
    /// These options, where they say something.
    ///
    /// # Errors
    /// [`LspError::Options`] for a field that does not exist or has a value that cannot be one.
    pub fn with_options(mut self, options: serde_json::Value) -> Result<Config, LspError> {
        if options.is_null() {
            return Ok(self);
        }
        let error = |what: String| LspError::Options { what };
        let options: Options = serde_json::from_value(options).map_err(|cause| error(cause.to_string()))?;
        self.binaries = options.binaries.unwrap_or(self.binaries);
        self.recording = options.recording.or(self.recording);
        self.lock = options.lock.or(self.lock);
        if let Some(bytes) = options.line_bytes {
            self.line = LineSize::new(bytes)
                .ok_or_else(|| error(format!("lineBytes is {bytes}, no power of two from 8 to 4096")))?;
        }
        Ok(self)
    }

    /// Paths that are not absolute, below the folder that the editor has open.
    pub fn below(mut self, root: &Path) -> Config {
        let place = |path: &mut PathBuf| *path = root.join(&*path);
        self.binaries.iter_mut().for_each(place);
        self.recording.iter_mut().for_each(place);
        self.lock.iter_mut().for_each(place);
        self
    }

    /// Every file that the server reads.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        self.binaries.iter().chain(&self.recording).chain(&self.lock).map(PathBuf::as_path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn options_of_the_editor_go_before_those_of_the_command_line() {
        let typed = Config { binaries: vec!["a".into()], lock: Some("l".into()), ..Config::default() };
        let options = json!({ "binaries": ["/b", "c"], "lineBytes": 128 });
        let config = typed.clone().with_options(options).expect("options").below(Path::new("/root"));
        assert_eq!(config.binaries, [Path::new("/b"), Path::new("/root/c")]);
        assert_eq!((config.lock, config.line), (Some("/root/l".into()), LineSize::new(128).unwrap()));
        assert_eq!(typed.clone().with_options(json!(null)).expect("none"), typed);
        for wrong in
            [json!({ "binary": "a" }), json!({ "binaries": "a" }), json!({ "lineBytes": 48 }), json!(3)]
        {
            let error = typed.clone().with_options(wrong).expect_err("wrong").to_string();
            assert!(error.starts_with("initializationOptions: "), "{error}");
        }
    }
}
