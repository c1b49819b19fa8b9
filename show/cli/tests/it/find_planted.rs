//! `lineup find` on a generated program with two thousand types, of which ten stall. The generator knows each type's
//! accesses, and the best order's gain.

use crate::place::Place;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;

const TYPES: usize = 2000;
/// One type in this many is hot.
const HOT_EVERY: usize = TYPES / 10;
/// Objects of a hot type and of another.
const OBJECTS: [usize; 2] = [60, 3];

fn is_hot(number: usize) -> bool {
    // Even and odd ones in turn.
    number % HOT_EVERY == number / HOT_EVERY % 2
}

/// The number of walks over all objects of a type: each hot type has its own, in no order.
fn walks(number: usize) -> usize {
    if is_hot(number) { 20 + 8 * (number / HOT_EVERY * 7 % 10) } else { 1 }
}

fn objects(number: usize) -> usize {
    OBJECTS[usize::from(!is_hot(number))]
}

/// Loads and stores of a type's members.
fn accesses(number: usize) -> f64 {
    (2 * objects(number) * walks(number)) as f64
}

/// Every other type's objects are on the heap. A walk reads one member and writes another; with BEST these lie side by
/// side.
fn source() -> String {
    let mut out = format!(
        "#include <stdio.h>\n#include <stdlib.h>\nstatic volatile int counts[] = {{ {}, {} }};\n",
        OBJECTS[0], OBJECTS[1]
    );
    for number in 0..TYPES {
        // Whole lines, so that no two objects share one.
        let middle = 40 + 64 * (number % 3 + 1);
        let _ = write!(
            out,
            "#ifdef BEST\nstruct t{number} {{ long read{number}; long written{number}; char before[8]; char between[{middle}]; }};\n\
             #else\nstruct t{number} {{ long read{number}; char before[8]; char between[{middle}]; long written{number}; }};\n#endif\n"
        );
        let count = objects(number);
        let _ = match number % 2 {
            0 => writeln!(out, "static struct t{number} a{number}[{count}] __attribute__((aligned(64)));"),
            _ => writeln!(out, "static struct t{number} *a{number};"),
        };
        let _ = write!(
            out,
            "__attribute__((noinline)) static long walk{number}(long turn, int count) {{ long sum = 0; struct t{number} *all = a{number};\n\
             for (int i = 0; i < count; i++) {{ sum += all[i].read{number}; all[i].written{number} = turn; }} return sum; }}\n"
        );
    }
    out.push_str("int main(void) {\nlong sum = 0;\n");
    for number in (1..TYPES).step_by(2) {
        let _ = writeln!(out, "a{number} = aligned_alloc(64, {} * sizeof *a{number});", objects(number));
    }
    for number in 0..TYPES {
        let _ = writeln!(
            out,
            "for (long turn = 0; turn < {}; turn++) sum += walk{number}(turn, counts[{}]);",
            walks(number),
            usize::from(!is_hot(number))
        );
    }
    out.push_str("printf(\"%d\\n\", sum == 42); return 0; }\n");
    out
}

fn found(place: &Place) -> Value {
    let caches = ["--cache", "l1i=32K,8,64", "--cache", "l1d=2K,4,64", "--cache", "l2=4K,8,64"];
    let all = [&["find", "--json", "--least", "0"][..], &caches, &["--", "./program"]].concat();
    let output = place.lineup(&all).output().expect("lineup runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    place.assert_clean();
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn number(value: &Value, path: &str) -> f64 {
    value.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("no number at {path}"))
}

fn stalls(found: &Value) -> f64 {
    number(found, "/stalls/code_cycles") + number(found, "/stalls/data_cycles")
}

/// The planted types among the owners, by number, in their order.
fn planted(found: &Value) -> Vec<(usize, &Value)> {
    let owners = found["owners"].as_array().expect("owners");
    let of = |owner| -> Option<(usize, &Value)> {
        let owner: &Value = owner;
        Some((owner["name"].as_str()?.strip_prefix('t')?.parse().ok()?, owner))
    };
    owners.iter().filter_map(of).collect()
}

#[test]
fn ten_types_that_stall_are_found_among_two_thousand_in_order_of_what_they_cost() {
    let source = source();
    let (as_it_is, best) = (found(&Place::new(&source, &[])), found(&Place::new(&source, &["-DBEST"])));
    let types = planted(&as_it_is);
    // Each type's counts are those of its walks: of two hundred accesses at most one has another name.
    let wrong = types.iter().map(|(own, owner)| (number(owner, "/accesses") - accesses(*own)).abs());
    let share = wrong.sum::<f64>() / (0..TYPES).map(accesses).sum::<f64>();
    assert!(types.len() == TYPES && share < 0.005, "{} types, {share} wrong", types.len());
    let mut expected: Vec<usize> = (0..TYPES).filter(|number| is_hot(*number)).collect();
    expected.sort_by_key(|number| std::cmp::Reverse(walks(*number)));
    let costliest: Vec<usize> = types.iter().take(10).map(|(number, _)| *number).collect();
    assert_eq!(costliest, expected);
    // Both members of each object come from memory on every walk.
    for (own, owner) in types.iter().take(10) {
        let misses = number(owner, "/l2_misses");
        assert!((misses / accesses(*own) - 1.0).abs() < 0.005, "t{own}: {misses}");
    }
    let findings = as_it_is["findings"].as_array().expect("findings");
    let orders: BTreeMap<&str, f64> = findings
        .iter()
        .filter_map(|finding| {
            let trials = finding["trials"].as_array()?;
            let order = trials.iter().find(|trial| trial["kind"] == "order")?;
            Some((finding["subject"].as_str()?, number(order, "/gain")))
        })
        .collect();
    assert_eq!(orders.len(), 10, "{findings:?}");
    // All ten best orders together, as they gain when they are compiled.
    let (gained, promised) = (1.0 - stalls(&best) / stalls(&as_it_is), orders.values().sum::<f64>());
    // The other types' objects take one line less from memory, once.
    let others = (TYPES - 10) as f64 * OBJECTS[1] as f64 * 200.0 / stalls(&as_it_is);
    assert!(((promised + others) / gained - 1.0).abs() < 0.1, "{promised} and {others} of {gained}");
}
