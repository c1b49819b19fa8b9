//! Names that mean one type in a unit and another one elsewhere.

use crate::facts::{Facts, Record, Short, UNNAMED};
use crate::map::Pair;
use crate::obligation::{Kind, Obligation};
use std::collections::{BTreeMap, HashMap};

type Pairs<'p> = BTreeMap<&'p str, Pair<'p>>;

/// A unit, the type that it gives a name, and the changed type that this has to do with.
type Meaning<'p> = (&'p str, String, Option<String>);

fn obligation(unit: &str, name: &str, about: &str, statement: String) -> Obligation {
    Obligation {
        unit: unit.into(),
        function: name.into(),
        place: String::new(),
        kind: Kind::TwoTypes,
        about: about.into(),
        statement,
        rule: None,
    }
}

/// Spells a type so that units agree: they number types without a name by themselves, and not all know a record's
/// members.
fn spelled(short: &Short) -> String {
    let base = if short.base.starts_with(UNNAMED) { UNNAMED } else { &short.base };
    let signature: Vec<String> = short.signature().map(spelled).collect();
    format!("{base}{}{} {}", "*".repeat(short.stars), "[]".repeat(short.dimensions), signature.join(","))
}

/// The changed type that a type is, points at, takes or returns.
fn about(pair: &Pair<'_>, short: &Short) -> Option<String> {
    let own = pair.is_sensitive(short).then_some(short.base.as_str());
    own.or_else(|| pair.code_about(short)).map(str::to_owned)
}

/// Variables and functions that have to do with a changed type in one unit, and have another type elsewhere.
pub fn symbols(pairs: &Pairs<'_>) -> Vec<Obligation> {
    let mut types: HashMap<&str, Vec<Meaning<'_>>> = HashMap::new();
    for (unit, pair) in pairs {
        for variable in
            pair.new.variables.iter().filter(|variable| variable.is_external || variable.function.is_none())
        {
            let symbol = variable.symbol.as_deref().unwrap_or(&variable.name);
            let short = pair.new.short(variable.of);
            types.entry(symbol).or_default().push((unit, spelled(&short), about(pair, &short)));
        }
        for name in &pair.new.exported {
            let Some(short) = pair.new.function(name) else { continue };
            types.entry(name).or_default().push((unit, spelled(&short), about(pair, &short)));
        }
    }
    let mut found = Vec::new();
    for (symbol, uses) in types {
        let Some((_, changed, Some(about))) = uses.iter().find(|(.., about)| about.is_some()) else {
            continue;
        };
        for (unit, other, _) in uses.iter().filter(|(_, other, _)| other != changed) {
            found.push(obligation(unit, symbol, about, format!("{symbol} is {other} here")));
        }
    }
    found
}

/// Records of one name that have other members in two units, where one has to do with a changed type.
pub fn records(pairs: &Pairs<'_>) -> Vec<Obligation> {
    let mut types: BTreeMap<&str, Vec<(&str, String, bool)>> = BTreeMap::new();
    for (unit, pair) in pairs {
        for record in pair.old.records.iter().filter(|record| !record.name.starts_with(UNNAMED)) {
            let is_in_question = pair.holders.contains(&record.name)
                || pair.parts.contains(&record.name)
                || record.members.iter().any(|member| about(pair, &pair.old.short(member.of)).is_some());
            let members = members(record, pair.old);
            types.entry(&record.name).or_default().push((unit, members, is_in_question));
        }
    }
    let mut found = Vec::new();
    for (name, uses) in types {
        let Some((_, members, _)) = uses.iter().find(|(.., is_in_question)| *is_in_question) else {
            continue;
        };
        for (unit, ..) in uses.iter().filter(|(_, other, _)| other != members) {
            found.push(obligation(unit, name, name, format!("{name} has other members here")));
        }
    }
    found
}

fn members(record: &Record, facts: &Facts) -> String {
    let members = record.members.iter().map(|member| {
        let name = member.name.as_deref().unwrap_or("");
        format!("{name} {} {} {}", member.at_bits, member.bits, spelled(&facts.short(member.of)))
    });
    format!("{} {}", record.bytes, members.collect::<Vec<_>>().join(";"))
}
