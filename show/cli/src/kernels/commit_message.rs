//! The patches to a kernel, one for each type, with their commit messages.

use lineup_advise::constraint::Constraint;
use lineup_advise::patch::unified_diff;
use lineup_advise::proposal::{Advice, OrderProposal, RegionLines, RegionSaving};
use lineup_advise::sources::Sources;
use lineup_model::region::RegionId;
use lineup_report::study::GuestComparison;
use std::collections::BTreeMap;

/// The evidence for a patch.
pub(crate) struct Ground<'a> {
    /// The kernel that was recorded.
    pub(crate) release: &'a str,
    /// The guest's workload.
    pub(crate) workload: &'a str,
    /// A region's calls in all.
    pub(crate) calls: &'a dyn Fn(RegionId) -> Option<u64>,
    /// The result of trying the changed kernel; `None` when it was not built.
    pub(crate) tried: Option<BootedKernel<'a>>,
}

/// A changed kernel that was built and booted.
pub(crate) struct BootedKernel<'a> {
    /// The emulator of the boots.
    pub(crate) emulator: &'a str,
    /// Both kernels side by side.
    pub(crate) guest: &'a GuestComparison,
    /// The reason why its recording cannot be compared; `None` when it was compared.
    pub(crate) not_proven: Option<&'a str>,
}

/// The first lines of a patch that was not built.
pub(crate) const NOT_BUILT: &str =
    "NOT BUILT: what follows was predicted only. Nothing of it was compiled or booted.\n\n";

/// A patch for each type, in the order in which they are to be applied: maintainers take them apart.
pub(crate) fn series(advice: &Advice, sources: &Sources, ground: &Ground<'_>) -> String {
    let mut text = String::new();
    let is_told = ground.tried.is_none() && !advice.edited.is_empty();
    text += if is_told { NOT_BUILT } else { "" };
    let mut edited = BTreeMap::new();
    for order in &advice.orders {
        let before = sources.with(&edited);
        edited.extend(order.edited.clone());
        text += &commit_message(order, advice, ground);
        text += "---\n";
        text += &unified_diff(&before, &order.edited);
        text += "\n";
    }
    text + &unified_diff(&sources.with(&edited), &advice.edited)
}

/// A commit message in the kernel's style for an order: the gains, and the losses.
fn commit_message(order: &OrderProposal, advice: &Advice, ground: &Ground<'_>) -> String {
    let (release, workload, bytes) = (ground.release, ground.workload, advice.line_bytes);
    let mut text = format!(
        "{}: put what hot paths use together on fewer cache lines\n\nThe accesses of these functions were recorded on \
         {release} under workload {workload},\nwith all that they called. Members that a call uses together now share lines \
         of {bytes}\nbytes. {}\n",
        order.type_name,
        match ground.tried {
            None => {
                "Lines are predicted from the recorded accesses; the share is of all lines\nof data that a call needs."
            }
            Some(_) => {
                "The changed kernel was built, booted and recorded again: lines before\nand after are those of the two \
                 recordings; the share is of all lines of data\nthat a call needs, as predicted."
            }
        }
    );
    let told = advice.descriptions.iter().find(|one| one.target == order.type_name);
    let worth = told.map_or(&[][..], |one| &one.worth);
    text.push_str(&of_order(order, worth, bytes, ground));
    text.push_str(&judged_by_hand(order));
    if advice.threads == 1 {
        text.push_str("\nOne CPU was recorded: writes of other CPUs are not known.\n");
    }
    match &ground.tried {
        None => text.push_str("\nNothing was compiled or timed; measure before merging.\n"),
        Some(tried) => text.push_str(&of_trial(tried)),
    }
    text
}

/// The trial of both kernels, with all patches of the series.
fn of_trial(tried: &BootedKernel<'_>) -> String {
    let mut text =
        format!("\nBuilt and booted, with the other patches of this series, under\n{}:\n", tried.emulator);
    for fact in &tried.guest.compared {
        text += &format!("    {}: {}\n", fact.name, fact.value);
    }
    for costs in &tried.guest.costs {
        text += &format!(
            "    {}, mean of {} and {} calls:\n",
            costs.region, costs.calls_before, costs.calls_after
        );
        for cost in &costs.means {
            text += &format!("        {:<32} {:>10.2} -> {:.2}\n", cost.name, cost.before, cost.after);
        }
    }
    if let Some(why) = tried.not_proven {
        text += &format!("\nNot proven: {why}\n");
    }
    text + "\nMisses and stalls are modelled. Nothing was timed; measure before merging.\n"
}

/// Uses that would have held the type, had nobody judged them.
fn judged_by_hand(order: &OrderProposal) -> String {
    let reviewed = order.obeyed.iter().filter(|binding| binding.constraint == Constraint::Reviewed);
    let places: Vec<String> = reviewed
        .map(|binding| {
            let at = binding.at.as_ref().map(|at| format!("{at}: ")).unwrap_or_default();
            format!("    {at}{}\n", binding.detail.as_deref().unwrap_or_default())
        })
        .collect();
    match places.is_empty() {
        true => String::new(),
        false => format!("\nJudged harmless by hand:\n{}", places.concat()),
    }
}

fn of_order(order: &OrderProposal, worth: &[RegionSaving], line_bytes: u64, ground: &Ground<'_>) -> String {
    let mut text = format!("\nstruct {}: {} moved.\n\n", order.type_name, order.moved.join(", "));
    text += "    function                         calls   before    after    share\n";
    let recorded = order.sizes.first().map(|size| size.data_model);
    let rows = || order.lines.iter().filter(|row| Some(row.data_model) == recorded);
    for one in worth {
        let row = rows().find(|row| row.id == one.id && row.line_bytes == line_bytes);
        let Some(row) = row else { continue };
        let types = ground.tried.iter().flat_map(|tried| &tried.guest.types);
        let mut recorded =
            types.filter(|seen| (&seen.type_name, &seen.region) == (&order.type_name, &row.region));
        let (before, after) = match recorded.next() {
            Some(seen) => (Some(seen.before), seen.after),
            None => (row.before, row.after),
        };
        let before = before.map_or("-".to_owned(), |before| format!("{before:.2}"));
        let calls = (ground.calls)(one.id).map_or("-".to_owned(), |calls| calls.to_string());
        let share = one.share.map_or("-".to_owned(), |share| format!("{:.1} %", -100.0 * share));
        text += &format!("    {:<30} {calls:>7} {before:>8} {after:>8.2} {share:>8}\n", row.region);
    }
    let worse: Vec<String> =
        rows().filter(|row| row.line_bytes != line_bytes && row.gain() <= -0.005).map(worse_row).collect();
    if !worse.is_empty() {
        text += "\n    Worse with lines of other sizes:\n";
        text += &worse.concat();
    }
    for size in order.sizes.iter().take(1) {
        text += &format!("    size: {} -> {} bytes\n", size.before_bytes, size.after_bytes);
    }
    text
}

fn worse_row(row: &RegionLines) -> String {
    let RegionLines { region, line_bytes, .. } = row;
    format!("    {region}, {line_bytes} bytes: {:.2} -> {:.2}\n", row.before.unwrap_or_default(), row.after)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lineup_advise::kind::Description;
    use lineup_advise::proposal::{Check, REORDER, SizeChange};

    fn ground() -> Ground<'static> {
        Ground { release: "6.1.0", workload: "timer", calls: &|id| Some(100 + u64::from(id.0)), tried: None }
    }

    fn order(lines: Vec<RegionLines>) -> OrderProposal {
        OrderProposal {
            parted: None,
            type_name: "rq".into(),
            path: "sched.h".into(),
            old_order: Vec::new(),
            new_order: Vec::new(),
            field_order: Vec::new(),
            new_offsets_bits: Vec::new(),
            moved: vec!["curr".into(), "idle".into()],
            moved_bytes: 16,
            lines,
            sizes: vec![SizeChange { data_model: "LP64", before_bytes: 128, after_bytes: 128 }],
            is_proven_minimal: false,
            further: None,
            check: Check::Predicted,
            reasons: Vec::new(),
            obeyed: Vec::new(),
            averaged: None,
            seen_outside: None,
            rewritten_values: Vec::new(),
            named_values: Vec::new(),
            asserted: Vec::new(),
            edited: Default::default(),
        }
    }

    #[test]
    fn a_patch_from_one_processor_says_that_it_saw_one() {
        let message =
            |threads| commit_message(&order(Vec::new()), &Advice { threads, ..Advice::none(64) }, &ground());
        assert!(message(1).contains("One CPU was recorded: writes of other CPUs are not known."));
        assert!(!message(2).contains("One CPU"));
    }

    /// Two types of one file: each patch applies to the previous one's result.
    #[test]
    fn every_type_has_a_patch_of_its_own() {
        let texts = [
            "int a;\nint b;\n\n\n\n\n\n\n\n\nint c;\n",
            "int b;\nint a;\n\n\n\n\n\n\n\n\nint c;\n",
            "int b;\nint a;\n\n\n\n\n\n\n\n\nlong c;\n",
        ];
        let edited = |text: &str| BTreeMap::from([("sched.h".to_string(), text.to_string())]);
        let of = |name: &str, text: &str| OrderProposal {
            type_name: name.into(),
            edited: edited(text),
            ..order(Vec::new())
        };
        let orders = vec![of("rq", texts[1]), of("cfs_rq", texts[2])];
        let advice = Advice { orders, edited: edited(texts[2]), ..Advice::none(64) };
        let series = series(&advice, &Sources::new(edited(texts[0])), &ground());
        assert!(series.starts_with(NOT_BUILT), "{series}");
        let patches: Vec<&str> =
            series.split(": put what hot paths use together on fewer cache lines\n").collect();
        let [_, first, second] = patches.as_slice() else { panic!("{series}") };
        assert!(
            first.contains("---\n--- a/sched.h\n+++ b/sched.h\n") && !first.contains("+long c;"),
            "{series}"
        );
        assert!(second.contains("+long c;") && !second.contains("-int a;"), "{series}");
        assert_eq!(series.matches("+++ ").count(), 2, "{series}");
    }

    #[test]
    fn what_gets_worse_is_told_beside_what_gets_better() {
        let row = |id, line_bytes, before, after| RegionLines {
            id: RegionId(id),
            region: format!("f{id}"),
            data_model: "LP64",
            line_bytes,
            before: Some(before),
            after,
        };
        let worth = |id, lines_saved, share| RegionSaving {
            id: RegionId(id),
            region: format!("f{id}"),
            lines_saved,
            of_lines: Some(10.0),
            share: Some(share),
            stalls: None,
            calls_per_second: None,
        };
        let order = order(vec![
            row(0, 64, 3.0, 2.0),
            row(1, 64, 1.0, 1.5),
            row(1, 32, 1.0, 2.0),
            row(0, 128, 2.0, 1.0),
        ]);
        let told = Description {
            predicted: None,
            worth: vec![worth(0, 1.0, 0.1), worth(1, -0.5, -0.05)],
            ..Description::told(REORDER, "rq", "")
        };
        let advice = Advice { descriptions: vec![told], ..Advice::none(64) };
        let message = commit_message(&order, &advice, &ground());
        assert!(message.contains("struct rq: curr, idle moved."), "{message}");
        assert!(
            message.contains("f0                                 100     3.00     2.00  -10.0 %\n"),
            "{message}"
        );
        assert!(
            message.contains("f1                                 101     1.00     1.50    5.0 %\n"),
            "{message}"
        );
        assert!(
            message.contains("Worse with lines of other sizes:\n    f1, 32 bytes: 1.00 -> 2.00\n"),
            "{message}"
        );
    }
}
