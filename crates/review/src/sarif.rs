//! A review in SARIF 2.1.0, which code hosts show beside the lines of a change.

use crate::finding::{Finding, Rule};
use crate::review::Review;
use lineup_report::visible::one_line;
use serde_sarif::sarif::{
    ArtifactLocation, Location, Message, MultiformatMessageString, PhysicalLocation, Region,
    ReportingDescriptor, Result as SarifResult, ResultLevel, Run, Sarif, Tool, ToolComponent, Version,
};
use std::collections::BTreeMap;

/// The findings, with the lines where what they are about is declared. `version` is Lineup's.
///
/// # Errors
/// When the text cannot be made, which no review is known to cause.
pub fn sarif(review: &Review, version: &str) -> Result<String, serde_json::Error> {
    let driver = ToolComponent::builder()
        .name("Lineup")
        .semantic_version(version)
        .rules(Rule::ALL.map(descriptor).to_vec())
        .build();
    let results: Vec<SarifResult> = review.findings.iter().map(result).collect();
    let run = Run::builder().tool(Tool::builder().driver(driver).build()).results(results).build();
    let log = Sarif::builder()
        .schema("https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json")
        .version(serde_json::to_value(Version::V2_1_0)?)
        .runs(vec![run])
        .build();
    Ok(serde_json::to_string_pretty(&log)? + "\n")
}

fn descriptor(rule: Rule) -> ReportingDescriptor {
    let means = MultiformatMessageString::builder().text(rule.means()).build();
    ReportingDescriptor::builder().id(rule.name()).short_description(means).build()
}

fn result(finding: &Finding) -> SarifResult {
    let level = if finding.fails { ResultLevel::Error } else { ResultLevel::Warning };
    // The same finding of another commit is the same to whoever looks at a list of them.
    let mark = format!("{}:{}", finding.rule.name(), one_line(&finding.subject));
    let rule = Rule::ALL.iter().position(|rule| *rule == finding.rule);
    SarifResult::builder()
        .rule_id(finding.rule.name())
        .rule_index(rule.and_then(|index| i64::try_from(index).ok()).unwrap_or(-1))
        .level(level)
        .message(Message::builder().text(one_line(&finding.message)).build())
        .partial_fingerprints(BTreeMap::from([("lineup/v1".to_owned(), mark)]))
        .locations(finding.place.iter().map(location).collect::<Vec<_>>())
        .build()
}

fn location(place: &crate::place::Place) -> Location {
    let file = ArtifactLocation::builder().uri(escaped(&place.file)).uri_base_id("%SRCROOT%").build();
    let region = Region::builder().start_line(i64::from(place.line)).build();
    Location::builder()
        .physical_location(PhysicalLocation::builder().artifact_location(file).region(region).build())
        .build()
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
