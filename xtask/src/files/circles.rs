//! Files that use each other in a circle, so that none can be understood without the others.

use std::collections::BTreeSet;
use std::path::Path;

/// One sentence a circle, with the uses that close it.
pub(super) fn check(uses: &[(&Path, BTreeSet<usize>)], workspace: &Path) -> Vec<String> {
    let reach: Vec<Vec<bool>> = (0..uses.len()).map(|file| reached(file, uses)).collect();
    let short = |file: usize| uses[file].0.strip_prefix(workspace).unwrap_or(uses[file].0).display();
    let mut seen = vec![false; uses.len()];
    let mut broken = Vec::new();
    for file in 0..uses.len() {
        if !reach[file][file] || seen[file] {
            continue;
        }
        let is_in = |other: usize| reach[file][other] && reach[other][file];
        let circle: Vec<usize> = (0..uses.len()).filter(|other| is_in(*other)).collect();
        let arrows = circle.iter().flat_map(|from| uses[*from].1.iter().map(move |to| (*from, *to)));
        let arrows = arrows.filter(|(_, to)| is_in(*to));
        let arrows: Vec<String> =
            arrows.map(|(from, to)| format!("{} -> {}", short(from), short(to))).collect();
        broken.push(format!("{} files use each other in a circle: {}", circle.len(), arrows.join(", ")));
        circle.iter().for_each(|file| seen[*file] = true);
    }
    broken
}

/// Whether each file is one that `file` uses, or that one of those uses.
fn reached(file: usize, uses: &[(&Path, BTreeSet<usize>)]) -> Vec<bool> {
    let mut found = vec![false; uses.len()];
    let mut next: Vec<usize> = uses[file].1.iter().copied().collect();
    while let Some(file) = next.pop() {
        if !std::mem::replace(&mut found[file], true) {
            next.extend(&uses[file].1);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_circle_is_one_sentence_and_a_chain_is_none() {
        let uses = |used: [&[usize]; 4]| -> Vec<(&Path, BTreeSet<usize>)> {
            let names = ["/w/a.rs", "/w/b.rs", "/w/c.rs", "/w/d.rs"].map(Path::new);
            names.into_iter().zip(used.map(|used| used.iter().copied().collect())).collect()
        };
        let broken = check(&uses([&[1], &[2], &[0, 3], &[]]), Path::new("/w"));
        assert_eq!(broken, ["3 files use each other in a circle: a.rs -> b.rs, b.rs -> c.rs, c.rs -> a.rs"]);
        assert_eq!(check(&uses([&[1, 3], &[2], &[3], &[]]), Path::new("/w")), [""; 0]);
    }
}
