//! The facts about a class of C++ that an edit needs which moves members out of the object: each place that names a
//! member, and each use that the edit could not follow.

use std::collections::{BTreeMap, BTreeSet};

/// A use that keeps a member, or every member, in the object.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SplitHold {
    /// The member that stays; `None` when all stay.
    pub member: Option<String>,
    /// Why, as a part of a sentence.
    pub reason: String,
    /// File, relative to the source folder where it lies in it.
    pub path: String,
    /// Line, from 1.
    pub line: u32,
}

/// A place in which a member of an object is named: `x.m`, `p->m` or `m` in a method. An edit can write another
/// expression there.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct MemberName {
    /// File, relative to the source folder where it lies in it.
    pub path: String,
    /// Line of the member's name, from 1.
    pub line: u32,
    /// Column of the member's name in bytes, from 1.
    pub column: u32,
    /// The member.
    pub member: String,
}

/// The facts about one class.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct SplitFacts {
    /// Its members stay in it for these reasons.
    pub holds: BTreeSet<SplitHold>,
    /// The places that name a member.
    pub named: BTreeSet<MemberName>,
    /// Members to which a constructor's list gives a value that its body could give as well, by the place of the name.
    pub initialised: BTreeSet<MemberName>,
    /// The compiler compares two objects member by member.
    pub is_compared: bool,
}

/// The facts of one unit, or of the whole program.
#[derive(Clone, Default, Debug)]
pub(crate) struct AllSplitFacts {
    /// By libclang's name of the class.
    pub(crate) classes: BTreeMap<String, SplitFacts>,
    /// Members that templates name in objects whose type only an instance knows.
    pub(crate) in_templates: BTreeMap<String, (String, u32)>,
}

impl AllSplitFacts {
    pub(crate) fn add(&mut self, other: AllSplitFacts) {
        for (class, facts) in other.classes {
            let known = self.classes.entry(class).or_default();
            known.holds.extend(facts.holds);
            known.named.extend(facts.named);
            known.initialised.extend(facts.initialised);
            known.is_compared |= facts.is_compared;
        }
        for (member, at) in other.in_templates {
            self.in_templates.entry(member).or_insert(at);
        }
    }

    /// The facts about a class, with the paths that `relative` gives.
    pub(crate) fn of(
        &self,
        class: &str,
        members: &[String],
        relative: impl Fn(&str) -> String,
    ) -> Option<SplitFacts> {
        let mut facts = self.classes.get(class)?.clone();
        let in_templates = members.iter().filter_map(|member| Some((member, self.in_templates.get(member)?)));
        facts.holds.extend(in_templates.map(|(member, (path, line))| SplitHold {
            member: Some(member.clone()),
            reason: "a template names a member so in objects of a type that only an instance knows".into(),
            path: path.clone(),
            line: *line,
        }));
        let holds = facts.holds.into_iter().map(|hold| SplitHold { path: relative(&hold.path), ..hold });
        let named = |names: BTreeSet<MemberName>| {
            names.into_iter().map(|name| MemberName { path: relative(&name.path), ..name }).collect()
        };
        Some(SplitFacts {
            holds: holds.collect(),
            named: named(facts.named),
            initialised: named(facts.initialised),
            is_compared: facts.is_compared,
        })
    }
}
