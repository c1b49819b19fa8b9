//! Writes C programs that report the places of their own data.

use std::fmt::Write;

/// A small generator of pseudo-random numbers (Knuth's MMIX constants), so that a seed names a program.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) as usize) % limit
    }
}

/// A member that an expression can read and write: C path, with indices folded, and the text for it after `p->`.
#[derive(Clone)]
struct Scalar {
    path: String,
    access: String,
    is_bit_field: bool,
}

struct Struct {
    declaration: String,
    scalars: Vec<Scalar>,
    /// Every named part: its folded path and the expression for its offset and size.
    parts: Vec<(String, String)>,
    /// The type that `other` points to.
    target: usize,
}

const OWN: &[&str] = &["next", "left", "right", "node", "ints", "text"];

fn member(types: &[Struct], random: &mut Random, number: usize) -> (String, Vec<Scalar>) {
    let n = format!("m{number}");
    let plain = |path: String| Scalar { access: path.clone(), path, is_bit_field: false };
    let one = |declaration: String| (declaration, vec![plain(n.clone())]);
    match random.below(16) {
        0 => one(format!("int {n};")),
        1 => one(format!("long {n};")),
        2 => one(format!("char {n};")),
        3 => one(format!("short {n};")),
        4 => one(format!("double {n};")),
        5 => one(format!("unsigned long long {n};")),
        6 => {
            let bits: Vec<Scalar> = ["a", "b", "c"]
                .iter()
                .map(|part| Scalar {
                    path: format!("{n}{part}"),
                    access: format!("{n}{part}"),
                    is_bit_field: true,
                })
                .collect();
            (format!("unsigned {n}a : 3; unsigned {n}b : 9; unsigned {n}c : 20;"), bits)
        }
        7 => (
            format!("int {n}[5];"),
            vec![
                Scalar { path: format!("{n}[]"), access: format!("{n}[k % 5]"), is_bit_field: false },
                Scalar { path: format!("{n}[]"), access: format!("{n}[2]"), is_bit_field: false },
            ],
        ),
        8 => (
            format!("short {n}[2][3];"),
            vec![Scalar {
                path: format!("{n}[][]"),
                access: format!("{n}[k % 2][k % 3]"),
                is_bit_field: false,
            }],
        ),
        9 => (format!("union {{ int {n}i; unsigned {n}u; }};"), vec![plain(format!("{n}i"))]),
        10 => (
            format!("struct {{ short {n}x; long {n}y; }};"),
            vec![plain(format!("{n}x")), plain(format!("{n}y"))],
        ),
        11 => (
            format!("struct {{ int x; long y; }} {n};"),
            vec![plain(format!("{n}.x")), plain(format!("{n}.y"))],
        ),
        14 => {
            // Arms of which one has bit-fields: a byte of it may be any.
            let arms = format!(
                "union {{ struct {{ unsigned open : 1, kind : 7; short length; }} a; struct {{ char tag; short size; }} b; int all; }} {n};"
            );
            let path = |arm: &str| format!("{n}.{arm}");
            let bits = Scalar { is_bit_field: true, ..plain(path("a.kind")) };
            (
                arms,
                vec![
                    bits,
                    plain(path("a.length")),
                    plain(path("b.tag")),
                    plain(path("b.size")),
                    plain(path("all")),
                ],
            )
        }
        15 => (
            format!("union {{ float {n}f; struct {{ int {n}first, {n}second; }}; char {n}text[8]; }};"),
            vec![plain(format!("{n}f")), plain(format!("{n}second")), plain(format!("{n}text[1]"))]
                .into_iter()
                .map(|scalar| Scalar { path: scalar.path.replace("[1]", "[]"), ..scalar })
                .collect(),
        ),
        kind if !types.is_empty() => {
            let inner = random.below(types.len());
            let Some(inside) = types.get(inner) else { return one(format!("int {n};")) };
            let (suffix, index, brackets) = if kind == 12 { ("", "", "") } else { ("[3]", "[k % 3]", "[]") };
            let scalars = inside.scalars.iter().take(4).map(|scalar| Scalar {
                path: format!("{n}{brackets}.{}", scalar.path),
                access: format!("{n}{index}.{}", scalar.access),
                is_bit_field: scalar.is_bit_field,
            });
            (format!("struct T{inner} {n}{suffix};"), scalars.collect())
        }
        _ => one(format!("unsigned char {n};")),
    }
}

fn structure(types: &[Struct], random: &mut Random, index: usize) -> Struct {
    let mut pieces: Vec<(String, Vec<Scalar>)> =
        (0..4 + random.below(8)).map(|n| member(types, random, n)).collect();
    let target = random.below(index + 1);
    for own in [
        format!("struct T{index} *next;"),
        format!("struct T{index} *left, *right;"),
        "struct link node;".to_owned(),
        "int *ints;".to_owned(),
        format!("struct T{target} *other;"),
        "char text[16];".to_owned(),
    ] {
        let at = random.below(pieces.len() + 1);
        pieces.insert(at, (own, Vec::new()));
    }
    let mut declaration = format!("struct T{index} {{\n");
    let mut scalars = Vec::new();
    for (text, found) in pieces {
        writeln!(declaration, "    {text}").unwrap();
        scalars.extend(found);
    }
    declaration.push_str("};\n");
    if scalars.is_empty() {
        declaration = declaration.replace("};\n", "    int only;\n};\n");
        scalars.push(Scalar { path: "only".into(), access: "only".into(), is_bit_field: false });
    }
    let parts = scalars
        .iter()
        .filter(|scalar| !scalar.is_bit_field)
        .map(|scalar| (scalar.path.clone(), scalar.path.replace("[]", "[0]")))
        .chain(OWN.iter().map(|own| ((*own).to_owned(), (*own).to_owned())))
        .chain(["other", "node.next", "node.prev"].map(|own| (own.to_owned(), own.to_owned())))
        .collect();
    Struct { declaration, scalars, parts, target }
}

/// A program with `count` struct types.
pub(crate) fn program(seed: u64, count: usize) -> String {
    let mut random = Random::new(seed);
    let mut types: Vec<Struct> = Vec::new();
    for index in 0..count {
        let new = structure(&types, &mut random, index);
        types.push(new);
    }
    let mut text = String::from(PRELUDE);
    for ty in &types {
        text.push_str(&ty.declaration);
    }
    for (index, ty) in types.iter().enumerate() {
        functions(&mut text, &mut random, index, ty);
    }
    text.push_str("int main(void)\n{\n    long sum = 0;\n");
    for (index, ty) in types.iter().enumerate() {
        for (path, expression) in &ty.parts {
            writeln!(text, "    PART(struct T{index}, \"T{index}\", \"{path}\", {expression});").unwrap();
        }
        writeln!(text, "    make{index}();\n    headers{index}();").unwrap();
    }
    text.push_str("    maps();\n");
    for round in 0..4 {
        text.push_str("    printf(\"enter\\n\");\n    trace_on();\n");
        for index in 0..count {
            writeln!(
                text,
                "    sum += run{index}({round}) + hostile{index}({round}) + mark{index}({round});"
            )
            .unwrap();
        }
        text.push_str("    trace_off();\n");
        for index in 0..count {
            writeln!(text, "    churn{index}({round});").unwrap();
        }
    }
    text.push_str("    printf(\"sum %ld\\n\", sum);\n    return 0;\n}\n");
    text
}

fn functions(text: &mut String, random: &mut Random, index: usize, ty: &Struct) {
    let mut pick = || ty.scalars[random.below(ty.scalars.len())].access.clone();
    let names: Vec<(&str, String)> =
        ["A", "B", "C", "D", "E", "F", "G", "H"].iter().map(|key| (*key, pick())).collect();
    let mut body = TEMPLATE.replace("@N", &index.to_string()).replace("@O", &ty.target.to_string());
    for (key, access) in &names {
        body = body.replace(&format!("@{key}"), access);
    }
    text.push_str(&body);
}

const PRELUDE: &str = include_str!("../programs/prelude.c");
const TEMPLATE: &str = concat!(include_str!("../programs/template.c"), include_str!("../programs/hostile.c"));
