//! The contents read from real programs, compiled here: functions, inlined copies, variables, lines, stubs, and debug
//! information that lives in other files.

use crate::tool::run;
use lineup_debuginfo::{
    Bytes, Companion, Companions, DebugInfo, FoundFunctions, Mapping, NoCompanions, Region, demangle,
};
use lineup_model::abi::Abi;
use lineup_model::layout::Layout;
use lineup_model::line::LineSize;
use lineup_model::program::{FrameBase, Function, Location, SymbolKind};
use lineup_model::types::{Language, MemberRole, TypeKind};
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCE: &str = "\
#include <stdlib.h>
struct node { struct node *next; int key : 5; int value; };
struct node *head;
static _Thread_local int depth;
static inline __attribute__((always_inline)) int only_inlined(struct node *n) { return n->value + 1; }
__attribute__((noinline)) int walk(struct node *first, int limit) {
    static int calls;
    int sum = 0;
    calls++;
    for (struct node *n = first; n && limit > 0; n = n->next, limit--) sum += only_inlined(n);
    return sum + depth++;
}
int main(int argc, char **argv) {
    head = malloc(sizeof *head);
    if (!head) abort();
    head->next = NULL; head->value = argc; (void)argv;
    return walk(head, 3);
}
";

fn compile(folder: &Path, flags: &[&str]) -> PathBuf {
    compile_with("gcc", "gcc", folder, flags)
}

fn compile_with(compiler: &str, package: &str, folder: &Path, flags: &[&str]) -> PathBuf {
    std::fs::write(folder.join("list.c"), SOURCE).expect("a writable folder");
    run(compiler, package, folder, &[flags, &["-o", "list", "list.c"]].concat());
    folder.join("list")
}

fn open(path: &Path) -> DebugInfo {
    DebugInfo::parse(std::fs::read(path).expect("a file"), &mut NoCompanions).expect("a sound file")
}

fn function(info: &DebugInfo, name: &str) -> Function {
    let FoundFunctions::OutOfLine(found) = info.find_functions(name) else { panic!("{name} has code") };
    let mut functions = info.functions_covering(&mut [found[0].entry].into_iter());
    assert_eq!(functions.len(), 1);
    functions.remove(0)
}

/// Lines of `walk` and of the functions inlined into it.
const LINES_OF_WALK: std::ops::RangeInclusive<u32> = 5..=12;

/// The line of every address of `walk`.
fn walk_lines(info: &DebugInfo) -> Vec<u32> {
    let pcs = function(info, "walk").ranges[0].clone();
    let lines: Vec<u32> = pcs.filter_map(|pc| Some(info.line_of(pc)?.line)).collect();
    assert!(!lines.is_empty());
    lines
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

#[test]
fn a_function_comes_with_parameters_locals_inlined_copies_and_lines() {
    let folder = folder();
    for flags in [&["-gdwarf-4", "-O2"], &["-gdwarf-5", "-O2"]] {
        let info = open(&compile(folder.path(), flags));
        assert_eq!(info.abi(), Abi::X86_64);
        let walk = function(&info, "walk");
        let names: Vec<_> =
            walk.parameters.iter().filter_map(|parameter| parameter.name.as_deref()).collect();
        assert_eq!(names, ["first", "limit"]);
        // System V ABI: the first argument arrives in rdi, DWARF register 5.
        let first = &walk.parameters[0];
        assert_eq!(first.places[0].at, Location::Register(5));
        let node = info.types().pointee(first.ty.unwrap()).and_then(|id| info.types().get(id)).unwrap();
        assert_eq!(node.name.as_deref(), Some("node"));
        assert_eq!(walk.frame_base, Some(FrameBase::CanonicalFrameAddress));
        assert!(walk.variables.iter().any(|variable| variable.name.as_deref() == Some("sum")));
        assert_eq!(walk.inlined[0].name, "only_inlined");
        assert_eq!(walk.inlined[0].variables[0].name.as_deref(), Some("n"));
        assert_eq!(walk.inlined[0].called_at.as_ref().unwrap().line, 10);
        assert_eq!(walk.inlined[0].declared_at.as_ref().unwrap().line, 5);
        assert!(info.compiler_of(walk.entry().unwrap()).unwrap().starts_with("GNU C"));
        assert_eq!(walk.declared_at.as_ref().unwrap().line, 6);
        assert!(walk_lines(&info).iter().all(|line| LINES_OF_WALK.contains(line)));
        let of_line = info.addresses_of_lines("list.c", 10..=10);
        assert!(!of_line.is_empty() && of_line.iter().all(|&pc| walk.contains(pc)));
    }
}

#[test]
fn lines_agree_with_addr2line_at_every_address() {
    let folder = folder();
    let path = compile(folder.path(), &["-g", "-O2"]);
    let info = open(&path);
    let pcs = function(&info, "walk").ranges[0].clone();
    let addresses: Vec<String> = pcs.clone().map(|pc| format!("{pc:#x}")).collect();
    let output = Command::new("addr2line").arg("-e").arg(&path).args(&addresses).output();
    let output = output.expect("addr2line; install it: apt install binutils").stdout;
    let theirs = String::from_utf8_lossy(&output);
    for (pc, theirs) in pcs.zip(theirs.lines()) {
        let ours = info.line_of(pc).map(|at| format!("{}:{}", at.file, at.line));
        // addr2line adds which of several copies a line is.
        assert_eq!(ours.as_deref(), theirs.split(" (discriminator").next(), "{pc:#x}");
    }
}

#[test]
fn a_local_of_a_block_is_only_there_while_the_block_runs() {
    let folder = folder();
    let info = open(&compile(folder.path(), &["-g", "-O0"]));
    let walk = function(&info, "walk");
    let n = walk.variables.iter().find(|variable| variable.name.as_deref() == Some("n")).unwrap();
    let range = n.places[0].range.clone().unwrap();
    assert!(range.start > walk.ranges[0].start && range.end < walk.ranges[0].end);
    assert!(matches!(n.places[0].at, Location::Frame { .. }));
}

#[test]
fn a_name_leads_to_code_to_callers_that_inlined_it_or_to_near_names() {
    let folder = folder();
    let info = open(&compile(folder.path(), &["-g", "-O2"]));
    assert_eq!(
        info.find_functions("only_inlined"),
        FoundFunctions::InlinedEverywhere { name: "only_inlined".into(), callers: vec!["walk".into()] }
    );
    let FoundFunctions::Unknown { near } = info.find_functions("wolk") else { panic!("no such function") };
    assert_eq!(near[0], "walk");
}

#[test]
fn globals_have_addresses_and_statics_their_function() {
    let folder = folder();
    let info = open(&compile(folder.path(), &["-g", "-O2"]));
    let place = |name: &str| {
        let found = info.globals().iter().find(|variable| variable.name.as_deref() == Some(name));
        found.unwrap_or_else(|| panic!("{name}")).places[0].at.clone()
    };
    let symbol = info.symbols().iter().find(|symbol| symbol.name == "head").unwrap();
    assert_eq!((symbol.kind, symbol.size_bytes), (SymbolKind::Data, 8));
    assert_eq!(place("head"), Location::Address(symbol.address));
    assert_eq!(info.section_at(symbol.address).unwrap().region, Region::Data);
    assert!(matches!(place("walk::calls"), Location::Address(_)));
    assert!(matches!(place("depth"), Location::ThreadLocal(_)));
}

/// Every machine: its compiler, package, ABI.
const MACHINES: [(&str, &str, Abi); 4] = [
    ("gcc", "gcc", Abi::X86_64),
    ("i686-linux-gnu-gcc", "gcc-i686-linux-gnu libc6-dev-i386-cross", Abi::I386),
    ("arm-linux-gnueabihf-gcc", "gcc-arm-linux-gnueabihf libc6-dev-armhf-cross", Abi::ARM),
    ("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu libc6-dev-arm64-cross", Abi::AARCH64),
];

#[test]
fn calls_through_the_linkage_table_are_named_on_every_machine() {
    for (compiler, package, abi) in MACHINES {
        let folder = folder();
        let info = open(&compile_with(compiler, package, folder.path(), &["-g", "-O2"]));
        assert_eq!(info.abi(), abi);
        assert!(info.is_pie());
        let plt: Vec<_> = info.sections().iter().filter(|section| section.region == Region::Plt).collect();
        let named = |name: &str| {
            plt.iter().flat_map(|section| section.addresses.clone()).any(|pc| info.plt_name(pc) == Some(name))
        };
        assert!(named("malloc") && named("abort"), "{compiler}");
        let walk = function(&info, "walk");
        assert!(info.code(walk.ranges[0].clone()).is_some_and(|code| code.iter().any(|&byte| byte != 0)));
        assert_eq!(info.symbol_at(walk.ranges[0].end - 1).unwrap().name, "walk");
    }
}

#[test]
fn thumb_code_is_told_from_a32_and_its_addresses_are_even() {
    for (flag, mapping) in [("-mthumb", Mapping::Thumb), ("-marm", Mapping::A32)] {
        let folder = folder();
        let (compiler, package, _) = MACHINES[2];
        let info = open(&compile_with(compiler, package, folder.path(), &["-g", "-O2", flag]));
        let walk = function(&info, "walk");
        assert_eq!(walk.entry().unwrap() % 2, 0);
        assert_eq!(info.mapping_at(walk.entry().unwrap()).unwrap().mapping, mapping);
    }
}

#[test]
fn an_object_file_has_distinct_addresses_for_its_functions_and_data() {
    let folder = folder();
    let info = open(&compile(folder.path(), &["-g", "-O2", "-c", "-ffunction-sections"]));
    let (walk, main) = (function(&info, "walk"), function(&info, "main"));
    assert!(walk.ranges[0].end <= main.ranges[0].start || main.ranges[0].end <= walk.ranges[0].start);
    assert!(walk_lines(&info).iter().all(|line| LINES_OF_WALK.contains(line)));
    let head = info.globals().iter().find(|variable| variable.name.as_deref() == Some("head")).unwrap();
    let Location::Address(address) = head.places[0].at else { panic!("{head:?}") };
    assert!(info.symbols().iter().any(|symbol| symbol.name == "head" && symbol.address == address));
}

/// Finds companions in a folder, by the names that tools give them.
struct InFolder(PathBuf);

impl Companions for InFolder {
    fn find(&mut self, wanted: &Companion) -> Option<Bytes> {
        let name = match wanted {
            Companion::DebugLink { name, .. } | Companion::DwoFile { name, .. } => name.clone(),
            Companion::AltLink { name, .. } => Path::new(name).file_name()?.to_str()?.to_owned(),
            Companion::Dwp => "list.dwp".to_owned(),
            Companion::BuildId(_) => "by-build-id.debug".to_owned(),
        };
        std::fs::read(self.0.join(name)).ok().map(Into::into)
    }
}

fn open_in(folder: &Path, name: &str) -> DebugInfo {
    let bytes = std::fs::read(folder.join(name)).expect("a file");
    DebugInfo::parse(bytes, &mut InFolder(folder.to_owned())).expect("a sound file")
}

/// Everything that other tests ask of one build must hold here too.
fn assert_complete(info: &DebugInfo) {
    assert_eq!(info.missing(), []);
    let walk = function(info, "walk");
    assert_eq!((walk.parameters.len(), walk.inlined.len()), (2, 1));
    assert!(walk_lines(info).iter().all(|line| LINES_OF_WALK.contains(line)));
    assert!(info.globals().iter().any(|variable| variable.name.as_deref() == Some("walk::calls")));
    let (id, _) = info.types().iter().find(|(_, ty)| ty.name.as_deref() == Some("node")).unwrap();
    assert_eq!(Layout::of(info.types(), id, LineSize::B64).unwrap().size_bytes, 16);
}

#[test]
fn a_stripped_file_is_completed_by_its_separate_debug_file() {
    let folder = folder();
    let path = folder.path();
    compile(path, &["-g", "-O2", "-Wl,--build-id"]);
    run("objcopy", "binutils", path, &["--only-keep-debug", "list", "list.debug"]);
    run("objcopy", "binutils", path, &["--strip-all", "--add-gnu-debuglink=list.debug", "list", "stripped"]);
    let linked = open_in(path, "stripped");
    assert_complete(&linked);
    assert!(linked.symbols().iter().any(|symbol| symbol.name == "walk"));
    std::fs::rename(path.join("list.debug"), path.join("by-build-id.debug")).expect("a writable folder");
    assert_complete(&open_in(path, "stripped"));
    // The debug file of another build is not taken.
    std::fs::write(path.join("by-build-id.debug"), SOURCE).expect("a writable folder");
    let alone = open_in(path, "stripped");
    assert!(!alone.has_debug_info());
    assert!(alone.require_debug_info().unwrap_err().to_string().contains("list.debug"));
}

#[test]
fn compressed_debug_sections_hold_the_same_as_plain_ones() {
    for version in ["-gdwarf-4", "-gdwarf-5"] {
        let folder = folder();
        let path = folder.path();
        compile(path, &[version, "-O2"]);
        for method in ["zlib-gabi", "zlib-gnu", "zstd"] {
            let option = format!("--compress-debug-sections={method}");
            run("objcopy", "binutils", path, &[&option, "list", "packed"]);
            let plain = std::fs::read(path.join("list")).expect("a file");
            assert_ne!(std::fs::read(path.join("packed")).expect("a file"), plain, "{method}");
            assert_complete(&open_in(path, "packed"));
        }
    }
}

#[test]
fn units_without_types_are_told_from_units_with_types() {
    for compiler in ["gcc", "clang"] {
        for (flag, expected) in [("-g1", Some(false)), ("-g", Some(true)), ("-g0", None)] {
            let folder = folder();
            let program = compile_with(compiler, compiler, folder.path(), &[flag, "-O2"]);
            let info = open(&program);
            let walk = info.symbols().iter().find(|symbol| symbol.name == "walk").expect("walk").address;
            assert_eq!(info.has_types_at(walk), expected, "{compiler} {flag}");
        }
    }
    // Units of code that was optimised at link time refer to the units of the sources.
    for (flag, expected) in [("-g1", Some(false)), ("-g", Some(true))] {
        let folder = folder();
        let info = open(&compile_with("gcc", "gcc", folder.path(), &[flag, "-O2", "-flto"]));
        let main = info.symbols().iter().find(|symbol| symbol.name == "main").expect("main").address;
        assert_eq!(info.has_types_at(main), expected, "-flto {flag}");
    }
}

#[test]
fn split_units_are_found_in_their_files_and_in_a_package() {
    for version in ["-gdwarf-4", "-gdwarf-5"] {
        let folder = folder();
        let path = folder.path();
        std::fs::write(path.join("list.c"), SOURCE).expect("a writable folder");
        run("gcc", "gcc", path, &[version, "-O2", "-gsplit-dwarf", "-c", "list.c"]);
        run("gcc", "gcc", path, &["-o", "list", "list.o"]);
        assert_complete(&open_in(path, "list"));
        if version == "-gdwarf-4" {
            // binutils' dwp packs version 4 only.
            run("dwp", "binutils", path, &["-e", "list", "-o", "list.dwp"]);
            std::fs::remove_file(path.join("list.dwo")).expect("the split unit");
            assert_complete(&open_in(path, "list"));
            std::fs::remove_file(path.join("list.dwp")).expect("the package");
        } else {
            std::fs::remove_file(path.join("list.dwo")).expect("the split unit");
        }
        assert!(matches!(open_in(path, "list").missing(), [Companion::DwoFile { .. }]));
    }
}

/// The files that the debug information names: of a type declared in a header, of a function and of its lines.
fn assert_files_named(info: &DebugInfo, folder: &Path, what: &str) {
    let file = |name: &str| folder.join(name).display().to_string();
    let declared = |name: &str| {
        let found = info.types().iter().find(|(_, ty)| ty.name.as_deref() == Some(name));
        let (_, ty) = found.unwrap_or_else(|| panic!("{what}: no type {name}"));
        ty.declared_at.as_ref().expect("a place").file.to_string()
    };
    assert_eq!(declared("item"), file("item.h"), "{what}");
    assert_eq!(declared("pair"), file("pair.c"), "{what}");
    let sum = function(info, "sum");
    assert_eq!(sum.declared_at.expect("a place").file.to_string(), file("pair.c"), "{what}");
    let line = info.line_of(sum.ranges[0].start).expect("a line");
    assert_eq!((line.file.to_string(), line.line), (file("pair.c"), 3), "{what}");
}

#[test]
fn files_of_split_units_keep_their_names() {
    let source = "#include \"item.h\"\nstruct pair { struct item one, two; } pairs[4];\n\
        int sum(struct pair *p) { return p->one.key + p->two.key; }\nint main(void) { return sum(pairs); }\n";
    for compiler in ["gcc", "clang"] {
        for flags in [&["-gdwarf-4"][..], &["-gdwarf-5"]] {
            let folder = folder();
            let path = folder.path();
            std::fs::write(path.join("item.h"), "struct item { int key; long value; };\n").expect("writable");
            std::fs::write(path.join("pair.c"), source).expect("a writable folder");
            let split = ["-O1", "-gsplit-dwarf", "-c", "pair.c"];
            run(compiler, compiler, path, &[flags, &split].concat());
            run(compiler, compiler, path, &["-o", "pair", "pair.o"]);
            let what = format!("{compiler} {flags:?}");
            assert_files_named(&open_in(path, "pair"), path, &what);
            // llvm-dwp 14 never finishes on output of gcc 12; binutils' packs version 4 only.
            match (compiler, flags) {
                ("gcc", ["-gdwarf-4"]) => run("dwp", "binutils", path, &["-e", "pair", "-o", "list.dwp"]),
                ("clang", _) => run("llvm-dwp", "llvm", path, &["pair.dwo", "-o", "list.dwp"]),
                _ => continue,
            }
            std::fs::remove_file(path.join("pair.dwo")).expect("the split unit");
            assert_files_named(&open_in(path, "pair"), path, &format!("{what}, packed"));
        }
    }
}

#[test]
fn a_package_of_dwarf_5_holds_what_the_split_units_held() {
    let folder = folder();
    let path = folder.path();
    std::fs::write(path.join("list.c"), SOURCE).expect("a writable folder");
    // llvm-dwp 14 never finishes on output of gcc 12.
    run("clang", "clang", path, &["-gdwarf-5", "-O2", "-gsplit-dwarf", "-c", "list.c"]);
    run("clang", "clang", path, &["-o", "list", "list.o"]);
    let named = |info: &DebugInfo| -> Vec<(Option<String>, Option<u64>)> {
        info.types().iter().map(|(_, ty)| (ty.name.as_deref().map(str::to_owned), ty.size_bytes)).collect()
    };
    let split = open_in(path, "list");
    let walk = function(&split, "walk");
    run("llvm-dwp", "llvm", path, &["list.dwo", "-o", "list.dwp"]);
    std::fs::remove_file(path.join("list.dwo")).expect("the split unit");
    let packed = open_in(path, "list");
    assert_eq!(packed.missing(), []);
    assert!(named(&packed).contains(&(Some("node".to_owned()), Some(16))));
    assert_eq!(named(&packed), named(&split));
    assert_eq!(function(&packed, "walk"), walk);
}

#[test]
fn what_dwz_moved_to_partial_units_and_a_shared_file_is_still_found() {
    let folder = folder();
    let path = folder.path();
    compile(path, &["-gdwarf-4", "-O2", "-Wl,--build-id"]);
    // dwz shares the parts that occur in several files.
    std::fs::copy(path.join("list"), path.join("other")).expect("a writable folder");
    run("dwz", "dwz", path, &["-m", "shared.debug", "list", "other"]);
    let info = open_in(path, "list");
    assert_complete(&info);
    std::fs::remove_file(path.join("shared.debug")).expect("the shared file");
    assert!(matches!(open_in(path, "list").missing(), [Companion::AltLink { .. }]));
}

const CPP: &str = "\
namespace app {
struct Base { virtual ~Base() {} long l; char c; static int count; };
struct Other { int o; };
struct Derived : Base, virtual Other { int d; template <class T> T get(T t) const { return t + d; } };
template <class T> struct Box { T value; char tag; };
enum class Level : short;
struct Gauge { Level level; int value; } gauge;
Box<double> box;
int Base::count;
__attribute__((noinline)) int run(Derived &d, int n) { return d.get(n); }
__attribute__((noinline)) int run(Derived &d) { return d.d; }
}
int main() { app::Derived d; d.d = 1; return app::run(d, 2) + app::run(d); }
";

#[test]
fn cpp_classes_have_bases_static_members_and_qualified_names() {
    let folder = folder();
    std::fs::write(folder.path().join("app.cpp"), CPP).expect("a writable folder");
    run("g++", "g++", folder.path(), &["-g", "-O1", "-o", "app", "app.cpp"]);
    let info = open(&folder.path().join("app"));
    let named = |name: &str| {
        let (id, _) = info.types().iter().find(|(_, ty)| ty.name.as_deref() == Some(name)).expect("the type");
        info.types().aggregate(id).expect("a class").1
    };
    let roles = |name: &str| named(name).members.iter().map(|member| member.role).collect::<Vec<_>>();
    assert_eq!(roles("app::Base"), [MemberRole::VtablePointer, MemberRole::Field, MemberRole::Field]);
    assert_eq!(named("app::Base").static_members, ["count"]);
    assert_eq!(roles("app::Derived"), [MemberRole::Base, MemberRole::VirtualBase, MemberRole::Field]);
    assert_eq!(named("app::Derived").members[1].offset_bits, None);
    assert_eq!(roles("app::Box<double>").len(), 2);
    let level = named("app::Gauge").members[0].ty;
    assert_eq!(info.types().size_bytes(level), Some(2), "of an enumeration that is only declared");
    // Overloads, by short name; one of them by its parameters and by its mangled name.
    let count = |name: &str| match info.find_functions(name) {
        FoundFunctions::OutOfLine(found) => found.len(),
        _ => 0,
    };
    assert_eq!((count("run"), count("app::run")), (2, 2));
    assert_eq!(count("app::run(app::Derived&)"), 1);
    assert_eq!(count("_ZN3app3runERNS_7DerivedEi"), 1);
    assert_eq!(demangle("_ZN3app3runERNS_7DerivedEi").as_deref(), Some("app::run(app::Derived&, int)"));
}

const RUST: &str = "\
pub enum Shape { Circle(f64), Rect { w: u32, h: u64 }, Unit }
pub struct Item { tag: u8, shape: Shape, next: Option<Box<Item>> }
#[inline(never)] pub fn area(item: &Item) -> u64 {
    let own = match &item.shape { Shape::Circle(r) => *r as u64, Shape::Rect { w, h } => u64::from(*w) * h, Shape::Unit => 0 };
    own + u64::from(item.tag) + item.next.as_deref().map_or(0, area)
}
fn main() {
    let inner = Item { tag: 1, shape: Shape::Rect { w: 2, h: 3 }, next: None };
    let item = Item { tag: 1, shape: Shape::Circle(2.0), next: Some(Box::new(inner)) };
    std::process::exit((area(&item) + area(&Item { tag: 0, shape: Shape::Unit, next: None })) as i32);
}
";

#[test]
fn rust_enums_are_overlapping_variants_and_functions_have_paths() {
    let folder = folder();
    std::fs::write(folder.path().join("shapes.rs"), RUST).expect("a writable folder");
    run("rustc", "rustc", folder.path(), &["-g", "-O", "shapes.rs"]);
    let info = open(&folder.path().join("shapes"));
    let (id, shape) =
        info.types().iter().find(|(_, ty)| ty.name.as_deref() == Some("shapes::Shape")).expect("the enum");
    assert_eq!(shape.language, Language::Rust);
    let TypeKind::Aggregate(aggregate) = &shape.kind else { panic!("{shape:?}") };
    let variants =
        aggregate.members.iter().filter(|member| matches!(member.role, MemberRole::Variant(_))).count();
    assert_eq!(variants, 3);
    assert!(aggregate.members.iter().any(|member| member.role == MemberRole::Discriminant));
    assert_eq!(Layout::of(info.types(), id, LineSize::B64).unwrap().holes(), 0);
    let area = function(&info, "area");
    assert_eq!(area.name, "shapes::area");
    assert_eq!(info.types().spell(area.parameters[0].ty, ""), "&shapes::Item");
}
