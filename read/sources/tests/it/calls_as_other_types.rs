//! Objects that are given by value and taken as another type: through functions of other types, and among further
//! arguments. Each stands next to a program that does not depend on the order.

use crate::program::{Program, asks, movable};
use lineup_sources::Verdict;

const TYPES: &str = "#include <stdarg.h>\n#include <stdio.h>\n
    struct t { int a; char b; double d; }; struct other { long k; double e; };\n
    static struct t make(int i) { struct t x = { .a = i, .b = 1, .d = 2 }; return x; }
    static double take(struct t x) { return x.d; } static double look(struct other x) { return x.e; }
    typedef void (*any)(void);\n";

fn c(text: &str) -> Program {
    Program::c(&format!("{TYPES}{text}"))
}

#[test]
fn functions_that_are_called_as_another_type_take_and_give_other_objects() {
    let reason = "cast to or from other";
    for text in [
        "double f(void) { return ((struct other (*)(int))make)(1).e; }",
        "double f(struct other y) { return ((double (*)(struct other))take)(y); }",
        "static any table[] = { (any)take }; double f(struct other y) { return ((double (*)(struct other))table[0])(y); }",
        "double f(void) { void *p = (void *)make; struct other (*g)(int) = p; return g(1).e; }",
        "static double (*g)() = take; double f(struct other y) { return g(y); }",
    ] {
        asks(&c(text), &Verdict::Refuse, reason);
    }
    let number = "long f(void) { return ((long (*)(long))take)(1); }";
    asks(&c(number), &Verdict::Refuse, "its start is read as long");
    let cpp = "struct t { int a; char b; double d; }; struct other { long k; double e; };
        static t make(int i) { t x{}; x.a = i; return x; }
        double f() { return reinterpret_cast<other (*)(int)>(make)(1).e; }";
    asks(&Program::cpp(cpp), &Verdict::Refuse, reason);
    for text in [
        "static any table[] = { (any)take, (any)look };
         double f(struct t y, struct other z) { return ((double (*)(struct t))table[0])(y) + ((double (*)(struct other))table[1])(z); }",
        "static double (*g)() = take; double f(struct t y) { return g(y); }",
        "double f(struct t y, struct other z) { printf(\"%p\", (void *)take); return take(y) + look(z) + make(1).d; }",
        "static void run(any f) { f(); } void f(void) { run((any)take); run((any)look); }",
    ] {
        movable(&c(text));
    }
}

#[test]
fn units_that_declare_a_function_with_another_object_by_value_cast() {
    let calls = ["cc -std=gnu11 -c a.c", "cc -std=gnu11 -c b.c"];
    let header = "struct t { int a; char b; double d; };";
    let own = "#include \"t.h\"\ndouble take(struct t x) { return x.d; }";
    let of = |declared: &str| Program::of(&[("t.h", header), ("a.c", own), ("b.c", declared)], &calls);
    let other = "struct other { long k; double e; }; double take(struct other); double f(struct other y) { return take(y); }";
    asks(&of(other), &Verdict::Refuse, "cast to or from other");
    movable(&of("#include \"t.h\"\ndouble take(struct t); double f(struct t y) { return take(y); }"));
}

#[test]
fn objects_among_further_arguments_are_taken_as_they_were_given() {
    let sum = |taken: &str, calls: &str| {
        c(&format!(
            "static double vsum(int n, va_list l) {{ {taken} }}
             static double sum(int n, ...) {{ va_list l; va_start(l, n); double d = vsum(n, l); va_end(l); return d; }} {calls}"
        ))
    };
    let one = "double f(struct t x) { return sum(1, x); }";
    let reason = "cast to or from other";
    asks(&sum("return va_arg(l, struct other).e + n;", one), &Verdict::Refuse, reason);
    let pieces = "long head = va_arg(l, long); return va_arg(l, double) + head + n;";
    asks(&sum(pieces, one), &Verdict::Refuse, "nothing takes an object there");
    let cpp = "#include <cstdarg>\nstruct t { int a; char b; double d; }; struct other { long k; double e; };
        static double sum(int n, ...) { va_list l; va_start(l, n); other o = va_arg(l, other); va_end(l); return o.e; }
        double f(t x) { return sum(1, x); }";
    asks(&Program::cpp(cpp), &Verdict::Refuse, reason);
    movable(&sum("return va_arg(l, struct t).d + n;", one));
    let either = "if (n) return va_arg(l, struct other).e; return va_arg(l, struct t).d;";
    movable(&sum(either, "double f(struct t x, struct other y) { return sum(1, y) + sum(0, x); }"));
}
