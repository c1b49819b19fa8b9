//! A review in SARIF 2.1.0, which code hosts show next to the lines of a change.

use crate::finding::{Finding, Rule};
use crate::review::Review;
use lineup_report::visible::one_line;
use serde_json::{Value, json};

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// The findings, with the lines that declare their subjects. `version` is Lineup's.
///
/// # Errors
/// When the text cannot be made, which no review is known to cause.
pub fn sarif(review: &Review, version: &str) -> Result<String, serde_json::Error> {
    let rules: Vec<Value> = Rule::ALL.map(descriptor).to_vec();
    let results: Vec<Value> = review.findings.iter().map(result).collect();
    let log = json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": { "name": "Lineup", "semanticVersion": version, "rules": rules } },
            "results": results,
        }],
    });
    Ok(serde_json::to_string_pretty(&log)? + "\n")
}

fn descriptor(rule: Rule) -> Value {
    json!({ "id": rule.name(), "shortDescription": { "text": rule.means() } })
}

fn result(finding: &Finding) -> Value {
    let level = if finding.fails { "error" } else { "warning" };
    // The same finding of another commit has the same mark in a list of them.
    let mark = format!("{}:{}", finding.rule.name(), one_line(&finding.subject));
    let rule = Rule::ALL.iter().position(|rule| *rule == finding.rule);
    json!({
        "ruleId": finding.rule.name(),
        "ruleIndex": rule.and_then(|index| i64::try_from(index).ok()).unwrap_or(-1),
        "level": level,
        "message": { "text": one_line(&finding.message) },
        "partialFingerprints": { "lineup/v1": mark },
        "locations": finding.place.iter().map(location).collect::<Vec<_>>(),
    })
}

fn location(place: &crate::repository_line::RepositoryLine) -> Value {
    json!({
        "physicalLocation": {
            "artifactLocation": { "uri": escaped(&place.file), "uriBaseId": "%SRCROOT%" },
            "region": { "startLine": place.line },
        },
    })
}

/// A path as a URI.
fn escaped(path: &str) -> String {
    let mut uri = String::new();
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                uri.push(char::from(byte))
            }
            byte => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}
