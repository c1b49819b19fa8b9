//! The share of a region's total need that an edit saves, and the alignments that can pay.

use crate::pahole::{Folder, member, push, structure};
use lineup_advise::advise;
use lineup_advise::judge::NoCompiler;
use lineup_advise::options::Options;
use lineup_advise::proposal::Advice;
use lineup_advise::sources::Sources;
use lineup_advise::usage::{Scale, Usage};
use lineup_explain::slabs::SlabCache;
use lineup_explain::stalls::RegionStalls;
use lineup_model::abi::Abi;
use lineup_model::region::{Region, RegionId, Regions};
use lineup_model::types::{TypeId, TypeKind, Types};
use lineup_model::usage::{ByteUse, ObjectPattern, TypeUse};
use std::collections::BTreeSet;

/// Objects of `struct rec` that begin `base` bytes into a line, used by one region at its bytes `touched`.
struct Case {
    folder: Folder,
    types: Types,
    usage: Usage,
    options: Options,
}

impl Case {
    fn new(text: &str, base_in_line: u8, touched: &[(u64, u64)]) -> Case {
        Case::of("rec", text, base_in_line, touched)
    }

    fn of(name: &str, text: &str, base_in_line: u8, touched: &[(u64, u64)]) -> Case {
        Case::of_files(name, &[("a.c", text)], base_in_line, touched)
    }

    fn of_files(name: &str, files: &[(&str, &str)], base_in_line: u8, touched: &[(u64, u64)]) -> Case {
        let folder = Folder::new(files, "a.c", &[name]);
        folder.write(&Default::default());
        let types = folder.types(Abi::X86_64).expect("compiles");
        let ty = types.by_name()[name][0];
        let bytes =
            touched.iter().map(|&(offset, size_bytes)| ByteUse { offset, size_bytes, loads: 1, stores: 0 });
        let pattern = ObjectPattern::alone(base_in_line, bytes.collect(), 10);
        let used =
            TypeUse { region: RegionId(0), ty, calls: 10, patterns: vec![pattern], used_as: BTreeSet::new() };
        let usage = Usage {
            regions: Regions::from_iter([Region::named("hot")]),
            types: vec![used],
            ..Usage::empty(Abi::X86_64)
        };
        Case { folder, types, usage, options: Options::default() }
    }

    fn rec(&self) -> TypeId {
        self.types.by_name()["rec"][0]
    }

    fn advise(&self) -> Advice {
        let sources = Sources::new(self.folder.files.clone());
        advise(&self.usage, &self.types, &sources, &self.options, &mut NoCompiler)
            .expect("nothing but candidates fails")
    }
}

const SPREAD: &str = "struct rec { long a; char cold[120]; long b; };\nstruct rec r;\n";

fn spread(lines_of_the_region: f64) -> Case {
    let mut case = Case::new(SPREAD, 0, &[(0, 8), (128, 8)]);
    let data_lines = Some([lines_of_the_region; 3]);
    case.usage.scales.insert(RegionId(0), Scale { data_lines, ..Scale::default() });
    case
}

#[test]
fn a_proposal_tells_its_share_of_the_regions_lines() {
    let advice = spread(8.0).advise();
    let worth = &advice.descriptions[0].worth[0];
    assert_eq!((worth.lines_saved, worth.of_lines, worth.share), (1.0, Some(8.0), Some(0.125)));
}

/// A quarter of the lines goes: of 400 modelled cycles a call 300 are for data, and the region has half of all.
#[test]
fn a_proposal_tells_its_share_of_the_modelled_stalls() {
    let mut case = spread(4.0);
    let scale = case.usage.scales.get_mut(&RegionId(0)).expect("the region");
    assert_eq!(scale.stalls, None);
    scale.stalls =
        Some(RegionStalls { data_cycles_per_call: 300.0, cycles_per_call: 400.0, of_program: Some(0.5) });
    scale.calls_per_second = Some(1000.0);
    let worth = case.advise().descriptions[0].worth[0].clone();
    let stalls = worth.stalls.expect("modelled stalls");
    assert_eq!((stalls.cycles, stalls.of_region, stalls.of_program), (75.0, 0.1875, Some(0.09375)));
    assert_eq!(worth.calls_per_second, Some(1000.0));
    assert_eq!(spread(4.0).advise().descriptions[0].worth[0].stalls, None, "not observed");
}

#[test]
fn what_saves_too_small_a_share_is_told_and_not_in_the_patch() {
    let advice = spread(1000.0).advise();
    assert!(advice.orders.is_empty() && advice.edited.is_empty());
    assert_eq!(advice.too_little.len(), 1);
    assert!(advice.too_little[0].summary.contains("0.10 %"), "{}", advice.too_little[0].summary);
    let mut all = spread(1000.0);
    all.options.least_share = 0.0;
    assert_eq!(all.advise().orders.len(), 1);
}

#[test]
fn advice_from_one_thread_says_so() {
    let mut case = spread(8.0);
    case.usage.threads = 1;
    assert_eq!(case.advise().threads, 1);
}

/// Three hot members on three lines: one move saves a line, two save two.
#[test]
fn a_patch_moves_no_more_members_than_asked_for() {
    let text = "struct rec {\n\tlong a;\n\tchar x[56];\n\tlong b;\n\tchar y[56];\n\tlong c;\n\tchar z[56];\n};\nstruct rec r;\n";
    let advised = |most_moved: Option<usize>| {
        let mut case = Case::new(text, 0, &[(0, 8), (64, 8), (128, 8)]);
        case.options.most_moved = most_moved;
        let order = case.advise().orders.pop().expect("an order");
        let of_lines = order.lines.iter().find(|row| row.line_bytes == 64 && row.data_model == "LP64");
        (order.moved.len(), of_lines.expect("lines").after)
    };
    assert_eq!(advised(Some(1)), (1, 2.0));
    assert_eq!(advised(Some(2)), (2, 1.0));
    assert_eq!(advised(None).1, 1.0);
}

/// A struct of one line that begins in the middle of one.
const STRADDLES: &str = "struct rec { long a[8]; };\nstruct rec *r;\n";

fn alignments(case: &Case) -> usize {
    case.advise().alignments.len()
}

#[test]
fn objects_that_straddle_lines_are_named_for_an_alignment() {
    assert_eq!(alignments(&Case::new(STRADDLES, 32, &[(0, 64)])), 1);
}

#[test]
fn objects_on_stacks_get_no_alignment() {
    let mut case = Case::new(STRADDLES, 32, &[(0, 64)]);
    case.usage.stack_types.insert(case.rec());
    assert_eq!(alignments(&case), 0);
}

#[test]
fn parts_of_other_types_and_small_types_get_no_alignment() {
    let mut part = Case::new(STRADDLES, 32, &[(0, 64)]);
    let rec = part.rec();
    let parts = push(&mut part.types, "", Some(128), TypeKind::Array { element: rec, counts: vec![Some(2)] });
    structure(&mut part.types, "other", 128, vec![member("parts", parts, 0)]);
    assert_eq!(alignments(&part), 0);
    let view = "struct rec { const char *text; long length; };\nstruct rec r;\n";
    assert_eq!(alignments(&Case::new(view, 56, &[(0, 16)])), 0);
}

/// A link lies in the linked object, a header in the bytes of a packet: both straddle lines as the bytes around them
/// do.
#[test]
fn a_kernels_links_and_packet_headers_get_no_alignment() {
    let list = "struct list_head { struct list_head *next, *prev; };\nstruct list_head r;\n";
    let header = "struct ethhdr { unsigned char h_dest[6], h_source[6]; unsigned short h_proto; } \
                  __attribute__((packed));\nstruct ethhdr r;\n";
    for (name, text, base, touched) in
        [("list_head", list, 56, [(0, 8), (8, 8)]), ("ethhdr", header, 58, [(0, 6), (12, 2)])]
    {
        let advice = Case::of(name, text, base, &touched).advise();
        assert!(advice.alignments.is_empty(), "{name}: {:?}", advice.alignments);
        assert!(advice.orders.is_empty() && advice.edited.is_empty(), "{name}");
    }
}

#[test]
fn nothing_is_aligned_where_no_call_misses() {
    let mut case = Case::new(STRADDLES, 32, &[(0, 64)]);
    case.usage.scales.insert(RegionId(0), Scale { data_misses: Some(0.0), ..Scale::default() });
    assert_eq!(alignments(&case), 0);
}

/// An unused member may go to the end from between used ones, and nowhere else to shift the rest.
#[test]
fn a_small_patch_puts_nothing_cold_beside_what_is_hot() {
    let advised = |text: &str, hot: &[(u64, u64)], most_moved: Option<usize>| {
        let mut case = Case::new(text, 0, hot);
        case.options.most_moved = most_moved;
        case.advise().orders.pop().map(|order| order.moved)
    };
    let between = "struct rec {\n\tlong a[2];\n\tlong cold;\n\tlong b[3];\n\tlong c[3];\n\tlong x[7];\n\tlong y;\n\tlong z;\n};\nstruct rec r;\n";
    let hot = [(0, 16), (24, 24), (48, 24)];
    assert_eq!(advised(between, &hot, Some(1)), Some(vec!["cold".to_string()]));
    // Only with eight bytes more before them do both hot members lie on one line.
    let shifting = "struct rec {\n\tlong x[7];\n\tlong b[4];\n\tlong c[4];\n\tlong y;\n\tlong z[7];\n};\nstruct rec r;\n";
    let hot = [(56, 32), (88, 32)];
    let moved = advised(shifting, &hot, Some(1));
    assert!(moved.as_ref().is_none_or(|moved| !moved.contains(&"y".to_string())), "{moved:?}");
    assert!(advised(shifting, &hot, None).is_some());
}

/// One move saves a line, a second one the last tenth of another.
#[test]
fn a_move_that_adds_little_is_not_made() {
    let text = "struct rec {\n\tlong a;\n\tchar x[56];\n\tlong b;\n\tchar y[56];\n\tlong c;\n\tchar z[56];\n};\nstruct rec r;\n";
    let moved = |rarely: u64| {
        let mut case = Case::new(text, 0, &[(0, 8), (64, 8)]);
        let mut patterns = case.usage.types[0].patterns.clone();
        let mut rare = patterns[0].clone();
        rare.bytes[1].offset = 128;
        rare.occurrences = rarely;
        patterns.push(rare);
        case.usage.types[0].patterns = patterns;
        case.options.most_moved = Some(2);
        case.advise().orders.pop().expect("an order").moved
    };
    assert_eq!(moved(10).len(), 2);
    assert_eq!(moved(1).len(), 1);
}

/// A region that saves a line while another pays half of one is a trade that nobody asked for.
#[test]
fn no_region_pays_for_what_another_saves() {
    let text =
        "struct rec {\n\tlong a;\n\tlong b;\n\tchar x[112];\n\tlong c;\n\tlong d[7];\n};\nstruct rec r;\n";
    let advised = |others: u64, most_moved: Option<usize>| {
        let mut case = Case::new(text, 0, &[(0, 8), (128, 8)]);
        case.usage.regions = Regions::from_iter([Region::named("hot"), Region::named("other")]);
        let mut other = case.usage.types[0].clone();
        other.region = RegionId(1);
        other.patterns[0].bytes[0] = ByteUse { offset: 136, size_bytes: 56, loads: 7, stores: 0 };
        other.patterns[0].occurrences = others;
        case.usage.types.push(other);
        case.options.most_moved = most_moved;
        case.advise().orders.pop().map(|order| order.moved)
    };
    assert_eq!(advised(0, Some(1)), Some(vec!["c".to_string()]));
    assert_eq!(advised(5, Some(1)), None, "the other region uses c with d, in half of its calls");
    assert!(advised(5, None).is_some());
}

fn moved(text: &str, hot: &[(u64, u64)], most_moved: usize) -> Option<Vec<String>> {
    let mut case = Case::new(text, 0, hot);
    case.options.most_moved = Some(most_moved);
    case.advise().orders.pop().map(|order| order.moved)
}

/// As the kernel's `rtable`: the member that goes out is used as well, and neither move saves anything alone.
#[test]
fn a_small_patch_is_found_though_its_first_move_saves_nothing() {
    let text = "struct rec {\n\tlong a[14];\n\tint genid;\n\tint flags;\n\tint kind;\n\tint iif;\n\n\tint list[40];\n\tint mtu;\n\
                \tfloat rest;\n};\nstruct rec r;\n";
    let mut case = Case::new(text, 0, &[(0, 8), (64, 8), (112, 4), (120, 4), (124, 4), (288, 4)]);
    let flags = [(0, 8), (64, 8), (116, 4)];
    let bytes = flags.map(|(offset, size_bytes)| ByteUse { offset, size_bytes, loads: 1, stores: 0 });
    let rare =
        ObjectPattern { bytes: bytes.to_vec(), occurrences: 1, ..case.usage.types[0].patterns[0].clone() };
    case.usage.types[0].patterns.push(rare);
    case.options.most_moved = Some(2);
    case.options.pins = vec![("rec".into(), "a".into())];
    let order = case.advise().orders.pop().expect("an order").new_order;
    assert_eq!(order, ["a", "genid", "kind", "iif", "mtu", "flags", "list", "rest"]);
}

/// A short member between long ones would leave a hole on either side of it.
#[test]
fn a_small_patch_makes_no_hole() {
    let with = |rest: &str| {
        format!(
            "struct rec {{\n\tlong hot;\n\tlong warm;\n\tlong cold[6];\n\tlong more[8];\n\tshort it;\n\t{rest};\n\tlong last[3];\n}};\nstruct rec r;\n"
        )
    };
    let hot = [(0, 8), (8, 8), (128, 2)];
    // The hole behind it goes with it.
    assert_eq!(moved(&with("long next"), &hot, 1), Some(vec!["it".to_string()]));
    // A member that fills the line behind it would leave a hole.
    assert_eq!(moved(&with("short next[3]"), &hot, 1), None);
}

/// Half a type is no member that a small patch moves.
#[test]
fn a_small_patch_moves_nothing_large() {
    let text = |bytes: u64| {
        format!(
            "struct rec {{\n\tlong hot;\n\tchar large[{bytes}];\n\tlong warm;\n\tlong cold[40];\n\tlong next;\n\tlong last[8];\n}};\nstruct rec r;\n"
        )
    };
    let hot = |bytes: u64| [(0, 8), (8, 1), (8 + bytes, 8)];
    assert!(moved(&text(256), &hot(256), 1).is_some());
    let moved = moved(&text(320), &hot(320), 1);
    assert!(moved.as_ref().is_none_or(|moved| moved != &["large"]), "{moved:?}");
}

/// As the kernel's `rq`: several members used by one call in a hundred do not go out of the way of the rest.
#[test]
fn a_small_patch_moves_what_is_seldom_used_as_if_it_were_not_used() {
    let text = "struct rec {\n\tlong a[5];\n\tlong x;\n\tdouble y;\n\tlong b;\n\tdouble c;\n\tlong d;\n\tdouble rest[8];\n\tlong end;\n};\n\
                struct rec r;\n";
    let moved = |others: u64| {
        let mut case = Case::new(text, 0, &[(0, 40), (56, 8), (64, 8), (72, 8)]);
        let bytes = [(40, 8), (48, 8)].map(|(offset, size_bytes)| ByteUse {
            offset,
            size_bytes,
            loads: 1,
            stores: 0,
        });
        let used = &mut case.usage.types[0];
        (used.calls, used.patterns[0].occurrences) = (1000, 1000);
        let other = ObjectPattern { bytes: bytes.to_vec(), occurrences: others, ..used.patterns[0].clone() };
        used.patterns.push(other);
        case.options.most_moved = Some(2);
        case.advise().orders.pop().map(|order| order.moved)
    };
    assert_eq!(moved(500), Some(vec!["x".to_string(), "y".to_string()]));
    assert_eq!(moved(10), None);
}

/// Three lines of a record are used; values by position for its first three members stand in a file that a program
/// writes.
#[test]
fn an_order_that_leaves_generated_values_as_they_are_is_preferred() {
    let rec = "#pragma GCC diagnostic ignored \"-Wmissing-field-initializers\"\n\
               struct rec { int key; int kind; char name[120]; long first; char text[120]; long second; };\n\
               #include \"table.h\"\nstruct rec r;\n";
    let table = "/* generated by maketable */\nstatic const struct rec table[] = {\n\t{ 1, 2, \"a\" },\n\t{ 3, 4, \"b\" },\n};\n";
    let files = [("a.c", rec), ("table.h", table)];
    let advice = Case::of_files("rec", &files, 0, &[(0, 4), (128, 8), (256, 8)]).advise();
    let [order] = &advice.orders[..] else { panic!("{:?}", advice.refusals) };
    assert_eq!(order.new_order[..3], ["key", "kind", "name"]);
    assert_eq!(advice.edited.keys().collect::<Vec<_>>(), ["a.c"]);
    assert_eq!(order.rewritten_values, [""; 0]);
    // The only better order moves them.
    let advice = Case::of_files("rec", &files, 0, &[(0, 4), (128, 8)]).advise();
    let [order] = &advice.orders[..] else { panic!("{:?}", advice.refusals) };
    assert!(advice.edited["table.h"].contains(".key = 1"), "{}", advice.edited["table.h"]);
    assert_eq!(
        order.rewritten_values,
        [
            "The patch rewrites 2 lines of values by position in table.h, which says that a program generates it: \
          that program has to be changed as well."
        ]
    );
    assert!(advice.descriptions[0].reasons.contains(&order.rewritten_values[0]));
}

/// Half of an object is used at most, and nothing but a split reaches the rest.
#[test]
fn a_type_that_stays_as_it_is_gets_a_sketch_of_a_split() {
    let text = "struct rec { long hot; char cold[56]; };\nstruct rec r;\n";
    let mut case = Case::new(text, 0, &[(0, 8)]);
    case.usage.scales.insert(RegionId(0), Scale { data_lines: Some([1.0; 3]), ..Scale::default() });
    let advice = case.advise();
    assert!(advice.orders.is_empty() && advice.edited.is_empty());
    let [sketch] = &advice.suggestions[..] else { panic!("{:?}", advice.suggestions) };
    assert_eq!(
        sketch.summary,
        "By hand, since no patch is made for a split: rec keeps hot (8 of its 64 bytes) and a pointer to a second \
         struct with the other member. Where objects lie in an array, an array for each of hot needs no pointer."
    );
    let lines = &sketch.lines[0];
    assert_eq!((lines.before, lines.after), (Some(1.0), 0.125));
}

/// As `shmem_inode_info`: objects of 784 bytes begin at four places in a line, and a run used one of them.
#[test]
fn an_order_is_judged_at_every_place_that_a_slab_cache_gives() {
    let text = "struct rec {\n\tlong a;\n\tlong b[5];\n\tlong c[2];\n\tlong d;\n\tchar rest[704];\n};\nstruct rec r;\n";
    let advised = |stride_bytes: Option<u64>| {
        // Objects that begin 16 bytes into a line use `a` and `d`, which the same line holds only at 0.
        let mut case = Case::new(text, 48, &[(0, 8), (48, 16)]);
        let rec = case.rec();
        let cache = stride_bytes.map(|stride_bytes| SlabCache { slab_bytes: 16384, stride_bytes });
        case.usage.slabs = cache.map(|cache| (rec, cache)).into_iter().collect();
        case.advise()
    };
    let of_lines = |advice: &Advice| {
        let order = &advice.orders[0];
        let row =
            order.lines.iter().find(|row| row.line_bytes == 64 && row.data_model == "LP64").expect("lines");
        (row.before.expect("lines"), row.after)
    };
    // At the recorded place the two lie on two lines.
    assert_eq!(of_lines(&advised(None)), (2.0, 1.0));
    // At 0 they share a line; at 16, 32 and 48 they do not. Side by side, in 24 bytes, they cross a line only from 48.
    let advice = advised(Some(784));
    let (before, after) = of_lines(&advice);
    assert!((before - 1.75).abs() < 0.01 && after < before, "{before} {after}");
    let reasons = &advice.descriptions[0].reasons;
    assert!(reasons.iter().any(|reason| reason.contains("averaged over the 4 places")), "{reasons:?}");
    // A place that the cache does not give stays: such an object lies in another one.
    let mut case = Case::new(text, 24, &[(0, 8), (48, 16)]);
    let rec = case.rec();
    case.usage.slabs.insert(rec, SlabCache { slab_bytes: 16384, stride_bytes: 784 });
    assert_eq!(of_lines(&case.advise()).0, 2.0);
}
