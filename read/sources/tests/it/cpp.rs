//! The same in C++.

use crate::program::Program;
use lineup_sources::{Freedom, UseKind, Verdict};

fn freedom(text: &str) -> (Freedom, String) {
    let checked = Program::cpp(text).check();
    let ty = checked.named("T").next().expect("the type T");
    let uses: Vec<String> = ty.uses.iter().map(|found| format!("{:?} {found}", found.verdict)).collect();
    (ty.freedom(), uses.join("\n"))
}

fn refused(text: &str, reason: &str) {
    let (freedom, uses) = freedom(text);
    assert_eq!(freedom, Freedom::Refused, "{text}\n{uses}");
    assert!(uses.lines().any(|line| line.starts_with("Refuse") && line.contains(reason)), "{uses}");
}

fn movable(text: &str) {
    let (freedom, uses) = freedom(text);
    assert_eq!(freedom, Freedom::Movable, "{text}\n{uses}");
}

#[test]
fn objects_written_by_their_bytes_are_refused() {
    refused(
        "#include <fstream>\nstruct T { int a; long b; };
        void f(std::ofstream &out, const T &x) { out.write(reinterpret_cast<const char *>(&x), sizeof x); }",
        "write()",
    );
}

#[test]
fn a_template_that_looks_at_bytes_refuses_what_it_is_given() {
    refused(
        "#include <cstdio>\nstruct T { int a; long b; };
        template <class U> void put(FILE *f, const U &x) { fwrite(reinterpret_cast<const char *>(&x), sizeof x, 1, f); }
        void f(FILE *out, const T &x) { put(out, x); }",
        "template put()",
    );
}

#[test]
fn casts_of_references_count() {
    refused(
        "struct T { int a; long b; }; struct U { char c[3]; double d; };
        double f(T &x) { return reinterpret_cast<U &>(x).d; }",
        "cast to or from U",
    );
}

#[test]
fn a_reference_to_a_member_that_is_cast_reaches_what_follows() {
    for cast in [
        "int f(T &x) { return reinterpret_cast<int (&)[3]>(x.a)[2]; }",
        "int f(T &x) { return ((int (&)[3])x.a)[2]; }",
        "int f(T &x) { return reinterpret_cast<std::array<int, 3> &>(x.a)[2]; }",
        "long f(T &x) { return reinterpret_cast<long &>(x.a); }",
        "struct Three { int x, y, z; }; int f(T &x) { return reinterpret_cast<Three &>(x.a).z; }",
    ] {
        let text = format!("#include <array>\nstruct T {{ int a; int b; int c; long d; }};\n{cast}");
        let (freedom, uses) = freedom(&text);
        assert_ne!(freedom, Freedom::Movable, "{cast}\n{uses}");
        assert!(uses.contains('a') && uses.contains('b'), "{cast}\n{uses}");
    }
    for value in ["long f(T &x) { return (long)x.a; }", "int f(T &x) { return static_cast<int>((x.d)); }"] {
        movable(&format!("struct T {{ int a; int b; int c; long d; }};\n{value}"));
    }
}

#[test]
fn a_buffer_that_is_taken_for_objects_refuses_them() {
    refused(
        "struct T { int a; long b; }; char buffer[64]; T *f() { return reinterpret_cast<T *>(buffer); }",
        "the bytes in buffer",
    );
}

#[test]
fn macros_that_give_values_by_position_hold_them() {
    let checked = Program::cpp(
        "struct T { int a; int b; long c; char d; };\n#define INIT { 1, 2 }\nT x = INIT; long f(T &x) { return x.c; }",
    )
    .check();
    let ty = checked.named("T").next().expect("the type T");
    let keeps = Verdict::Keep(vec!["a".into(), "b".into()]);
    assert!(
        ty.uses.iter().any(|found| found.kind == UseKind::Positional && found.verdict == keeps),
        "{:#?}",
        ty.uses
    );
}

#[test]
fn containers_algorithms_methods_and_inheritance_leave_a_type_movable() {
    movable(
        "#include <vector>\n#include <map>\n#include <memory>\n#include <algorithm>\nstruct T { long a; int b; char c; };
        long f(std::vector<T> &all, const T &x) {
            all.push_back(x); all.emplace_back(); std::map<int, T> by; by[1] = x; auto p = std::make_unique<T>(x);
            std::sort(all.begin(), all.end(), [](const T &x, const T &y) { return x.a < y.a; });
            std::swap(all[0], *p); return by.size() + p->b;
        }",
    );
    movable(
        "class Base { public: virtual ~Base() {} virtual int go(Base *other) = 0; };
        class T : public Base { long a = 1; int b = 2; public: int go(Base *other) override { return b + (other != nullptr); } };
        int f(T *x, Base *y) { return static_cast<Base *>(x)->go(y) + static_cast<T *>(y)->go(x); }",
    );
    movable(
        "namespace n { struct T { long a; int b; int sum() const { return a + b; } bool operator<(const T &o) const { return a < o.a; } }; }
        #include <iostream>\nvoid f(n::T &x) { std::cout << x.sum() << x.b; if (x < x) delete &x; n::T *y = new n::T(); delete y; }",
    );
}

#[test]
fn user_data_of_a_library_in_c_comes_back_to_the_callback() {
    let text = "extern \"C\" void watch(void (*)(void *), void *); struct T { long a; int b; }; struct U { char c[3]; double d; };
        static void seen(void *p) { static_cast<T *>(p)->b++; } void f(T *x) { watch(seen, x); }";
    movable(text);
    refused(&text.replace("static_cast<T *>(p)->b++", "static_cast<U *>(p)->d++"), "cast to or from U");
    refused(&text.replace("watch(seen", "watch(nullptr"), "watch()");
}

#[test]
fn what_the_library_does_with_bytes_refuses() {
    refused(
        "#include <vector>\n#include <cstdio>\nstruct T { int a; long b; };
        long f(FILE *in) { std::vector<char> v(64); fread(v.data(), 1, 64, in); return reinterpret_cast<T *>(v.data())->b; }",
        "data()",
    );
    refused(
        "#include <string_view>\nstruct T { int a; int b; };
        auto f(const T &x) { return std::string_view(reinterpret_cast<const char *>(&x), sizeof x); }",
        "basic_string_view()",
    );
    refused(
        "#include <array>\n#include <unistd.h>\nstruct T { int a; long b; };
        long f(int fd) { std::array<T, 4> v; read(fd, &v, sizeof v); return v[0].b; }",
        "read()",
    );
    refused(
        "#include <cstdio>\nstruct T { int a; long b; };
        long f(FILE *in) { char *v = new char[64]; fread(v, 1, 64, in); return reinterpret_cast<T *>(v)->b; }",
        "memory that is used as one",
    );
}

#[test]
fn a_method_of_a_template_that_measures_what_it_is_given_refuses_it() {
    refused(
        "#include <unistd.h>\nstruct T { int a; long b; };
        template <class V> struct file { int fd; void put(const V &v) { ::write(fd, &v, sizeof v); } };
        void f(file<T> &to, const T &x) { to.put(x); }",
        "looks at bytes",
    );
}

#[test]
fn values_in_braces_hold_the_members_that_they_are_for() {
    for text in [
        "struct T { int a; int b; }; T f() { return T{.a = 1, .b = 2}; }",
        "struct B { int k; }; struct T : B { int a; int b; }; T f() { return T{{1}, 2, 3}; }",
    ] {
        let (freedom, uses) = freedom(text);
        assert_eq!(freedom, Freedom::Refused, "{text}\n{uses}");
        assert!(uses.contains("values are given by position"), "{uses}");
    }
    let (freedom, uses) = freedom("struct T { int a; int b; }; T f() { return T{1, 2}; }");
    assert_eq!(freedom, Freedom::Movable, "{uses}");
    assert!(uses.contains("an edit reorders the values"), "{uses}");
    movable("struct T { int a; int b; T(int x, int y) : a(x), b(y) {} }; T f() { return {1, 2}; }");
}

#[test]
fn a_comparison_that_the_compiler_writes_follows_the_order() {
    let text = "#include <compare>\nstruct T { int a; long b; auto operator<=>(const T &) const = default; };
        bool f(T x, T y) { return x < y; }";
    let program = Program::of(&[("a.cpp", text)], &["c++ -std=c++20 -c a.cpp"]);
    let checked = program.check();
    let ty = checked.named("T").next().expect("the type");
    assert_eq!(ty.freedom(), Freedom::Refused);
    assert!(ty.uses[0].reason.contains("compares objects in the order"), "{:#?}", ty.uses);
}

#[test]
fn a_method_that_takes_the_place_of_anothers_is_looked_into() {
    let base =
        "struct pool { virtual void schedule(void (*)(void *), void *) = 0; virtual ~pool() = default; };
        struct T { int a; long b; pool *p; };";
    let work =
        "static void run(void *x) { static_cast<T *>(x)->b = 1; } void f(T *x) { x->p->schedule(run, x); }";
    let called = "struct own : pool { void schedule(void (*f)(void *), void *x) override { f(x); } };";
    movable(&format!("{base}{called}{work}"));
    let written = "#include <unistd.h>\nstruct pool { virtual void schedule(void (*)(void *), void *) = 0; virtual ~pool() = default; };
        struct T { int a; long b; pool *p; };
        struct own : pool { void schedule(void (*)(void *), void *x) override { write(1, x, 16); } };";
    refused(&format!("{written}{work}"), "write()");
    refused(&format!("{base}{work}"), "schedule()");
}

#[test]
fn members_whose_constructors_or_destructors_run_code_keep_their_order() {
    let text = "void note(const char *);
        struct Log { const char *name; Log(const char *n) : name(n) { note(n); } ~Log() { note(name); } };
        struct Holder { Log inner; Holder() : inner(\"i\") {} };
        struct T { Log a; int x; Holder b[2]; long y; T() : a(\"a\"), x(1), y(2) {} };";
    let checked = Program::cpp(text).check();
    let ty = checked.named("T").next().expect("the type T");
    let found = ty.uses.iter().find(|found| found.kind == UseKind::Construction).expect("a use");
    assert_eq!(found.verdict, Verdict::InOrder(vec!["a".into(), "b".into()]));
    assert_eq!(ty.freedom(), Freedom::Movable);
}

#[test]
fn members_that_no_code_constructs_have_no_order() {
    let text =
        "struct P { int a = 1; P() = default; ~P() = default; }; struct Q { P one; int x; P two; long y; };
        long f() { Q q; return q.y; }";
    let checked = Program::cpp(text).check();
    let ty = checked.named("Q").next().expect("the type Q");
    assert!(ty.uses.iter().all(|found| found.kind != UseKind::Construction), "{:?}", ty.uses);
}

#[test]
fn bytes_that_a_library_looks_at_are_the_objects_own() {
    let head = "#include <functional>\n#include <string>\n#include <string_view>\n#include <vector>\nstruct T { unsigned a, b; unsigned long c; };\n";
    for text in [
        "size_t f(const T &x) { return std::hash<std::string_view>()(std::string_view(reinterpret_cast<const char *>(&x), sizeof x)); }",
        "std::string f(const T &x) { return std::string((const char *)&x, sizeof x); }",
        "size_t f(const T &x) { std::string_view v{reinterpret_cast<const char *>(&x), 16}; return v.size(); }",
        "void f(const T &x, std::string &s) { s.append((const char *)&x, sizeof x); }",
        "void f(const T &x, std::string &s) { s.assign((const char *)&x, 12); }",
        "void f(const T &x, std::vector<char> &s) { auto p = (const char *)&x; s.insert(s.end(), p, p + sizeof x); }",
        "std::vector<char> f(const T &x) { auto p = (const char *)&x; return std::vector<char>(p, p + 8); }",
    ] {
        let (freedom, uses) = freedom(&format!("{head}{text}"));
        assert_eq!(freedom, Freedom::Refused, "{text}\n{uses}");
    }
}

#[test]
fn the_object_before_an_operator_is_none_of_its_parameters() {
    let text = "struct key { const char *text; const char *c_str() const { return text; } };
        struct T { int a; long b; const char *operator[](const key &k) { return k.c_str(); } };
        const char *f(T &x, key &k) { return x[k]; }";
    movable(text);
    let taken = "struct key { const char *text; long n; }; struct T { int a; long b; };
        struct map { int k; int operator[](void *p) { return static_cast<key *>(p)->n; } };
        int f(map &m, T &x) { return m[&x]; }";
    refused(taken, "cast to or from key");
}

#[test]
fn values_for_a_class_with_private_members_are_its_constructors() {
    movable(
        "class T { int a; long b; public: T(int x) : a(x), b(1) {} T(const char *) : a(0), b(2) {} long sum() const { return a + b; } };
        long f() { const T all[] = {1, \"two\", 3}; return all[1].sum(); }",
    );
    refused(
        "struct T { int a; int b; int sum() const { return a + b; } }; int f() { const T all[] = {1, 2, 3, 4}; return all[1].sum(); }",
        "without braces",
    );
}

const LIBRARY: &str = "#include <algorithm>\n#include <functional>\n#include <iterator>\n#include <memory>
    #include <new>\n#include <numeric>\n#include <utility>\n#include <vector>
    struct T { int a; int b; int c; long d; };";

#[test]
fn a_pointer_to_a_member_that_the_library_may_step_holds_what_follows() {
    for stepped in [
        "void f(T *x, int *to) { std::copy_n(&x->a, 3, to); }",
        "void f(T *x) { std::fill_n(&x->a, 3, 0); }",
        "void f(T *x) { std::for_each_n(&x->a, 3, [](int &each) { each = 0; }); }",
        "int f(T *x) { return *std::next(&x->a, 2); }",
        "int f(T *x) { int *at = &x->a; std::advance(at, 2); return *at; }",
        "int f(T *x, int n) { return std::accumulate(&x->a, std::next(&x->a, n), 0); }",
        "std::vector<int> f(T *x, const int *end) { return std::vector<int>(static_cast<const int *>(&x->a), end); }",
        "int f(T *x) { return std::addressof(x->a)[2]; }",
        "int f(T *x) { int *at = std::addressof(x->a); at += 2; return *at; }",
        "int f(T *x) { std::function<int(int *)> third = [](int *p) { return p[2]; }; return third(&x->a); }",
    ] {
        let (freedom, uses) = freedom(&format!("{LIBRARY}\n{stepped}"));
        assert_ne!(freedom, Freedom::Movable, "{stepped}");
        assert!(uses.contains("is stepped through like an array of int"), "{stepped}\n{uses}");
    }
}

#[test]
fn the_library_s_functions_of_one_object_hold_nothing() {
    for harmless in [
        "int f(T *x) { std::swap(x->a, x->b); return std::min(x->a, x->c) + std::exchange(x->b, 1); }",
        "void f(T *x, std::vector<int *> &all) { all.push_back(&x->a); all.emplace_back(&x->b); }",
        "std::pair<int *, int> f(T *x) { return std::make_pair(&x->a, 1); }",
        "int f(T *x) { return *std::launder(std::addressof(x->a)); }",
        "int f(T *x) { return *std::addressof(x->a); }",
    ] {
        movable(&format!("{LIBRARY}\n{harmless}"));
    }
}
