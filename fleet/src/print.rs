//! Answers as tables, CSV and JSON.

use crate::engine::Answer;
use crate::error::{FleetError, Result};
use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::csv;
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type, UInt64Type};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use serde::Serialize;
use serde_json::{Value, json};

/// The schema of an answer's JSON.
const SCHEMA: &str = "lineup.fleet-query/1";

/// The format of an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// Columns for people.
    Table,
    /// Comma-separated values with a head.
    Csv,
    /// JSON, schema `lineup.fleet-query/1`.
    Json,
}

/// The answer as text.
///
/// # Errors
/// When a value has no text.
pub fn text(answer: &Answer, form: Form) -> Result<String> {
    match form {
        Form::Table => table(answer),
        Form::Csv => comma_separated(answer),
        Form::Json => document(answer),
    }
}

/// Every value as text; `–` for an unobserved one.
pub(crate) fn cells(batch: &RecordBatch) -> Result<Vec<Vec<String>>> {
    let options = FormatOptions::default().with_null("–");
    let columns = batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options));
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    let value = |column: &ArrayFormatter<'_>, row| column.value(row).try_to_string();
    let row = |row| columns.iter().map(|column| value(column, row)).collect::<Result<Vec<_>, _>>();
    Ok((0..batch.num_rows()).map(row).collect::<Result<_, _>>()?)
}

fn table(answer: &Answer) -> Result<String> {
    let mut rows = vec![answer.schema.fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>()];
    for batch in &answer.batches {
        rows.extend(cells(batch)?);
    }
    let shown = |text: &String| lineup_report::visible::one_line(text).into_owned();
    let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(shown).collect()).collect();
    let is_number = |at: usize| answer.schema.field(at).data_type().is_numeric();
    let width = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..answer.schema.fields().len()).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(&widths).enumerate().map(|(at, (cell, &width))| match is_number(at) {
            true => format!("{cell:>width$}"),
            false => format!("{cell:width$}"),
        });
        text += cells.collect::<Vec<_>>().join("  ").trim_end();
        text += "\n";
    }
    Ok(text)
}

fn comma_separated(answer: &Answer) -> Result<String> {
    let mut bytes = Vec::new();
    let mut writer = csv::Writer::new(&mut bytes);
    writer.write(&RecordBatch::new_empty(answer.schema.clone()))?;
    for batch in &answer.batches {
        writer.write(batch)?;
    }
    drop(writer);
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn document(answer: &Answer) -> Result<String> {
    let columns: Vec<&String> = answer.schema.fields().iter().map(|field| field.name()).collect();
    let mut rows: Vec<Vec<Value>> = Vec::new();
    for batch in &answer.batches {
        let texts = cells(batch)?;
        let row = |(row, texts): (usize, Vec<String>)| {
            let columns = batch.columns().iter().zip(texts);
            columns.map(|(column, text)| value(column.as_ref(), row, text)).collect()
        };
        rows.extend(texts.into_iter().enumerate().map(row));
    }
    Ok(json(&json!({ "schema": SCHEMA, "columns": columns, "rows": rows }))? + "\n")
}

/// A value as JSON.
///
/// # Errors
/// When it has no such form.
pub fn json(value: &impl Serialize) -> Result<String> {
    let failed = |cause: serde_json::Error| FleetError::Output { what: "JSON".into(), cause: cause.into() };
    serde_json::to_string_pretty(value).map_err(failed)
}

/// Numbers, true and false as JSON values, all else as text.
fn value(column: &dyn Array, row: usize, text: String) -> Value {
    if column.is_null(row) || *column.data_type() == DataType::Null {
        return Value::Null;
    }
    match column.data_type() {
        DataType::Int64 => column.as_primitive::<Int64Type>().value(row).into(),
        DataType::UInt64 => column.as_primitive::<UInt64Type>().value(row).into(),
        DataType::Float64 => column.as_primitive::<Float64Type>().value(row).into(),
        DataType::Boolean => column.as_boolean().value(row).into(),
        _ => text.into(),
    }
}
