//! Where members of classes are named, and what keeps them in the object.

use crate::program::Program;
use lineup_sources::SplitFacts;

fn facts(text: &str) -> SplitFacts {
    let checked = Program::cpp(text).check();
    let ty = checked.named("T").next().expect("the type T");
    ty.split.clone().expect("a class of C++")
}

/// `member line:column`, in order.
fn named(text: &str) -> Vec<String> {
    let named = facts(text).named;
    named.iter().map(|name| format!("{} {}:{}", name.member, name.line, name.column)).collect()
}

/// `member: reason` of each hold, `*` for all members.
fn holds(text: &str) -> Vec<String> {
    let holds = facts(text).holds;
    holds.iter().map(|hold| format!("{}: {}", hold.member.as_deref().unwrap_or("*"), hold.reason)).collect()
}

#[track_caller]
fn held(text: &str, hold: &str) {
    let found = holds(text);
    assert!(found.iter().any(|one| one.starts_with(hold)), "{hold}: {found:#?}");
}

#[track_caller]
fn free(text: &str) {
    assert_eq!(holds(text), Vec::<String>::new(), "{text}");
}

const CLASS: &str = "#include <string>
#include <vector>
#include <array>
struct T { int a = 0; double b = 1; char text[8] = {}; std::string name; int twice() const { return 2 * a; } };
";

fn with(code: &str) -> String {
    format!("{CLASS}{code}\n")
}

#[test]
fn every_name_of_a_member_has_its_place() {
    let code = "int f(T &x, const T *p, std::vector<T> &all, T (&row)[3]) {
  x.a = p->a + all[0].a;
  for (T &one : all) { one.b += row[1].b; }
  auto sum = [&] { return x.a; };
  return (*p).twice() + (&row[2])->a + sum();
}";

    let found = named(&with(code));
    assert!(found.iter().any(|name| name.starts_with("a 4:")), "the method's own use: {found:?}");
    let lines = |line: &str| found.iter().filter(|name| name.contains(&format!(" {line}:"))).count();
    assert_eq!((lines("6"), lines("7"), lines("9")), (3, 2, 1), "{found:?}");
}

#[test]
fn ordinary_use_of_values_holds_nothing() {
    free(&with(
        "static T made(int a) { T x; x.a = a; x.name = \"n\"; return x; }
        bool less(const T &x, const T &y) { return x.name < y.name && x.text[0] < y.text[0]; }
        void f(std::vector<T> &all) { all.push_back(made(3)); T copy = all.back(); all[0] = copy; T *p = new T; delete p; }
        struct Owner { T one; std::vector<T> many; }; void g() { Owner o; o.one.a = 2; o.many.clear(); }",
    ));
}

#[test]
fn addresses_and_references_that_may_be_kept_hold_the_member() {
    held(&with("int *f(T &x) { return &x.a; }"), "a: its address is taken");
    held(&with("void f(T &x) { int &r = x.a; r = 1; }"), "a: a reference to it is kept");
    held(&with("const std::string &f(const T &x) { return x.name; }"), "name: a function gives a reference");
    held(&with("char *f(T &x) { return x.text; }"), "text: a function gives a reference");
    held(&with("char *kept; void f(T &x) { kept = x.text + 1; }"), "text: its address may be kept");
    held(&with("char *f(T &x) { char *p = x.text; return p; }"), "text: its address is kept");
    held(&with("int T::*f() { return &T::a; }"), "a: it is named without an object");
}

#[test]
fn objects_that_do_not_last_hold_the_member() {
    held(&with("T made(); int f() { return made().a; }"), "a: it is read from an object");
    held(
        &with("#include <utility>\nstd::string f(T &x) { return std::move(x).name; }"),
        "name: it is read from an object",
    );
}

#[test]
fn macros_and_templates_hold_the_members_that_they_name() {
    held(&with("#define A(x) ((x).a)\nint f(T &x) { return A(x); }"), "a: a macro names it");
    held(&with("#define USE(x) (x)\nint f(T &x) { return USE(x.a); }"), "a: a macro names it");
    held(&with("template <class U> int f(U &x) { return x.a; }"), "a: a template names a member");
    held(
        &with("template <class U> auto f(U *x) -> decltype(x->a) { return 0; }"),
        "a: a template names a member",
    );
}

#[test]
fn members_whose_declaration_says_more_than_a_value_stay() {
    held("struct T { int a : 3; int b; };", "a: it is a bit-field");
    held("struct T { mutable int a; int b; };", "a: it is mutable");
    held("struct T { const int a = 1; int b; };", "a: its type is const");
    held("struct T { volatile int a; int b; };", "a: its type is const, volatile or atomic");
    held("struct T { int &a; int b; };", "a: its type is a reference");
    held("struct T { alignas(64) int a; int b; };", "a: its declaration has an attribute");
    held("#include <memory>\nstruct T { std::unique_ptr<int> a; int b; };", "a: its type may do more");
    held("#include <atomic>\nstruct T { std::atomic<int> a; int b; };", "a: its type may do more");
    held("struct U { U(); ~U(); int n; }; struct T { U a; int b; };", "a: its type may do more");
    held("int next(); struct T { int a = next(); int b; };", "a: its first value is worked out");
    held("int made; struct T { int a = made; int b; };", "a: its first value is worked out");
    held("struct T { int a = 1; int b = a + 1; };", "a: the first value of a member reads it");
}

#[test]
fn values_of_a_constructors_list_may_move_into_its_body_where_nothing_can_tell() {
    let class = "#include <string>\n#include <utility>\nstruct T { long a; int *b; std::string name; ";
    let initialised = |constructor: &str| {
        let found = facts(&format!("{class}{constructor} }};")).initialised;
        found.iter().map(|name| name.member.clone()).collect::<Vec<_>>().concat()
    };
    assert_eq!(initialised("T(int n, int *p) : a(n), b{p} {}"), "ab");
    assert_eq!(initialised("T(std::string s, int n) : a(n), b(nullptr), name(std::move(s)) {}"), "ab");
    assert_eq!(initialised("T(int n) : a(n), b(nullptr), name(std::to_string(n)) {}"), "b");
    let more = "a: a constructor's list gives it a value, and does more";
    for constructor in [
        "int next(); T() : a(next()), b(nullptr) {}",
        "T(int n) : a(n++), b(nullptr) {}",
        "T(int &n) : a(n), b(nullptr) {}",
        "T(int n) : a(n), b(self()) {} int *self();",
        "T(const T *from) : a(from->a), b(nullptr) {}",
    ] {
        held(&format!("{class}{constructor} }};"), more);
    }
    held(&format!("{class}T(int n) : a(n), b(nullptr), name(a, 'x') {{}} }};"), "a: a constructor's list");
}

#[test]
fn values_in_braces_hold_the_members() {
    held(&with("T f() { return T{1, 2.0, {}, \"\"}; }"), "*: a list in braces");
    held("struct T { int a; int b; }; T f() { return T{.a = 1}; }", "a: a value in braces names it");
    free("struct T { int a; int b; }; T f() { T x{}; x.a = 1; return x; }");
}

#[test]
fn objects_that_are_reached_as_bytes_hold_all_members() {
    let reason = "*: its objects are reached as bytes";
    held(&with("#include <cstring>\nvoid f(T &x, T &y) { memcpy((void *)&x, &y, 4); }"), reason);
    held(&with("#include <cstring>\nvoid f(T &x) { memset(static_cast<void *>(&x), 0, 4); }"), reason);
    held(&with("#include <cstring>\nint f(T &x, T &y) { return memcmp(&x, &y, 4); }"), reason);
    held(
        &with("#include <cstdio>\nvoid f(std::vector<T> &x) { fwrite(x.data(), 8, x.size(), stdout); }"),
        reason,
    );
    held(&with("#include <cstdlib>\nT *f() { return (T *)malloc(64); }"), reason);
    held(&with("unsigned long f(T *x) { return reinterpret_cast<unsigned long>(x); }"), reason);
    held(&with("char &f(T &x) { return reinterpret_cast<char &>(x); }"), reason);
    held(&with("void use(void *); void f(std::array<T, 3> &x) { use(&x); }"), reason);
    held(&with("unsigned long f() { return sizeof(T); }"), "*: its size is measured");
    held(&with("unsigned long f(T &x) { return sizeof x; }"), "*: its size is measured");
    held(&with("#include <new>\nT *f(char *at) { return new (at) T; }"), "*: objects are made in memory");
    held(
        &with("#include <cstddef>\nunsigned long f() { return offsetof(T, a); }"),
        "*: offsetof measures it",
    );
}

#[test]
fn objects_that_outlive_the_programs_own_code_hold_all_members() {
    let reason = "*: a variable of it exists";
    held(&with("T one;"), reason);
    held(&with("static std::array<T, 4> row;"), reason);
    held(&with("struct Owner { T one; }; Owner owners[3];"), reason);
    held(&with("T &f() { static T one; return one; }"), reason);
    held(&with("int f() { thread_local T one; return one.a; }"), reason);
    free(&with("static std::vector<T> all; T *first = nullptr;"));
}

#[test]
fn classes_that_are_more_than_values_hold_all_members() {
    held("struct B { int z; }; struct T : B { int a; int b; };", "*: it has a base class");
    held("struct T { int a; int b; }; struct D : T { int c; };", "*: another class is derived");
    held("struct T { int a; int b; virtual int f(); };", "*: it has virtual methods");
    held("struct T { int a; int b; ~T(); };", "*: it has a destructor");
    held("struct T { int a; int b; T(const T &); T(); };", "*: it has a constructor of its own that copies");
    held("struct T { int a; int b; T &operator=(const T &); };", "*: it has an assignment");
    held("struct T { int a; int b; }; union U { T t; int n; };", "*: it shares a union");
    held("struct __attribute__((aligned(64))) T { int a; int b; };", "*: its declaration has an attribute");
    held("struct Owner { struct T { int a; int b; }; T one; };", "*: it is declared inside");
    held("int f() { struct T { int a; int b; } x{}; return x.a; }", "*: it is declared inside");
}
