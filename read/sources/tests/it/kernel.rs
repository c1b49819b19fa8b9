//! Kernels' uses of the order of members, in small: each idiom is held for its reason, and a program without it is free
//! to move.

use crate::program::Program;
use lineup_sources::{Checked, Freedom, UseKind, Verdict};

/// The declarations that kernels have before everything else.
const COMMON: &str = "typedef unsigned long size_t;
    #define offsetof(T, m) __builtin_offsetof(T, m)
    #define container_of(p, T, m) ((T *)((void *)(p) - offsetof(T, m)))
    #define RELOC_HIDE(p, off) ({ unsigned long __ptr; __asm__ (\"\" : \"=r\"(__ptr) : \"0\"(p)); \
                                  (__typeof__(p)) (__ptr + (off)); })
    extern unsigned long cpu_offset[];
    #define per_cpu_ptr(p, cpu) RELOC_HIDE(p, cpu_offset[cpu])
    void *memset(void *, int, size_t);
    unsigned long _copy_to_user(void *, const void *, unsigned long);
    void kfree(const void *);
    int _printk(const char *, ...);\n";

/// A kernel's unit of this text.
fn check(text: &str) -> Checked {
    let text = format!("{COMMON}{text}");
    Program::of(
        &[("a.c", &text)],
        &["gcc -nostdinc -std=gnu11 -fshort-wchar -mcmodel=kernel -D__KERNEL__ -c a.c"],
    )
    .check()
}

/// The type `t` is held so, by a use of this kind.
fn held(text: &str, verdict: &Verdict, kind: UseKind) {
    let checked = check(text);
    let ty = checked.named("t").next().expect("the type t");
    let is_it = ty.uses.iter().any(|found| found.verdict == *verdict && found.kind == kind);
    assert!(is_it, "{text}\n{:#?}", ty.uses);
    assert_ne!(ty.freedom(), Freedom::Refused, "{text}\n{:#?}", ty.uses);
}

fn freedom(text: &str) -> Freedom {
    check(text).named("t").next().expect("the type t").freedom()
}

fn keep(names: &[&str]) -> Verdict {
    Verdict::Keep(names.iter().map(|name| name.to_string()).collect())
}

fn beside(names: &[&str]) -> Verdict {
    Verdict::Adjacent(names.iter().map(|name| name.to_string()).collect())
}

#[test]
fn the_member_that_a_task_is_cast_to_stays_first() {
    let text = "struct info { long flags; int cpu; }; struct t { struct info info; long state; char comm[16]; void *stack; };
        struct t *current_task; int f(void) { return ((struct info *)current_task)->cpu; }";
    held(text, &Verdict::First, UseKind::FirstMember);
}

#[test]
fn links_that_match_a_queues_head_stay_first_inside_their_unions() {
    let text = "struct t; struct head { struct t *next; struct t *prev; unsigned length; };
        struct t { union { struct { struct t *next; struct t *prev; union { int device; long scratch; }; }; char node[24]; };
                   long stamp; char cb[48]; long length; };
        int is_last(struct head *h, struct t *x) { return x->next == (struct t *)h; }";
    held(text, &Verdict::First, UseKind::Cast);
}

#[test]
fn members_stay_on_their_side_of_where_clearing_ends() {
    let text = "struct t { long next; long stamp; char cb[48]; int tail; int end; char *head; };
        void f(struct t *x) { memset(x, 0, offsetof(struct t, tail)); }";
    held(text, &Verdict::Boundary("tail".into()), UseKind::Offset);
}

#[test]
fn a_table_that_is_allocated_by_its_offset_stays_where_it_is() {
    let text = "struct t { long flags; int size; char name[8]; void *node[64]; };
        void create_boot_cache(struct t *, const char *, unsigned size);
        void f(struct t *x, int nodes) { create_boot_cache(x, \"boot\", offsetof(struct t, node) + nodes * sizeof(void *)); }";
    held(text, &Verdict::Boundary("node".into()), UseKind::Offset);
}

#[test]
fn storage_that_an_embedded_array_grows_into_stays_behind_it() {
    let text = "struct group { long flags; int level; struct group *ancestors[]; };
        struct t { long id; struct group group; struct group *storage; long count; int flags; };
        void f(struct t *x) { x->group.ancestors[0] = &x->group; }";
    held(text, &beside(&["group", "storage"]), UseKind::TrailingArray);
}

#[test]
fn two_arrays_that_are_indexed_as_one_are_not_parted() {
    let text = "struct block { unsigned start, end; };
        struct t { long a; struct block first[1]; struct block others[4]; long b; int c; };
        unsigned f(struct t *x, int n, int both) {
            struct block *blocks = both ? x->first : x->others; unsigned sum = 0;
            for (int i = 0; i < n; i++) sum += blocks[i].start;
            return sum; }";
    held(text, &beside(&["first", "others"]), UseKind::Walk);
}

/// A stub of a disabled feature takes any pointer, and looks at nothing.
#[test]
fn what_a_function_leaves_alone_is_used_as_nothing() {
    let text =
        "struct socket { int index; long queue[4]; }; struct t { long a; int b; char name[16]; long c; };
        static inline int receive(struct socket *s, int n) { return -n; }
        struct t *by_index(int);
        int f(void *forward, int n) { if (n) forward = by_index(n); return receive(forward, n); }";
    assert_eq!(freedom(text), Freedom::Movable, "{:#?}", check(text).named("t").next().unwrap().uses);
    for body in ["return s->index;", "return look(s);", "return s->queue[n];", "kept = s; return 0;"] {
        let used = text.replace("return -n;", body);
        let used = format!("struct socket *kept; int look(struct socket *);{used}");
        assert_eq!(freedom(&used), Freedom::Refused, "{body}");
    }
    let unknown = text.replace(
        "static inline int receive(struct socket *s, int n) { return -n; }",
        "int receive(struct socket *, int);",
    );
    assert_eq!(freedom(&unknown), Freedom::Refused, "another unit may look at it");
}

/// Files of `/proc` keep their own data in one member: an object for some, for others memory that was made by its size,
/// whose maker knows only the beginning.
#[test]
fn memory_beside_an_object_may_be_what_is_taken_out() {
    let text = "void *kmalloc(size_t, unsigned); struct seq { long count; void *private; };
        struct seq_net { struct t *net; }; struct t { long a; int b; char name[16]; long c; };
        struct iterator { struct seq_net p; int bucket; long offset; };
        void *open_private(struct seq *s, int size) { void *p = kmalloc(size, 0); s->private = p; return p; }
        void open_net(struct seq *s, struct t *net, int size) { struct seq_net *p = open_private(s, size); p->net = net; }
        void single_open(struct seq *s, void *data) { s->private = data; }
        void open_one(struct seq *s, struct t *net) { single_open(s, net); }
        long show_one(struct seq *s) { struct t *net = s->private; return net->c; }
        int show_net(struct seq *s) { struct iterator *i = s->private; return i->bucket; }";
    assert_eq!(freedom(text), Freedom::Movable, "{:#?}", check(text).named("t").next().unwrap().uses);
    let unrelated = text.replace("{ struct seq_net p; int bucket;", "{ int bucket; struct seq_net p;");
    assert_eq!(freedom(&unrelated), Freedom::Refused, "the memory begins as something else");
    let alone = text.replace("s->private = p; return p;", "return p;");
    assert_eq!(freedom(&alone), Freedom::Refused, "the memory does not come there");
    let crossing =
        format!("{text} int f(void *to, struct seq *s) {{ return _copy_to_user(to, s->private, 8); }}");
    assert_eq!(freedom(&crossing), Freedom::Refused);
    let local = "void *kmalloc(size_t, unsigned); struct t { long a; int b; char name[16]; long c; };
        struct other { int c; long d; };
        long f(struct t *x, int n) { void *p = n ? kmalloc(16, 0) : x; return ((struct other *)p)->d; }";
    assert_eq!(freedom(local), Freedom::Refused, "a variable is one thing after the other");
}

/// A bit by its number in a member that is one word: the word is stepped to as in an array, and is the first.
#[test]
fn a_word_of_bits_is_no_array_of_its_neighbours() {
    let text = "static inline void check(const volatile void *p, int size) { }
        struct t { long a; unsigned long start; unsigned long end; unsigned long state; int b; char name[16]; };
        static inline int constant_test_bit(long nr, const volatile unsigned long *addr) {
            return ((1UL << (nr & 63)) & (addr[nr >> 6])) != 0; }
        static inline void __set_bit(long nr, volatile unsigned long *addr) {
            unsigned long *p = (unsigned long *)addr + nr / 64; *p |= 1UL << (nr & 63); }
        static inline void __instrument_read_write_bitop(long nr, volatile unsigned long *addr) { check(addr + nr / 64, 8); }
        int f(struct t *x) { __set_bit(3, &x->state); __instrument_read_write_bitop(3, &x->state);
            return constant_test_bit(3, &x->state); }";
    assert_eq!(freedom(text), Freedom::Movable, "{:#?}", check(text).named("t").next().unwrap().uses);
    let found = text.replace("constant_test_bit", "find_next_bit");
    held(&found, &beside(&["start", "end", "state"]), UseKind::Walk);
}

/// An offset that the compiler adds to a member's offset leads into the member, while it is smaller than the member.
#[test]
fn a_place_inside_a_member_goes_where_the_member_goes() {
    let text = |code: &str| {
        format!(
            "struct t {{ long a; struct {{ unsigned t, v; }} rtt; long b; char name[16]; }};
            struct insn {{ short off; int imm; }}; {code}"
        )
    };
    let insn =
        |off: &str| text(&format!("void f(struct insn *i) {{ *i++ = (struct insn) {{ .off = {off} }}; }}"));
    let boundary = Verdict::Boundary("rtt".into());
    assert_eq!(freedom(&insn("offsetof(struct t, rtt) + sizeof(unsigned)")), Freedom::Movable);
    for past in
        ["+ sizeof(((struct t *)0)->rtt)", "- sizeof(unsigned)", "* 2", "+ sizeof(unsigned) + sizeof(long)"]
    {
        held(&insn(&format!("offsetof(struct t, rtt) {past}")), &boundary, UseKind::Offset);
    }
    let cleared = "void f(struct t *x) { memset(x, 0, offsetof(struct t, rtt) + sizeof(unsigned)); }";
    held(&text(cleared), &boundary, UseKind::Offset);
    let compared = "int f(unsigned long n) { return n < offsetof(struct t, rtt) + sizeof(unsigned); }";
    held(&text(compared), &boundary, UseKind::Offset);
}

#[test]
fn what_only_looks_like_a_use_of_the_order_leaves_a_type_free() {
    let members = "struct list { struct list *next, *prev; }; struct t { long a; struct list link; long b; char name[16]; };";
    for text in [
        "struct t all; struct t *f(int cpu) { return per_cpu_ptr(&all, cpu); }",
        "struct t *f(struct list *l) { return container_of(l, struct t, link); }",
        "void elsewhere(struct t *); void f(struct t *x) { elsewhere(x); kfree(x); }",
        "struct t *find(int); long f(int n) { return find(n)->a; }",
        "struct ops { void (*queue)(struct t *); }; void f(struct ops *o, struct t *x) { o->queue(x); }",
        "extern struct t elsewhere; long f(void) { return elsewhere.a; }",
        "int create(struct t **); long f(void) { struct t *x; return create(&x) ? x->a : 0; }",
        "struct t copy(int); long f(int n) { return copy(n).a; }",
        "void f(struct t *x) { _printk(\"%p\", x); }",
        "int kmem_cache_create(const char *, unsigned, unsigned); int f(void) { return
         kmem_cache_create(\"t\", offsetof(struct t, name), sizeof(((struct t *)0)->name)); }",
    ] {
        assert_eq!(freedom(&format!("{members}\n{text}")), Freedom::Movable, "{text}");
    }
}

/// Values that only make room, are read as stored, or are numbers do not use the order; next to each is a program that
/// does.
#[test]
fn a_stacks_room_is_no_view_of_the_task_that_lies_in_it() {
    let text = "struct t { long state; void *stack; int cpu; int prio; };
        union thread_union { struct t task; unsigned long stack[512]; };
        union thread_union init; long f(void) { return init.task.state; }";
    assert_eq!(freedom(text), Freedom::Movable);
    assert_eq!(freedom(&format!("{text} long g(int n) {{ return init.stack[n]; }}")), Freedom::Refused);
    let filled = "union thread_union given = { .stack = { 1, 2 } };";
    assert_eq!(freedom(&format!("{text} {filled}")), Freedom::Refused);
}

#[test]
fn a_pointer_that_is_read_once_is_what_the_member_holds() {
    let text = "#define READ_ONCE(x) (*(const volatile __typeof__(x) *)&(x))
        struct entity { long weight; struct entity *parent; long sums[8]; };
        struct t { long load; struct entity *next; int idle; struct entity *last; long clock; };
        long f(struct t *x) { struct entity *e; long sum = 0;
            while ((e = READ_ONCE(x->next))) sum += e->weight + e->sums[3]; return sum; }";
    assert_eq!(freedom(text), Freedom::Movable);
    let two = "struct t { long load; int low; int high; long clock; char name[8]; };
        long f(struct t *x) { return *(const volatile long *)&x->low; }";
    held(two, &keep(&["low", "high"]), UseKind::PartialMemory);
    let fed = "#define READ_ONCE(x) (*(const volatile __typeof__(x) *)&(x))
        struct t { long a; int b; int c; char name[16]; }; struct box { void *held; };
        void fill(struct box *b, struct t *x) { b->held = x; }
        int f(void *to, struct box *b) { return _copy_to_user(to, READ_ONCE(b->held), 8); }";
    assert_eq!(freedom(fed), Freedom::Refused, "what is read once is followed");
}

#[test]
fn a_number_beside_an_object_that_is_taken_by_its_type_is_no_size() {
    let members = "struct weight { unsigned long value; unsigned inverse; };
        struct t { struct weight load; long run; long group; int on_queue; int depth; };";
    let typed = "long scale(long delta, unsigned long unit, struct weight *w);
        long f(struct t *x) { return scale(1, 1048576UL, &x->load); }";
    assert_eq!(freedom(&format!("{members}{typed}")), Freedom::Movable);
    let sized = "void send(struct weight *, unsigned long); void f(struct t *x) {
        send(&x->load, sizeof(struct weight) + sizeof(long)); }";
    held(&format!("{members}{sized}"), &keep(&["load", "run"]), UseKind::PartialMemory);
}

#[test]
fn an_allocator_reads_nothing_of_the_number_that_it_is_given() {
    let text = "void *__kmalloc(size_t, unsigned); struct t { long a; int b; int c; char name[16]; };
        static inline void *kmalloc(size_t size, unsigned flags) { return __kmalloc(size, flags); }
        struct t *f(struct t *x) { return kmalloc((unsigned long)x, 1); }";
    assert_ne!(freedom(text), Freedom::Refused);
    let given = text.replace("__kmalloc", "device_write");
    assert_eq!(freedom(&given), Freedom::Refused);
}

#[test]
fn an_entry_of_an_array_of_links_leads_back_to_its_object() {
    let text = "struct link { struct link *next, **previous; };
        struct t { long a; struct link links[4]; long b; char name[16]; };
        #define first(p) ((struct link *)(*(struct link *const volatile *)&(p)->next))
        long f(struct link *head) { struct t *x; long sum = 0;
            for (x = container_of(first(head), struct t, links[2]); x; x = container_of(first(&x->links[2]), struct t, links[2]))
                sum += x->b;
            return sum; }
        long g(struct link *l, int n) { return container_of(l, struct t, links[n])->a; }";
    assert_eq!(freedom(text), Freedom::Movable, "{:#?}", check(text).named("t").next().unwrap().uses);
    let other = "struct link { struct link *next, **previous; };
        struct t { long a; struct link links[4]; long b; char name[16]; };
        struct link *f(struct t *x) { return ((struct link *)x)->next; }";
    assert_eq!(freedom(other), Freedom::Refused);
}

/// Functions of one type, each with data of its own: one's use of its memory implies nothing for another's.
#[test]
fn memory_that_many_callbacks_may_be_given_is_not_mixed() {
    let callbacks = |count: usize| {
        let more: String =
            (0..count).map(|n| format!("void more{n}(void *info) {{ use(*(long *)info); }}")).collect();
        let table: String = (0..count).map(|n| format!("more{n}, ")).collect();
        format!(
            "void *kmalloc(size_t, unsigned); void use(long); typedef unsigned char byte;
            struct t {{ long a; int b; int c; char name[16]; }};
            void wake(void *info) {{ struct t *x = info; use(x->b); }}
            void enable(void *info) {{ byte *on = info; use(*on); }}
            {more} void (*all[])(void *) = {{ {table} wake, enable }};
            void f(int n) {{ all[n](kmalloc(1, 0)); }}"
        )
    };
    assert_eq!(freedom(&callbacks(8)), Freedom::Movable);
    assert_eq!(freedom(&callbacks(0)), Freedom::Refused, "of two functions either may be given it");
}

/// A function that takes `void *` is looked into where another unit defines it, and so are the functions that it calls.
#[test]
fn what_is_given_to_another_unit_is_followed_there() {
    let call = "gcc -nostdinc -std=gnu11 -mcmodel=kernel -D__KERNEL__ -c";
    let header = "struct t { long a; int b; int c; char name[16]; };";
    let types = "#include \"t.h\"\n";
    let gives = format!("{COMMON}{types} int notify(void *); int f(struct t *x) {{ return notify(x); }}");
    let passes = format!("{COMMON}int deliver(void *); int notify(void *v) {{ return deliver(v); }}");
    let reads = format!("{COMMON}{types} int deliver(void *v) {{ return ((struct t *)v)->b; }}");
    let leaks =
        format!("{COMMON}extern void *user; int deliver(void *v) {{ return _copy_to_user(user, v, 8); }}");
    let freedom = |last: &str, is_found: bool| {
        let files = [("t.h", header), ("a.c", gives.as_str()), ("b.c", passes.as_str()), ("c.c", last)];
        let calls = ["a.c", "b.c", "c.c"].map(|file| format!("{call} {file}"));
        let program = Program::of(&files, &calls.each_ref().map(String::as_str));
        let definers = |function: &str| match function {
            "notify" => Some(1),
            "deliver" if is_found => Some(2),
            _ => None,
        };
        program.check_growing("t", &definers).named("t").next().expect("the type t").freedom()
    };
    assert_eq!(freedom(&reads, true), Freedom::Movable);
    assert_eq!(freedom(&leaks, true), Freedom::Refused);
    assert_eq!(freedom(&reads, false), Freedom::Refused, "nothing says what deliver() does");
}

/// A thread is not its start argument; the function's use of that argument is checked.
#[test]
fn a_threads_data_is_no_thread() {
    let text = "struct task { void *stack; long state; int cpu; };
        struct t { long a; int b; struct task *thread; long c; char name[16]; };
        struct task *kthread_create_on_node(int (*)(void *), void *, int, const char *, ...);
        int poll(void *data) { struct t *x = data; return x->b; }
        void start(struct t *x) { x->thread = kthread_create_on_node(poll, x, -1, \"poll\"); }
        long state(struct t *x) { return *(const volatile long *)&x->thread->state; }";
    assert_eq!(freedom(text), Freedom::Movable, "{:#?}", check(text).named("t").next().unwrap().uses);
    let other = text.replace("struct t *x = data; return x->b;", "struct task *x = data; return x->cpu;");
    assert_eq!(freedom(&other), Freedom::Refused, "the function takes it for something else");
}

/// An error in place of a pointer is passed on as another type's; an object is not.
#[test]
fn an_error_that_is_passed_on_is_no_object() {
    let text = "struct pid { long count; int level; }; struct t { char name[16]; long a; int b; };
        static inline void *ERR_CAST(const void *p) { return (void *)p; }
        struct pid *get(int); struct t *task(struct pid *);
        struct t *f(int n) { struct pid *p = get(n); if (!p) return ERR_CAST(p); return task(p); }";
    assert_eq!(freedom(text), Freedom::Movable);
    assert_eq!(freedom(&text.replace("ERR_CAST", "as_another")), Freedom::Refused);
}

/// Addresses are kept in a table of numbers: the code steps through the table, and not through the targets.
#[test]
fn a_table_of_addresses_is_not_the_objects() {
    let text = "struct t { long a; int b; int c; long d; }; unsigned long table[64];
        void keep(struct t *x, int n) { table[n] = (unsigned long)x; }
        long f(int n) { return ((struct t *)table[n])->d; }";
    assert_eq!(freedom(text), Freedom::Movable, "{:#?}", check(text).named("t").next().unwrap().uses);
    let stepped = "struct t { long a; int b; int c; long d; };
        unsigned long f(struct t *x, int n) { unsigned long *words = (unsigned long *)x; return words[n]; }";
    assert_eq!(freedom(stepped), Freedom::Refused);
}

/// Macros of a list that use a member's address, and an offset that is computed with.
#[test]
fn a_members_address_as_a_number_measures_nothing() {
    let text = "struct t { long a; struct t *next; long b; char name[16]; };
        int f(struct t *x) { return ((unsigned long)(x) + offsetof(struct t, next)) != 0; }";
    assert_eq!(freedom(text), Freedom::Movable);
    let computed = text.replace("(unsigned long)(x)", "(unsigned long)x->a");
    held(&computed, &Verdict::Boundary("next".into()), UseKind::Offset);
}

/// Waiting sockets share their beginning with sockets, one struct further in.
#[test]
fn what_begins_with_the_same_object_keeps_it_first_however_deep() {
    let types = "struct common { int hash; short family; short state; }; struct waiting { struct common common; int mark; };
        struct tcp_waiting { struct waiting waiting; long stamp; long seq; };
        struct t { struct common common; long a; int b; char name[16]; };";
    let cast = "long f(struct t *x) { return ((struct tcp_waiting *)x)->seq; }";
    held(&format!("{types}{cast}"), &Verdict::First, UseKind::FirstMember);
    let checked = check(&format!("{types}{cast}"));
    let waiting = checked.named("waiting").next().expect("the type between");
    assert!(waiting.uses.iter().any(|found| found.verdict == Verdict::First), "{:#?}", waiting.uses);
    let other = types.replace(
        "struct waiting { struct common common; int mark; }",
        "struct waiting { long mark; struct common common; }",
    );
    assert_eq!(freedom(&format!("{other}{cast}")), Freedom::Refused);
}

/// The head of a queue is compared with its entries: the members after the head in the enclosing object are no part of
/// an entry.
#[test]
fn what_follows_a_queues_head_is_no_entry() {
    let links = "struct entry { struct entry *next, *prev; long length; char data[64]; };
        struct head { struct entry *next, *prev; unsigned length; };
        struct t { long a; struct head queue; long b; int c; int d; char name[16]; };";
    let walk = "long f(struct t *x) { struct entry *e; long sum = 0;
        for (e = (&x->queue)->next; e != (struct entry *)(&x->queue); e = e->next) sum += e->length; return sum; }";
    assert_eq!(freedom(&format!("{links}{walk}")), Freedom::Movable);
    let other = "struct pair { int one; long two; char rest[40]; };
        long f(struct t *x) { return ((struct pair *)&x->queue)->two; }";
    let checked = check(&format!("{links}{other}"));
    let uses = &checked.named("t").next().expect("the type t").uses;
    let keeps = |use_: &lineup_sources::Use| matches!(&use_.verdict, Verdict::Keep(names) if names.contains(&"b".to_string()));
    assert!(uses.iter().any(keeps), "{uses:#?}");
}

#[test]
fn what_leaves_the_kernel_or_its_types_is_refused() {
    let members = "struct t { long a; int b; int c; char name[16]; };";
    for text in [
        "int f(void *to, struct t *x) { return _copy_to_user(to, x, sizeof(*x)); }",
        "unsigned csum_partial(const void *, int, unsigned); int f(struct t *x) { return csum_partial(x, sizeof(*x), 0); }",
        "int give(void *); int f(struct t *x) { return give(&x); }",
        "void f(struct t *x) { __asm__(\"movl $0, 8(%0)\" : : \"r\"(x)); }",
        "void *ioremap(unsigned long, unsigned long); struct t *f(void) { return ioremap(4096, sizeof(struct t)); }",
    ] {
        assert_eq!(freedom(&format!("{members}\n{text}")), Freedom::Refused, "{text}");
    }
}

/// Helpers of BPF programs share a type, and take any argument that the verifier accepts for them.
#[test]
fn what_one_helper_of_bpf_is_given_no_other_is() {
    let types = "struct node { char c[3]; double d; }; struct t { int a; long b; };";
    let program = |numbers: usize, given: &str| {
        let parameters = vec!["u64"; numbers].join(", ");
        let named: Vec<String> = (0..numbers).map(|at| format!("u64 r{at}")).collect();
        let none = ", 0".repeat(numbers - 1);
        format!(
            "{types} typedef unsigned long long u64; typedef u64 (*callback)({parameters});
            static u64 helper({}) {{ struct t *x = (struct t *)(unsigned long)r0; return x->b; }}
            callback table[] = {{ helper }};
            u64 each(struct node *n, callback f) {{ return f((u64)(long){given}{none}); }}",
            named.join(", ")
        )
    };
    assert_eq!(freedom(&program(5, "n")), Freedom::Movable);
    assert_eq!(freedom(&program(4, "n")), Freedom::Refused);
}

/// Programs at tracepoints find members by their names; other functions that are not compiled here may not.
#[test]
fn programs_at_tracepoints_find_members_by_name() {
    let text = |function: &str| {
        format!(
            "struct t {{ int a; long b; }}; void {function}(void *program, unsigned long long one);
            void f(void *program, struct t *x) {{ {function}(program, (unsigned long long)(unsigned long)x); }}"
        )
    };
    assert_eq!(freedom(&text("bpf_trace_run1")), Freedom::Movable);
    assert_eq!(freedom(&text("trace_run1")), Freedom::Refused);
}

/// A pointer's own bits reveal nothing of its target; a hash of the target does.
#[test]
fn a_hash_of_a_pointers_value_leaves_a_type_free() {
    let head = "struct key { unsigned long k[2]; }; struct t { long a; char name[16]; long b; };
        unsigned long siphash_1u64(unsigned long, const struct key *);
        unsigned long siphash(const void *, size_t, const struct key *);";
    let hashed = |call: &str| {
        freedom(&format!("{head} unsigned long f(struct t *x, struct key *k) {{ return {call}; }}"))
    };
    assert_eq!(hashed("siphash_1u64((unsigned long)x, k)"), Freedom::Movable);
    for call in ["siphash(x, sizeof(*x), k)", "siphash((void *)(unsigned long)x, 16, k)"] {
        assert_eq!(hashed(call), Freedom::Refused, "{call}");
    }
}

/// `.inner.b = 1` names the member it initialises; the value behind it without a name goes to the member after `b`.
#[test]
fn a_value_for_a_member_of_a_member_by_its_name_leaves_both_types_free() {
    let head = "struct t { long a; char *name; long b; int c; }; struct outer { int count; struct t inner; long last; };";
    let freedom_of = |values: &str, ty: &str| {
        let checked = check(&format!("{head} struct outer all = {{ {values} }};"));
        checked.named(ty).next().expect("the type").freedom()
    };
    for values in [
        ".inner.b = 1",
        ".inner.b = 1, .inner.c = 2, .last = 3",
        ".count = 1, .inner.a = 2",
        ".inner = { .b = 1 }",
    ] {
        assert_eq!(freedom_of(values, "t"), Freedom::Movable, "{values}");
        assert_eq!(freedom_of(values, "outer"), Freedom::Movable, "{values}");
    }
    for values in [".inner.b = 1, 2", ".inner.a = 1, 0, 3", ".inner = 1, 0, 3"] {
        assert_ne!(freedom_of(values, "t"), Freedom::Movable, "{values}");
    }
}
