//! The line table.

use crate::dwarf::files::Files;
use crate::dwarf::store::View;
use gimli::ColumnType;
use lineup_model::program::CodeLine;
use lineup_model::types::SourceLocation;
use std::sync::Arc;

/// The line table of one unit.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    /// By address. A row holds up to the next one.
    rows: Vec<Row>,
    files: Vec<Option<Arc<str>>>,
}

#[derive(Clone, Copy, Debug)]
struct Row {
    address: u64,
    file: u32,
    /// 0 where no line is known, and after the end of a sequence.
    line: u32,
    /// 0 where no column is known.
    column: u32,
    discriminator: u32,
}

impl Lines {
    pub(crate) fn read(view: &View<'_>, index: u32) -> Lines {
        let mut lines = Lines::default();
        let (Some(dwarf), Ok(unit)) = (view.file_names_of(index), view.unit(index)) else { return lines };
        let Some(program) = unit.line_program.clone() else { return lines };
        let files = Files::new(dwarf, &unit);
        let mut rows = program.rows();
        while let Ok(Some((_, row))) = rows.next_row() {
            let line = if row.end_sequence() { 0 } else { row.line().map_or(0, |line| line.get()) };
            lines.rows.push(Row {
                address: row.address(),
                file: u32::try_from(row.file_index()).unwrap_or(u32::MAX),
                line: u32::try_from(line).unwrap_or(0),
                column: match row.column() {
                    ColumnType::LeftEdge => 0,
                    ColumnType::Column(column) => u32::try_from(column.get()).unwrap_or(0),
                },
                discriminator: u32::try_from(row.discriminator()).unwrap_or(0),
            });
        }
        // Where one sequence ends and another begins at the same address, the beginning counts.
        lines.rows.sort_by_key(|row| (row.address, row.line != 0));
        let count = files.hashes().len() as u64;
        lines.files = (0..count).map(|number| files.path(number).map(Into::into)).collect();
        lines
    }

    pub(crate) fn at(&self, pc: u64) -> Option<CodeLine> {
        let after = self.rows.partition_point(|row| row.address <= pc);
        let row = self.rows.get(after.checked_sub(1)?)?;
        let file = self.files.get(row.file as usize)?.clone()?;
        let at = SourceLocation { file, line: row.line };
        (row.line != 0).then_some(CodeLine { at, column: row.column, discriminator: row.discriminator })
    }

    /// Addresses where rows for some lines of a file begin. A file matches when its path ends with
    /// whole components of the one given.
    pub(crate) fn addresses(&self, file: &str, lines: &std::ops::RangeInclusive<u32>) -> Vec<u64> {
        let is_match =
            |path: &str| path.strip_suffix(file).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'));
        let wanted: Vec<bool> = self.files.iter().map(|path| path.as_deref().is_some_and(is_match)).collect();
        let rows = self.rows.iter().filter(|row| row.line != 0 && lines.contains(&row.line));
        rows.filter(|row| wanted.get(row.file as usize) == Some(&true)).map(|row| row.address).collect()
    }
}
