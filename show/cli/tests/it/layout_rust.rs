//! `lineup layout` on Rust enums: the program itself says which bytes each variant has.

use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Command;

const SOURCE: &str = r#"
use std::num::NonZeroU32;
pub enum Shape { Circle(f64), Rect { w: u32, h: u64 }, Unit }
pub enum Held { Owned(Box<u64>), Flag(bool), Nothing }
#[repr(u8)] pub enum Tagged { A = 3, B(u32) = 7, C { x: u16 } = 250 }
#[repr(i16)] pub enum Signed { Low(u8) = -3, High(u8) = 4 }
pub enum Niche { Text(String), Count(u32), Gone }
pub enum Only { One(u32, u8) }
pub enum Maybe { Some(NonZeroU32), None }

#[repr(C, align(16))] struct Bytes<const N: usize>([u8; N]);

fn show<T, const N: usize>(ty: &str, variant: &str, value: T) {
    let mut bytes = Bytes([0u8; N]);
    assert_eq!(std::mem::size_of::<T>(), N, "{ty}");
    unsafe { std::ptr::copy_nonoverlapping(&value as *const T as *const u8, bytes.0.as_mut_ptr(), N) };
    std::mem::forget(value);
    let text: String = bytes.0.iter().map(|byte| format!("{byte:02x}")).collect();
    println!("{ty} {variant} {text}");
}

fn main() {
    show::<_, 16>("Shape", "Circle", Shape::Circle(1.5));
    show::<_, 16>("Shape", "Rect", Shape::Rect { w: 2, h: 3 });
    show::<_, 16>("Shape", "Unit", Shape::Unit);
    show::<_, 16>("Held", "Owned", Held::Owned(Box::new(1)));
    show::<_, 16>("Held", "Flag", Held::Flag(true));
    show::<_, 16>("Held", "Nothing", Held::Nothing);
    show::<_, 8>("Tagged", "A", Tagged::A);
    show::<_, 8>("Tagged", "B", Tagged::B(9));
    show::<_, 8>("Tagged", "C", Tagged::C { x: 9 });
    show::<_, 4>("Signed", "Low", Signed::Low(1));
    show::<_, 4>("Signed", "High", Signed::High(1));
    show::<_, 24>("Niche", "Text", Niche::Text("text".to_string()));
    show::<_, 24>("Niche", "Count", Niche::Count(5));
    show::<_, 24>("Niche", "Gone", Niche::Gone);
    show::<_, 8>("Only", "One", Only::One(1, 2));
    show::<_, 4>("Maybe", "Some", Maybe::Some(NonZeroU32::new(5).unwrap()));
    show::<_, 4>("Maybe", "None", Maybe::None);
}
"#;

struct Program {
    folder: tempfile::TempDir,
}

impl Program {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(folder.path().join("enums.rs"), SOURCE).expect("a writable folder");
        let made = Command::new("rustc")
            .current_dir(folder.path())
            .args(["-g", "-O", "-A", "warnings", "enums.rs"])
            .output()
            .expect("rustc");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        Program { folder }
    }

    fn layout(&self, arguments: &[&str]) -> String {
        let output = Command::new(env!("CARGO_BIN_EXE_lineup"))
            .current_dir(self.folder.path())
            .args(["layout", "enums"])
            .args(arguments)
            .output()
            .expect("the binary under test");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn layout_of(&self, ty: &str) -> Value {
        let document: Value =
            serde_json::from_str(&self.layout(&[&format!("enums::{ty}"), "--json"])).expect("JSON");
        document["types"][0].clone()
    }

    /// The program's output: enum, variant and the bytes of a value of it.
    fn values(&self) -> Vec<(String, String, Vec<u8>)> {
        let output = Command::new(self.folder.path().join("enums")).output().expect("the program");
        assert!(output.status.success());
        let text = String::from_utf8(output.stdout).expect("text");
        let bytes = |hex: &str| -> Vec<u8> {
            (0..hex.len())
                .step_by(2)
                .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex"))
                .collect()
        };
        let lines = text.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        lines.map(|words| (words[0].into(), words[1].into(), bytes(words[2]))).collect()
    }
}

fn with_role<'j>(layout: &'j Value, role: &str) -> Vec<&'j Value> {
    let members = layout["members"].as_array().expect("members").iter();
    members.filter(|member| member["role"] == role).collect()
}

/// The value that bytes of an enum have as its discriminant.
fn discriminant(layout: &Value, bytes: &[u8]) -> Option<i128> {
    let discriminant = *with_role(layout, "discriminant").first()?;
    let offset = discriminant["offset_bytes"].as_u64().expect("an offset") as usize;
    let size = discriminant["size_bytes"].as_u64().expect("a size") as usize;
    let raw =
        bytes[offset..offset + size].iter().rev().fold(0u64, |value, byte| value << 8 | u64::from(*byte));
    let unused = 64 - 8 * size as u32;
    let is_signed = discriminant["type"].as_str().expect("a type").starts_with('i');
    let signed = i128::from((raw << unused).cast_signed() >> unused);
    Some(if is_signed { signed } else { i128::from(raw) })
}

#[test]
fn the_discriminant_of_every_variant_is_the_one_that_its_values_have() {
    let program = Program::new();
    let mut layouts: BTreeMap<String, Value> = BTreeMap::new();
    for (ty, variant, bytes) in program.values() {
        let layout = layouts.entry(ty.clone()).or_insert_with(|| program.layout_of(&ty));
        let variants = with_role(layout, "variant");
        let is_own = |found: &&&Value| found["name"] == variant.as_str();
        let own = variants.iter().find(is_own).unwrap_or_else(|| panic!("{ty}::{variant}"));
        let Some(value) = discriminant(layout, &bytes) else {
            assert_eq!((variants.len(), &own["selected_by"]), (1, &Value::from("rest")), "{ty}");
            continue;
        };
        let number = |member: &Value| member["discriminant_value"].to_string().parse::<i128>().ok();
        match own["selected_by"].as_str() {
            Some("value") => assert_eq!(number(own), Some(value), "{ty}::{variant}"),
            Some("rest") => {
                assert!(variants.iter().all(|other| number(other) != Some(value)), "{ty}::{variant} {value}");
            }
            other => panic!("{ty}::{variant}: {other:?}"),
        }
    }
    assert_eq!(layouts.len(), 7);
    // Both kinds were among them.
    let niches = layouts.values().filter_map(|layout| with_role(layout, "discriminant").first().copied());
    let niches: Vec<&str> = niches.filter_map(|member| member["niche_in"].as_str()).collect();
    assert!(niches.contains(&"Some.__0") && niches.contains(&"Text.__0"), "{niches:?}");
    assert!(layouts["Tagged"]["members"][0].get("niche_in").is_none());
}

#[test]
fn a_variants_members_lie_where_its_values_have_them() {
    let program = Program::new();
    let values = program.values();
    for (ty, variant, path, expected) in [
        ("Shape", "Rect", "w", 2),
        ("Shape", "Rect", "h", 3),
        ("Tagged", "B", "__0", 9),
        ("Tagged", "C", "x", 9),
        ("Held", "Flag", "__0", 1),
        ("Niche", "Count", "__0", 5),
        ("Only", "One", "__1", 2),
        ("Maybe", "Some", "__0", 5),
    ] {
        let layout = program.layout_of(ty);
        let variants = with_role(&layout, "variant");
        let own = variants.iter().find(|found| found["name"] == variant).expect("the variant");
        let members = own["members"].as_array().expect("its members");
        let member = members.iter().find(|member| member["name"] == path).expect("the member");
        let offset = member["offset_bytes"].as_u64().expect("an offset") as usize;
        let size = member["size_bytes"].as_u64().expect("a size") as usize;
        let (_, _, bytes) = values.iter().find(|value| value.0 == ty && value.1 == variant).expect("a value");
        let found =
            bytes[offset..offset + size].iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
        assert_eq!(found, expected, "{ty}::{variant}.{path}");
    }
}

#[test]
fn an_enum_is_shown_with_what_means_each_variant() {
    let program = Program::new();
    let tagged = program.layout(&["enums::Tagged"]);
    for line in ["/* discriminant */ u8,", "/* variant 3 */ A,", "/* variant 7 */ {", "/* variant 250 */ {"] {
        assert!(tagged.contains(line), "{line}\n{tagged}");
    }
    // One of the four bytes before the member is the discriminant.
    assert!(tagged.contains("/* 3 bytes hole */\n                __0: u32,"), "{tagged}");
    let signed = program.layout(&["enums::Signed"]);
    assert!(signed.contains("/* variant -3 */"), "{signed}");
    let niche = program.layout(&["enums::Niche"]);
    assert!(niche.contains("/* discriminant, in unused values of Text.__0 */"), "{niche}");
    assert!(niche.contains("/* variant, any other value */ {"), "{niche}");
    assert!(program.layout(&["enums::Only"]).contains("/* variant */ {"));
}
