//! JSON of other programs. Missing parts, and parts of another kind, count as unobserved.

use crate::table::Cell;
use serde_json::Value;

/// A value in a document.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Json<'v>(&'v Value);

/// A document that was read.
pub(crate) struct Document(Value);

impl Document {
    /// Its outermost value.
    pub(crate) fn root(&self) -> Json<'_> {
        Json(&self.0)
    }

    /// Reads a document.
    pub(crate) fn parse(text: &str) -> Result<Document, String> {
        serde_json::from_str(text).map(Document).map_err(|error| format!("damaged: {error}"))
    }
}

impl<'v> Json<'v> {
    /// A field.
    pub(crate) fn get(self, name: &str) -> Json<'v> {
        Json(&self.0[name])
    }

    /// The values of a field that is a list; none for any other value.
    pub(crate) fn list(self, name: &str) -> impl Iterator<Item = Json<'v>> + use<'v> {
        self.0[name].as_array().into_iter().flatten().map(Json)
    }

    /// A list that has to be there.
    pub(crate) fn required(self, name: &str) -> Result<impl Iterator<Item = Json<'v>> + use<'v>, String> {
        let list = self.0[name].as_array().ok_or_else(|| format!("damaged: there is no list {name:?}"))?;
        Ok(list.iter().map(Json))
    }

    /// Text of a field.
    pub(crate) fn text(self, name: &str) -> Option<String> {
        self.0[name].as_str().map(str::to_owned)
    }

    /// The value itself, as text.
    pub(crate) fn own_text(self) -> Option<&'v str> {
        self.0.as_str()
    }

    /// A whole number of a field.
    pub(crate) fn whole(self, name: &str) -> Option<u64> {
        self.0[name].as_u64()
    }

    /// A number of a field.
    pub(crate) fn number(self, name: &str) -> Option<f64> {
        self.0[name].as_f64()
    }

    /// Numbers of a field that is a list.
    pub(crate) fn numbers(self, name: &str) -> Vec<f64> {
        self.0[name].as_array().into_iter().flatten().filter_map(Value::as_f64).collect()
    }

    /// Whole numbers of a field that is a list, each in its place.
    pub(crate) fn wholes(self, name: &str) -> Vec<Option<u64>> {
        self.0[name].as_array().into_iter().flatten().map(Value::as_u64).collect()
    }

    /// True or false of a field.
    pub(crate) fn flag(self, name: &str) -> Option<bool> {
        self.0[name].as_bool()
    }

    /// A cell with the text of a field.
    pub(crate) fn text_cell(self, name: &str) -> Cell {
        self.0[name].as_str().into()
    }

    /// A cell with a whole number.
    pub(crate) fn whole_cell(self, name: &str) -> Cell {
        self.whole(name).into()
    }

    /// A cell with a number.
    pub(crate) fn number_cell(self, name: &str) -> Cell {
        self.number(name).into()
    }
}
