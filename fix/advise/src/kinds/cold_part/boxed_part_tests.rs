//! Structs of Rust whose fields leave, as `rustc` sees them.

use super::{BoxedPart, write};
use crate::judge::compiler::{CargoCheck, CompileError, Compiled, Judge, RustError};
use crate::kinds::cold_part::rust_struct::RustStruct;
use crate::text::sources::Sources;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

/// Checks `src/lib.rs` as a library and as a test, without Cargo.
struct Rustc {
    files: BTreeMap<String, String>,
    manifest: &'static str,
}

impl Judge for Rustc {
    fn compile(&mut self, _: &BTreeMap<String, String>) -> Result<Vec<Compiled>, CompileError> {
        Ok(Vec::new())
    }

    fn check_rust(
        &mut self,
        edited: &BTreeMap<String, String>,
        _: &str,
    ) -> Result<Option<CargoCheck>, CompileError> {
        let folder = tempfile::tempdir().expect("a folder");
        let mut files = self.files.clone();
        files.extend(edited.clone());
        fs::create_dir(folder.path().join("src")).expect("a folder");
        files.iter().for_each(|(path, text)| fs::write(folder.path().join(path), text).expect("a file"));
        let mut errors = BTreeSet::new();
        for kind in ["--crate-type=lib", "--test"] {
            let mut rustc = Command::new("rustc");
            rustc.args([
                "--edition",
                "2024",
                "--emit",
                "metadata",
                "--error-format",
                "short",
                kind,
                "src/lib.rs",
            ]);
            let output = rustc.current_dir(folder.path()).output().expect("rustc runs");
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            errors.extend(said.lines().filter_map(error));
            assert!(output.status.success() || !errors.is_empty(), "{said}");
        }
        let (errors, package) = (errors.into_iter().collect(), String::new());
        Ok(Some(CargoCheck { errors, package, manifest: self.manifest.to_owned() }))
    }
}

fn error(line: &str) -> Option<RustError> {
    let (place, words) = line.split_once(": error")?;
    let (code, words) =
        words.strip_prefix('[').and_then(|rest| rest.split_once("]: ")).unwrap_or(("", words));
    let parts: Vec<&str> = place.split(':').collect();
    let [path, row, column] = parts.as_slice() else { return None };
    let (line, column) = (row.parse().ok()?, column.parse().ok()?);
    Some(RustError { path: (*path).into(), line, column, code: code.into(), words: words.into() })
}

const PRIVATE: &str = "[package]\npublish = false\n";

fn boxed_in(text: &str, cold: &[&str], manifest: &'static str) -> Result<BoxedPart, String> {
    let files = BTreeMap::from([("src/lib.rs".to_owned(), text.to_owned())]);
    let sources = Sources::new(files.clone());
    let cold = cold.iter().map(|field| (*field).to_owned()).collect();
    let mut judge = Rustc { files, manifest };
    let written = write(&mut judge, (&sources, &BTreeMap::new()), "T", &cold).expect("an answer");
    written.map_err(|binding| binding.to_string())
}

fn boxed(text: &str, cold: &[&str]) -> Result<BoxedPart, String> {
    boxed_in(text, cold, PRIVATE)
}

#[track_caller]
fn text(text: &str, cold: &[&str]) -> String {
    boxed(text, cold).unwrap_or_else(|why| panic!("{why}")).texts["src/lib.rs"].clone()
}

const T: &str = "#[derive(Clone, PartialEq)]\npub struct T {\n    pub hot: u64,\n    pub a: u64, // first\n    /// Second.\n    pub b: String,\n}\n";

#[test]
fn accesses_values_and_methods_reach_fields_through_the_box() {
    let uses = "impl T {
    pub fn new(hot: u64, b: &str) -> T {
        T {
            hot,
            a: 1, // one
            // Two.
            b: b.to_string(),
        }
    }
    pub fn a(&self) -> u64 {
        self.a
    }
}
pub fn long(all: &mut [T]) -> Vec<String> {
    all.iter_mut().for_each(|t| t.a += t.hot);
    all.iter().map(|t| format!(\"{}{}\", t.b.as_str(), t.a())).collect()
}
pub fn swap(t: &mut T) -> (&mut u64, &mut String) { (&mut t.a, &mut t.b) }
pub fn take(t: T) -> String { t.b }
pub fn short(a: u64) -> Vec<T> { let t = T { hot: 1, a, b: String::new() }; let u = T { hot: 2, ..t.clone() }; vec![t, u] }
";
    let text = text(&format!("{T}{uses}"), &["a", "b"]);
    for part in [
        "pub struct T {\n    pub hot: u64,\n    /// Fields that hot loops leave alone.\n    pub cold: Box<TCold>,\n}\n\n",
        "#[derive(Clone, PartialEq)]\npub struct TCold {\n    pub a: u64, // first\n    /// Second.\n    pub b: String,\n}\n",
        "            hot,\n            cold: Box::new(TCold {\n                a: 1, // one\n                // Two.\n                b: b.to_string(),\n            }),\n        }",
        "        self.cold.a\n",
        "|t| t.cold.a += t.hot",
        "\"{}{}\", t.cold.b.as_str(), t.a()",
        "(&mut t.cold.a, &mut t.cold.b)",
        "{ t.cold.b }",
        "T { hot: 1, cold: Box::new(TCold { a, b: String::new() }) }",
        "T { hot: 2, ..t.clone() }",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn the_second_struct_is_imported_where_the_first_is() {
    let uses = "mod one {
    use super::{T, long};
    pub fn f() -> T {
        long();
        T { hot: 0, a: 1, b: String::new() }
    }
}
mod two {
    use crate::T;
    pub fn f() -> T { T { hot: 0, a: 1, b: String::new() } }
}
mod three {
    use crate::T;
    pub fn f() -> T { super::T { hot: 0, a: 1, b: String::new() } }
}
pub fn long() { drop((one::f(), two::f(), three::f())) }
";
    let text = text(&format!("{T}{uses}"), &["a", "b"]);
    for part in [
        "use super::{T, TCold, long};",
        "use crate::{T, TCold};\n    pub fn f() -> T { T { hot: 0, cold: Box::new(TCold {",
        "use crate::T;\n    pub fn f() -> T { super::T { hot: 0, cold: Box::new(super::TCold {",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn debug_prints_as_before() {
    let text = text(&T.replace("Clone, PartialEq", "Debug"), &["a", "b"]);
    assert!(text.starts_with("pub struct T {"), "{text}");
    for part in ["}\n\nimpl std::fmt::Debug for T {", ".field(\"a\", &self.cold.a)", ".finish()"] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn the_lines_of_strings_stay() {
    let uses = "pub fn new(hot: u64) -> T {\n    T {\n        hot,\n        a: 0,\n        b: String::from(\"x\ny\"),\n    }\n}\n";
    let text = text(&format!("{T}{uses}"), &["a", "b"]);
    assert!(
        text.contains("                b: String::from(\"x\ny\"),\n") || text.contains("\"x\ny\""),
        "{text}"
    );
}

#[test]
fn uses_that_no_edit_follows_keep_a_field() {
    for (uses, why) in [
        ("pub fn f(t: &T) -> u64 { let T { a, .. } = t; *a }", "pattern"),
        ("pub fn f(t: &T) -> u64 { match t { T { hot: 0, a, .. } => *a, _ => 0 } }", "pattern"),
        ("macro_rules! m { ($t:expr) => { $t.a } } pub fn f(t: &T) -> u64 { m!(t) }", "body of a macro"),
        ("macro_rules! m { ($t:expr) => { $t } } pub fn f(t: &T) -> u64 { m!(t.a) }", "given to a macro"),
        ("pub fn f(t: &T) -> u64 { dbg!(t.a) }", "given to a macro"),
        ("pub fn f(t: T) -> T { T { a: 2, ..t } }", "next to fields of another value"),
        ("pub fn f() -> Vec<T> { vec![T { hot: 0, a: 1, b: String::new() }] }", "a macro builds"),
        ("#[cfg(windows)] pub fn f(t: &T) -> u64 { t.a }", "under a condition"),
    ] {
        let text = format!("{T}{uses}\n");
        match boxed(&text, &["a"]) {
            Ok(part) => panic!("{uses}: {}", part.texts["src/lib.rs"]),
            Err(said) => assert!(said.contains(why), "{uses}: {said}"),
        }
        let moved = boxed(&text, &["a", "b"]).map(|part| part.moved);
        assert!(!moved.is_ok_and(|moved| moved.contains("a")), "{uses}");
    }
}

#[test]
fn values_are_evaluated_in_the_order_before() {
    let with = |value: &str| {
        let uses = format!("pub fn g() -> u64 {{ 1 }}\npub fn f(n: u64) -> T {{ T {{ {value} }} }}\n");
        boxed(&format!("{T}{uses}"), &["a", "b"])
    };
    for (value, written) in [
        (
            "a: g(), hot: 1, b: String::new()",
            "T { hot: 1, cold: Box::new(TCold { a: g(), b: String::new() }) }",
        ),
        (
            "a: n, hot: g(), b: String::new()",
            "T { cold: Box::new(TCold { a: n, b: String::new() }), hot: g() }",
        ),
        (
            "a: 1, hot: g(), b: n.to_string()",
            "T { hot: g(), cold: Box::new(TCold { a: 1, b: n.to_string() }) }",
        ),
    ] {
        let text = with(value).unwrap_or_else(|why| panic!("{value}: {why}")).texts["src/lib.rs"].clone();
        assert!(text.contains(written), "{value}\n{text}");
    }
    let moved = with("a: g(), hot: g(), b: g().to_string()").expect("an edit").moved;
    assert_eq!(moved.into_iter().collect::<Vec<_>>(), ["b"], "one of them may do something");
}

#[test]
fn what_a_box_would_change_keeps_the_struct() {
    let noisy = "struct N;\nimpl Drop for N { fn drop(&mut self) { println!() } }\n";
    let deref = "impl std::ops::Deref for T { type Target = u64; fn deref(&self) -> &u64 { &self.hot } }\n";
    for (declared, why) in [
        (T.replace("#[derive", "#[repr(C)]\n#[derive"), "layout is asked for"),
        (T.replace("#[derive", "#[repr(align(64))]\n#[derive"), "layout is asked for"),
        (T.replace("Clone, PartialEq", "Clone, Copy").replace("String", "u8"), "it is Copy"),
        (T.replace("PartialEq", "serde::Serialize"), "derived serde may show"),
        (T.replace("pub struct T", "pub struct T<'a>").replace("String", "&'a str"), "generic"),
        ("pub struct T {\n    hot: u64,\n    #[cfg(unix)]\n    a: u64,\n}\n".to_owned(), "an attribute"),
        (format!("{noisy}pub struct T {{\n    pub hot: u64,\n    a: N,\n}}\n"), "is a N, whose end may do"),
        (
            format!("{noisy}struct O(N);\npub struct T {{\n    pub hot: u64,\n    a: Vec<O>,\n}}\n"),
            "end may do",
        ),
        (format!("{T}{deref}"), "by Deref"),
        (format!("{T}pub fn f() -> usize {{ std::mem::size_of::<T>() }}"), "look at its layout"),
        (format!("{T}pub fn f() -> usize {{ std::alloc::Layout::new::<T>().size() }}"), "look at its layout"),
        (
            format!("{T}use std::alloc::Layout as L;\npub fn f() -> usize {{ L::new::<T>().size() }}"),
            "look at its layout",
        ),
        (
            format!("{T}pub fn f(t: &T) -> usize {{ std::alloc::Layout::for_value(t).size() }}"),
            "looks at bytes",
        ),
        (
            format!("{T}pub fn f(t: &[T]) -> usize {{ unsafe {{ t.align_to::<u8>() }}.1.len() }}"),
            "looks at bytes",
        ),
        (format!("{T}pub fn f(t: &T) -> usize {{ t as *const T as usize }}"), "casts pointers"),
        (format!("{T}pub fn f() -> T {{ unsafe {{ std::mem::zeroed() }} }}"), "casts pointers"),
        (
            format!("{T}pub type A = T;\npub fn f() -> usize {{ std::mem::size_of::<A>() }}"),
            "look at its layout",
        ),
        (
            format!(
                "{T}mod m {{ use super::T as A; pub fn f(a: &A) -> usize {{ std::mem::size_of::<A>() + a.hot as usize }} }}"
            ),
            "look at its layout",
        ),
        (
            format!("{T}pub fn f<X>() -> usize {{ std::mem::size_of::<X>() }}"),
            "code for any type looks at the bytes",
        ),
        (
            format!(
                "{T}pub fn f<const N: usize>(t: &T) -> usize {{ N + t.hot as usize + std::mem::size_of::<u64>() }}\npub trait S: Sized {{ fn size(&self) -> usize {{ std::mem::size_of::<Self>() }} }}"
            ),
            "code for any type looks at the bytes",
        ),
        (format!("{T}pub const NONE: T = T {{ hot: 0, a: 0, b: String::new() }};"), "const"),
        (
            T.replace("pub b", "pub c").replace("// first", "// a b: c"),
            "members are not those of the debug info",
        ),
        (format!("{T}pub fn f(t: u64) -> u64 {{ t.a }}"), "as they are"),
    ] {
        let cold: &[&str] = if declared.contains(" b: ") { &["a", "b"] } else { &["a"] };
        match boxed(&declared, cold) {
            Ok(part) => panic!("{declared}: {}", part.texts["src/lib.rs"]),
            Err(said) => assert!(said.contains(why), "{declared}: {said}"),
        }
    }
}

#[test]
fn code_of_other_files_for_any_type_keeps_the_struct() {
    for (code, why) in [
        (
            "pub fn none<X>() -> X { unsafe { std::mem::zeroed() } }",
            Some("code for any type looks at the bytes of its objects) at src/none.rs:1"),
        ),
        ("pub fn size(one: &impl Sized) -> usize { std::mem::size_of_val(one) }", Some("code for any type")),
        (
            "pub fn bytes<X>(one: &X) -> u8 { unsafe { *(one as *const X as *const u8) } }",
            Some("code for any type"),
        ),
        ("pub fn number(of: &[u8; 4]) -> u32 { unsafe { std::mem::transmute(*of) } }", None),
        ("pub fn room<const N: usize>() -> usize { N * std::mem::size_of::<u64>() }", None),
        ("pub fn ends<'a>(of: &'a [u64]) -> usize { of.len() * std::mem::size_of::<u64>() }", None),
    ] {
        let files =
            BTreeMap::from([("src/lib.rs", format!("mod none;\n{T}")), ("src/none.rs", code.to_owned())]);
        let files: BTreeMap<String, String> =
            files.into_iter().map(|(path, text)| (path.to_owned(), text)).collect();
        let said = RustStruct::read(&Sources::new(files), "T").err().map(|binding| binding.to_string());
        assert_eq!(said.is_some(), why.is_some(), "{code}: {said:?}");
        assert!(
            why.is_none_or(|why| said.as_ref().is_some_and(|said| said.contains(why))),
            "{code}: {said:?}"
        );
    }
}

#[test]
fn derived_orders_take_the_last_fields_alone() {
    let ordered = T.replace("Clone, PartialEq", "PartialEq, Eq, Hash");
    assert_eq!(boxed(&ordered, &["b"]).expect("an edit").moved.len(), 1);
    let first = boxed(&ordered, &["hot", "b"]).expect("an edit").moved;
    assert_eq!(first.into_iter().collect::<Vec<_>>(), ["b"]);
}

#[test]
fn public_fields_stay_where_a_registry_would_take_the_library() {
    const GIVEN: &str = "[package]\ndescription = \"d\"\nlicense = \"MIT\"\n";
    for manifest in [GIVEN, "[package]\npublish = true\n", "[package]\npublish = [\"own\"]\n"] {
        let said = boxed_in(T, &["a", "b"], manifest).map(|part| part.moved);
        assert!(
            said.is_err_and(|why| why.contains("public in a library that may be published")),
            "{manifest}"
        );
    }
    let own = T.replace("    pub b", "    b");
    assert_eq!(boxed_in(&own, &["a", "b"], GIVEN).expect("an edit").moved.len(), 1);
    let without_license = "[package]\ndescription = \"d\"\n";
    for manifest in ["[package]\n", without_license, "[package]\npublish = []\n", PRIVATE] {
        assert_eq!(boxed_in(T, &["a", "b"], manifest).expect("an edit").moved.len(), 2, "{manifest}");
    }
}
