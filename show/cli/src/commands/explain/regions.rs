//! The regions that the user asks for.

use anyhow::{Result, bail};
use lineup_debuginfo::spelled;
use lineup_explain::Explanation;

/// The regions that were asked for, as the recording calls them.
pub(crate) fn asked_for(asked: &[String], recorded: &[&str]) -> Result<Vec<String>> {
    // A name may be given as it was when the calls were recorded.
    let wanted: Vec<String> = asked.iter().map(|name| spelled(name)).collect();
    if let Some(unknown) = wanted.iter().find(|name| !recorded.contains(&name.as_str())) {
        bail!("region {unknown} is not in the recording; it has {}", recorded.join(", "));
    }
    Ok(wanted)
}

pub(crate) fn select(mut explanation: Explanation, asked: &[String]) -> Result<Explanation> {
    let recorded: Vec<&str> = explanation.regions.iter().map(|region| region.name.as_str()).collect();
    let wanted = asked_for(asked, &recorded)?;
    explanation.regions.retain(|region| wanted.is_empty() || wanted.contains(&region.name));
    Ok(explanation)
}
