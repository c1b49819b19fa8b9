//! Columns of an answer as plain values.

use crate::engine::Answer;
use crate::error::Result;
use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type};

impl Answer {
    fn column<T>(
        &self,
        at: usize,
        kind: &DataType,
        value: impl Fn(&ArrayRef, usize) -> T,
    ) -> Result<Vec<Option<T>>> {
        let mut all = Vec::with_capacity(self.rows());
        for batch in &self.batches {
            let column = cast(batch.column(at), kind)?;
            all.extend((0..column.len()).map(|row| column.is_valid(row).then(|| value(&column, row))));
        }
        Ok(all)
    }

    /// A column of texts, by its place.
    pub(crate) fn texts(&self, at: usize) -> Result<Vec<Option<String>>> {
        self.column(at, &DataType::Utf8, |column, row| column.as_string::<i32>().value(row).to_owned())
    }

    /// A column of whole numbers.
    pub(crate) fn wholes(&self, at: usize) -> Result<Vec<Option<i64>>> {
        self.column(at, &DataType::Int64, |column, row| column.as_primitive::<Int64Type>().value(row))
    }

    /// A column of numbers.
    pub(crate) fn numbers(&self, at: usize) -> Result<Vec<Option<f64>>> {
        self.column(at, &DataType::Float64, |column, row| column.as_primitive::<Float64Type>().value(row))
    }
}

/// A text in SQL.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
