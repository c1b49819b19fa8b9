//! Lists that are shortened.

/// Threads listed one by one.
pub(crate) const MOST_LISTED: usize = 8;

pub(crate) fn shortened_list(names: &[String]) -> String {
    let more = names.len().saturating_sub(MOST_LISTED);
    let listed = names.iter().take(MOST_LISTED).cloned();
    listed.chain((more > 0).then(|| format!("{more} more"))).collect::<Vec<_>>().join(", ")
}
