//! Tables with named columns, and rows on their way into one.

use datafusion::arrow::array::{
    ArrayRef, BooleanBuilder, Float64Builder, Int64Builder, RecordBatch, StringBuilder,
};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;
use std::sync::Arc;

/// A table of the store.
#[derive(Debug)]
pub struct Table {
    /// Its name in questions.
    pub name: &'static str,
    /// The meaning of a row.
    pub what: &'static str,
    /// Its columns, in order.
    pub columns: &'static [Column],
}

/// A column. Every column may be empty: an unobserved value is.
#[derive(Debug)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// The type of its values.
    pub kind: Kind,
    /// The meaning of its values.
    pub what: &'static str,
}

/// The type of a column's values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Text.
    Text,
    /// A whole number with a sign, of 64 bits.
    Whole,
    /// A number of 64 bits with a fraction.
    Number,
    /// True or false.
    Flag,
}

impl Kind {
    /// Its name in SQL.
    pub fn sql(self) -> &'static str {
        match self {
            Kind::Text => "VARCHAR",
            Kind::Whole => "BIGINT",
            Kind::Number => "DOUBLE",
            Kind::Flag => "BOOLEAN",
        }
    }

    fn arrow(self) -> DataType {
        match self {
            Kind::Text => DataType::Utf8,
            Kind::Whole => DataType::Int64,
            Kind::Number => DataType::Float64,
            Kind::Flag => DataType::Boolean,
        }
    }
}

impl Table {
    /// The columns in the form of the engine and the files.
    pub fn schema(&self) -> SchemaRef {
        let field = |column: &Column| Field::new(column.name, column.kind.arrow(), true);
        Arc::new(Schema::new(self.columns.iter().map(field).collect::<Vec<_>>()))
    }
}

/// A value of a row.
#[derive(Clone, PartialEq, Debug)]
pub enum Cell {
    /// Not observed.
    None,
    /// Text.
    Text(Arc<str>),
    /// A whole number.
    Whole(i64),
    /// A number.
    Number(f64),
    /// True or false.
    Flag(bool),
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(text.into())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::Text(text.into())
    }
}

impl From<&Arc<str>> for Cell {
    fn from(text: &Arc<str>) -> Cell {
        Cell::Text(text.clone())
    }
}

impl From<u64> for Cell {
    fn from(value: u64) -> Cell {
        Cell::Whole(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<usize> for Cell {
    fn from(value: usize) -> Cell {
        Cell::from(value as u64)
    }
}

impl From<i64> for Cell {
    fn from(value: i64) -> Cell {
        Cell::Whole(value)
    }
}

impl From<f64> for Cell {
    fn from(value: f64) -> Cell {
        Cell::Number(value)
    }
}

impl From<bool> for Cell {
    fn from(value: bool) -> Cell {
        Cell::Flag(value)
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Cell {
        value.map_or(Cell::None, Into::into)
    }
}

/// Rows of one table.
#[derive(Debug)]
pub struct Rows {
    /// The table.
    pub table: &'static Table,
    rows: Vec<Vec<Cell>>,
}

impl Rows {
    /// No rows yet.
    pub fn new(table: &'static Table) -> Rows {
        Rows { table, rows: Vec::new() }
    }

    /// Adds a row with a value for each column.
    pub fn push<const N: usize>(&mut self, row: [Cell; N]) {
        debug_assert_eq!(N, self.table.columns.len(), "a value for each column of {}", self.table.name);
        self.rows.push(row.into());
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// True without rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The rows in the form of the engine and the files. A value of another kind than its column's is left
    /// empty.
    ///
    /// # Errors
    /// When columns have different lengths.
    pub fn to_batch(&self) -> Result<RecordBatch, ArrowError> {
        let columns = self.table.columns.iter().enumerate();
        let arrays = columns.map(|(at, column)| array(column.kind, self.rows.iter().map(|row| &row[at])));
        RecordBatch::try_new(self.table.schema(), arrays.collect())
    }
}

fn array<'c>(kind: Kind, cells: impl Iterator<Item = &'c Cell>) -> ArrayRef {
    match kind {
        Kind::Text => {
            let mut builder = StringBuilder::new();
            cells.for_each(|cell| {
                builder.append_option(if let Cell::Text(text) = cell { Some(text) } else { None })
            });
            Arc::new(builder.finish())
        }
        Kind::Whole => {
            let mut builder = Int64Builder::new();
            cells.for_each(|cell| {
                builder.append_option(if let Cell::Whole(value) = cell { Some(*value) } else { None })
            });
            Arc::new(builder.finish())
        }
        Kind::Number => {
            let mut builder = Float64Builder::new();
            cells.for_each(|cell| {
                builder.append_option(if let Cell::Number(value) = cell { Some(*value) } else { None })
            });
            Arc::new(builder.finish())
        }
        Kind::Flag => {
            let mut builder = BooleanBuilder::new();
            cells.for_each(|cell| {
                builder.append_option(if let Cell::Flag(value) = cell { Some(*value) } else { None })
            });
            Arc::new(builder.finish())
        }
    }
}
