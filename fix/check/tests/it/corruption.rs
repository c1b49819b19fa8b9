//! Every corruption of a map, a statement or initial data is found.

use crate::forms::{Folder, has, variants};
use lineup_check::map::Map;
use lineup_check::unit::{Forms, Variants, check, map_of};

const TEXT: &str = "
@
static struct node table[3] = { { .a = 0x1a2b3c01, .b = 0x1a2b3c02, .c = 0x1a2b3c03, .d = 0x1a2b3c04 },
    { .a = 0x1a2b3c05, .b = 0x1a2b3c06, .c = 0x1a2b3c07, .d = 0x1a2b3c08 }, { .d = 0x1a2b3c09, .a = 0x1a2b3c0a } };
static int sum(struct node *n) { int s = 7001; while (n) { s += n->a * 7003 + n->b; n->c = s ^ n->d; n = n->next; } return s; }
static int make(int x) { struct node n = { .a = x, .b = 7005, .c = 7006, .d = 7007 }; return sum(&n) + n.c; }
int main(int argc, char **v) { table[0].next = &table[1]; table[1].next = &table[2]; return sum(table) + make(argc + 7008); }
";
const BEFORE: &str = "struct node { int a; int b; long pad; int c; int d; struct node *next; };";
const AFTER: &str = "struct node { struct node *next; int d; int a; int c; int b; long pad; };";

/// Repeatable numbers.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % end
    }
}

fn copy(of: &Variants) -> Variants {
    of.iter()
        .map(|(name, both)| {
            let forms = match &both.forms {
                Forms::Gimple { dumps, objects } => {
                    Forms::Gimple { dumps: dumps.clone(), objects: objects.clone() }
                }
                Forms::Llvm(old, new) => Forms::Llvm(old.clone(), new.clone()),
            };
            (name.clone(), lineup_check::unit::Variant { forms, before: Vec::new(), after: Vec::new() })
        })
        .collect()
}

/// Two different members' places, exchanged or changed.
fn corrupt_map(map: &mut Map, numbers: &mut Numbers) {
    let of = &mut map.types[0];
    let count = of.members.len();
    let (one, other) = (numbers.below(count), numbers.below(count - 1));
    let other = if other >= one { other + 1 } else { other };
    match numbers.below(4) {
        0 => {
            let after = of.members[one].after;
            of.members[one].after = of.members[other].after;
            of.members[other].after = after;
        }
        1 => of.members[one].before += 8 * (1 + numbers.below(50) as u64),
        2 => of.members[one].bits += 8,
        _ => of.bytes.1 += 8 * (1 + numbers.below(9) as u64),
    }
}

/// Replaces the `number`-th place where `of` stands; none when there is no such place.
fn replace(text: &str, of: &str, with: &str, number: usize) -> Option<String> {
    let places: Vec<usize> = text.match_indices(of).map(|(at, _)| at).collect();
    let at = *places.get(number % places.len().max(1))?;
    Some(format!("{}{with}{}", &text[..at], &text[at + of.len()..]))
}

/// One statement or number of the dump, or one line of it.
fn corrupt_text(text: &str, patterns: &[(&str, &str)], numbers: &mut Numbers) -> Option<String> {
    if numbers.below(5) == 0 {
        let lines: Vec<&str> = text.lines().collect();
        let at: Vec<usize> = (0..lines.len())
            .filter(|at| lines[*at].contains(" = ") && lines[*at].starts_with("  "))
            .collect();
        let gone = at[numbers.below(at.len())];
        let left: Vec<&str> =
            lines.iter().enumerate().filter(|(at, _)| *at != gone).map(|(_, line)| *line).collect();
        return Some(left.join("\n"));
    }
    let (of, with) = patterns[numbers.below(patterns.len())];
    replace(text, of, with, numbers.below(1000))
}

/// Exchanges two values of the initial data.
fn corrupt_data(bytes: &mut [u8], numbers: &mut Numbers) -> Option<()> {
    let value = |number: usize| (0x1a2b_3c01_u32 + number as u32).to_le_bytes();
    let find = |bytes: &[u8], value: [u8; 4]| bytes.windows(4).position(|window| window == value);
    let (one, other) = (numbers.below(10), numbers.below(9));
    let other = if other >= one { other + 1 } else { other };
    let (first, second) = (find(bytes, value(one))?, find(bytes, value(other))?);
    bytes[first..first + 4].copy_from_slice(&value(other));
    // Both exchanged, or one missed.
    if numbers.below(2) == 0 {
        bytes[second..second + 4].copy_from_slice(&value(one));
    }
    Some(())
}

/// Checks `count` corruptions of a program.
fn corrupt(compiler: &str, count: usize) {
    let folder = Folder::new();
    let program = variants(compiler, &folder, TEXT, (BEFORE, AFTER));
    let map = map_of(&program).expect("a map");
    check(&program, &map).expect("the variants are equal");
    let mut numbers = Numbers(2026);
    let mut kinds = [0; 3];
    for number in 0..count {
        let (mut changed, mut wrong) = (copy(&program), map.clone());
        let kind = numbers.below(3);
        let both = changed.get_mut("x").expect("the unit x");
        let is_changed = match (kind, &mut both.forms) {
            (0, _) => {
                corrupt_map(&mut wrong, &mut numbers);
                true
            }
            (1, Forms::Gimple { dumps, .. }) => {
                let patterns = [
                    ("->a", "->b"),
                    ("->b", "->d"),
                    ("->c", "->a"),
                    ("->d", "->c"),
                    ("->next", "->pad"),
                    ("n.a", "n.c"),
                    ("n.b", "n.d"),
                    ("n.c", "n.b"),
                    ("7001", "7101"),
                    ("7003", "7103"),
                    ("7005", "7006"),
                    ("7007", "7107"),
                    (" + ", " - "),
                    ("table[1]", "table[2]"),
                ];
                corrupt_text(&dumps.1, &patterns, &mut numbers).map(|text| dumps.1 = text).is_some()
            }
            (_, Forms::Gimple { objects, .. }) => corrupt_data(&mut objects.1, &mut numbers).is_some(),
            (1, Forms::Llvm(_, new)) => {
                let patterns = [
                    ("i32 0, i32 1", "i32 0, i32 2"),
                    ("i32 0, i32 2", "i32 0, i32 3"),
                    ("i32 0, i32 4", "i32 0, i32 1"),
                    ("i32 7001", "i32 7101"),
                    ("i32 7005", "i32 7006"),
                    ("mul nsw", "sub nsw"),
                    ("xor", "or"),
                ];
                corrupt_text(new, &patterns, &mut numbers).map(|text| *new = text).is_some()
            }
            (_, Forms::Llvm(_, new)) => {
                let value = |number: usize| format!("i32 {}", 0x1a2b_3c01 + number);
                let (one, other) = (numbers.below(10), 1 + numbers.below(9));
                let text = new.replace(&value(one), &value((one + other) % 10));
                let is_changed = text != *new;
                *new = text;
                is_changed
            }
        };
        if is_changed {
            kinds[kind] += 1;
            assert!(
                check(&changed, &wrong).is_err(),
                "{compiler}: corruption {number} of kind {kind} passes"
            );
        }
    }
    assert!(kinds.iter().sum::<usize>() == count, "{compiler}: {kinds:?} of {count} changed something");
}

#[test]
fn a_thousand_corruptions_of_a_gcc_program_are_found() {
    match has("gcc") {
        true => corrupt("gcc", 1000),
        false => eprintln!("skipped: gcc is not here"),
    }
}

#[test]
fn a_thousand_corruptions_of_a_clang_program_are_found() {
    match has("clang") {
        true => corrupt("clang", 1000),
        false => eprintln!("skipped: clang is not here"),
    }
}
