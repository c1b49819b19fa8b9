//! Thread-local variables: where the symbols put them, whether or not the compiler describes their place.

use lineup_debuginfo::{DebugInfo, NoCompanions};
use lineup_model::program::Location;
use std::collections::BTreeMap;
use std::process::Command;

const SOURCE: &str = "
    namespace ns {
        thread_local int total;
        struct S { static thread_local long made; int q; };
        thread_local long S::made;
        static thread_local S own;
    }
    thread_local ns::S plain = { 7 };
    static int twice(int i) { static thread_local int kept; return kept += i; }
    int once(int i) { static thread_local short kept; return kept += i; }
    int f(int i) {
        static thread_local int calls;
        int total = i * 2;
        ns::total += ++calls; ns::S::made++; ns::own.q++; plain.q++;
        return ns::total + twice(i) + once(i);
    }
    int main(int c, char **) { return f(c); }
";

/// The offsets of thread-local variables by name, by debug info, and of the symbols by demangled name.
fn offsets(compiler: &str, package: &str) -> (BTreeMap<String, u64>, BTreeMap<String, u64>, DebugInfo) {
    let folder = tempfile::tempdir().unwrap();
    let (text, program) = (folder.path().join("a.cpp"), folder.path().join("a"));
    std::fs::write(&text, SOURCE).unwrap();
    let made = Command::new(compiler).args(["-g", "-O1", "-o"]).args([&program, &text]).output();
    let made = made.unwrap_or_else(|error| panic!("{compiler}: {error}; apt-get install {package}"));
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let listed = Command::new("readelf").args(["-sWC"]).arg(&program).output().unwrap();
    let symbols = String::from_utf8(listed.stdout).unwrap();
    let symbols = symbols.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (offset, name) = (u64::from_str_radix(words.get(1)?, 16).ok()?, words.get(7..)?.join(" "));
        (words.get(3) == Some(&"TLS") && words.get(2) != Some(&"0")).then_some((name, offset))
    });
    let symbols = symbols.collect();
    let info = DebugInfo::parse(std::fs::read(&program).unwrap(), &mut NoCompanions).unwrap();
    let described = info.globals().iter().filter_map(|variable| match variable.places.first()?.at {
        Location::ThreadLocal(offset) => Some((variable.name.clone()?, offset)),
        _ => None,
    });
    (described.collect(), symbols, info)
}

#[test]
fn every_thread_local_variable_has_the_offset_of_its_symbol() {
    for (compiler, package) in [("g++", "g++"), ("aarch64-linux-gnu-g++", "g++-aarch64-linux-gnu")] {
        let (described, symbols, info) = offsets(compiler, package);
        assert_eq!(symbols.len(), 7, "{compiler} {symbols:?}");
        assert_eq!(described.len(), 7, "{compiler} {described:?}");
        for (name, symbol) in [
            ("ns::total", "ns::total"),
            ("ns::S::made", "ns::S::made"),
            ("ns::own", "ns::own"),
            ("plain", "plain"),
            ("f::calls", "f(int)::calls"),
            ("twice::kept", "twice(int)::kept"),
            ("once::kept", "once(int)::kept"),
        ] {
            assert_eq!(described.get(name), symbols.get(symbol), "{compiler} {name}: {described:?}");
        }
        let segment = info.thread_local_segment().unwrap();
        let size = segment.addresses.end - segment.addresses.start;
        assert!(symbols.values().all(|offset| *offset < size) && segment.align_bytes == 8, "{segment:?}");
        // The part that does not start as zero comes first.
        assert_eq!(described["plain"], 0);
    }
}

#[test]
fn one_of_several_variables_that_a_symbol_could_mean_gets_no_name() {
    // Two variables of one name and size: without a place, nothing assigns the symbols to them.
    const TWINS: &str = "static int a(void) { static __thread int n; return ++n; }
        static int b(void) { static __thread int n; return ++n; }
        int main(void) { return a() + b(); }";
    let folder = tempfile::tempdir().unwrap();
    let (text, program) = (folder.path().join("a.c"), folder.path().join("a"));
    std::fs::write(&text, TWINS).unwrap();
    let compiler = "aarch64-linux-gnu-gcc";
    let made = Command::new(compiler).args(["-g", "-O1", "-o"]).args([&program, &text]).status();
    assert!(made.expect("apt-get install gcc-aarch64-linux-gnu").success());
    let info = DebugInfo::parse(std::fs::read(&program).unwrap(), &mut NoCompanions).unwrap();
    let placed = info.globals().iter().filter(|variable| variable.name.as_deref() == Some("a::n"));
    assert_eq!(placed.count(), 0);
    assert!(info.symbols().iter().any(|symbol| symbol.name.starts_with("n.")));
}
