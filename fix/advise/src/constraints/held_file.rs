//! The file of constraints that people and tests found, `[[hold]]` tables in TOML, and of uses that people have judged
//! harmless, `[[reviewed]]` tables; kept next to the sources.

use crate::constraints::constraint::{Binding, Constraint};
use crate::constraints::meaning::{Effect, Hold, Meaning, Reviewed, TypeMeaning};
use crate::error::AdviseError as Error;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    hold: Vec<HoldEntry>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    reviewed: Vec<Review>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Review {
    #[serde(rename = "type")]
    type_name: String,
    file: String,
    says: String,
    because: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct HoldEntry {
    #[serde(rename = "type")]
    type_name: String,
    rule: Rule,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    members: Vec<String>,
    because: String,
}

/// The constraint that an entry puts on its members.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Rule {
    /// Their order among themselves.
    Order,
    /// Their offsets.
    Place,
    /// The first place.
    First,
    /// The last place.
    Last,
    /// No member of the type moves.
    All,
}

/// Reads the text of a file of constraints.
///
/// # Errors
/// The error, with its place.
pub fn parse(text: &str) -> Result<Meaning, Error> {
    let file: File = toml::from_str(text).map_err(|error| Error::Constraints(error.to_string()))?;
    let mut types = Vec::new();
    for entry in file.hold {
        let effect = match entry.rule {
            Rule::Order => Effect::Relative,
            Rule::Place => Effect::Keep,
            Rule::First => Effect::First,
            Rule::Last => Effect::Last,
            Rule::All => Effect::Forbid,
        };
        let needs_members = matches!(entry.rule, Rule::Order | Rule::Place);
        if needs_members && entry.members.is_empty() {
            let name = &entry.type_name;
            return Err(Error::Constraints(format!("the entry for {name} names no members")));
        }
        let binding = Binding::new(Constraint::FailedTest).on(entry.members).because(entry.because);
        let holds = vec![Hold { binding, effect }];
        types.push(TypeMeaning { names: vec![entry.type_name], path: String::new(), holds });
    }
    let reviewed = file.reviewed.into_iter().map(reviewed).collect::<Result<_, _>>()?;
    Ok(Meaning { types, reviewed, ..Meaning::default() })
}

fn reviewed(review: Review) -> Result<Reviewed, Error> {
    let Review { type_name, file, says, because } = review;
    let fields = [("type", &type_name), ("file", &file), ("says", &says), ("because", &because)];
    if let Some((field, _)) = fields.iter().find(|(_, text)| text.trim().is_empty()) {
        return Err(Error::Constraints(format!("a review of {type_name:?} has no text for {field:?}")));
    }
    Ok(Reviewed { type_name, file, says, because })
}

/// The text of a file with these constraints.
///
/// # Errors
/// Never for results of [`parse`]; TOML has no other text for it.
pub fn to_text(meaning: &Meaning) -> Result<String, Error> {
    let mut file = File::default();
    for ty in &meaning.types {
        for hold in &ty.holds {
            let rule = match hold.effect {
                Effect::Relative | Effect::Boundary => Rule::Order,
                Effect::Keep | Effect::Adjacent | Effect::Named | Effect::Exchanged => Rule::Place,
                Effect::First => Rule::First,
                Effect::Last => Rule::Last,
                Effect::Forbid => Rule::All,
            };
            file.hold.push(HoldEntry {
                type_name: ty.names.first().cloned().unwrap_or_default(),
                rule,
                members: hold.binding.names.clone(),
                because: hold.binding.detail.clone().unwrap_or_default(),
            });
        }
    }
    file.reviewed.extend(meaning.reviewed.iter().cloned().map(|review| {
        let Reviewed { type_name, file, says, because } = review;
        Review { type_name, file, says, because }
    }));
    let body = toml::to_string(&file).map_err(|error| Error::Constraints(error.to_string()))?;
    Ok(format!("# What may not move, found by `lineup shuffle` or written by hand.\n\n{body}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "[[hold]]\ntype = \"rec\"\nrule = \"order\"\nmembers = [\"a\", \"b\"]\nbecause = \"make test\"\n";

    #[test]
    fn a_file_is_read_and_written_back() {
        let meaning = parse(TEXT).expect("reads");
        assert_eq!(meaning.types[0].holds[0].effect, Effect::Relative);
        assert_eq!(meaning.types[0].holds[0].binding.names, ["a", "b"]);
        assert_eq!(parse(&to_text(&meaning).expect("writes")).expect("reads"), meaning);
    }

    #[test]
    fn a_review_is_read_and_written_back() {
        let text = "[[reviewed]]\ntype = \"sock\"\nfile = \"filter.c\"\nsays = \"cast\"\nbecause = \"a tag says which\"\n";
        let meaning = parse(text).expect("reads");
        assert_eq!(meaning.reviewed[0].type_name, "sock");
        assert_eq!(parse(&to_text(&meaning).expect("writes")).expect("reads"), meaning);
        let unreasoned = text.replace("a tag says which", " ");
        let error = parse(&unreasoned).expect_err("no reason");
        assert!(error.to_string().contains("\"because\""), "{error}");
    }

    #[test]
    fn a_slip_is_named() {
        let unknown =
            parse("[[hold]]\ntype = \"x\"\nrule = \"sideways\"\nbecause = \"\"").expect_err("no rule");
        assert!(unknown.to_string().contains("sideways"), "{unknown}");
        let empty =
            parse("[[hold]]\ntype = \"x\"\nrule = \"order\"\nbecause = \"\"").expect_err("no members");
        assert!(empty.to_string().contains("names no members"), "{empty}");
    }
}
