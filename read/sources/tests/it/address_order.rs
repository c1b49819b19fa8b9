//! Members whose addresses are compared, sorted or hashed.

use crate::program::{Program, asks, checked, keep, movable};
use lineup_sources::{Freedom, Verdict};

/// These members keep their order among themselves.
fn in_order(names: &[&str]) -> Verdict {
    Verdict::InOrder(names.iter().map(|name| name.to_string()).collect())
}

fn of(body: &str) -> Program {
    Program::c(&format!(
        "#include <stdint.h>\n#include <stdlib.h>\nstruct lock {{ int n; long owner; }};
        struct t {{ struct lock first; int id; long pad; struct lock second; }}; {body}"
    ))
}

#[test]
fn members_whose_addresses_are_compared_keep_their_order() {
    let both = in_order(&["first", "second"]);
    let reason = "addresses of first and second are compared";
    let locked = "static void both(struct lock *a, struct lock *b) { if (LESS) { a->n = 1; b->n = 2; } else { b->n = 1; a->n = 2; } }
        void f(struct t *x) { both(&x->first, &x->second); }";
    for less in ["a < b", "(uintptr_t)a < (uintptr_t)b", "(char *)b >= (char *)a"] {
        asks(&of(&locked.replace("LESS", less)), &both, reason);
    }
    let tree = "struct node { const void *key; struct node *next[2]; };
        static struct node *find(struct node *n, const void *key) {
            while (n && n->key != key) n = n->next[(uintptr_t)key < (uintptr_t)n->key]; return n; }
        static void add(struct node *n, const void *key) { n->key = key; }
        void f(struct node *n, struct t *x) { add(n, &x->first); find(n, &x->second); }";
    asks(&of(tree), &both, reason);
    let same = locked.replace("LESS", "a < b").replace("&x->first, &x->second", "&x[0].first, &x[1].first");
    let uses = checked(&of(&same)).uses;
    assert!(!uses.iter().any(|used| used.reason.contains("are compared")), "{uses:#?}");
    let values = "static int less(const int *a, const int *b) { return *a < *b; }
        int f(struct t *x) { return less(&x->id, &x->first.n); }";
    movable(&of(values));
    movable(&of(&locked.replace("LESS", "a->n < b->n")));
}

#[test]
fn keys_of_a_sorting_container_keep_their_order() {
    let cpp = |header: &str, body: &str| {
        Program::cpp(&format!("#include <{header}>\nstruct t {{ long id; int a; long pad; int b; }}; {body}"))
    };
    let both = in_order(&["a", "b"]);
    let reason = "addresses of a and b are sorted";
    let map = "int f(t *x) { std::map<int *, int> names; names[&x->b] = 1; names[&x->a] = 2; return names.size(); }";
    asks(&cpp("map", map), &both, reason);
    let set = "int f(t *x) { std::set<const int *> all; all.insert(&x->b); all.insert(&x->a); return **all.begin(); }";
    asks(&cpp("set", set), &both, reason);
    let values = "int f(t *x) { std::map<int, int *> names; names[1] = &x->b; names[2] = &x->a; return *names.begin()->second; }";
    let uses = checked(&cpp("map", values)).uses;
    assert!(!uses.iter().any(|used| used.reason.contains("are sorted")), "{uses:#?}");
}

#[test]
fn a_member_whose_address_is_hashed_keeps_its_offset() {
    let hash = "static unsigned hash(const void *p) { WORKED_OUT }
        unsigned f(struct t *x) { return hash(&x->id); }";
    let reason = "a number is worked out from the address of id";
    for worked_out in [
        "return ((uintptr_t)p * 2654435761u >> 3) % 16;",
        "return (uintptr_t)p >> 4;",
        "return (uintptr_t)p % 31;",
        "static int buckets[64]; return buckets[((uintptr_t)p >> 3) & 63];",
        "uintptr_t v = (uintptr_t)p; return v * 31;",
    ] {
        asks(&of(&hash.replace("WORKED_OUT", worked_out)), &keep(&["id"]), reason);
    }
    let number = hash.replace("WORKED_OUT", "return *(const int *)p * 31;");
    assert_eq!(checked(&of(&number)).freedom(), Freedom::Movable);
    movable(&of(&hash.replace("WORKED_OUT", "uintptr_t n = *(const int *)p; return n * 31 >> 4;")));
}
