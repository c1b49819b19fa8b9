//! An array for each group of members that calls use together: the edit expected, programs that do the same before and
//! after it under the sanitisers, and what keeps elements whole.

use crate::cold_part::loaded;
use crate::cold_part_read::read_files;
use crate::heap_part::output_by;
use crate::pahole::{integer, member, push, structure};
use lineup_advise::judge::NoCompiler;
use lineup_advise::options::{FailedTrial, Options};
use lineup_advise::proposal::{Advice, ColdPartProposal};
use lineup_advise::sources::Sources;
use lineup_advise::usage::{Scale, Usage};
use lineup_model::abi::Abi;
use lineup_model::region::{Region, RegionId, Regions};
use lineup_model::types::{TypeId, TypeKind, Types};
use lineup_model::usage::{ObjectPattern, TypeUse};
use std::collections::{BTreeMap, BTreeSet};

const HEADER: &str = r#"#ifndef CELL_H
#define CELL_H

/* A cell of the grid. */
struct cell {
    double heat;
    double flow; /* A second. */
    /* By the last walk. */
    long mark;
    int kind;
    int zone;
    char name[16];
    double cost;
};

#endif
"#;

const PROGRAM: &str = r#"#include <stdio.h>
#include <string.h>
#include "cell.h"

#define COUNT 9

static struct cell cells[COUNT];

static void fill(int at)
{
    struct cell *one = &cells[at];
    one->heat = 2.0 * at;
    one->flow = 1;
    one->kind = at % 3;
    one->zone = cells[at].kind + 1;
    one->cost = 0.5;
    snprintf(one->name, sizeof one->name, "no. %d", at);
}

static double warm(void)
{
    double all = 0;
    for (int at = 0; at < COUNT; at++) {
        cells[at].heat += cells[at].flow;
        all += cells[at].heat;
    }
    return all;
}

static long visit(long by)
{
    long all = 0;
    for (int at = 0; at < (int)(sizeof cells / sizeof cells[0]); at++) {
        cells[at].mark += by;
        all += cells[at].mark;
    }
    return all;
}

int main(void)
{
    const struct cell *last = &cells[COUNT - 1];
    for (int at = 0; at < COUNT; at++) {
        fill(at);
    }
    double all = warm();
    long seen = visit(2);
    printf("%.1f %ld %ld %s %.1f %d\n", all, seen, last->mark, last->name, last->heat + (last - 1)->cost,
           cells[cells[3].kind].zone);
    return 0;
}
"#;

/// The struct, 56 bytes.
fn types() -> (Types, TypeId) {
    let mut types = Types::new();
    let [byte, half, word] =
        [("char", 1), ("int", 4), ("long", 8)].map(|(name, size)| integer(&mut types, name, size));
    let name = push(&mut types, "", None, TypeKind::Array { element: byte, counts: vec![Some(16)] });
    let members = [
        ("heat", word, 0),
        ("flow", word, 8),
        ("mark", word, 16),
        ("kind", half, 24),
        ("zone", half, 28),
        ("name", name, 32),
        ("cost", word, 48),
    ];
    let members = members.map(|(name, ty, at)| member(name, ty, 8 * at)).into();
    let id = structure(&mut types, "cell", 56, members);
    (types, id)
}

/// The bytes of each element that a call loads, and the distance between elements.
type Use = (Vec<(u64, u64)>, Option<u64>);

/// Uses of a hundred elements a call, one behind the other: by two members, and by another one.
fn walks() -> Vec<Use> {
    vec![(vec![(0, 16)], Some(56)), (vec![(16, 8)], Some(56))]
}

/// The advice on a program, each of whose regions uses elements in one way.
fn advised(program: &str, uses: &[Use], failed: &[&str]) -> Advice {
    let (types, ty) = types();
    let files = files(program);
    let failed = failed
        .iter()
        .map(|owner| FailedTrial { owner: (*owner).into(), because: "it took more time".into() });
    let meaning = read_files(&files, &["cc -std=gnu11 -c a.c"], "cell");
    let options = Options { meaning, failed: failed.collect(), ..Options::default() };
    let used = (0..).zip(uses).map(|(region, (bytes, neighbour_distance_bytes))| {
        let alone = ObjectPattern::alone(0, loaded(bytes), 1000);
        let patterns = vec![ObjectPattern { neighbour_distance_bytes: *neighbour_distance_bytes, ..alone }];
        TypeUse { region: RegionId(region), ty, calls: 10, patterns, used_as: BTreeSet::new() }
    });
    let scale = Scale { data_lines: Some([180.0, 90.0, 45.0]), ..Scale::default() };
    let usage = Usage {
        regions: ["warm", "visit", "look"]
            .into_iter()
            .take(uses.len())
            .map(Region::named)
            .collect::<Regions>(),
        scales: (0..).zip(uses).map(|(region, _)| (RegionId(region), scale)).collect(),
        types: used.collect(),
        ..Usage::empty(Abi::X86_64)
    };
    let sources =
        files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect::<Vec<_>>();
    lineup_advise::advise(&usage, &types, &Sources::new(sources), &options, &mut NoCompiler).expect("advice")
}

fn files(program: &str) -> Vec<(&str, &str)> {
    vec![("cell.h", HEADER), ("a.c", program)]
}

/// The edited texts, of programs that do the same before and after.
#[track_caller]
fn parted(program: &str) -> BTreeMap<String, String> {
    let advice = advised(program, &walks(), &[]);
    let [one] = advice.cold_parts.as_slice() else { panic!("{:?}", advice.not_split) };
    assert_eq!(groups(one), [vec!["mark"], vec!["kind", "zone", "name", "cost"]]);
    let before: BTreeMap<&str, &str> = files(program).into_iter().collect();
    let mut after = before.clone();
    after.extend(advice.edited.iter().map(|(path, text)| (path.as_str(), text.as_str())));
    for compiler in ["gcc", "clang"] {
        assert_eq!(output_by(compiler, &before), output_by(compiler, &after), "{compiler}");
    }
    advice.edited.clone()
}

fn groups(one: &ColdPartProposal) -> Vec<Vec<&str>> {
    one.groups.iter().map(|group| group.iter().map(String::as_str).collect()).collect()
}

/// The program with these lines before `main`, and these at its beginning.
fn with(above: &str, inside: &str) -> String {
    let text =
        PROGRAM.replace("int main(void)\n{\n", &format!("{above}\nint main(void)\n{{\n    {inside}\n"));
    assert_ne!(text, PROGRAM);
    text
}

#[test]
fn members_that_calls_use_apart_get_arrays_of_their_own() {
    let edited = parted(PROGRAM);
    let header = r#"/* A cell of the grid. */
struct cell {
    double heat;
    double flow; /* A second. */
};

/* A member of struct cell, in an array of its own. */
struct cell_mark {
    /* By the last walk. */
    long mark;
};

/* Members of struct cell that hot loops leave alone. */
struct cell_cold {
    int kind;
    int zone;
    char name[16];
    double cost;
};

#endif
"#;
    assert!(edited["cell.h"].ends_with(header), "{}", edited["cell.h"]);
    let text = &edited["a.c"];
    let declared = r#"
static struct cell cells[COUNT];
static struct cell_mark cells_mark[COUNT];
static struct cell_cold cells_cold[COUNT];

/* mark of struct cell. */
static struct cell_mark *cell_mark_of(const struct cell *one)
{
    return cells_mark + (one - cells);
}

/* The other members of struct cell. */
static struct cell_cold *cell_cold_of(const struct cell *one)
{
    return cells_cold + (one - cells);
}

static void fill(int at)
"#;
    assert!(text.contains(declared), "{text}");
    for line in [
        "    one->heat = 2.0 * at;\n    one->flow = 1;\n    cell_cold_of(one)->kind = at % 3;\n",
        "    cell_cold_of(one)->zone = cells_cold[at].kind + 1;\n",
        "        cells[at].heat += cells[at].flow;\n",
        "        cells_mark[at].mark += by;\n",
        "sizeof cells / sizeof cells[0]",
        "cell_mark_of(last)->mark, cell_cold_of(last)->name, last->heat + cell_cold_of(last - 1)->cost,\n",
        "cells_cold[cells_cold[3].kind].zone);\n",
    ] {
        assert!(text.contains(line), "{line}{text}");
    }
}

#[test]
fn a_proposal_has_its_groups_and_the_lines_of_each_region() {
    let advice = advised(PROGRAM, &walks(), &[]);
    let [one] = advice.cold_parts.as_slice() else { panic!("{:?}", advice.not_split) };
    assert_eq!(one.kept, ["heat", "flow"]);
    assert_eq!(one.member, "cells_mark");
    let rows: Vec<(&str, f64)> = one.lines.iter().map(|row| (row.region.as_str(), row.after)).collect();
    // A hundred elements of 16 bytes, and of 8.
    assert_eq!(rows, [("warm", 25.0), ("visit", 12.5)]);
    assert_eq!(advice.steps()[0].owners, ["cell (an array for each member)"]);
    let told = advice.descriptions.iter().find(|one| one.kind.slug == "columns").expect("in words");
    let words =
        "5 leave for 2 arrays: mark, (kind, zone, name, cost). An object shrinks from 56 to 16 bytes.";
    assert!(told.summary.ends_with(words) && told.is_in_patch, "{}", told.summary);
    let json = serde_json::to_value(one).expect("JSON");
    assert_eq!(json["groups"], serde_json::json!([["mark"], ["kind", "zone", "name", "cost"]]));
}

#[test]
fn arrays_that_variables_point_to_have_an_array_for_each_group() {
    let program = PROGRAM
        .replace("static struct cell cells[COUNT];\n", "static struct cell *cells;\n")
        .replace("#include <stdio.h>\n", "#include <stdio.h>\n#include <stdlib.h>\n")
        .replace("    struct cell *one = &cells[at];\n", "")
        .replace("one->name, sizeof one->name", "cells[at].name, sizeof cells[at].name")
        .replace("one->", "cells[at].")
        .replace("(sizeof cells / sizeof cells[0])", "(COUNT)")
        .replace(
            "    const struct cell *last = &cells[COUNT - 1];\n",
            "    cells = calloc(COUNT, sizeof *cells);\n    if (!cells)\n        return 1;\n",
        )
        .replace("last->", "cells[8].")
        .replace("(last - 1)->", "cells[7].")
        .replace("    return 0;\n", "    free(cells);\n    return 0;\n");
    let edited = parted(&program);
    let functions = r#"
static struct cell *cells;
static struct cell_mark *cells_mark;
static struct cell_cold *cells_cold;

static struct cell *cells_new(size_t count)
{
    struct cell *made = calloc(count, sizeof *made);
    struct cell_mark *part1 = calloc(count, sizeof *part1);
    struct cell_cold *part2 = calloc(count, sizeof *part2);

    if (!made || !part1 || !part2) {
        free(made);
        free(part1);
        free(part2);
        return NULL;
    }
    cells_mark = part1;
    cells_cold = part2;
    return made;
}

static void cells_free(struct cell *ended)
{
    if (ended) {
        free(cells_mark);
        free(cells_cold);
    }
    free(ended);
}
"#;
    assert!(edited["a.c"].contains(functions), "{}", edited["a.c"]);
    // Where a pointer leads into the array, the only call that makes it keeps the firsts of all arrays.
    let by_pointer =
        program.replace("    printf(\"", "    const struct cell *last = cells + 8;\n    printf(\"");
    let by_pointer = by_pointer.replace("cells[8].mark", "last->mark");
    let edited = parted(&by_pointer);
    for line in [
        "/* The first object, and the first of each part. */\nextern struct cell *cell_first;\nextern struct cell_mark *cell_first_mark;\nextern struct cell_cold *cell_first_cold;\n",
        "    return cell_first_mark + (one - cell_first);\n",
        "        free(cell_first_mark);\n        free(cell_first_cold);\n",
    ] {
        assert!(edited["cell.h"].contains(line), "{line}{}", edited["cell.h"]);
    }
    assert!(
        edited["a.c"].contains("    cell_first_mark = part1;\n    cell_first_cold = part2;\n"),
        "{}",
        edited["a.c"]
    );
}

#[test]
fn a_member_that_has_to_stay_keeps_its_group() {
    let program = with("#define MARK(at) cells[at].mark", "MARK(1) = 4;");
    let advice = advised(&program, &walks(), &[]);
    let [one] = advice.cold_parts.as_slice() else { panic!("{:?}", advice.not_split) };
    assert_eq!(
        (one.kept.as_slice(), groups(one)),
        (&["mark".to_owned()][..], vec![vec!["heat", "flow"], vec!["kind", "zone", "name", "cost"]])
    );
    assert!(
        advice.edited["a.c"].contains("cells_heat_flow[at].heat += cells_heat_flow[at].flow;"),
        "{}",
        advice.edited["a.c"]
    );
    assert!(advice.edited["cell.h"].contains("/* Members of struct cell that hot loops use together, in an array of their own. */\nstruct cell_heat_flow {\n"));
}

#[test]
fn members_that_calls_use_together_and_elements_that_calls_pick_stay_together() {
    let one_use = vec![(vec![(0, 24)], Some(56))];
    let picked = vec![(vec![(0, 16)], None), (vec![(16, 8)], None)];
    // A third region would need three lines for an element in place of one.
    let looked_up = [walks(), vec![(vec![(0, 24), (48, 8)], None)]].concat();
    for (uses, kept) in [
        (one_use, Some(["heat", "flow", "mark"])),
        (picked, Some(["heat", "flow", "mark"])),
        (looked_up, None),
    ] {
        let advice = advised(PROGRAM, &uses, &[]);
        assert!(advice.cold_parts.iter().all(|one| one.groups.is_empty()), "{:?}", advice.cold_parts);
        let cold = advice.cold_parts.first().map(|one| one.kept.clone());
        assert_eq!(cold, kept.map(|names| names.map(str::to_owned).to_vec()), "{:?}", advice.not_split);
    }
}

#[test]
fn a_failed_trial_leaves_the_cold_part() {
    let advice = advised(PROGRAM, &walks(), &["cell (an array for each member)"]);
    let [one] = advice.cold_parts.as_slice() else { panic!("{:?}", advice.not_split) };
    assert!(one.groups.is_empty());
    assert_eq!(one.kept, ["heat", "flow", "mark"]);
    assert_eq!(advice.steps()[0].owners, ["cell (cold part)"]);
}

#[test]
fn names_that_the_sources_have_are_not_taken() {
    let program = with("static int cells_mark;", "cells_mark = cells_mark + 1;");
    let edited = parted(&program);
    assert!(
        edited["a.c"].contains("static struct cell_mark_part cells_mark_part[COUNT];\n"),
        "{}",
        edited["a.c"]
    );
    // A number in all three names.
    let program = with(
        "static int cells_mark, cells_mark_part, cells_mark_column;",
        "cells_mark = cells_mark_part = cells_mark_column; cells_mark_column = cells_mark_part = cells_mark;",
    );
    let advice = advised(&program, &walks(), &[]);
    assert!(advice.cold_parts.iter().all(|one| one.groups.is_empty()), "{:?}", advice.cold_parts);
}

#[test]
fn elements_whose_uses_the_edit_cannot_follow_stay_whole() {
    // Calls use most of an element, so that no cold part comes in between.
    let uses = vec![(vec![(0, 16)], Some(56)), (vec![(16, 8)], Some(56)), (vec![(32, 24)], Some(56))];
    for (above, inside, reason) in [
        (
            "",
            "struct cell one; one.heat = cells[0].heat; last = &one;",
            "a variable is an object outside of an array",
        ),
        ("", "struct cell some[3]; some[0].heat = 1;", "an array of a function holds objects"),
        ("static struct cell set[2] = {{.heat = 1}};", "set[0].mark = 1;", "an array has values in braces"),
        ("static __thread struct cell own[2];", "own[0].heat = 1;", "each thread has its own array"),
        ("static volatile struct cell own[2];", "own[0].heat = 1;", "volatile"),
        ("struct pair { struct cell one; };", "", "another type holds an object by value"),
        ("union word { struct cell one; long words[7]; };", "", "another type holds an object by value"),
        ("", "cells[0] = cells[1];", "an object is copied or made as a value"),
        ("", "memset(cells, 0, sizeof cells);", "memset() is given an object"),
        ("", "memcpy(&cells[0], &cells[1], sizeof cells[0]);", "memcpy() is given an object"),
        ("", "fwrite(cells, sizeof cells[0], COUNT, stdout);", "fwrite() is given an object"),
        ("", "printf(\"%zu\", sizeof cells);", "sizeof measures it"),
        ("static struct cell more[2];", "last = &more[1];", "a pointer may lead into several arrays"),
        ("#include <stddef.h>", "printf(\"%zu\", offsetof(struct cell, mark));", "offsetof"),
        (
            "",
            "last = (struct cell *)((char *)cells + 56);",
            "a pointer to an object comes from one to something else",
        ),
        ("#define AT(i) cells[i]", "AT(3).mark = 1;", "the object whose mark is named is not understood"),
    ] {
        let program = with(above, inside).replace("    const struct cell *last = &cells[COUNT - 1];\n", "");
        let program = program.replace(
            &format!("    {inside}\n"),
            &format!("    const struct cell *last = &cells[COUNT - 1];\n    {inside}\n"),
        );
        let advice = advised(&program, &uses, &[]);
        assert!(advice.cold_parts.is_empty(), "{inside}{:?}", advice.edited);
        let sketch = advice.descriptions.iter().find(|one| one.kind.slug == "columns").expect("a sketch");
        assert!(
            !sketch.is_in_patch && sketch.summary.starts_with("By hand, since a patch was refused ("),
            "{sketch:?}"
        );
        assert!(sketch.summary.contains(reason), "{reason}: {sketch:?}");
        assert!(sketch.summary.contains("in place of an array of cell, an array for each of "), "{sketch:?}");
    }
}
