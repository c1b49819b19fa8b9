//! The commit message of an order, for a patch to a kernel.

use lineup_advise::proposal::{OrderProposal, RegionLines};

/// A commit message in the kernel's style for what was ordered, with the figures before and after.
pub(crate) fn commit_message(
    orders: &[OrderProposal],
    cpus: u64,
    release: &str,
    workload: &str,
    line_bytes: u64,
) -> String {
    let names: Vec<&str> = orders.iter().map(|order| order.type_name.as_str()).collect();
    let subject = match names.as_slice() {
        [one] => format!("{one}: put what hot paths use together on fewer cache lines"),
        _ => format!("Put what hot paths use together: {}", names.join(", ")),
    };
    let mut text = format!(
        "{subject}\n\nThe accesses of these functions were recorded on {release} under workload {workload}, every call from entry\nto \
         return. Members that a call uses together now share lines of {line_bytes} bytes.\n"
    );
    for order in orders {
        text.push_str(&format!(
            "\nLines of struct {} per call, predicted from the recorded accesses:\n\n",
            order.type_name
        ));
        text.push_str("    function                          lines of  before   after\n");
        let recorded = order.sizes.first().map(|size| size.data_model);
        let is_told = |row: &&RegionLines| {
            row.line_bytes != 128 && Some(row.data_model) == recorded && row.gain() > 0.0
        };
        for row in order.lines.iter().filter(is_told) {
            let before = row.before.map_or("-".to_owned(), |before| format!("{before:.2}"));
            text.push_str(&format!(
                "    {:<32} {:>6}   {:>8} {:>7.2}\n",
                row.region, row.line_bytes, before, row.after
            ));
        }
        for size in order.sizes.iter().take(1) {
            text.push_str(&format!("    size: {} -> {} bytes\n", size.before_bytes, size.after_bytes));
        }
    }
    if cpus == 1 {
        text.push_str("\nOne CPU was recorded: what other CPUs write is not known.\n");
    }
    text.push_str("\nNothing was compiled or timed; measure before merging.\n");
    text
}

#[cfg(test)]
mod tests {
    use super::commit_message;

    #[test]
    fn a_patch_from_one_processor_says_that_it_saw_one() {
        let message = |cpus| commit_message(&[], cpus, "6.1.0", "timer", 64);
        assert!(message(1).contains("One CPU was recorded: what other CPUs write is not known."));
        assert!(!message(2).contains("One CPU"));
    }
}
