//! `lineup layout` on debug information that compilers write in forms of their own: type units, bit-fields without
//! widths, arrays of Fortran and Ada, BTF of objects for other machines. The compiled program itself prints the right
//! values.

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn lineup(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lineup")).args(arguments).output().expect("the binary under test")
}

/// The types that `lineup layout --json` shows, by name and in their order.
fn shown(file: &Path, names: &[&str]) -> Vec<(String, Value)> {
    let file = file.to_str().expect("a UTF-8 path");
    let output = lineup(&[&["layout", "--json", file], names].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let types = document["types"].as_array().expect("types").clone();
    types.into_iter().map(|ty| (ty["name"].as_str().expect("a name").to_owned(), ty)).collect()
}

fn one(file: &Path, name: &str) -> Value {
    let mut types = shown(file, &[name]);
    assert_eq!(types.len(), 1, "{name}: {types:?}");
    types.remove(0).1
}

fn member<'t>(ty: &'t Value, name: &str) -> &'t Value {
    let members = ty["members"].as_array().expect("members");
    members.iter().find(|member| member["name"] == name).unwrap_or_else(|| panic!("{name} in {ty}"))
}

/// First bit and width of each member in bits.
fn places(ty: &Value) -> BTreeMap<String, (u64, u64)> {
    let place = |member: &Value| {
        let start = member["offset_bits"].as_u64().expect("a place");
        let width = member["bit_size"].as_u64().or_else(|| Some(member["size_bytes"].as_u64()? * 8));
        (member["name"].as_str().expect("a name").to_owned(), (start, width.expect("a width")))
    };
    ty["members"].as_array().expect("members").iter().map(place).collect()
}

/// A folder to compile in.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().expect("a temporary folder"))
    }

    /// Compiles a source; says that the test is skipped where the compiler is not installed.
    fn compile(
        &self,
        (compiler, package): (&str, &str),
        source: (&str, &str),
        flags: &[&str],
    ) -> Option<PathBuf> {
        std::fs::write(self.0.path().join(source.0), source.1).expect("a writable folder");
        let program = self.0.path().join("program");
        let mut command = Command::new(compiler);
        command.args(flags).arg("-o").arg(&program).arg(source.0).current_dir(self.0.path());
        match command.output() {
            Err(error) => {
                let why = format!("{compiler}: {error}; apt install {package}");
                assert!(std::env::var_os("CI").is_none(), "{why}");
                println!("skipped: {why}");
                None
            }
            Ok(output) => {
                assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
                Some(program)
            }
        }
    }
}

/// The numbers that a program prints.
fn printed(program: &Path) -> Vec<u64> {
    let output = Command::new(program).output().expect("the program runs");
    assert!(output.status.success());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.split_whitespace().map(|number| number.parse().expect("a number")).collect()
}

const TYPE_UNITS: &str = "
#include <cstdio>
#include <cstddef>
namespace ui { struct Window { enum class Style : char { Flat } style; struct Edge { char c; double w; typedef short Width; Width width; } edge; }; }
namespace net { struct Packet { enum class Style : long { Raw } style; struct Edge { int a, b; } edge; }; }
ui::Window window; net::Packet packet;
ui::Window::Edge edge; ui::Window::Edge::Width width;
int main() {
    std::printf(\"%zu %zu %zu %zu %zu %zu\\n\", sizeof(ui::Window), offsetof(ui::Window, edge), sizeof(ui::Window::Edge),
        sizeof(net::Packet), offsetof(net::Packet, edge), sizeof(net::Packet::Edge));
}
";

#[test]
fn types_in_units_of_their_own_keep_their_scopes() {
    let folder = Folder::new();
    for compiler in ["g++", "clang++"] {
        for version in ["-gdwarf-4", "-gdwarf-5"] {
            let flags = [version, "-O0", "-fdebug-types-section"];
            let Some(program) = folder.compile((compiler, compiler), ("units.cc", TYPE_UNITS), &flags) else {
                continue;
            };
            let right = printed(&program);
            let mut found = Vec::new();
            for (outer, style) in
                [("ui::Window", "enum ui::Window::Style"), ("net::Packet", "enum net::Packet::Style")]
            {
                let ty = one(&program, outer);
                assert_eq!(member(&ty, "style")["type"], style, "{compiler} {version}");
                let edge = member(&ty, "edge");
                assert_eq!(edge["type"], format!("struct {outer}::Edge"), "{compiler} {version}");
                let inner = one(&program, &format!("{outer}::Edge"));
                let number = |value: &Value| value.as_u64().expect("a number");
                found.extend([&ty["size_bytes"], &edge["offset_bytes"], &inner["size_bytes"]].map(number));
            }
            assert_eq!(found, right, "{compiler} {version}");
            let both = shown(&program, &["Edge"]);
            assert_eq!(both.len(), 2, "{compiler} {version}: {both:?}");
            let edge = one(&program, "ui::Window::Edge");
            assert_eq!(member(&edge, "width")["type"], "ui::Window::Edge::Width", "{compiler} {version}");
        }
    }
}

/// Bit-fields as wide as their types, one after another, in a packed struct: each member set to all ones shows its
/// bits.
const WHOLE_BIT_FIELDS: &str = "
#include <stdio.h>
#include <string.h>
typedef unsigned short half;
struct __attribute__((packed)) frame {
    unsigned char lead : 3; half whole : 16; unsigned char next : 8; unsigned int rest : 5; int last : 32; unsigned char plain;
} frame;
#define SHOW(m) do { struct frame x; memset(&x, 0, sizeof x); x.m = -1; \\
    unsigned char *p = (void *)&x; int first = -1, last = -1; \\
    for (unsigned i = 0; i < 8 * sizeof x; i++) if (p[i / 8] >> (i % 8) & 1) { if (first < 0) first = i; last = i; } \\
    printf(\"%d %d\\n\", first, last - first + 1); } while (0)
int main(void) { SHOW(lead); SHOW(whole); SHOW(next); SHOW(rest); SHOW(last); SHOW(plain); return frame.lead; }
";

#[test]
fn bit_fields_as_wide_as_their_types_lie_where_the_program_has_them() {
    let folder = Folder::new();
    for compiler in ["gcc", "clang"] {
        for version in ["-gdwarf-2", "-gdwarf-4", "-gdwarf-5"] {
            let source = ("frame.c", WHOLE_BIT_FIELDS);
            let Some(program) = folder.compile((compiler, compiler), source, &[version, "-O0"]) else {
                continue;
            };
            let numbers = printed(&program);
            let right: Vec<(u64, u64)> = numbers.chunks(2).map(|pair| (pair[0], pair[1])).collect();
            let places = places(&one(&program, "frame"));
            let names = ["lead", "whole", "next", "rest", "last", "plain"];
            assert_eq!(names.map(|name| places[name]).to_vec(), right, "{compiler} {version}");
        }
    }
}

const FORTRAN: &str = "
module shapes
  type node
    character(len=5) :: label
    integer(1) :: flag
    real(4), pointer :: grid(:,:)
    real(8), allocatable :: trail(:)
    integer(4) :: shifted(-3:4), plain(5,2), none(0)
    character(7) :: words(3)
    logical(1) :: last
  end type
end module
program main
  use shapes
  type(node), target :: n
  n%flag = 1
  write (*, '(11(i0, 1x))') storage_size(n) / 8, loc(n%label) - loc(n), loc(n%flag) - loc(n), &
    loc(n%shifted) - loc(n), loc(n%plain) - loc(n), loc(n%words) - loc(n), loc(n%last) - loc(n), &
    sizeof(n%label), sizeof(n%shifted), sizeof(n%plain), sizeof(n%words)
end program
";

#[test]
fn arrays_and_strings_of_fortran_have_their_sizes() {
    let folder = Folder::new();
    let Some(program) = folder.compile(("gfortran", "gfortran"), ("shapes.f90", FORTRAN), &["-g"]) else {
        return;
    };
    let ty = one(&program, "shapes::node");
    let number = |value: &Value| value.as_u64().expect("a number");
    let mut found = vec![number(&ty["size_bytes"])];
    found.extend(
        ["label", "flag", "shifted", "plain", "words", "last"]
            .map(|name| number(&member(&ty, name)["offset_bytes"])),
    );
    found.extend(["label", "shifted", "plain", "words"].map(|name| number(&member(&ty, name)["size_bytes"])));
    assert_eq!(found, printed(&program));
    assert_eq!(member(&ty, "none")["size_bytes"], 0);
    // A descriptor: five words, and three for each dimension.
    assert_eq!(member(&ty, "grid")["size_bytes"], 40 + 2 * 24);
    assert_eq!(member(&ty, "trail")["size_bytes"], 40 + 24);
    assert_eq!(member(&ty, "trail")["type"], "real(kind=8)(:)");
    assert_eq!(member(&ty, "label")["type"], "character(len=5)");
}

const ADA: &str = "
with Ada.Text_IO; use Ada.Text_IO;
procedure Sizes is
   type Grid is array (1 .. 3, -2 .. 4) of Short_Integer;
   type Name is access String;
   type Holder is record
      Tag : Character;
      Cells : Grid;
      Where : Name;
      Code : String (1 .. 5);
   end record;
   type Text (Length : Integer) is record
      Mark : Integer;
      Letters : String (1 .. Length);
   end record;
   H : Holder;
   T : Text (7);
begin
   H.Tag := 'a';
   T.Mark := 1;
   Put_Line (Integer'Image (H'Size / 8) & Integer'Image (H.Cells'Position) & Integer'Image (H.Where'Position)
     & Integer'Image (H.Code'Position) & Integer'Image (H.Cells'Size / 8) & Integer'Image (H.Code'Size / 8)
     & Integer'Image (T.Letters'Position));
end Sizes;
";

#[test]
fn records_of_ada_have_their_sizes_and_those_of_a_run_are_not_invented() {
    let folder = Folder::new();
    std::fs::write(folder.0.path().join("sizes.adb"), ADA).expect("a writable folder");
    let mut gnatmake = Command::new("gnatmake");
    gnatmake.args(["-g", "sizes.adb"]).current_dir(folder.0.path());
    let Ok(output) = gnatmake.output() else {
        assert!(std::env::var_os("CI").is_none(), "gnatmake: apt install gnat");
        println!("skipped: gnatmake; apt install gnat");
        return;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let program = folder.0.path().join("sizes");
    let ty = one(&program, "sizes__holder");
    let number = |value: &Value| value.as_u64().expect("a number");
    let text = one(&program, "sizes__text");
    let mut found = vec![number(&ty["size_bytes"])];
    found.extend(["cells", "where", "code"].map(|name| number(&member(&ty, name)["offset_bytes"])));
    found.extend(["cells", "code"].map(|name| number(&member(&ty, name)["size_bytes"])));
    found.push(number(&member(&text, "letters")["offset_bytes"]));
    assert_eq!(found, printed(&program));
    // A pointer to an array and one to its bounds.
    assert_eq!(member(&ty, "where")["size_bytes"], 16);
    assert_eq!(text["is_size_of_known_members"], true);
    assert_eq!(member(&text, "letters")["size_bytes"], Value::Null);
    let file = program.to_str().expect("a UTF-8 path");
    let as_text = String::from_utf8_lossy(&lineup(&["layout", file, "sizes__text"]).stdout).into_owned();
    assert!(as_text.contains("/* size: known at run time only, at least 8, members: 3 */"), "{as_text}");
}

const TYPES_FOR_BPF: &str = "
enum wide { LOW, HIGH = 0x100000000 };
struct gap { int : 32, : 32; long : 40; void *ptr; };
struct holder { enum wide w; char c; long rows[2]; unsigned a : 3, b : 29; };
struct gap gap; struct holder holder;
int main(void) { return holder.c + !gap.ptr; }
";

#[test]
fn an_object_for_another_machine_is_read_by_its_btf() {
    for target in ["bpf", "bpfeb"] {
        an_object_is_read_by_its_btf(target);
    }
}

fn an_object_is_read_by_its_btf(target: &str) {
    let folder = Folder::new();
    let flags = ["-target", target, "-O2", "-g", "-c"];
    let Some(object) = folder.compile(("clang", "clang"), ("types.c", TYPES_FOR_BPF), &flags) else { return };
    let right = folder.0.path().join("native");
    let status = Command::new("gcc")
        .args(["-g", "-O2", "-o"])
        .arg(&right)
        .arg(folder.0.path().join("types.c"))
        .status();
    assert!(status.expect("gcc; apt install gcc").success());
    for name in ["gap", "holder"] {
        let (ours, native) = (one(&object, name), one(&right, name));
        assert_eq!(ours["size_bytes"], native["size_bytes"], "{name}");
        assert_eq!(places(&ours), places(&native), "{name}");
    }
    std::fs::write(folder.0.path().join("plain.c"), "int main(void) { return 0; }")
        .expect("a writable folder");
    let without = folder.0.path().join("without.o");
    let status = Command::new("clang")
        .args(["-target", "bpf", "-c", "-o"])
        .arg(&without)
        .arg(folder.0.path().join("plain.c"))
        .status();
    assert!(status.expect("clang; apt install clang").success());
    let output = lineup(&["layout", without.to_str().expect("a UTF-8 path")]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("an ELF file for Bpf"));
}

#[test]
fn names_that_are_known_are_shown_beside_those_that_are_not() {
    let folder = Folder::new();
    let source =
        ("two.c", "struct first { int a; } f; struct second { long b; } s; int main(void) { return 0; }");
    let program = folder.compile(("gcc", "gcc"), source, &["-g"]).expect("gcc; apt install gcc");
    let file = program.to_str().expect("a UTF-8 path");
    let output = lineup(&["layout", file, "frist", "second", "third"]);
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(2));
    assert!(out.contains("struct second {") && !out.contains("struct first"), "{out}");
    assert!(err.contains("no type frist in") && err.contains("did you mean first?"), "{err}");
    assert!(err.contains("no type third in"), "{err}");
    let output = lineup(&["layout", "--json", file, "frist", "second"]);
    assert_eq!(output.status.code(), Some(2));
    let document: Value = serde_json::from_slice(&output.stdout).expect("one document");
    assert_eq!(document["types"][0]["name"], "second");
    assert!(document["unknown"][0].as_str().is_some_and(|why| why.contains("no type frist")), "{document}");
}

const ALIGNED: &str = "
#include <stdio.h>
#include <stddef.h>
struct ignored { int m; } __attribute__((aligned(1)));
struct nested { struct ignored one; long two; } __attribute__((aligned(2)));
struct packed { char c; long l; } __attribute__((packed, aligned(2)));
struct short_one { long l; int i; } __attribute__((packed, aligned(4)));
struct raised { int m; } __attribute__((aligned(32)));
struct ignored a; struct nested b; struct packed c; struct short_one d; struct raised e;
int main(void) {
    printf(\"%zu %zu %zu %zu %zu\\n\", _Alignof(struct ignored), _Alignof(struct nested), _Alignof(struct packed),
           _Alignof(struct short_one), _Alignof(struct raised));
}
";

/// Clang describes alignments that have no effect. A packed type's alignments stay where its members show the packing.
#[test]
fn an_alignment_without_effect_is_not_shown() {
    let folder = Folder::new();
    for compiler in [("gcc", "gcc"), ("clang", "clang")] {
        let Some(program) = folder.compile(compiler, ("a.c", ALIGNED), &["-g", "-O0"]) else { continue };
        let names = ["ignored", "nested", "packed", "short_one", "raised"];
        for ((name, of_members), align) in names.into_iter().zip([4, 8, 1, 1, 4]).zip(printed(&program)) {
            let ty = one(&program, name);
            let declared = ty["declared_align_bytes"].as_u64();
            assert_eq!(declared.unwrap_or(of_members), align, "{name} of {}: {ty}", compiler.0);
        }
    }
}

const NULL_POINTERS: &str = "
#include <cstdio>
#include <cstddef>
struct handle { int kind; std::nullptr_t none; const std::nullptr_t *more; char last; };
handle one;
int main() { std::printf(\"%zu %zu %zu\\n\", sizeof(handle), offsetof(handle, none), offsetof(handle, last)); }
";

/// Debug information has no size for the type of C++'s null pointer.
#[test]
fn a_null_pointer_has_the_size_of_a_pointer() {
    let folder = Folder::new();
    for compiler in [("g++", "g++"), ("clang++", "clang")] {
        let Some(program) = folder.compile(compiler, ("a.cc", NULL_POINTERS), &["-g", "-O0"]) else {
            continue;
        };
        let ty = one(&program, "handle");
        let number = |value: &Value| value.as_u64().expect("a number");
        let last = number(&member(&ty, "last")["offset_bytes"]);
        let places = [number(&ty["size_bytes"]), number(&member(&ty, "none")["offset_bytes"]), last];
        assert_eq!(places.to_vec(), printed(&program), "{}", compiler.0);
        assert_eq!(member(&ty, "none")["size_bytes"], 8, "{}: {ty}", compiler.0);
    }
}

const COMDAT: &str = "
#include <cstdio>
#include <cstddef>
namespace a { struct Slot { char c; struct Deep { long l; char d; } deep; }; }
template<class T> struct Ring { T t; a::Slot slots[2]; };
Ring<short> ring; a::Slot::Deep deep;
int main() {
    std::printf(\"%zu %zu %zu %zu %zu\\n\", sizeof(a::Slot), offsetof(a::Slot, deep), sizeof(a::Slot::Deep), sizeof(ring),
        offsetof(Ring<short>, slots));
}
";

/// In object files each type unit has a section of its own, all of one name.
#[test]
fn type_units_of_object_files_and_split_files_are_all_read() {
    let folder = Folder::new();
    let cc = ("g++", "g++");
    let Some(program) = folder.compile(cc, ("units.cc", COMDAT), &["-g"]) else { return };
    let right = printed(&program);
    let check = |file: &Path, how: &str| {
        let (slot, deep, ring) = (one(file, "a::Slot"), one(file, "Slot::Deep"), one(file, "Ring"));
        let numbers = [
            &slot["size_bytes"],
            &member(&slot, "deep")["offset_bytes"],
            &deep["size_bytes"],
            &ring["size_bytes"],
            &member(&ring, "slots")["offset_bytes"],
        ];
        assert_eq!(numbers.map(|number| number.as_u64().expect("a number")).to_vec(), right, "{how}");
    };
    for compiler in [cc, ("clang++", "clang")] {
        for version in ["-gdwarf-4", "-gdwarf-5"] {
            for more in ["-gz=none", "-gz=zlib"] {
                let flags = ["-c", version, more, "-fdebug-types-section"];
                let how = format!("{} {version} {more}", compiler.0);
                if let Some(object) = folder.compile(compiler, ("units.cc", COMDAT), &flags) {
                    check(&object, &how);
                }
            }
            let flags = [version, "-gsplit-dwarf", "-fdebug-types-section"];
            if let Some(program) = folder.compile(compiler, ("units.cc", COMDAT), &flags) {
                check(&program, &format!("{} {version} split", compiler.0));
                let dwo = |entry: std::io::Result<std::fs::DirEntry>| {
                    let path = entry.expect("an entry").path();
                    path.extension().is_some_and(|extension| extension == "dwo").then_some(path)
                };
                let split = std::fs::read_dir(folder.0.path()).expect("a folder").find_map(dwo);
                let split = split.expect("a split file");
                check(&split, &format!("{} {version} alone", compiler.0));
                std::fs::remove_file(split).expect("a writable folder");
            }
        }
    }
}

const SHARED: &str = "
#include <stdio.h>
#include <stddef.h>
struct pair { char c; long l; };
struct table { struct pair pairs[3]; struct table *next; int used; } table;
struct index { struct table *tables; struct pair first; char last; } index_;
int main(void) { printf(\"%zu %zu %zu\\n\", sizeof(struct table), offsetof(struct table, used), sizeof(struct index)); }
";

/// dwz writes links to what it moves to a shared file in GNU's form, or as DWARF 5 has them.
#[test]
fn a_supplementary_file_of_dwarf_5_is_read() {
    let folder = Folder::new();
    let Some(program) = folder.compile(("gcc", "gcc"), ("shared.c", SHARED), &["-g"]) else { return };
    let right = printed(&program);
    let copies = ["one", "two"].map(|name| folder.0.path().join(name));
    for copy in &copies {
        std::fs::copy(&program, copy).expect("a writable folder");
    }
    let arguments = ["--dwarf-5", "-m", "shared.debug", "one", "two"];
    match Command::new("dwz").args(arguments).current_dir(folder.0.path()).status() {
        Err(_) if std::env::var_os("CI").is_none() => return println!("skipped: apt install dwz"),
        status => assert!(status.expect("dwz; apt install dwz").success()),
    }
    for copy in &copies {
        let (table, index) = (one(copy, "table"), one(copy, "index"));
        let numbers = [&table["size_bytes"], &member(&table, "used")["offset_bytes"], &index["size_bytes"]];
        assert_eq!(numbers.map(|number| number.as_u64().expect("a number")).to_vec(), right);
        assert_eq!(member(&index, "first")["type"], "struct pair");
    }
}

/// A file that dwz made for several programs also holds types that only others of them have.
#[test]
fn types_of_other_programs_in_a_supplementary_file_are_left_out() {
    let folder = Folder::new();
    let others = SHARED.replace("index", "list").replace("table", "heap").replace("pair", "cell");
    for (name, source) in [("one", SHARED), ("two", SHARED), ("three", &others), ("four", &others)] {
        let Some(program) = folder.compile(("gcc", "gcc"), ("shared.c", source), &["-g"]) else { return };
        std::fs::rename(program, folder.0.path().join(name)).expect("a writable folder");
    }
    let arguments = ["-m", "shared.debug", "one", "two", "three", "four"];
    match Command::new("dwz").args(arguments).current_dir(folder.0.path()).status() {
        Err(_) if std::env::var_os("CI").is_none() => return println!("skipped: apt install dwz"),
        status => assert!(status.expect("dwz; apt install dwz").success()),
    }
    let names = |file: &str| {
        let all = shown(&folder.0.path().join(file), &[]);
        all.into_iter().map(|(name, _)| name).filter(|name| !name.starts_with('_')).collect::<Vec<_>>()
    };
    assert_eq!(names("two"), ["index", "pair", "table"]);
    assert_eq!(names("three"), ["cell", "heap", "list"]);
}

const RANGES: &str = "
with Ada.Text_IO; use Ada.Text_IO;
procedure Program is
   type Small is range 0 .. 100;
   type Wide is mod 2**40;
   type Fix is delta 0.01 range 0.0 .. 100.0;
   type Flags is array (1 .. 13) of Boolean with Pack;
   type Loose is array (1 .. 13) of Boolean;
   type Smalls is array (1 .. 9) of Small;
   type Two is array (1 .. 5) of Small with Component_Size => 16;
   subtype Few is Integer range 1 .. 8;
   type R is record A : Small; N : Natural; B : Wide; C : Flags; D : Loose; E : Smalls; F : Two; G : Few; H : Fix; I : Small; end record;
   X : R;
begin
   X.G := 3;
   Put_Line (Integer'Image (X'Size / 8) & Integer'Image (X.N'Position) & Integer'Image (X.B'Position) & Integer'Image (X.D'Position)
      & Integer'Image (X.E'Position) & Integer'Image (X.F'Position) & Integer'Image (X.G'Position) & Integer'Image (X.I'Position));
   Put_Line (Integer'Image (X.A'Size / 8) & Integer'Image (X.N'Size / 8) & Integer'Image (X.B'Size / 8) & Integer'Image (X.C'Size / 8)
      & Integer'Image (X.D'Size / 8) & Integer'Image (X.E'Size / 8) & Integer'Image (X.F'Size / 8) & Integer'Image (X.G'Size / 8)
      & Integer'Image (X.H'Size / 8) & Integer'Image (X.I'Size / 8));
end Program;
";

/// Ada's numbers are ranges of others, and elements of packed arrays are closer together than their type is long.
#[test]
fn ranges_and_packed_arrays_of_ada_have_their_sizes() {
    let folder = Folder::new();
    std::fs::write(folder.0.path().join("program.adb"), RANGES).expect("a writable folder");
    let built =
        Command::new("gnatmake").args(["-q", "-g", "program.adb"]).current_dir(folder.0.path()).output();
    match built {
        Err(_) if std::env::var_os("CI").is_none() => return println!("skipped: apt install gnat"),
        built => assert!(built.expect("gnatmake; apt install gnat").status.success()),
    }
    let program = folder.0.path().join("program");
    let ty = one(&program, "program__r");
    let number = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("{value} in {ty}"));
    let mut numbers = vec![number(&ty["size_bytes"])];
    numbers
        .extend(["n", "b", "d", "e", "f", "g", "i"].map(|name| number(&member(&ty, name)["offset_bytes"])));
    let all = ["a", "n", "b", "c", "d", "e", "f", "g", "h", "i"];
    numbers.extend(all.map(|name| number(&member(&ty, name)["size_bytes"])));
    assert_eq!(numbers, printed(&program), "{ty}");
    assert_eq!(member(&ty, "a")["type"], "program__small");
    assert_eq!(member(&ty, "n")["type"], "natural");
}

const ATOMIC: &str = "
#include <stdio.h>
#include <stddef.h>
struct three { char a, b, c; };
struct wide { char c; struct three plain; _Atomic struct three one; char d; _Atomic(struct three) two; long last; } v;
int main(void) {
    printf(\"%zu %zu %zu %zu\\n\", sizeof(struct wide), offsetof(struct wide, one), offsetof(struct wide, two), offsetof(struct wide, last));
}
";

/// Clang makes `_Atomic` members longer than their type, and writes them like bit-fields.
#[test]
fn atomic_members_are_no_bit_fields() {
    let folder = Folder::new();
    for version in ["-gdwarf-3", "-gdwarf-4", "-gdwarf-5"] {
        let Some(program) = folder.compile(("clang", "clang"), ("a.c", ATOMIC), &[version]) else { continue };
        let ty = one(&program, "wide");
        let number = |value: &Value| value.as_u64().expect("a number");
        let mut numbers = vec![number(&ty["size_bytes"])];
        numbers.extend(["one", "two", "last"].map(|name| number(&member(&ty, name)["offset_bytes"])));
        assert_eq!(numbers, printed(&program), "{version}");
        assert_eq!(member(&ty, "one")["bit_size"], Value::Null, "{version}: {ty}");
    }
}

const INTERFACES: &str = "
#include <cstdio>
#include <vector>
namespace hidden { namespace { struct Slot { char c; int i; }; } hidden::Slot slot; }
namespace hidden { struct Later; Later *later; }
struct Runs { virtual void run(); }; void Runs::run() {}
struct Task : virtual Runs { int x; void run() override; }; void Task::run() {}
struct Header { virtual void f(); int kind; }; void Header::f() {}
struct Body : Header { int len; }; Body body; Task task; std::vector<bool> bits;
int main() { std::printf(\"%zu %zu\\n\", sizeof(Task), sizeof(Body)); return hidden::slot.i; }
";

/// A virtual base holds the pointer to the table that its heirs have no member for, and padding of bases is reused.
#[test]
fn room_that_base_classes_use_is_no_hole_and_short_names_are_found() {
    let folder = Folder::new();
    for compiler in [("g++", "g++"), ("clang++", "clang")] {
        let flags = ["-g", "-fstandalone-debug"];
        let flags = if compiler.0 == "g++" { &flags[..1] } else { &flags[..] };
        let Some(program) = folder.compile(compiler, ("a.cc", INTERFACES), flags) else { continue };
        let (task, body) = (one(&program, "Task"), one(&program, "Body"));
        let sizes = [&task, &body].map(|ty| ty["size_bytes"].as_u64().expect("a size"));
        assert_eq!(sizes.to_vec(), printed(&program));
        assert_eq!(member(&task, "x")["hole_before_bytes"], 0, "{task}");
        let members = body["members"].as_array().expect("members");
        assert!(members.iter().all(|member| member["inner_padding_bytes"] == 0), "{body}");
        assert_eq!(one(&program, "hidden::Slot")["size_bytes"], 8);
        assert_eq!(shown(&program, &["std::vector<bool>"])[0].1["size_bytes"], 40);
        let file = program.to_str().expect("a UTF-8 path");
        let output = lineup(&["layout", file, "outer::Task"]);
        assert!(String::from_utf8_lossy(&output.stderr).contains("did you mean Task?"), "{output:?}");
        let output = lineup(&["layout", file, "Later"]);
        assert!(String::from_utf8_lossy(&output.stderr).contains("Later is only declared"), "{output:?}");
    }
}

const ASSERTED: &str = "
template<class K, int N> struct Map { K key; struct { unsigned hash : 3; unsigned rest : 29; }; int size[N]; };
struct Text { int len; char bytes[]; };
Map<long, 4> map; Text *text;
int main() { return map.size[0] + (text != nullptr); }
";

/// Commas in the names of templates, bit-fields inside nameless structs and arrays without a length compile.
#[test]
fn assertions_about_templates_and_open_arrays_compile() {
    let folder = Folder::new();
    let Some(program) = folder.compile(("g++", "g++"), ("a.cc", ASSERTED), &["-g"]) else { return };
    let group = |ty: &str, members: &str| {
        let head = format!("[[group]]\ntype = \"{ty}\"\nline_bytes = 64\ndata_model = \"LP64\"\n");
        format!("{head}members = [{members}]\n")
    };
    let map = one(&program, "Map")["name"].as_str().expect("a name").to_owned();
    let lock = folder.0.path().join("lineup.lock");
    let groups = group(&map, "\"key\", \"hash\", \"size\"") + &group("Text", "\"len\", \"bytes\"");
    std::fs::write(&lock, format!("schema = \"lineup.lock/1\"\n{groups}")).expect("a writable folder");
    let [lock, file] = [&lock, &program].map(|path| path.to_str().expect("a UTF-8 path"));
    let output = lineup(&["layout", file, "--check", lock, "--static-asserts=c"]);
    assert!(output.status.success(), "{output:?}");
    let asserts = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(asserts.contains("/* bit-field hash belongs to the same line */"), "{asserts}");
    let checked = format!("{ASSERTED}{asserts}");
    folder.compile(("g++", "g++"), ("b.cc", &checked), &["-c"]);
}

const DIAMOND: &str = "
struct V1 { virtual ~V1() {} int a; };
struct V2 : virtual V1 { char b; };
struct V3 : virtual V1 { double d; };
struct V4 : V2, V3 { short s; };
V4 v4;
int main() { return v4.a; }
";

/// Otherwise a third of the object would belong to nothing.
#[test]
fn a_virtual_base_of_bases_is_shown_with_the_class_that_holds_it() {
    let folder = Folder::new();
    let Some(program) = folder.compile(("g++", "g++"), ("a.cc", DIAMOND), &["-g"]) else { return };
    let file = program.to_str().expect("a UTF-8 path");
    let said = lineup(&["layout", file, "V4"]);
    let text = String::from_utf8_lossy(&said.stdout).into_owned();
    assert_eq!(text.matches("/* virtual base of a base */ struct V1;").count(), 1, "{text}");
    assert_eq!(one(&program, "V4")["indirect_virtual_bases"], serde_json::json!(["struct V1"]));
    assert!(one(&program, "V2")["indirect_virtual_bases"].is_null(), "V2 has it as a member");
}
