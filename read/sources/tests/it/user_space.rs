//! Small programs whose meaning depends on the order of a type's members, each refused or held with its reason; and
//! similar programs whose types may move.

use crate::program::Program;
use lineup_sources::{Freedom, UseKind, Verdict};

fn names(names: &[&str]) -> Verdict {
    Verdict::Keep(names.iter().map(|name| name.to_string()).collect())
}

fn beside(names: &[&str]) -> Verdict {
    Verdict::Adjacent(names.iter().map(|name| name.to_string()).collect())
}

/// The type `t` of the program is refused, for a use of this kind with this reason.
fn refused(text: &str, kind: UseKind, reason: &str) {
    let checked = Program::c(text).check();
    let ty = checked.named("t").next().expect("the type t");
    let found = ty.uses.iter().find(|found| found.verdict == Verdict::Refuse);
    let found = found.unwrap_or_else(|| panic!("not refused:\n{text}\n{:#?}", ty.uses));
    assert_eq!(found.kind, kind, "{found}");
    assert!(found.reason.contains(reason), "{found}");
    assert_eq!(ty.freedom(), Freedom::Refused);
}

/// The type `t` is held so, by a use of this kind.
fn held(text: &str, verdict: &Verdict, kind: UseKind) {
    let checked = Program::c(text).check();
    let ty = checked.named("t").next().expect("the type t");
    let is_it = ty.uses.iter().any(|found| found.verdict == *verdict && found.kind == kind);
    assert!(is_it, "{text}\n{:#?}", ty.uses);
    assert_ne!(ty.freedom(), Freedom::Refused, "{:#?}", ty.uses);
}

fn movable(text: &str) {
    let checked = Program::c(text).check();
    let ty = checked.named("t").next().expect("the type t");
    assert_eq!(ty.freedom(), Freedom::Movable, "{text}\n{:#?}", ty.uses);
}

#[test]
fn a_type_that_shares_leading_members_with_one_it_is_cast_to_keeps_them() {
    let text = "struct base { int kind; int refs; }; struct t { int kind; int refs; long a, b, c; };
        int kind(struct base *b) { return b->kind; } int f(struct t *x) { return kind((struct base *)x); }";
    held(text, &names(&["kind", "refs"]), UseKind::Cast);
}

#[test]
fn leading_members_of_equal_names_and_types_are_kept_without_a_cast_in_sight() {
    let text = "struct head { int len; int used; }; struct t { int len; int used; long a; char b; };
        int f(struct t *x, struct head *h) { return x->len + h->used; }";
    held(text, &names(&["len", "used"]), UseKind::CommonLeadingMembers);
}

#[test]
fn a_request_of_ioctl_is_an_abi() {
    let text = "#include <sys/ioctl.h>\nstruct t { int a; long b; };
        int f(int fd) { struct t r = {0}; return ioctl(fd, 7, &r); }";
    refused(text, UseKind::Crossing, "ioctl()");
}

#[test]
fn a_type_measured_by_a_requests_number_is_an_abi() {
    let text = "#include <linux/ioctl.h>\nstruct t { int a; long b; };
        unsigned long f(void) { return _IOW('x', 1, struct t); }";
    refused(text, UseKind::Crossing, "request's number");
}

#[test]
fn what_iovec_points_to_leaves_the_program() {
    let text = "#include <sys/uio.h>\nstruct t { int a; long b; };
        long f(int fd, struct t *x) { struct iovec v; v.iov_base = x; v.iov_len = sizeof *x; return writev(fd, &v, 1); }";
    refused(text, UseKind::Crossing, "iov_base");
    let text = "#include <sys/uio.h>\nstruct t { int a; long b; };
        long f(int fd, struct t *x) { struct iovec v[] = {{x, sizeof *x}}; return writev(fd, v, 1); }";
    refused(text, UseKind::Crossing, "iov_base");
}

#[test]
fn options_of_sockets_and_arguments_of_syscall_are_an_abi() {
    let text = "#include <sys/socket.h>\nstruct t { int a; long b; };
        int f(int fd) { struct t o = {0}; return setsockopt(fd, 1, 2, &o, sizeof(o)); }";
    refused(text, UseKind::Crossing, "setsockopt()");
    let text = "#include <unistd.h>\nstruct t { int a; long b; };
        long f(void) { struct t attr = {0}; return syscall(321, 0, &attr, sizeof attr); }";
    refused(text, UseKind::Crossing, "syscall()");
}

#[test]
fn the_programs_own_writer_is_seen_through() {
    let text = "#include <unistd.h>\nstruct t { int a; long b; };
        int xwrite(int fd, const void *p, unsigned long n) { return write(fd, p, n) == (long)n; }
        int f(int fd) { struct t x = {0}; return xwrite(fd, &x, sizeof x); }";
    refused(text, UseKind::Crossing, "write()");
    let text = "#include <unistd.h>\nstruct t { int a; long b; };
        int xwrite(int fd, const char *p, unsigned long n) { while (n) { long k = write(fd, p, n); p += k; n -= k; } return 0; }
        #define PUT(fd, x) xwrite(fd, (const char *)&(x), sizeof(x))
        int f(int fd) { struct t x = {0}; return PUT(fd, x); }";
    refused(text, UseKind::Crossing, "write()");
}

#[test]
fn bytes_copied_into_a_buffer_that_is_sent_are_the_objects() {
    let text = "#include <string.h>\n#include <sys/socket.h>\nstruct t { int a; long b; };
        long f(int fd, struct t *x) { char buf[64]; memcpy(buf, x, sizeof *x); return send(fd, buf, sizeof *x, 0); }";
    refused(text, UseKind::Crossing, "");
}

#[test]
fn objects_in_a_shared_mapping_come_from_outside() {
    let text = "#include <sys/mman.h>\nstruct t { int a; long b; };
        struct t *f(int fd) { struct t *x = mmap(0, 4096, 3, MAP_SHARED, fd, 0); return x; }";
    refused(text, UseKind::Crossing, "mmap()");
    let text = "#include <sys/mman.h>\nstruct t { int a; long b; };
        void *map(int fd) { void *p = mmap(0, 4096, 3, MAP_SHARED, fd, 0); if (p == MAP_FAILED) return 0; return p; }
        long f(int fd) { struct t *x = (struct t *)((char *)map(fd)); return x->b; }";
    refused(text, UseKind::Crossing, "mmap()");
}

#[test]
fn objects_in_a_mapping_without_a_file_are_this_programs_own() {
    for file in ["-1", "(-1)"] {
        let text = format!(
            "#include <sys/mman.h>\nstruct t {{ int a; long b; }};
            struct t *f(void) {{
                struct t *x = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, {file}, 0);
                if (x == MAP_FAILED) return 0;
                x->b = 1;
                return x;
            }}
            void g(struct t *x) {{ munmap(x, 4096); }}"
        );
        movable(&text);
    }
}

#[test]
fn a_mapping_of_what_may_be_a_file_is_refused() {
    for file in ["0", "1", "-fd", "fd - 1", "~fd", "fd ? -1 : fd"] {
        let text = format!(
            "#include <sys/mman.h>\nstruct t {{ int a; long b; }};
            struct t *f(int fd) {{ struct t *x = mmap(0, 4096, 3, MAP_SHARED, {file}, 0); return x; }}"
        );
        refused(&text, UseKind::Crossing, "mmap()");
    }
    let text = "#define _GNU_SOURCE\n#include <sys/mman.h>\nstruct t { int a; long b; };
        struct t *f(void) { return mremap(mmap(0, 4096, 3, MAP_SHARED, -1, 0), 4096, 8192, 1); }";
    refused(text, UseKind::Crossing, "mremap()");
}

#[test]
fn a_block_of_volatile_registers_is_refused() {
    let text = "struct t { volatile int control; volatile int status; volatile int data; };
        int f(struct t *x) { x->control = 1; return x->status; }";
    refused(text, UseKind::Volatile, "volatile");
    let text = "struct t { int control, status; }; int f(volatile struct t *x) { return x->status; }";
    refused(text, UseKind::Volatile, "volatile");
    let text = "struct t { int control, status; };
        int f(void) { return ((struct t *)0x40001000)->status; }";
    refused(text, UseKind::Crossing, "0x40001000");
}

#[test]
fn a_prefix_copied_to_another_type_stays() {
    let text = "#include <string.h>\nstruct head { int a; int b; }; struct t { int a; int b; long c; char d; long e; };
        void f(struct head *h, struct t *x) { memcpy(h, x, sizeof *h); }";
    held(text, &names(&["a", "b"]), UseKind::PartialMemory);
}

#[test]
fn members_copied_by_themselves_keep_to_their_bytes() {
    let copied = |size: &str, from: &str| {
        format!(
            "#include <string.h>\nstruct t {{ int a; int b; long c; int d; int spare; }};
            struct s {{ int a; int x; long c; int y; int z; }};
            void f(struct t *to, {from}) {{ memcpy(to, from, {size}); }}"
        )
    };
    let text = copied("sizeof *to - sizeof to->spare", "const struct t *from");
    held(&text, &Verdict::Boundary("spare".into()), UseKind::PartialMemory);
    held(&text, &names(&["spare"]), UseKind::PartialMemory);
    // The bytes end inside of a member; another type's members are copied; bytes are compared.
    held(&copied("10", "const struct t *from"), &names(&["a", "b", "c"]), UseKind::PartialMemory);
    let text = "#include <string.h>\nstruct t { int a; int b; long c; char d; long e; };
        int f(struct t *x, struct t *y) { return memcmp(x, y, 8); }";
    refused(text, UseKind::Bytes, "");
    let other = copied("8", "const struct s *from");
    let checked = Program::c(&other).check();
    let ty = checked.named("t").next().expect("the type t");
    assert!(ty.uses.iter().any(|used| used.verdict == names(&["a", "b"])), "{:#?}", ty.uses);
}

#[test]
fn what_is_cleared_up_to_a_member_stays_before_it() {
    let text = "#include <string.h>\n#include <stddef.h>\nstruct t { int a; long b; char keep; long later; };
        void f(struct t *x) { memset(x, 0, offsetof(struct t, keep)); }";
    held(text, &Verdict::Boundary("keep".into()), UseKind::Offset);
}

/// Bytes copied by a pointer in a member lie elsewhere; at a member's address the next members follow.
#[test]
fn bytes_behind_a_pointer_in_a_member_are_not_the_members() {
    let text = "#include <string.h>
        struct t { int a; char *address; long b; long c; char name[8]; };
        void f(struct t *x, char *to, char *end) { memcpy(to, x->address, 32); memcpy(x->address, to, end - to); }";
    movable(text);
    for (from, members) in [("&x->b", ["b", "c"]), ("x->name", ["name", "last"])] {
        let copied =
            text.replace("x->address, 32", &format!("{from}, 16")).replace("name[8];", "name[8]; long last;");
        held(&copied, &names(&members), UseKind::PartialMemory);
    }
}

#[test]
fn members_stepped_through_as_an_array_stay_together() {
    let text = "struct t { long head; int lo, mid, hi; long tail; };
        int f(struct t *x) { int sum = 0; for (int *p = &x->lo; p <= &x->hi; p++) sum += *p; return sum; }";
    held(text, &beside(&["lo", "mid", "hi"]), UseKind::Walk);
    let text = "struct t { long head; int lo, mid, hi; long tail; };
        int sum(const int *p, int n) { int s = 0; for (int i = 0; i < n; i++) s += p[i]; return s; }
        int f(struct t *x) { return sum(&x->lo, 3); }";
    held(text, &beside(&["lo", "mid", "hi"]), UseKind::Walk);
}

#[test]
fn code_that_reads_fixed_offsets_behind_void_is_found() {
    let text = "struct t { int a; int b; long c; };
        int peek(void *p) { return *(int *)((char *)p + 4); } int f(struct t *x) { return peek(x); }";
    refused(text, UseKind::Offset, "fixed offset");
    let text = "struct t { int a; int b; long c; };
        int peek(void *p) { int *words = p; return words[1]; } int f(struct t *x) { return peek(x); }";
    refused(text, UseKind::Walk, "array of int");
}

#[test]
fn a_tag_read_through_void_stays_first() {
    let text = "struct t { int tag; long a; int b; };
        int kind(void *v) { int *tag = v; return *tag; } int f(struct t *x) { return kind(x); }";
    held(text, &Verdict::First, UseKind::FirstMember);
}

#[test]
fn hashed_and_compared_bytes_refuse() {
    let text = "struct t { int a; int b; };
        unsigned hash(const void *p, unsigned n) { const unsigned char *c = p; unsigned h = 5381; while (n--) h = h * 33 + *c++; return h; }
        unsigned f(struct t *x) { return hash(x, sizeof *x); }";
    refused(text, UseKind::Bytes, "one by one");
    let text = "#include <string.h>\nstruct t { int a; int b; };
        int f(struct t *x, struct t *y) { return memcmp(x, y, sizeof *x); }";
    refused(text, UseKind::Bytes, "compared");
}

#[test]
fn unions_with_other_types_hold_what_they_share() {
    let text = "struct a { int tag; double d; }; struct t { int tag; long l; char c; };
        union any { struct a a; struct t t; }; int f(union any *u) { return u->a.tag; }";
    held(text, &names(&["tag"]), UseKind::Union);
    let text = "struct t { int a; int b; }; union any { struct t t; unsigned char raw[8]; };
        int f(union any *u) { return u->raw[0]; }";
    refused(text, UseKind::Union, "raw");
    let text = "struct t { int a; int b; }; union any { struct t t; unsigned long long both; };
        long f(union any *u) { return u->both; }";
    refused(text, UseKind::Union, "both");
    let text = "struct t { int a; int b; }; union any { unsigned char raw[8]; struct t t; };
        int f(void) { union any u = {{1}}; return u.t.a; }";
    refused(text, UseKind::Union, "raw");
    movable(
        "struct t { int a; int b; }; union any { unsigned char least_size[8]; struct t t; };
        int f(union any *u) { return u->t.b; }",
    );
}

#[test]
fn first_members_that_stand_for_the_object_stay_first() {
    let base = "struct node { struct node *next; }; struct t { struct node node; long a; int b; };";
    let down = format!("{base} long f(struct node *n) {{ return ((struct t *)n)->a; }}");
    held(&down, &Verdict::First, UseKind::FirstMember);
    let up = format!("{base} struct node *f(struct t *x) {{ return (struct node *)x; }}");
    held(&up, &Verdict::First, UseKind::FirstMember);
    let through_void = format!(
        "{base} struct node *head; void push(void *v) {{ struct node *n = v; n->next = head; head = n; }}
         void f(struct t *x) {{ push(x); }}"
    );
    held(&through_void, &Verdict::First, UseKind::FirstMember);
}

#[test]
fn assertions_on_offsets_keep_the_member() {
    let text = "#include <stddef.h>\nstruct t { long a; int b; int c; long d; };
        _Static_assert(offsetof(struct t, b) == 8, \"b\"); int f(struct t *x) { return x->b; }";
    held(text, &names(&["b"]), UseKind::Assertion);
}

#[test]
fn values_by_position_from_a_macro_stay() {
    let text = "struct t { int a; int b; long c; char d; };
        #define T { 1, 2 }\nstruct t one = T; int f(struct t *x) { return x->a; }";
    held(text, &names(&["a", "b"]), UseKind::Positional);
    let text = "struct t { int a; int b; long c; char d; };
        #define BOTH 1, 2\nstruct t one = { BOTH }; int f(struct t *x) { return x->a; }";
    held(text, &names(&["a", "b"]), UseKind::Positional);
}

#[test]
fn code_that_is_not_compiled_here_may_know_the_order() {
    let text =
        "struct t { int a; int b; }; void elsewhere(struct t *); void f(struct t *x) { elsewhere(x); }";
    refused(text, UseKind::Crossing, "elsewhere()");
    let text = "struct t { int a; int b; }; void elsewhere(void *); void f(struct t *x) { elsewhere(x); }";
    refused(text, UseKind::Crossing, "elsewhere()");
    let text =
        "struct t { int a; int b; }; struct t *elsewhere(void); int f(void) { return elsewhere()->a; }";
    refused(text, UseKind::Crossing, "elsewhere()");
    let text = "#include <dlfcn.h>\nstruct t { int a; int b; };
        void f(void *lib, struct t *x) { void (*call)(struct t *) = (void (*)(struct t *))dlsym(lib, \"go\"); call(x); }";
    refused(text, UseKind::Crossing, "behind a pointer");
}

#[test]
fn assembly_refuses() {
    let text = "struct t { int a; int b; }; void f(struct t *x) { __asm__ volatile(\"movl $1, 4(%0)\" :: \"r\"(x)); }";
    refused(text, UseKind::Assembly, "assembly");
}

#[test]
fn what_follows_an_embedded_open_array_stays_behind_it() {
    let text = "struct inner { int n; long slots[]; }; struct t { int a; long x; struct inner in; long room[4]; int z; };
        long f(struct t *t) { return t->in.slots[1]; }";
    held(text, &beside(&["in", "room"]), UseKind::TrailingArray);
}

#[test]
fn a_tail_that_is_allocated_past_the_end_stays_last() {
    let text = "#include <stdlib.h>\n#include <stddef.h>\nstruct t { int n; long b; char name[8]; };
        struct t *f(int n) { return malloc(offsetof(struct t, name) + n); }";
    held(text, &Verdict::Last("name".into()), UseKind::TrailingArray);
}

#[test]
fn plain_types_stay_movable() {
    movable(
        "struct t { long a; int b; char c; }; long f(struct t *x) { x->b++; return x->a; } long g(void) { struct t x = {0}; return f(&x); }",
    );
    movable(
        "#include <stdlib.h>\n#include <string.h>\nstruct t { long a; int b; char c; struct t *next; };
        struct t *make(void) { struct t *x = malloc(sizeof *x); memset(x, 0, sizeof *x); return x; }
        void copy(struct t *x, const struct t *y) { memcpy(x, y, sizeof(struct t)); } void drop(struct t *x) { free(x); }",
    );
    movable(
        "#include <stddef.h>\nstruct list { struct list *next; }; struct t { long a; struct list link; int b; };
        #define container_of(p, type, member) ((type *)((char *)(p) - offsetof(type, member)))
        long f(struct list *l) { return container_of(l, struct t, link)->a; }",
    );
    movable(
        "#include <stdio.h>\n#include <pthread.h>\nstruct t { long a; pthread_mutex_t lock; int b; };
        void f(struct t *x) { pthread_mutex_lock(&x->lock); printf(\"%p %d\\n\", (void *)x, x->b); pthread_mutex_unlock(&x->lock); scanf(\"%ld\", &x->a); }",
    );
}

#[test]
fn types_that_pass_through_void_and_come_back_stay_movable() {
    movable(
        "struct item { void *data; struct item *next; }; struct t { long a; int b; };
        void push(struct item *i, void *data) { i->data = data; }
        long f(struct item *i, struct t *x) { push(i, x); return ((struct t *)i->data)->a; }",
    );
    movable(
        "#include <stdlib.h>\nstruct t { long key; int b; };
        int order(const void *a, const void *b) { const struct t *x = a, *y = b; return x->key < y->key ? -1 : x->key > y->key; }
        void f(struct t *all, unsigned long n) { qsort(all, n, sizeof *all, order); }",
    );
    movable(
        "#include <pthread.h>\nstruct t { long a; int b; };
        void *run(void *p) { struct t *x = p; x->a++; return 0; }
        int f(struct t *x) { pthread_t id; return pthread_create(&id, 0, run, x); }",
    );
    movable(
        "#include <stdlib.h>\nstruct t { long a; int b; }; void *xmalloc(unsigned long n) { void *p = malloc(n); if (!p) abort(); return p; }
        struct t *f(void) { struct t *x = xmalloc(sizeof *x); x->a = 1; return x; }",
    );
    movable(
        "struct t { long a; int b; }; typedef int (*visit)(void *, void *); struct ops { visit go; };
        int seen(void *x, void *with) { return ((struct t *)x)->b + *(int *)with; }
        int f(struct t *x) { struct ops o = { .go = seen }; int n = 1; return o.go(x, &n); }",
    );
    movable(
        "#include <sys/epoll.h>\nstruct t { long a; int b; };
        void add(int fd, struct t *x) { struct epoll_event e = {0}; e.data.ptr = x; epoll_ctl(fd, 1, 3, &e); }
        long f(struct epoll_event *e) { struct t *x = e->data.ptr; return x->a; }",
    );
}

#[test]
fn tables_of_offsets_and_plain_initialisers_leave_a_type_movable() {
    movable(
        "#include <stddef.h>\nstruct t { long a; int b; }; struct option { const char *name; unsigned long at; };
        struct option all[] = { { \"a\", offsetof(struct t, a) }, { \"b\", offsetof(struct t, b) } };
        void set(struct t *x, const struct option *o, int v) { *(int *)((char *)x + o->at) = v; }",
    );
    movable(
        "struct t { int a, b; }; struct t one = { .b = 1, .a = 2 }, two = {0}, three = { 1, 2 }; int f(void) { return one.a + two.a + three.b; }",
    );
}

#[test]
fn a_pointer_that_goes_through_a_pipe_comes_back_as_it_went() {
    let text = |sent: &str, received: &str| {
        format!(
            "#include <unistd.h>\nstruct t {{ int a; char pad[60]; long b; }}; struct s {{ long x, y; }};\n\
             long f(int *p, struct t *x, struct s *y) {{ (void)y; {sent} struct t *k = 0; struct s *l = 0; (void)l;\n\
             {received} return k ? k->b : 0; }}"
        )
    };
    movable(&text("write(p[1], &x, sizeof x);", "read(p[0], &k, sizeof k);"));
    refused(
        &text("write(p[1], &x, sizeof x);", "read(p[0], &l, sizeof l);"),
        UseKind::Cast,
        "cast to or from s",
    );
    refused(&text("write(p[1], x, sizeof x);", ""), UseKind::Crossing, "write()");
    refused(&text("write(p[1], &x, 2 * sizeof x);", ""), UseKind::Crossing, "write()");
    refused(&text("write(p[1], &x[1], 8);", ""), UseKind::Crossing, "write()");
}
