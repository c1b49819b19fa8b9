//! A place where objects of more types arrive than are kept separate: a list of `void *`, as interpreters have.

use crate::program::Program;
use lineup_sources::{Checked, CheckedType, Freedom, Verdict};
use std::fmt::Write as _;

/// More types than are kept separate.
const TYPES: usize = 100;

/// Types `s0`, `s1` and so on, which begin with `head`; an object of each is put into a list, and each object taken out
/// of the list is used as each of them.
fn through_a_list(head: &str, further: &str) -> Checked {
    let mut text = format!(
        "struct head {{ int kind; }}; static void *items[{TYPES}]; void *out(int i) {{ return items[i]; }}\n"
    );
    for at in 0..TYPES {
        let name = format!("s{at}");
        let _ = writeln!(text, "struct {name} {{ {head} double d[{}]; char c; long first; }};", at + 1);
        let _ =
            writeln!(text, "static struct {name} {name}; void put_{name}(void) {{ items[{at}] = &{name}; }}");
        let _ = writeln!(text, "long get_{name}(void) {{ struct {name} *x = out({at}); return x->first; }}");
    }
    Program::c(&format!("#include <unistd.h>\n{text}{further}")).check()
}

fn ty<'c>(checked: &'c Checked, name: &'c str) -> &'c CheckedType {
    checked.named(name).next().expect("the type")
}

fn says(ty: &CheckedType, verdict: &Verdict, reason: &str) -> bool {
    ty.uses.iter().any(|used| used.verdict == *verdict && used.reason.contains(reason))
}

#[test]
fn what_comes_back_as_what_it_was_is_free() {
    let checked = through_a_list("", "");
    for at in [0, 1, TYPES / 2, TYPES - 1] {
        let name = format!("s{at}");
        let ty = ty(&checked, &name);
        assert_eq!(ty.freedom(), Freedom::Movable, "{:#?}", ty.uses);
    }
}

#[test]
fn what_is_used_as_its_first_member_keeps_it_first() {
    let checked =
        through_a_list("struct head head;", "int kind(int i) { struct head *h = out(i); return h->kind; }");
    for at in [0, TYPES / 2, TYPES - 1] {
        let name = format!("s{at}");
        let ty = ty(&checked, &name);
        assert!(says(ty, &Verdict::First, "used as head, its first member"), "{:#?}", ty.uses);
    }
}

#[test]
fn what_is_taken_out_as_a_type_that_nobody_put_in_is_refused() {
    let checked = through_a_list(
        "",
        "struct w { float f; int g; }; float taken(int i) { struct w *x = out(i); return x->f; }",
    );
    for name in ["s0", "s99", "w"] {
        let ty = ty(&checked, name);
        assert!(says(ty, &Verdict::Refuse, "which has other members"), "{name}: {:#?}", ty.uses);
    }
}

#[test]
fn what_is_done_with_one_of_them_before_it_is_kept_is_its_own() {
    let checked = through_a_list("", "long save(int fd) { return write(fd, &s7, sizeof s7); }");
    let (one, other) = (ty(&checked, "s7"), ty(&checked, "s8"));
    assert_eq!((one.freedom(), other.freedom()), (Freedom::Refused, Freedom::Movable), "{:#?}", other.uses);
}

/// The address of a member arrives there too, and the read there is wider than the member.
#[test]
fn members_of_what_comes_there_keep_what_follows_them() {
    let further = "struct t { int a; int b; long c; }; void put(struct t *x, int i) { items[i] = &x->a; }
        static long wide(void *p) { return *(long *)p; } long read_wide(int i) { return wide(out(i)); }
        long direct(struct t *x) { return wide(&x->a); }";
    let checked = through_a_list("", further);
    let ty = ty(&checked, "t");
    let is_it = |used: &lineup_sources::Use| used.reason.contains("8 bytes from a on are used as long");
    assert!(ty.uses.iter().any(is_it), "{:#?}", ty.uses);
}

/// Memory without a type that is kept together with objects of two types: a value taken out as a third type may be that
/// memory. Uses of a block before it is kept are uses of the object it becomes.
#[test]
fn memory_among_many_blocks_may_be_what_it_is_taken_out_as() {
    for blocks in [2, 400] {
        let mut text = String::from(
            "#include <stdlib.h>\n#include <unistd.h>\nstatic void *items[400]; void *out(int i) { return items[i]; }
            struct one { float a; long b; }; struct two { double a; int b; }; struct t { char c; long d; };
            static struct one one; static struct two two; void put(void) { items[0] = &one; items[1] = &two; }
            long get(int i) { struct one *x = out(i); struct two *y = out(i); struct t *z = out(i); return x->b + y->b + z->d; }
            struct own { int a; long b; }; long fill(int fd) { struct own *x = malloc(sizeof *x); read(fd, x, sizeof *x); items[2] = x; return x->b; }",
        );
        for at in 0..blocks {
            let _ = writeln!(text, "void keep{at}(void) {{ items[{at}] = malloc(64); }}");
        }
        let checked = Program::c(&text).check();
        for name in ["one", "two", "t"] {
            let ty = ty(&checked, name);
            assert_eq!(ty.freedom(), Freedom::Movable, "{blocks} blocks, {name}: {:#?}", ty.uses);
        }
        assert_eq!(ty(&checked, "own").freedom(), Freedom::Refused, "{blocks} blocks");
    }
}
