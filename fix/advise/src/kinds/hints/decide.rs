//! Selection of the conditions that get a hint.

use super::hint::{Edit, Hint, Hints, RefusedHint, is_beyond_doubt, is_contradicted};
use crate::kinds::hints::macros::Macros;
use crate::kinds::hints::site::{If, Lines, if_at};
use crate::text::lex::line_at;
use crate::text::source_place::SourcePlace;
use crate::text::sources::Sources;
use lineup_model::branch::{Branch, Evidence, SourcePosition};
use lineup_model::figure;
use std::collections::BTreeMap;

/// Longest condition that a report shows.
const CONDITION_CHARACTERS: usize = 60;

/// Hints for the conditions that branches were compiled from.
pub(super) fn conditions(
    evidence: &Evidence,
    sources: &Sources,
    macros: &Macros,
    hints: &mut Hints,
    edits: &mut BTreeMap<String, Vec<Edit>>,
) {
    let mut by_file: BTreeMap<&str, Vec<&Branch>> = BTreeMap::new();
    for branch in &evidence.branches {
        by_file.entry(&branch.file).or_default().push(branch);
    }
    for (path, branches) in by_file {
        let Some(text) = sources.get(path) else { continue };
        let lines = Lines::of(text);
        let sites = sources.with_tree(path, |_, tree| {
            let mut sites: BTreeMap<If, Vec<&Branch>> = BTreeMap::new();
            for branch in branches {
                if let Some(site) = if_at(tree, &lines, branch.place) {
                    sites.entry(site).or_default().push(branch);
                }
            }
            sites
        });
        let Some(sites) = sites else { continue };
        let executed = evidence.executed.get(path);
        let file = File { path, text, lines: &lines, macros, executed };
        for (site, branches) in sites {
            match file.decide(&site, &branches) {
                Decision::Nothing => {}
                Decision::Refused(because) => {
                    hints.refused.push(RefusedHint { at: file.place(&site), because });
                }
                Decision::Hint { is_likely, because } => {
                    let (edit, hint) = file.edit(&site, is_likely, because);
                    edits.entry(path.to_owned()).or_default().push(edit);
                    hints.given.push(hint);
                }
            }
        }
    }
}

enum Decision {
    /// The counts give no reason for a hint.
    Nothing,
    Refused(String),
    Hint {
        is_likely: bool,
        because: String,
    },
}

struct File<'f> {
    path: &'f str,
    text: &'f str,
    lines: &'f Lines<'f>,
    macros: &'f Macros,
    executed: Option<&'f BTreeMap<SourcePosition, u64>>,
}

impl File<'_> {
    fn place(&self, site: &If) -> SourcePlace {
        SourcePlace { path: self.path.to_owned(), line: line_at(self.text, site.condition.0) }
    }

    fn decide(&self, site: &If, branches: &[&Branch]) -> Decision {
        let all: u64 = branches.iter().map(|branch| executions(branch)).sum();
        let rarer: u64 = branches.iter().map(|branch| branch.sides[0].times.min(branch.sides[1].times)).sum();
        if !is_beyond_doubt(rarer, all) || site.has_hint(self.text) {
            return Decision::Nothing;
        }
        if let Some(why) = site.unfit {
            return Decision::Refused(why.to_owned());
        }
        if branches.iter().any(|branch| branch.is_estimated) {
            return Decision::Refused("several answers fit its counts".to_owned());
        }
        let outcomes = branches.iter().map(|branch| site.outcomes(&branch.sides, self.lines));
        let Some(outcomes) = outcomes.collect::<Option<Vec<[u64; 2]>>>() else {
            return Decision::Refused("its machine code does not show which side is which".to_owned());
        };
        let [held, failed] = [0, 1].map(|side: usize| outcomes.iter().map(|one| one[side]).sum::<u64>());
        let is_likely = held > failed;
        let few = |[held, failed]: &[u64; 2]| if is_likely { *failed } else { *held };
        let disagrees = |one: &[u64; 2]| is_contradicted(few(one), one[0] + one[1]);
        if !is_beyond_doubt(held.min(failed), all) || outcomes.iter().any(disagrees) {
            return Decision::Refused("copies of it in the machine code come out differently".to_owned());
        }
        // If an earlier branch has decided already, the compiler jumps past this one.
        let Some(seen) = site.executed(is_likely, self.executed, self.lines) else {
            return Decision::Refused("only its branch shows how often it does not hold".to_owned());
        };
        if !is_beyond_doubt(seen, all) {
            let because = format!(
                "code of its rarer outcome ran {} times, more often than its branch shows",
                figure::whole(seen)
            );
            return Decision::Refused(because);
        }
        let copies = match branches.len() {
            1 => String::new(),
            count => format!(", in {count} copies"),
        };
        let because = format!("held {} times of {}{copies}", figure::whole(held), figure::whole(all));
        Decision::Hint { is_likely, because }
    }

    fn edit(&self, site: &If, is_likely: bool, because: String) -> (Edit, Hint) {
        let bytes = site.condition.0..site.condition.1;
        let condition = self.text.get(bytes.clone()).unwrap_or_default();
        let (text, hint) = match self.macros.expecting(self.text, is_likely) {
            // A comma would end the macro's argument.
            Some(name) if condition.contains(',') => (format!("{name}(({condition}))"), name.to_owned()),
            Some(name) => (format!("{name}({condition})"), name.to_owned()),
            None => {
                let value = u8::from(is_likely);
                (format!("__builtin_expect(!!({condition}), {value})"), format!("__builtin_expect({value})"))
            }
        };
        let words: Vec<&str> = condition.split_whitespace().collect();
        let mut of = words.join(" ");
        if of.chars().count() > CONDITION_CHARACTERS {
            of = of.chars().take(CONDITION_CHARACTERS).chain(['…']).collect();
        }
        (Edit { bytes, text }, Hint { at: self.place(site), hint, of, because })
    }
}

fn executions(branch: &Branch) -> u64 {
    branch.sides.iter().map(|side| side.times).fold(0, u64::saturating_add)
}
