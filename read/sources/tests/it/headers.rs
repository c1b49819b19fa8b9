//! Headers that belong to a compiler: intrinsics, atomics, and features that only the build's compiler has.

use lineup_sources::{Build, Checked, CompileCommand, Freedom, Standards, Verdict, installed_libclang};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

/// A type that nothing holds, and its use.
const TYPE: &str = "struct t { int a; long b; char c; };\nlong f(struct t *x) { return x->a + x->b; }\n";

/// One unit with these lines before the type, as `compiler` with these options compiles it.
fn checked(name: &str, lines: &str, call: &[&str]) -> Checked {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join(name), format!("{lines}{TYPE}")).expect("writes");
    let arguments = call.iter().chain(&["-c", name]).map(|word| word.to_string()).collect();
    let build = Build {
        commands: vec![CompileCommand { directory: folder.path().to_owned(), arguments }],
        root: folder.path().to_owned(),
        installed_headers: BTreeSet::new(),
        compiler_headers: own_headers(call[0]),
        standards: Standards::default(),
        in_program: BTreeSet::new(),
    };
    lineup_sources::check(&build, &|_, _| {}).expect("libclang is there")
}

fn own_headers(compiler: &str) -> Option<PathBuf> {
    let output = Command::new(compiler).arg("-print-file-name=include").output().ok()?;
    let path = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    path.is_absolute().then_some(path)
}

/// True when the headers of the libclang on this machine are installed; their package has another name.
fn has_own_headers() -> bool {
    installed_libclang().expect("libclang is there").missing_headers.is_none()
}

fn assert_movable(checked: &Checked) {
    assert_eq!(checked.units_read, checked.units, "{:?}", checked.unread);
    assert_eq!(checked.named("t").next().expect("t").freedom(), Freedom::Movable);
}

#[test]
fn units_with_intrinsics_and_atomics_are_read() {
    let c = "#include <emmintrin.h>\n#include <immintrin.h>\n#include <stdatomic.h>\n#include <stddef.h>\n\
             #include <cpuid.h>\n#include <limits.h>\n#include <stdarg.h>\n_Atomic int n;\n\
             __m128i load(const __m128i *p) { atomic_fetch_add(&n, 1); return _mm_loadu_si128(p); }\n";
    let cpp = "#include <atomic>\n#include <vector>\n#include <immintrin.h>\n#include <cstddef>\n\
               std::vector<__m128i> all; std::atomic<int> n;\n";
    if !has_own_headers() {
        let unread = checked("a.c", c, &["gcc"]).unread;
        assert!(unread[0].1.contains("apt install libclang-common-"), "{unread:?}");
        return;
    }
    assert_movable(&checked("a.c", c, &["gcc", "-O2", "-msse2"]));
    assert_movable(&checked("a.cc", cpp, &["g++", "-std=c++17"]));
}

#[test]
fn headers_that_only_the_builds_compiler_has_are_found() {
    assert_movable(&checked(
        "a.c",
        "#include <omp.h>\n#include <stddef.h>\nint threads(void) { return omp_get_max_threads(); }\n",
        &["gcc", "-fopenmp"],
    ));
}

#[test]
fn an_atomic_header_of_cpp_is_read_by_its_standard() {
    let lines = "#if __cplusplus >= 202300L\n#include <stdatomic.h>\n#else\n#include <atomic>\n#endif\n\
                 std::atomic<int> n;\n";
    assert_movable(&checked("a.cc", lines, &["g++", "-std=c++2b"]));
}

#[test]
fn units_of_cross_compilers_are_read() {
    let c = "#include <arm_neon.h>\n#include <stdatomic.h>\n#include <stdio.h>\n\
             float32x4_t load(const float *p) { return vld1q_f32(p); }\n";
    let cpp = "#include <vector>\n#include <atomic>\nstd::vector<int> all;\n";
    for (name, lines, compiler) in
        [("a.c", c, "aarch64-linux-gnu-gcc"), ("a.cc", cpp, "aarch64-linux-gnu-g++")]
    {
        if own_headers(compiler).is_none() || !has_own_headers() {
            eprintln!("not tried: {compiler}, or libclang's own headers, are not installed");
            continue;
        }
        assert_movable(&checked(name, lines, &[compiler]));
    }
}

/// The verdicts that hold the type `t` of a program with vectors.
fn held_by_vectors(text: &str) -> Vec<Verdict> {
    let checked =
        checked("a.c", &format!("#include <immintrin.h>\n{text}\n#define t other\n"), &["gcc", "-mavx2"]);
    assert_eq!(checked.units_read, checked.units, "{:?}", checked.unread);
    let ty = checked.named("t").next().expect("t");
    let held = ty.uses.iter().map(|used| &used.verdict).filter(|verdict| **verdict != Verdict::Harmless);
    held.collect::<BTreeSet<_>>().into_iter().cloned().collect()
}

#[test]
fn members_that_a_vector_spans_stay() {
    let keep = |names: &[&str]| vec![Verdict::Keep(names.iter().map(|name| name.to_string()).collect())];
    let spans = |body: &str| {
        held_by_vectors(&format!(
            "struct t {{ long a; float x, y, z, w; int b; float v[4]; float *p; }};\n{body}"
        ))
    };
    let four = ["x", "y", "z", "w"];
    assert_eq!(spans("__m128 load(struct t *o) { return _mm_loadu_ps(&o->x); }"), keep(&four));
    assert_eq!(
        spans("void put(struct t *o, __m128i v) { _mm_storeu_si128((__m128i *)&o->x, v); }"),
        keep(&four)
    );
    // An aligned access holds the size with the last member, so that it is aligned in every element of an array.
    let aligned = |body: &str| {
        let mut asked = spans(body);
        assert!(asked.contains(&keep(&["p"])[0]), "{body}");
        asked.retain(|verdict| *verdict != keep(&["p"])[0]);
        asked
    };
    let (first, whole) = (keep(&["x"]), keep(&four));
    assert_eq!(aligned("__m128 load(struct t *o) { return *(__m128 *)&o->x; }"), [first, whole].concat());
    assert_eq!(aligned("__m128 load(struct t *o) { return _mm_load_ps(o->v); }"), keep(&["v"]));
    assert_eq!(aligned("__m128 load(struct t *o) { return *(__m128 *)o->v; }"), keep(&["v"]));
    let gathered = "__m128i get(struct t *o, __m128i at) { return _mm_i32gather_epi32(&o->b, at, 4); }";
    assert_eq!(spans(gathered), [Verdict::Refuse]);
    for harmless in [
        "__m128 load(struct t *o) { return _mm_loadu_ps(o->p); }",
        "void ahead(struct t *o) { _mm_prefetch((const char *)&o->b, _MM_HINT_T0); }",
        "__m128 one(struct t *o) { return _mm_set1_ps(o->x); }",
    ] {
        assert_eq!(spans(harmless), [], "{harmless}");
    }
}
