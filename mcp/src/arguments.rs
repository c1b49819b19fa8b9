//! Converts a tool's arguments, as a client sends them, to arguments of a command.

use serde_json::{Map, Value};

/// An error in a client's arguments.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ArgumentError {
    /// A required argument is missing.
    #[error("`{0}` is missing")]
    Missing(&'static str),
    /// The argument has the wrong type.
    #[error("`{name}` is not {wanted}")]
    Kind {
        /// The argument's name.
        name: &'static str,
        /// The type it should have.
        wanted: &'static str,
    },
    /// The tool does not have it.
    #[error("there is no argument `{0}`")]
    Unknown(String),
}

/// A client's arguments; each is taken once.
pub(crate) struct Given(Map<String, Value>);

impl Given {
    pub(crate) fn new(given: Option<Map<String, Value>>) -> Given {
        Given(given.unwrap_or_default())
    }

    /// A text, when it was given.
    pub(crate) fn text(&mut self, name: &'static str) -> Result<Option<String>, ArgumentError> {
        match self.0.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(ArgumentError::Kind { name, wanted: "a text" }),
        }
    }

    /// A text that is needed.
    pub(crate) fn needed(&mut self, name: &'static str) -> Result<String, ArgumentError> {
        self.text(name)?.ok_or(ArgumentError::Missing(name))
    }

    /// A list of texts, empty when none was given.
    pub(crate) fn list(&mut self, name: &'static str) -> Result<Vec<String>, ArgumentError> {
        let kind = ArgumentError::Kind { name, wanted: "a list of texts" };
        match self.0.remove(name) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Array(items)) => {
                let texts: Option<Vec<String>> =
                    items.iter().map(|item| item.as_str().map(str::to_owned)).collect();
                texts.ok_or(kind)
            }
            Some(_) => Err(kind),
        }
    }

    /// A list with something in it.
    pub(crate) fn needed_list(&mut self, name: &'static str) -> Result<Vec<String>, ArgumentError> {
        let list = self.list(name)?;
        if list.is_empty() { Err(ArgumentError::Missing(name)) } else { Ok(list) }
    }

    /// A whole number that is not negative.
    pub(crate) fn number(&mut self, name: &'static str) -> Result<Option<u64>, ArgumentError> {
        match self.0.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => {
                value.as_u64().map(Some).ok_or(ArgumentError::Kind { name, wanted: "a whole number" })
            }
        }
    }

    /// Refuses arguments that no tool took.
    pub(crate) fn end(self) -> Result<(), ArgumentError> {
        match self.0.into_iter().next() {
            Some((name, _)) => Err(ArgumentError::Unknown(name)),
            None => Ok(()),
        }
    }
}
