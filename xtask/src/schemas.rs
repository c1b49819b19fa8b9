//! The words that a schema in `docs/schema` lists are those of the enum that is written there: no variant is missing,
//! and none has gone.

use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use syn::visit::{self, Visit};

/// The words as which an enum's variants are written.
#[derive(Debug)]
struct Words {
    name: String,
    file: String,
    words: BTreeSet<String>,
}

/// The broken rules, one sentence each.
///
/// # Errors
///
/// A source or a schema cannot be read.
pub(crate) fn check(workspace: &Path, sources: &[PathBuf]) -> Result<Vec<String>> {
    let mut enums = Enums::default();
    for path in sources {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        if text.contains("Serialize") {
            enums.file = path.strip_prefix(workspace).unwrap_or(path).display().to_string();
            enums.visit_file(&syn::parse_file(&text).with_context(|| path.display().to_string())?);
        }
    }
    let mut broken = Vec::new();
    let folder = workspace.join("docs/schema");
    let entries = std::fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
    let mut schemas = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    schemas.sort();
    for path in schemas {
        let text = std::fs::read_to_string(&path)?;
        let schema = serde_json::from_str(&text).with_context(|| path.display().to_string())?;
        let short = path.strip_prefix(workspace).unwrap_or(&path).display().to_string();
        broken.extend(compare(&short, &schema, &enums.found));
    }
    Ok(broken)
}

/// Each list of words in a schema, against the enum that has most of them.
fn compare(schema: &str, document: &Value, enums: &[Words]) -> Vec<String> {
    let mut broken = Vec::new();
    for list in lists(document) {
        if enums.iter().any(|known| known.words == list) {
            continue;
        }
        // Lists of another thing may share a word with an enum.
        let is_meant =
            |known: &&Words| known.words.intersection(&list).count() * 2 >= known.words.len().max(list.len());
        for known in enums.iter().filter(is_meant) {
            let missing = known.words.difference(&list).map(|word| format!("lacks \"{word}\""));
            let gone = list.difference(&known.words).map(|word| format!("has \"{word}\", which is gone"));
            let of = format!("{} of {}", known.name, known.file);
            broken.extend(missing.chain(gone).map(|fault| format!("{schema}: the list of {of} {fault}")));
        }
    }
    broken
}

/// The lists of words in a schema.
fn lists(value: &Value) -> Vec<BTreeSet<String>> {
    let (inner, own): (Vec<&Value>, _) = match value {
        Value::Object(members) => (members.values().collect(), members.get("enum").and_then(Value::as_array)),
        Value::Array(elements) => (elements.iter().collect(), None),
        _ => return Vec::new(),
    };
    let own = own.map(|words| words.iter().filter_map(Value::as_str).map(str::to_owned).collect());
    let own = own.filter(|words: &BTreeSet<String>| !words.is_empty());
    own.into_iter().chain(inner.into_iter().flat_map(lists)).collect()
}

#[derive(Default)]
struct Enums {
    file: String,
    found: Vec<Words>,
}

impl<'ast> Visit<'ast> for Enums {
    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        let is_written = item
            .attrs
            .iter()
            .any(|attribute| attribute.path().is_ident("derive") && tokens(attribute).contains("Serialize"));
        if is_written {
            let style = item.attrs.iter().find_map(|attribute| serde_value(attribute, "rename_all"));
            let word = |variant: &syn::Variant| {
                let own = variant.attrs.iter().find_map(|attribute| serde_value(attribute, "rename"));
                own.unwrap_or_else(|| styled(&variant.ident.to_string(), style.as_deref()))
            };
            let words = item.variants.iter().map(word).collect();
            self.found.push(Words { name: item.ident.to_string(), file: self.file.clone(), words });
        }
        visit::visit_item_enum(self, item);
    }
}

/// The value of `key` in `#[serde(key = "value")]`.
fn serde_value(attribute: &syn::Attribute, key: &str) -> Option<String> {
    if !attribute.path().is_ident("serde") {
        return None;
    }
    let mut found = None;
    // Keys with values of other forms end the reading.
    _ = attribute.parse_nested_meta(|meta| {
        if meta.input.peek(syn::Token![=]) {
            let value: syn::LitStr = meta.value()?.parse()?;
            found = meta.path.is_ident(key).then(|| value.value()).or(found.take());
        }
        Ok(())
    });
    found
}

fn tokens(attribute: &syn::Attribute) -> String {
    match &attribute.meta {
        syn::Meta::List(list) => list.tokens.to_string(),
        _ => String::new(),
    }
}

/// A variant's name in serde's style.
fn styled(name: &str, style: Option<&str>) -> String {
    let separated = |separator: char| {
        let mut word = String::new();
        for (at, letter) in name.chars().enumerate() {
            if letter.is_uppercase() && at > 0 {
                word.push(separator);
            }
            word.extend(letter.to_lowercase());
        }
        word
    };
    match style {
        Some("kebab-case") => separated('-'),
        Some("snake_case") => separated('_'),
        Some("lowercase") => name.to_lowercase(),
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(source: &str, words: &str) -> Vec<String> {
        let mut enums = Enums { file: "a.rs".into(), ..Enums::default() };
        enums.visit_file(&syn::parse_file(source).expect("is Rust"));
        let schema = serde_json::from_str(&format!("{{\"$defs\":{{\"A\":{{\"enum\":[{words}]}}}}}}"));
        compare("a.json", &schema.expect("is JSON"), &enums.found)
    }

    #[test]
    fn a_schema_lists_every_variant_by_its_word() {
        let source =
            "#[derive(Clone, serde::Serialize)] #[serde(tag = \"kind\", rename_all = \"kebab-case\")]
            enum Reason { TooLarge, NotRead { by: u32 }, #[serde(rename = \"other\")] Rest }";
        assert_eq!(faults(source, "\"too-large\", \"not-read\", \"other\""), [""; 0]);
        assert_eq!(
            faults(source, "\"too-large\", \"other\""),
            ["a.json: the list of Reason of a.rs lacks \"not-read\""]
        );
        assert_eq!(
            faults(source, "\"too-large\", \"not-read\", \"other\", \"old\""),
            ["a.json: the list of Reason of a.rs has \"old\", which is gone"]
        );
    }

    #[test]
    fn lists_of_other_things_are_left_alone() {
        let source =
            "#[derive(Serialize)] #[serde(rename_all = \"snake_case\")] enum A { OneThing, Two, Three, Four }
            enum Inside { Two, Five }";
        assert_eq!(faults(source, "\"two\", \"five\""), [""; 0]);
        assert_eq!(faults(source, "\"one_thing\", \"two\"").len(), 2);
    }
}
