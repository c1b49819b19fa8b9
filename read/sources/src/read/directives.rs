//! Directives of OpenMP that say how the targets of pointers are aligned.

use super::reader::Reader;
use crate::libclang::Cursor;
use crate::tree::Site;

/// The alignment that a directive without a number stands for: no vector of today is larger.
const MOST_VECTOR_BYTES: u64 = 64;

impl<'u> Reader<'u, '_> {
    /// The names in `#pragma omp simd aligned(p, q : 32)`, each with the number.
    pub(super) fn aligned_by_directive(&mut self, cursor: Cursor<'u>, site: Site) -> Vec<(String, u64)> {
        if !cursor.is_openmp() {
            return Vec::new();
        }
        let mut text = String::new();
        for line in site.line.. {
            let line = Site { line, column: 1, ..site };
            let Some(line) = self.texts.line_from(&self.tree, line) else { break };
            let line = String::from_utf8_lossy(line);
            let line = line.trim_end();
            text.push_str(line.trim_end_matches('\\'));
            if !line.ends_with('\\') {
                break;
            }
        }
        aligned(&text)
    }
}

fn aligned(directive: &str) -> Vec<(String, u64)> {
    let clauses = directive.match_indices("aligned").filter_map(|(at, word)| {
        let inside = directive[at + word.len()..].trim_start().strip_prefix('(')?;
        inside.split(')').next()
    });
    let mut found = Vec::new();
    for clause in clauses {
        let (names, bytes) = clause.split_once(':').unwrap_or((clause, ""));
        let bytes = bytes.trim().parse().unwrap_or(MOST_VECTOR_BYTES);
        found.extend(names.split(',').map(|name| (name.trim().to_owned(), bytes)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clauses_name_pointers_and_a_number() {
        let found = aligned("#pragma omp simd safelen(4) aligned(p, q : 32) aligned ( r )");
        let names: Vec<(&str, u64)> = found.iter().map(|(name, bytes)| (name.as_str(), *bytes)).collect();
        assert_eq!(names, [("p", 32), ("q", 32), ("r", MOST_VECTOR_BYTES)]);
        assert!(aligned("#pragma omp simd").is_empty());
    }
}
