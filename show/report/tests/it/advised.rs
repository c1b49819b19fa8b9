//! From advice to the proposals and refusals of a report.

use crate::sample;
use lineup_advise::constraint::{Binding, Constraint};
use lineup_advise::proposal::{
    Advice, AlignmentAdvice, Check, GatherProposal, ImmediateAdvice, LoadsPerCall, OrderProposal, Reason,
    Refusal, RegionLines, SizeChange, SplitAdvice,
};
use lineup_model::region::RegionId;
use lineup_report::html::study_page;
use lineup_report::study::{OffsetCheck, ProposalStatus, StudyReport};
use lineup_report::text::{Telling, TextStyle, study_text};
use std::collections::BTreeMap;

/// Lines of a region by its number in the sample.
fn lines(id: u16, before: Option<f64>, after: f64) -> RegionLines {
    RegionLines {
        id: RegionId(id),
        region: format!("region {id}"),
        data_model: "LP64",
        line_bytes: 64,
        before,
        after,
    }
}

fn advice() -> Advice {
    let order = OrderProposal {
        parted: None,
        type_name: "device".into(),
        path: "include/device.h".into(),
        old_order: vec!["cold".into(), "hot".into()],
        new_order: vec!["hot".into(), "cold".into()],
        field_order: vec![1, 0],
        new_offsets_bits: vec![0, 64],
        moved: vec!["hot".into()],
        moved_bytes: 8,
        lines: vec![lines(1, Some(2.0), 1.0), lines(7, Some(9.0), 1.0)],
        sizes: vec![SizeChange { data_model: "LP64", before_bytes: 128, after_bytes: 120 }],
        is_proven_minimal: true,
        further: None,
        check: Check::Compiled,
        reasons: vec![Reason { member: "hot".into(), because: "joins the line of next_event".into() }],
        obeyed: vec![Binding::new(Constraint::BitFieldRun).on(["state", "flags"]).at("include/device.h", 12)],
        averaged: None,
        seen_outside: None,
        rewritten_values: Vec::new(),
        named_values: Vec::new(),
        asserted: vec![],
        edited: BTreeMap::from([("include/device.h".into(), "struct device;".into())]),
    };
    let gather = GatherProposal {
        name: "clock_hot".into(),
        path: "clock.c".into(),
        variables: vec!["cd".into(), "mask".into()],
        reordered_types: vec!["clock_data".into()],
        lines: vec![lines(0, None, 1.0)],
        sizes: vec![],
        check: Check::CompiledRecordedOnly,
        notes: vec![],
        asserted: vec![],
        edited: BTreeMap::new(),
    };
    let mut advice = Advice {
        orders: vec![order],
        gathers: vec![gather],
        alignments: vec![AlignmentAdvice {
            owner: "Table".into(),
            align_bytes: 64,
            lines: vec![],
            unaligned_share: 0.75,
            how: "Allocate with aligned_alloc.".into(),
        }],
        splits: vec![SplitAdvice {
            type_name: "Order".into(),
            hot: vec!["price_".into(), "next_".into()],
            hot_bytes: 16,
            size_bytes: 136,
            objects_per_call: 12.5,
            hot_parts_per_line: 4,
            pointer_bytes: 8,
            lines: vec![],
            because: None,
        }],
        immediates: vec![ImmediateAdvice {
            variable: "mask".into(),
            loads: vec![LoadsPerCall { region: "sched_clock".into(), loads_per_call: 1.0 }],
            size_bytes: 1,
        }],
        refusals: vec![Refusal {
            owner: "packet".into(),
            constraints: vec![Binding::new(Constraint::Packed)],
            lines: vec![lines(1, Some(3.0), 1.0)],
        }],
        already_good: vec!["list_head".into()],
        ..Advice::none(64)
    };
    advice.descriptions = lineup_advise::kinds().iter().flat_map(|kind| kind.describe(&advice)).collect();
    advice
}

/// The sample's regions with nothing but this advice.
fn advised() -> StudyReport {
    let mut report = StudyReport::new("advised");
    report.regions = sample::study().regions;
    report.add_advice(&advice());
    report
}

#[test]
fn every_kind_of_advice_becomes_a_proposal() {
    let report = advised();
    let kinds: Vec<(&str, ProposalStatus, Option<OffsetCheck>)> =
        report.proposals.iter().map(|one| (one.kind.slug, one.status, one.check)).collect();
    use ProposalStatus::{InPatch, Reported};
    assert_eq!(
        kinds,
        [
            ("gather", Reported, Some(OffsetCheck::CompiledRecordedOnly)),
            ("reorder", InPatch, Some(OffsetCheck::Compiled)),
            ("align", Reported, None),
            ("split", Reported, None),
            ("immediate-value", Reported, None),
        ]
    );
    assert_eq!(report.already_good, ["list_head"]);
}

#[test]
fn regions_are_found_by_name_and_unknown_ones_left_out() {
    let report = advised();
    let order = &report.proposals[1];
    assert_eq!(order.gains.len(), 1);
    assert_eq!((order.gains[0].region, order.gains[0].before, order.gains[0].after), (1, Some(2.0), 1.0));
    assert_eq!(order.constraints[0].at.as_deref(), Some("include/device.h:12"));
}

#[test]
fn advice_reads_as_sentences() {
    let text =
        study_text(&advised(), Telling { style: TextStyle::Plain, is_full: true, all_data_models: false });
    let (_, proposals) = text.split_once("Proposal: ").expect("a proposal");
    insta::assert_snapshot!(proposals, @r#"
    gather variables — cd, mask (reported, not in the patch)
    In clock.c, they become members of one aligned struct, clock_hot.
    - The members of clock_data are reordered, hot ones first.
      clockevents_adjust_all_freqs, LP64, 64 B lines: – → 1
      checked: offsets read back from the compiler under the recorded data model, predicted for the other

    Proposal: reorder members — device (in the patch)
    Moved in include/device.h: hot (8 bytes). No allowed order needs fewer lines for an object.
    - hot: joins the line of next_event
    - side effect: what follows an object of it, in arrays and in types that hold it, moves by 8 bytes
      clockevents_program_event, LP64, 64 B lines: 2 → 1
      checked: offsets read back from the compiler under every data model named
      obeyed: a run of bit-fields moves whole: state, flags (include/device.h:12)

    Proposal: align — Table (reported, not in the patch)
    Allocate with aligned_alloc.
    - 75.0 % of the recorded objects did not start on a line; an alignment of 64 bytes would make them.

    Proposal: split hot from cold — Order (reported, not in the patch)
    By hand, since no patch is made for a split. Calls use 16 of the 136 bytes of an object, and 12.5 objects each. Stored apart, 4 hot parts would share a line.
    - Hot: price_, next_.
    - The price: a pointer of 8 bytes in each object leads to its other part, and who uses that loads it and needs a line more.

    Proposal: immediate value — mask (reported, not in the patch)
    sched_clock loads it 1 times per call; no recorded call writes it: it could be part of the instructions (size 1 B).

    Refused: packet
    - the type is packed
      lines per call now, and at the least that the hot bytes need:
      clockevents_program_event, LP64, 64 B lines: 3 → 1

    Already as good as any allowed order: list_head
    "#);
}

#[test]
fn lines_that_were_not_observed_are_a_dash_on_the_page() {
    let page = study_page(&advised());
    assert!(page.contains("– → <span class=\"muted\">1</span>"));
    assert!(page.contains("Now, and at the least that the hot bytes need"));
}

#[test]
fn advice_from_one_thread_or_processor_says_that_it_saw_one() {
    for (threads, is_said) in [(1, true), (2, false)] {
        let mut report = StudyReport::new("advised");
        report.add_advice(&Advice { threads, ..advice() });
        let telling = Telling { style: TextStyle::Plain, is_full: true, all_data_models: false };
        let said = [study_text(&report, telling), study_page(&report)];
        let says = |text: &String| text.contains("calls of one thread (of a kernel: one CPU) were recorded");
        assert_eq!(said.each_ref().map(says), [is_said; 2], "{threads}");
    }
}

/// Functions of two programs, and static functions of two files, may share a name.
#[test]
fn regions_of_one_name_get_their_own_figures() {
    let mut report = StudyReport::new("advised");
    report.regions = sample::study().regions;
    report.regions.iter_mut().for_each(|region| region.name = "step".into());
    let mut advice = advice();
    advice.refusals[0].lines = vec![lines(1, Some(3.0), 1.0), lines(0, Some(8.0), 2.0)];
    report.add_advice(&advice);
    let gains: Vec<(usize, f64)> =
        report.refusals[0].gains.iter().map(|gain| (gain.region, gain.after)).collect();
    assert_eq!(gains, [(1, 1.0), (0, 2.0)]);
}
