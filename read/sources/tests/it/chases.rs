//! Loops that chase pointers: the address that each may fetch ahead, and the reason of each that may not.

use crate::program::Program;
use lineup_model::chase::{Address, Ahead, Chase, Form};

/// The chases of the function `walk`.
fn found(program: &Program) -> Vec<Chase> {
    program.chases(&["walk"])
}

/// The one address that `walk` may fetch ahead.
fn ahead(program: &Program) -> Ahead {
    let all = found(program);
    let mut good: Vec<Ahead> = all.iter().filter_map(|chase| chase.ahead.clone().ok()).collect();
    assert_eq!(good.len(), 1, "{all:#?}");
    good.remove(0)
}

fn pointer(program: &Program) -> String {
    match ahead(program).address {
        Address::Pointer { pointer, member: None } => pointer,
        other => panic!("{other:?}"),
    }
}

/// The element ahead, as `before[i]after`, with `&` where it is the object itself; and the limit.
fn element(program: &Program) -> (String, String) {
    match ahead(program).address {
        Address::Element { before, after, is_address, member, index, bound } => {
            let sign = if is_address { "&" } else { "" };
            let member = member.map(|member| format!(".{member}")).unwrap_or_default();
            let test = if bound.is_inclusive { "<=" } else { "<" };
            let kind = if bound.is_unsigned { "u" } else { "" };
            (format!("{sign}{before}{index}{after}{member}"), format!("{test}{kind} {}", bound.limit))
        }
        other => panic!("{other:?}"),
    }
}

/// Every chase in `walk` is refused, and one for a reason with these words.
#[track_caller]
fn refused(program: &Program, words: &str) {
    let all = found(program);
    assert!(!all.is_empty(), "nothing was found");
    let reasons: Vec<String> = all.iter().filter_map(|chase| chase.ahead.clone().err()).collect();
    assert_eq!(reasons.len(), all.len(), "{all:#?}");
    assert!(reasons.iter().any(|reason| reason.contains(words)), "{words}: {reasons:?}");
}

const NODE: &str = "struct node { long key; struct node *next; long load[20]; };\nlong work(long);\n";

fn list(body: &str) -> Program {
    Program::c(&format!("{NODE}long walk(struct node *p, long n) {{ long sum = 0;\n{body}\nreturn sum; }}\n"))
}

#[test]
fn a_list_is_fetched_at_the_beginning_of_a_turn_that_uses_the_present_object() {
    for body in [
        "for (; p; p = p->next) { sum += p->key; sum ^= sum << 3; }",
        "while (p != 0) { sum += work(p->key); p = p->next; }",
        "for (struct node *q = p; q; q = q->next) sum += work(q->key);",
        "do { sum += work(p->key); p = p->next; } while (p);",
        "while (p && p->key != n) { sum += work(n); p = p->next; }",
    ] {
        let program = list(body);
        let text = pointer(&program);
        assert!(text == "p->next" || text == "q->next", "{body}: {text}");
        let chase = &found(&program)[0];
        assert_eq!((chase.form, chase.object.as_deref()), (Form::List, Some("node")), "{body}");
        assert_eq!((chase.path.as_str(), chase.line), ("a.c", 4), "{body}");
    }
}

#[test]
fn a_pointer_that_is_saved_or_moved_before_the_work_is_fetched_as_soon_as_it_is_known() {
    let saved = list("struct node *next; for (; p; p = next) { next = p->next; sum += work(p->key); }");
    assert_eq!(pointer(&saved), "next");
    let declared = list("while (p) { struct node *next = p->next; sum += work(p->key); p = next; }");
    assert_eq!(pointer(&declared), "next");
    let moved = list("while (p) { long key = p->key; p = p->next; sum += work(key); }");
    assert_eq!(pointer(&moved), "p");
    let reversed = list(
        "struct node *next, *last = 0; while (p) { next = p->next; p->next = last; last = p; p = next; }",
    );
    assert_eq!(pointer(&reversed), "next");
}

#[test]
fn a_macro_that_writes_the_step_does_not_enter_the_edit() {
    let program = Program::c(
        "struct node { long key; struct node *next; };\n#define NEXT(x) ((x)->next)\nlong work(long);\n\
         long walk(struct node *p) { long sum = 0;\n for (; p; p = NEXT(p)) { sum += work(p->key); }\n return sum; }\n",
    );
    assert_eq!(pointer(&program), "p->next");
}

#[test]
fn a_pointer_that_may_be_null_or_dangling_is_not_read() {
    // Nothing in the turn uses the object for certain before it may end.
    refused(
        &list("while (p) { if (p == (struct node *)n) break; sum += work(p->key); p = p->next; }"),
        "no turn surely",
    );
    refused(&list("while (1) { if (!p) break; sum += work(p->key); p = p->next; }"), "no turn surely");
    refused(&list("for (; p; p = p->next) { work(1); sum += p->key; }"), "no turn surely");
    refused(&list("for (; p; p = p->next) { if (n) sum += p->key; else work(2); }"), "no turn surely");
    // The address of a member is no use of the object.
    let lock = "void touch(long *); long walk2(void); ";
    let text = format!(
        "{NODE}{lock} long walk(struct node *p) {{ for (; p; p = p->next) {{ touch(&p->key); }} return 0; }}"
    );
    refused(&Program::c(&text), "no turn surely");
    refused(&list("n = n; for (; p || n; p = p->next) { sum += n && p->key; work(sum); }"), "no turn surely");
}

#[test]
fn a_pointer_in_an_array_is_read_where_the_loop_reads_it() {
    let of = |member: &str, body: &str| {
        Program::c(&format!(
            "struct n {{ long key; struct n {member}; }}; long work(long);\n\
             long walk(struct n *p, int i) {{ {body} return 0; }}"
        ))
    };
    let inside = of("*level[4]", "while (p) { work(p->key); p = p->level[i]; }");
    refused(&inside, "lies in an array");
    let tested = of("*level[4]", "while (p->level[i] && p->level[i]->key < 9) { work(1); p = p->level[i]; }");
    assert_eq!(pointer(&tested), "p->level[i]");
    assert!(!ahead(&tested).needs_whole_object);
    // The target of a pointer in the object is no part of it.
    let outside = of("**level", "while (p) { work(p->key); p = p->level[i]; }");
    assert!(found(&outside).iter().all(|chase| chase.ahead.is_err()));
}

#[test]
fn a_call_in_the_condition_may_end_the_object() {
    let ended = list("while (p->key && work(p->key)) { if (n) break; p = p->next; }");
    refused(&ended, "no turn surely");
}

#[test]
fn an_object_that_both_branches_use_first_is_used_for_certain() {
    let both = "for (; p; p = p->next) { if (p == (struct node *)n) { sum = p->key; } else { long k; k = p->key; sum += work(k); } }";
    assert_eq!(pointer(&list(both)), "p->next");
    refused(
        &list("for (; p; p = p->next) { if (work(n)) sum = p->key; else sum += p->key; }"),
        "no turn surely",
    );
    refused(
        &list("for (; p; p = p->next) { if (n) { work(1); sum = p->key; } else sum += p->key; }"),
        "no turn surely",
    );
}

#[test]
fn a_step_that_is_not_known_ahead_is_refused() {
    let tree = "struct t { long key; struct t *left, *right; };\n";
    let text = format!(
        "{tree}long walk(struct t *p, long k) {{ while (p) {{ if (k < p->key) p = p->left; else p = p->right; }} return 0; }}"
    );
    refused(&Program::c(&text), "depends on the present one's values");
    refused(&list("while (p) { sum += work(p->key); if (n) p = p->next; }"), "one of several ways");
    refused(
        &list("for (; p; p = p->next) { sum += work(p->key); if (sum) p = (struct node *)n; }"),
        "moves the pointer",
    );
    refused(&list("for (; p; p = p->next) { sum += work(p->key); p->next = 0; }"), "changes the pointers");
    refused(&list("while (p) p = p->next;"), "does nothing between");
    refused(&list("while (p && p->key != n) p = p->next;"), "does nothing between");
}

#[test]
fn a_pointer_that_others_may_move_is_refused() {
    let other = "void move(struct node **);\n";
    let lent = format!(
        "{NODE}{other}long walk(struct node *p) {{ for (; p; p = p->next) {{ work(p->key); move(&p); }} return 0; }}"
    );
    refused(&Program::c(&lent), "address of `p` is taken");
    let global = format!(
        "{NODE}struct node *g; long walk(void) {{ for (g = g; g; g = g->next) {{ work(g->key); }} return 0; }}"
    );
    refused(&Program::c(&global), "no variable of the function");
    let cpp = "struct node { long key; node *next; };\nvoid move(node *&); long work(long);\n\
               long walk(node *p) { for (; p; p = p->next) { work(p->key); move(p); } return 0; }";
    refused(&Program::cpp(cpp), "address of `p` is taken");
}

#[test]
fn what_is_volatile_or_atomic_is_not_read() {
    let pointer = "struct n { long key; struct n *volatile next; }; long work(long);\n\
                   long walk(struct n *p) { for (; p; p = p->next) { work(p->key); } return 0; }";
    refused(&Program::c(pointer), "volatile or atomic");
    let object = "struct n { long key; volatile struct n *next; }; long work(long);\n\
                  long walk(volatile struct n *p) { for (; p; p = p->next) { work(p->key); } return 0; }";
    refused(&Program::c(object), "volatile or atomic");
    let atomic = "struct n { long key; struct n *_Atomic next; }; long work(long);\n\
                  long walk(struct n *p) { for (; p; p = p->next) { work(p->key); } return 0; }";
    refused(&Program::c(atomic), "volatile or atomic");
}

#[test]
fn a_loop_that_locks_is_refused() {
    let text = format!(
        "{NODE}void take_lock(long *);\nstatic void in(struct node *p) {{ take_lock(&p->key); }}\n\
         long walk(struct node *p) {{ for (; p; p = p->next) {{ work(p->key); in(p); }} return 0; }}"
    );
    refused(&Program::c(&text), "may order the accesses of threads");
}

#[test]
fn objects_must_be_whole_where_a_turn_may_end_before_the_pointer_is_read() {
    let early = list("for (; p; p = p->next) { if (p->key == n) return 1; sum += work(n); }");
    assert!(ahead(&early).needs_whole_object);
    let surely = list("for (; p; p = p->next) { if (p->key == n) continue; sum += n * 3; }");
    assert!(!ahead(&surely).needs_whole_object);
    let behind = list("for (; p; p = p->next) { if (p->load[0]) return 1; sum += p->load[3]; work(n); }");
    assert!(found(&behind)[0].ahead.is_err() || ahead(&behind).needs_whole_object);
    let covered = "struct n { struct n *next; long key; }; long work(long);\n\
                   long walk(struct n *p, long k) { for (; p; p = p->next) { if (p->key == k) return 1; work(k); } return 0; }";
    assert!(!ahead(&Program::c(covered)).needs_whole_object);
}

fn array(parameters: &str, body: &str) -> Program {
    let types = "struct item { long a; long far[20]; long b; };\nstruct ref { int id; struct item *p; };\n";
    Program::c(&format!(
        "{types}long work(long);\nlong walk({parameters}) {{ long sum = 0; long i;\n{body}\nreturn sum; }}\n"
    ))
}

#[test]
fn what_an_element_ahead_names_is_fetched_within_what_the_loop_reads() {
    let indirect = array("long *x, int *b, long n", "for (i = 0; i < n; i++) sum += x[b[i]];");
    assert_eq!(element(&indirect), ("&x[b[i]]".into(), "< n".into()));
    let kept = array("long *x, int *b, long n", "for (i = 0; i < n; i++) { int k = b[i]; x[k] += 3; }");
    assert_eq!(element(&kept), ("&x[b[i]]".into(), "< n".into()));
    let pointers =
        array("struct item **a, long n", "for (i = 0; i <= n; ++i) { struct item *q = a[i]; sum += q->a; }");
    assert_eq!(element(&pointers), ("a[i]".into(), "<= n".into()));
    let far = array("struct item **a, long n", "for (i = 0; i < n; i++) sum += a[i]->b;");
    assert_eq!(element(&far).0, "a[i].b");
    let member =
        array("struct ref *a, unsigned long n", "for (unsigned long j = 0; j < n; j++) sum += a[j].p->a;");
    assert_eq!(element(&member), ("a[j].p".into(), "<u n".into()));
    let hashed = array("long *x, long *b, long n", "for (i = 0; i < n; i++) x[(b[i] * 7) & 63] ^= b[i];");
    assert_eq!(element(&hashed), ("&x[(b[i] * 7) & 63]".into(), "< n".into()));
    let twice = array(
        "struct item **a, long n",
        "struct item *q; for (i = 0; i < n; i += 2) { q = a[i]; if (q) sum += q->a; q = a[i + 1]; if (q) sum += q->a; }",
    );
    assert_eq!(element(&twice), ("a[i]".into(), "< n".into()));
    let named = Program::c(
        "#ifdef BIG\n#define COUNT (1 << 20)\n#else\n#define COUNT (1 << 10)\n#endif\n#define ALL COUNT\n\
         long walk(long *x, int *b) { long sum = 0; for (int i = 0; i < ALL; i++) sum += x[b[i]]; return sum; }",
    );
    assert_eq!(element(&named).1, "< ALL");
    let rows = array(
        "double *x, int *col, int *row, int k",
        "int j; for (j = row[k]; j < row[k + 1]; j++) sum += x[col[j]];",
    );
    assert_eq!(element(&rows), ("&x[col[j]]".into(), "< row[k + 1]".into()));
}

#[test]
fn elements_that_the_loop_might_not_read_are_not_read_ahead() {
    let p = "long *x, int *b, long n";
    refused(&array(p, "for (i = 0; i < n; i++) { if (b[i] < 0) break; sum += x[b[i]]; }"), "`break`");
    refused(&array(p, "for (i = 0; i < n; i++) { if (b[i] < 0) return 1; sum += x[b[i]]; }"), "`return`");
    refused(&array(p, "for (i = 0; i < n; i++) { sum += x[b[i]]; work(sum); }"), "might not return");
    refused(&array(p, "for (i = 0; i < n; i++) { if (sum) sum += x[b[i]]; }"), "not read in every turn");
    refused(
        &array(p, "for (i = 0; i < n; i++) { if (b[i] >= 0) sum += x[b[i]]; }"),
        "not used in every turn",
    );
    refused(&array(p, "for (i = 0; i < n && sum < 9; i++) sum += x[b[i]];"), "condition");
    refused(&array(p, "for (i = 0; i != n; i++) sum += x[b[i]];"), "condition");
    refused(&array(p, "for (i = 0; i < n; i++) { sum += x[b[i]]; if (sum & 1) n--; }"), "`n` may change");
    refused(&array(p, "for (i = 0; i < n; i++) { sum += x[b[i]]; if (sum & 1) i++; }"), "writes its counter");
    refused(&array(p, "for (i = 0; i < n; i++) { sum += x[b[i]]; if (sum & 1) b++; }"), "`b` may change");
    refused(&array(p, "for (i = 0; i < n; i++) { sum += x[b[i]]; b[i] = 1; }"), "the loop writes `b[i]`");
    refused(
        &array("long *x, volatile int *b, long n", "for (i = 0; i < n; i++) sum += x[b[i]];"),
        "volatile",
    );
}

#[test]
fn memory_that_a_store_may_move_is_not_read_ahead() {
    let text = "struct s { int *b; long n; }; \n\
                long walk(struct s *s, long *x, int **any) { long sum = 0;\n\
                for (long i = 0; i < s->n; i++) { sum += x[s->b[i]]; *any = 0; } return sum; }";
    refused(&Program::c(text), "may change where the loop reads");
    let plain = "struct s { int *b; long n; }; \n\
                 long walk(struct s *s, long *x) { long sum = 0;\n\
                 for (long i = 0; i < s->n; i++) sum += x[s->b[i]]; return sum; }";
    assert_eq!(element(&Program::c(plain)), ("&x[s->b[i]]".into(), "< s->n".into()));
}

#[test]
fn a_call_that_may_change_a_global_or_a_member_forbids_a_prefetch_by_it() {
    let of = |parameters: &str, list: &str, call: &str| {
        Program::c(&format!(
            "#include <string.h>\nstatic int *order; struct s {{ int *order; }};\n\
             static void other(void) {{ order = 0; }}\n\
             long walk({parameters}, long *x, int n) {{ long sum = 0; int i;\n\
             for (i = 0; i < n; i++) {{ sum += x[{list}[i]]; {call}; }} return sum + (order == 0); }}"
        ))
    };
    refused(&of("int k", "order", "if (sum > k) other()"), "`other` may change");
    refused(&of("struct s *s", "s->order", "memset(s, 0, 4)"), "`memset` may change");
    assert_eq!(element(&of("int *mine", "mine", "other()")).0, "&x[mine[i]]");
    assert_eq!(element(&of("const char *c", "order", "sum += strlen(c)")).0, "&x[order[i]]");
}

#[test]
fn a_call_that_returns_for_certain_does_not_forbid_a_prefetch() {
    let text = "#include <math.h>\nstatic double f(double v) { return sqrt(v) + 1; }\n\
                double walk(double *x, int *b, int n) { double sum = 0;\n\
                for (int i = 0; i < n; i++) sum += f(x[b[i]]); return sum; }";
    assert_eq!(element(&Program::c(text)).0, "&x[b[i]]");
    let exits = "void exit(int);\nstatic double f(double v) { if (v > 1) exit(1); return v; }\n\
                 double walk(double *x, int *b, int n) { double sum = 0;\n\
                 for (int i = 0; i < n; i++) sum += f(x[b[i]]); return sum; }";
    refused(&Program::c(exits), "might not return");
}

#[test]
fn a_pushed_pointer_is_fetched_before_it_waits() {
    let tree = "struct t { long key; struct t *left, *right; };\n";
    let text = format!(
        "{tree}long walk(struct t *p) {{ struct t *stack[64]; int n = 0; long sum = 0; stack[n++] = p;\n\
         while (n > 0) {{ struct t *q = stack[--n]; sum += q->key;\n\
         if (q->left) stack[n++] = q->left;\n if (q->right) {{ stack[n++] = q->right; }} }} return sum; }}"
    );
    let all = found(&Program::c(&text));
    let good: Vec<&Ahead> = all.iter().filter_map(|chase| chase.ahead.as_ref().ok()).collect();
    let texts: Vec<String> = good.iter().map(|ahead| format!("{:?}", ahead.address)).collect();
    assert_eq!(texts.len(), 2, "{all:#?}");
    assert!(texts[0].contains("q->left") && texts[1].contains("q->right"), "{texts:?}");
    let cpp = "#include <vector>\nstruct t { long key; t *left, *right; };\n\
               long walk(t *p) { std::vector<t *> s; s.push_back(p); long sum = 0;\n\
               while (!s.empty()) { t *q = s.back(); s.pop_back(); sum += q->key; if (q->left) s.push_back(q->left); }\n\
               return sum; }";
    let all = found(&Program::cpp(cpp));
    assert!(all.iter().any(|chase| chase.form == Form::Stack && chase.ahead.is_ok()), "{all:#?}");
}

#[test]
fn a_push_that_does_more_is_refused() {
    let tree = "struct t { long key; struct t *kid[4]; };\nstruct t *next(void);\n";
    let of = |push: &str| {
        Program::c(&format!(
            "{tree}long walk(struct t *p) {{ struct t *stack[64]; int n = 0, k = 0; stack[n++] = p;\n\
             while (n > 0) {{ struct t *q = stack[--n]; {push} }} return 0; }}"
        ))
    };
    refused(&of("stack[n++] = q->kid[k++];"), "is not understood");
    refused(&of("stack[k++] = q->kid[k];"), "changes what the statement reads");
}

#[test]
fn standard_lists_are_read_by_their_own_operators() {
    let text = "#include <vector>\n#include <cstddef>\n\
                long walk(const std::vector<long> &x, const std::vector<int> &b) { long sum = 0;\n\
                for (std::size_t i = 0; i < b.size(); i++) { sum += x[b[i]]; } return sum; }";
    assert_eq!(element(&Program::cpp(text)), ("&x[b[i]]".into(), "<u b.size()".into()));
    let grows = "#include <vector>\n#include <cstddef>\n\
                 long walk(std::vector<long> &x, std::vector<int> &b) { long sum = 0;\n\
                 for (std::size_t i = 0; i < b.size(); i++) { sum += x[b[i]]; if (sum & 1) b.push_back(1); } return sum; }";
    refused(&Program::cpp(grows), "might not return");
    let classes = "struct v { long k; long *operator&(); };\n\
                   long walk(v *x, int *b, int n) { long sum = 0;\n\
                   for (int i = 0; i < n; i++) sum += x[b[i]].k; return sum; }";
    assert_eq!(element(&Program::cpp(classes)).0, "&x[b[i]].k");
}

#[test]
fn a_macro_that_writes_statements_gets_no_braces_around_it() {
    let text = "struct node { long key; struct node *next; };\nlong work(long);\n#define BOTH(x) work(x); work(2)\n\
                long walk(struct node *p) { for (; p; p = p->next) BOTH(p->key); return 0; }";
    refused(&Program::c(text), "a macro writes");
    let each = "struct node { long key; struct node *next; };\nlong work(long);\n\
                #define EACH(p, l) for ((p) = (l); (p); (p) = (p)->next)\n\
                long walk(struct node *l) { struct node *p; EACH(p, l) { work(p->key); } return 0; }";
    assert_eq!(pointer(&Program::c(each)), "p->next");
}
