//! Types and functions of one name in several programs of a project, or in units that share no header.

use crate::program::Program;
use lineup_sources::{Checked, CheckedType, Freedom};

fn check(files: &[(&str, &str)]) -> Checked {
    let commands: Vec<String> = files
        .iter()
        .filter(|(name, _)| name.ends_with(".c"))
        .map(|(name, _)| format!("cc -std=gnu11 -c {name}"))
        .collect();
    let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
    Program::of(files, &commands).check()
}

fn declared<'c>(checked: &'c Checked, path: &str) -> &'c CheckedType {
    let mut all = checked.named("entry").filter(|ty| ty.path == path);
    all.next().unwrap_or_else(|| panic!("the entry of {path}: {:#?}", checked.types))
}

const COMMIT: &str = "#include <unistd.h>
    struct entry { long a; int b; char c; };
    long f(int fd, struct entry *x) { x->b++; return write(fd, x, sizeof *x); }";
const WALK: &str = "#include <stdlib.h>
    struct entry { char *name; int depth; long size; };
    long g(struct entry *x) { x->depth++; free(x->name); return x->size; }";

#[test]
fn what_is_done_with_one_type_is_not_done_with_another_of_its_name() {
    for files in [[("commit.c", COMMIT), ("walk.c", WALK)], [("walk.c", WALK), ("commit.c", COMMIT)]] {
        let checked = check(&files);
        let (commit, walk) = (declared(&checked, "commit.c"), declared(&checked, "walk.c"));
        assert_eq!(commit.members, ["a", "b", "c"]);
        assert_eq!(walk.members, ["name", "depth", "size"]);
        assert_eq!(commit.freedom(), Freedom::Refused, "{:#?}", commit.uses);
        assert_eq!(walk.freedom(), Freedom::Movable, "{:#?}", walk.uses);
    }
}

#[test]
fn a_unit_that_uses_the_name_without_members_may_mean_any() {
    let user =
        "#include <unistd.h>\nstruct entry; long h(int fd, struct entry *x) { return write(fd, x, 16); }";
    let checked = check(&[("commit.c", COMMIT), ("walk.c", WALK), ("user.c", user)]);
    assert_eq!(declared(&checked, "walk.c").freedom(), Freedom::Refused);
    // With one type of the name it is that one, wherever it is defined.
    let checked = check(&[("walk.c", WALK), ("user.c", user)]);
    let walk = declared(&checked, "walk.c");
    assert!(walk.uses.iter().any(|found| found.reason.contains("write()")), "{:#?}", walk.uses);
}

#[test]
fn objects_that_go_from_one_to_the_other_are_cast() {
    let taker =
        "struct entry { char *name; int depth; long size; }; long g(struct entry *x) { return x->size; }";
    let giver = "struct entry { long a; int b; char c; }; long g(struct entry *);
        long f(struct entry *x) { return g(x) + x->b; }";
    let checked = check(&[("giver.c", giver), ("taker.c", taker)]);
    for path in ["giver.c", "taker.c"] {
        let ty = declared(&checked, path);
        assert!(ty.uses.iter().any(|found| found.reason.contains("cast to or from")), "{:#?}", ty.uses);
        assert_eq!(ty.freedom(), Freedom::Refused);
    }
}

#[test]
fn copies_of_one_declaration_stay_one_type() {
    let one =
        "struct entry { char *name; int depth; long size; }; long f(struct entry *x) { return x->size; }";
    let checked = check(&[("one.c", one), ("two.c", &one.replace("long f", "long g")), ("other.c", COMMIT)]);
    let copied = declared(&checked, "one.c");
    assert_eq!(copied.copies, ["two.c"]);
    assert_eq!(copied.freedom(), Freedom::Refused, "{:#?}", copied.uses);
}

#[test]
fn functions_of_one_name_with_bodies_of_their_own_are_of_two_programs() {
    let first = "struct entry { long a; int b; char c; long d; };
        long process(struct entry *x) { return x->a + x->d; }";
    let second = "struct item { char *name; int depth; }; long process(struct item *x) { return x->depth; }";
    let user = "struct item { char *name; int depth; }; long process(struct item *); long all(struct item *x) { return process(x); }";
    let checked = check(&[("first.c", first), ("second.c", second)]);
    assert_eq!(declared(&checked, "first.c").freedom(), Freedom::Movable);
    // A unit that declares a function without a body for its type calls the one that exists.
    let checked = check(&[("first.c", first), ("user.c", user)]);
    assert_eq!(declared(&checked, "first.c").freedom(), Freedom::Refused);
}
