//! JSON that `lineup` prints, checked against the schemas in docs/schema.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// The folder of the schemas.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema")
}

/// The file of a schema, by the name that documents have in their field `schema`.
pub(crate) fn file(schema: &str) -> PathBuf {
    let name = schema.strip_prefix("lineup.").unwrap_or(schema).replace('/', "-");
    folder().join(format!("{name}.json"))
}

/// A document's faults, by the schema that it names.
pub(crate) fn faults(document: &Value) -> Vec<String> {
    let schema = document["schema"].as_str().expect("the name of a schema");
    let text = fs::read_to_string(file(schema)).unwrap_or_else(|error| panic!("{schema}: {error}"));
    let text: Value = serde_json::from_str(&text).expect("JSON");
    let validator = jsonschema::validator_for(&text).expect("a schema");
    validator.iter_errors(document).map(|error| format!("{}: {error}", error.instance_path)).collect()
}

/// Holds a document against the schema that it names.
pub(crate) fn check(document: &Value) {
    let faults = faults(document);
    assert!(faults.is_empty(), "{}: {faults:#?}", document["schema"]);
}

/// A document that `lineup` printed, as its schema says it is.
pub(crate) fn checked(printed: &[u8]) -> Value {
    let document = serde_json::from_slice(printed)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(printed)));
    check(&document);
    document
}
