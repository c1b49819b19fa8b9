//! A made-up study, shaped like the clock event device of 2016, for tests and for looking at.

use lineup_model::line::LineSize;
use lineup_model::region::RegionId;
use lineup_prove::effects::{Content, Effects, ProcessEffects, ProcessPath, RepeatedEffects, Stream, Target};
use lineup_prove::footprint::{LineCounts, RegionFootprint};
use lineup_prove::region_time::{RegionTotal, TimedCalls, compare_regions};
use lineup_prove::run::Ending;
use lineup_prove::{Conduct, ConductEffects, ProofPlan, Recorded, RunResult, Slot, Variant, prove};
use lineup_report::study::*;

/// Name, size and alignment of each member on LP64, in the order before.
const BEFORE: &[(&str, u64)] = &[
    ("event_handler", 8),
    ("set_next_event", 8),
    ("set_next_ktime", 8),
    ("next_event", 8),
    ("max_delta_ns", 8),
    ("max_delta_ticks", 8),
    ("min_delta_ticks_adjusted", 4),
    ("mult_adjusted", 4),
    ("shift", 4),
    ("state_use_accessors", 1),
    ("features", 3),
    ("retries", 4),
    ("set_state_periodic", 8),
    ("set_state_oneshot", 8),
    ("set_state_oneshot_stopped", 8),
    ("set_state_shutdown", 8),
    ("tick_resume", 8),
    ("broadcast", 8),
    ("suspend", 8),
    ("resume", 8),
    ("name", 8),
    ("min_delta_ticks", 4),
    ("mult", 4),
    ("rating", 4),
    ("irq", 4),
    ("bound_on", 4),
    ("cpumask", 8),
    ("list", 16),
    ("owner", 8),
];

/// Members that stand first after the change; the others keep their order.
const FIRST: &[&str] = &[
    "set_next_event",
    "next_event",
    "max_delta_ns",
    "min_delta_ticks_adjusted",
    "mult_adjusted",
    "shift",
    "state_use_accessors",
    "features",
    "list",
    "mult",
];

/// Region, loads and stores per call.
fn uses(member: &str) -> Vec<RegionUse> {
    let one = |region, loads_per_call, stores_per_call| RegionUse { region, loads_per_call, stores_per_call };
    match member {
        "features" => vec![one(0, 64.0, 0.0), one(1, 1.0, 0.0)],
        "shift" => vec![one(0, 64.0, 0.0), one(1, 0.95, 0.0)],
        "mult_adjusted" => vec![one(0, 0.0, 64.0), one(1, 0.95, 0.0)],
        "mult" | "list" => vec![one(0, 64.0, 0.0)],
        "next_event" => vec![one(1, 0.0, 1.0)],
        "state_use_accessors" => vec![one(1, 2.0, 0.0)],
        "set_next_event" | "max_delta_ns" | "min_delta_ticks_adjusted" => vec![one(1, 0.95, 0.0)],
        _ => Vec::new(),
    }
}

fn members(order: &[(&str, u64)]) -> Vec<MemberUse> {
    let mut offset = 0u64;
    let mut placed = Vec::new();
    for (name, size_bytes) in order {
        let align = if *name == "features" { 1 } else { (*size_bytes).min(8) };
        offset = offset.next_multiple_of(align);
        let uses = uses(name);
        placed.push(MemberUse {
            name: (*name).into(),
            offset,
            size_bytes: *size_bytes,
            touched: vec![],
            uses,
            sharing: None,
        });
        offset += size_bytes;
    }
    placed
}

fn reordered() -> Vec<(&'static str, u64)> {
    let (first, rest): (Vec<_>, Vec<_>) = BEFORE.iter().copied().partition(|(name, _)| FIRST.contains(name));
    let rank = |name: &str| FIRST.iter().position(|one| *one == name);
    let mut first = first;
    first.sort_by_key(|(name, _)| rank(name));
    first.into_iter().chain(rest).collect()
}

fn lines(counts: &[(u64, u64)]) -> LineDistribution {
    LineDistribution::new(counts.iter().copied()).expect("calls were counted")
}

fn footprint(kind: LineKind, line_bytes: u32, before: &[(u64, u64)], after: &[(u64, u64)]) -> Footprint {
    Footprint { kind, line_bytes, before: lines(before), after: Some(lines(after)) }
}

fn regions() -> Vec<RegionReport> {
    let spread = |min, median, max| Some(Quantiles { min, median, max });
    vec![
        RegionReport {
            id: RegionId(0),
            name: "clockevents_adjust_all_freqs".into(),
            weight: 1.0,
            calls_recorded: 2000,
            calls_made: Some(2000),
            calls_abandoned: 0,
            calls_per_second: Some(118_300.0),
            instructions_per_call: spread(1102.0, 1102.0, 1102.0),
            footprints: vec![
                footprint(LineKind::Data, 32, &[(195, 2000)], &[(131, 1988), (132, 12)]),
                footprint(LineKind::Data, 64, &[(131, 1990), (132, 10)], &[(67, 1988), (68, 12)]),
                footprint(LineKind::Data, 128, &[(130, 2000)], &[(66, 2000)]),
                footprint(LineKind::Code, 64, &[(3, 2000)], &[(3, 2000)]),
            ],
            misses: vec![MissesPerCall {
                cache: "L1D 32 KiB, 8 ways, 64-byte lines".into(),
                pressure_bytes: 32_768,
                before: 128.4,
                after: Some(64.6),
            }],
            time: Some(call_time()),
        },
        RegionReport {
            id: RegionId(1),
            name: "clockevents_program_event".into(),
            weight: 1.0,
            calls_recorded: 128_000,
            calls_made: Some(128_000),
            calls_abandoned: 0,
            calls_per_second: Some(7_571_000.0),
            instructions_per_call: spread(12.0, 46.0, 51.0),
            footprints: vec![
                footprint(LineKind::Data, 64, &[(3, 9200), (5, 118_800)], &[(3, 9200), (5, 118_800)]),
                footprint(LineKind::Code, 64, &[(2, 9200), (4, 118_800)], &[(2, 9200), (4, 118_800)]),
            ],
            misses: vec![],
            time: None,
        },
    ]
}

/// Calls that take a tenth less time, compared.
fn call_time() -> CallTime {
    let mut timer = |slot: &Slot| {
        let total_ns =
            if slot.variant == Variant::BEFORE { 5_000_000 } else { 4_500_000 } + slot.number % 7 * 1000;
        Ok(TimedCalls { totals: vec![RegionTotal { id: RegionId(0), calls: 2000, total_ns }], spent_ns: 1 })
    };
    let proven = compare_regions(&mut timer, &ProofPlan::default()).expect("a comparison");
    proven.value().first().expect("a region").into()
}

fn proposals() -> Vec<Proposal> {
    let gain = |region, model: &str, line_bytes, before, after| Gain {
        region,
        data_model: model.into(),
        line_bytes,
        before: Some(before),
        after,
    };
    vec![Proposal {
        kind: lineup_advise::proposal::REORDER,
        target: "struct clock_event_device".into(),
        summary: "Ten members that both regions use come first and share one 64-byte line; the others keep their order.".into(),
        reasons: vec![
            "clockevents_adjust_all_freqs touches lines 0 and 2 of each of 64 devices per call.".into(),
            "60 bytes serve both regions; a line has 64.".into(),
        ],
        predicted: None,
        worth: vec![SavingReport {
            region: 0,
            lines_saved: 64.0,
            of_lines: Some(131.0),
            share: Some(64.0 / 131.0),
            stalls: None,
            calls_per_second: Some(118_300.0),
        }],
        gains: vec![
            gain(0, "LP64", 32, 195.0, 131.0),
            gain(0, "LP64", 64, 131.0, 67.0),
            gain(0, "LP64", 128, 130.0, 66.0),
            gain(0, "ILP32", 64, 131.0, 67.0),
            gain(1, "LP64", 64, 4.86, 4.86),
            gain(1, "ILP32", 64, 4.86, 4.86),
        ],
        sizes: vec![
            SizeChange { data_model: "LP64".into(), before_bytes: 256, after_bytes: 192 },
            SizeChange { data_model: "ILP32".into(), before_bytes: 128, after_bytes: 128 },
        ],
        constraints: vec![ConstraintNote {
            rule: "a run of bit-fields moves whole".into(),
            names: vec!["state_use_accessors".into(), "features".into()],
            at: Some("include/clockchips.h:57".into()),
            detail: None,
        }],
        status: ProposalStatus::InPatch,
        check: Some(OffsetCheck::Compiled),
    }]
}

/// Lines of 64 bytes per call of the first region.
fn recorded(lines: &[(u64, u64)]) -> RegionFootprint {
    let data = vec![LineCounts { line: LineSize::B64, calls_by_lines: lines.iter().copied().collect() }];
    RegionFootprint {
        id: RegionId(0),
        region: "clockevents_adjust_all_freqs".into(),
        weight: 1.0,
        data,
        code: vec![],
    }
}

/// A run that prints the same and complains about another time.
fn effects(complaint: &str) -> Effects {
    let stream = |text: &str| Stream { written_by: ["write"].into(), content: Content::of(text.as_bytes()) };
    let streams = [(Target::StandardOutput, stream("same")), (Target::StandardError, stream(complaint))];
    let process = ProcessEffects {
        streams: streams.into(),
        ending: Some(Ending::Exited(0)),
        ..ProcessEffects::default()
    };
    Effects { processes: [(ProcessPath::root(), process)].into(), ..Effects::default() }
}

/// Really compared, with a runner that makes up times: they scatter a little, and the second variant takes
/// three hundredths less.
fn proof() -> ProofReport {
    let mut runner = |slot: &Slot| {
        let scatter = slot.number * 37 % 48 * 9_000;
        let start = if slot.variant == Variant::BEFORE { 16_700_000 } else { 16_190_000 };
        Ok(RunResult::finished(0, b"same", b"", start + scatter))
    };
    let plan = ProofPlan { max_blocks: 24, ..ProofPlan::default() };
    let effects = RepeatedEffects { first: effects("took 17 ms"), others: vec![effects("took 18 ms")] };
    let conduct = Conduct { effects: ConductEffects::Observed(effects), ..Conduct::quiet(Vec::new()) };
    let variant = |lines| Recorded { footprints: vec![recorded(lines)], conduct: conduct.clone() };
    let (before, after) = (variant(&[(131, 1990), (132, 10)]), variant(&[(67, 1988), (68, 12)]));
    ProofReport::from(&prove(&before, &after, &mut runner, &plan).expect("both variants print the same"))
}

const PATCH: &str = "--- a/include/clockchips.h\n+++ b/include/clockchips.h\n@@ -45,3 +45,3 @@ struct clock_event_device {\n-\tvoid\t\t\t(*event_handler)(struct clock_event_device *);\n \tint\t\t\t(*set_next_event)(unsigned long evt, struct clock_event_device *);\n+\tvoid\t\t\t(*event_handler)(struct clock_event_device *);\n";

/// The report.
pub(crate) fn study() -> StudyReport {
    let mut report = StudyReport::new("clockevents");
    report.data_model = "LP64".into();
    report.commands = vec![CommandLine {
        purpose: "Study both regions again".into(),
        text: "lineup study --region clockevents_adjust_all_freqs --region clockevents_program_event --source studies/clockevents --build make -- ./clockevents --devices 64".into(),
    }];
    report.setting = vec![
        Fact { name: "Program".into(), value: "x86_64, LP64, gcc 12.2, -g -O2".into() },
        Fact { name: "Host".into(), value: "2 processors, L1D 32 KiB 8 ways; pinned to processor 1".into() },
    ];
    report.regions = regions();
    let mut coverage = Coverage::new(
        vec![
            EvidenceCount { evidence: "variable in the base register".into(), accesses: 1_204_332 },
            EvidenceCount { evidence: "stack".into(), accesses: 402_118 },
            EvidenceCount { evidence: "object map".into(), accesses: 90_021 },
        ],
        vec![FunctionCount { function: "timer_set_next_event".into(), accesses: 12_004 }],
    );
    coverage.share_off_stack = Some(0.991);
    coverage.by_class = vec![
        ClassCount { class: "members of objects".into(), accesses: 1_294_353 },
        ClassCount { class: "stack".into(), accesses: 402_118 },
    ];
    report.coverage = Some(coverage);
    report.maps = vec![
        LineMap {
            owner: Owner {
                kind: OwnerKind::Type,
                name: "struct clock_event_device".into(),
                declared_at: Some("include/clockchips.h:46".into()),
            },
            line_bytes: 64,
            objects_per_call: vec![(0, 64.0), (1, 1.0)],
            notes: vec!["Every object starts at a multiple of 64 bytes.".into()],
            before: ObjectLines::new(256, 64, 0, &members(BEFORE)),
            after: Some(ObjectLines::new(192, 64, 0, &members(&reordered()))),
        },
        shared_counter(),
    ];
    report.shared_lines = vec![SharedLine {
        address: 0x5555_5555_83c0,
        parts: vec!["timer_bank.compare".into(), "timer_bank.armed *".into()],
        readers: vec![0, 2],
        writers: vec![1],
        true_handovers: 12,
        false_handovers: 9102,
    }];
    report.proposals = proposals();
    report.refusals = vec![Refusal {
        target: "struct timer_bank".into(),
        because: vec![ConstraintNote {
            rule: "an initialiser gives values by position".into(),
            names: vec!["compare".into()],
            at: Some("src/timer.c:71".into()),
            detail: None,
        }],
        gains: vec![],
        way_out: Some("Name the members in the initialiser, then study again.".into()),
    }];
    report.already_good = vec!["struct hrtimer".into()];
    report.patch = Some(Patch { file: "lineup-study/fix.patch".into(), text: PATCH.into() });
    report.proof = Some(proof());
    report.not_observed = vec![NotObserved {
        what: "The kernel's own accesses".into(),
        consequence: "System calls made inside a region touch lines that no figure here counts.".into(),
    }];
    report
}

/// A counter that one thread writes, next to a pointer that another reads.
fn shared_counter() -> LineMap {
    let one = |name: &str, offset, loads_per_call, stores_per_call, sharing| MemberUse {
        name: name.into(),
        offset,
        size_bytes: 8,
        touched: vec![],
        uses: vec![RegionUse { region: 1, loads_per_call, stores_per_call }],
        sharing,
    };
    let sharing = Sharing { readers: vec![0, 2], writers: vec![1], handovers: 9114 };
    LineMap {
        owner: Owner {
            kind: OwnerKind::Variable,
            name: "timer_banks".into(),
            declared_at: Some("src/timer.c:13".into()),
        },
        line_bytes: 64,
        objects_per_call: vec![],
        notes: vec![],
        before: ObjectLines::new(
            16,
            64,
            56,
            &[one("banks", 0, 1.0, 0.0, None), one("armed", 8, 1.0, 1.0, Some(sharing))],
        ),
        after: None,
    }
}
