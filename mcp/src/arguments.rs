//! What a client gives a tool, as arguments of a command.

use serde_json::{Map, Value};

/// What is wrong with what a client gave.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ArgumentError {
    /// It is needed.
    #[error("`{0}` is missing")]
    Missing(&'static str),
    /// It is of another kind.
    #[error("`{name}` is not {wanted}")]
    Kind {
        /// Of the argument.
        name: &'static str,
        /// What it should be.
        wanted: &'static str,
    },
    /// The tool does not have it.
    #[error("there is no argument `{0}`")]
    Unknown(String),
}

/// What a client gave, of which each argument is taken once.
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

    /// Refuses what no one took.
    pub(crate) fn end(self) -> Result<(), ArgumentError> {
        match self.0.into_iter().next() {
            Some((name, _)) => Err(ArgumentError::Unknown(name)),
            None => Ok(()),
        }
    }
}
