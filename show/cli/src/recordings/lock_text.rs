//! Locks of a recording in words.

use lineup_explain::threads::Serialising;
use lineup_model::figure;
use lineup_model::figure::share;
use lineup_report::visible::one_line;

/// The effect of a lock that keeps threads from running side by side.
pub(crate) fn serialising_sentence(one: &Serialising<'_>) -> String {
    let most = one.most_threads().map_or_else(String::new, |most| {
        format!("; no more than {} of them can work at once", figure::grouped(most, 1))
    });
    format!(
        "{} serialises the threads: {} take it, hold it for {} of the time of their calls and wait for it for {}{most}",
        one_line(&one.lock.name),
        figure::counted(one.lock.threads, "thread"),
        share(one.held),
        share(one.asked)
    )
}
