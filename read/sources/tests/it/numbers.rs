//! Pointers that are kept in numbers: the number's bytes are not the object's.

use crate::program::Program;
use lineup_sources::Freedom;

const TYPES: &str = "#include <string.h>\nstruct t { long a; int b; char c; long d; };
    static int read_it(struct t *x) { return x->b + x->c; }
    void reverse(void *p) { unsigned char *x = p, t; t = x[0]; x[0] = x[7]; x[7] = t; t = x[1]; x[1] = x[6]; x[6] = t; }
    unsigned long swapped(unsigned long v) { reverse(&v); return v; }\n";

fn freedom(text: &str) -> (Freedom, String) {
    let checked = Program::c(&format!("{TYPES}{text}")).check();
    let ty = checked.named("t").next().expect("the type t");
    let uses: Vec<String> = ty.uses.iter().map(|found| format!("{:?} {found}", found.verdict)).collect();
    (ty.freedom(), uses.join("\n"))
}

#[test]
fn bytes_of_a_number_are_not_those_of_the_object_that_it_leads_to() {
    for text in [
        "unsigned long id(struct t *x) { read_it(x); return swapped((unsigned long)x); }",
        "unsigned long id(struct t *x) { unsigned long v = (unsigned long)x; char out[8]; memcpy(out, &v, 8); return read_it(x) + out[0]; }",
    ] {
        let (freedom, uses) = freedom(text);
        assert_eq!(freedom, Freedom::Movable, "{text}\n{uses}");
    }
}

#[test]
fn a_number_that_is_read_at_its_address_leads_to_the_object() {
    let text = "void take(void *p) { read_it((struct t *)*(unsigned long *)p); }
        void give(struct t *x) { unsigned long v = (unsigned long)x; take(&v); }";
    let (freedom, uses) = freedom(text);
    assert_ne!(freedom, Freedom::Refused, "{uses}");
}

#[test]
fn bytes_of_the_object_that_a_number_leads_to_are_its_own() {
    for (text, reason) in [
        ("void f(struct t *x) { read_it(x); reverse(x); }", "one by one"),
        (
            "int look(void *p) { unsigned char *bytes = *(unsigned char **)p; return bytes[3]; }
            int f(struct t *x) { unsigned long v = (unsigned long)x; return look(&v); }",
            "one by one",
        ),
    ] {
        let (freedom, uses) = freedom(text);
        assert_eq!(freedom, Freedom::Refused, "{text}\n{uses}");
        assert!(uses.lines().any(|line| line.starts_with("Refuse") && line.contains(reason)), "{uses}");
    }
}
