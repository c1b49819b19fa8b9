//! The name of an access and the evidence for it, rule by rule: a snippet is compiled, its accesses are made up, and
//! the name must agree with the source.

use lineup_debuginfo::{DebugInfo, NoCompanions};
use lineup_explain::access_context::AccessContext;
use lineup_explain::image::Image;
use lineup_explain::instruction::{InstructionSet, decode};
use lineup_explain::name::{Class, Evidence, Name, Named};
use lineup_explain::namer::Namer;
use lineup_model::access::{
    Access, AccessKind, Arguments, Call, CallEnd, MemoryEvent, MemoryEventKind, ProcessId, StackRange,
    ThreadId,
};
use lineup_model::image::LoadedImage;
use lineup_model::process::{Origin, Process};
use lineup_model::program::SymbolKind;
use lineup_model::region::RegionId;
use std::process::Command;

const STACK: StackRange = StackRange { thread: ThreadId(0), start: 0x7000_0000, end: 0x7001_0000 };

/// A compiled snippet.
struct Snippet {
    debug: DebugInfo,
}

impl Snippet {
    fn new(source: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (text, program) = (folder.path().join("a.c"), folder.path().join("a"));
        std::fs::write(&text, source).unwrap();
        let output = Command::new("x86_64-linux-gnu-gcc")
            .args(["-g", "-O2", "-w", "-nostdlib", "-static", "-no-pie", "-fno-builtin", "-Wl,-e,0", "-o"])
            .args([&program, &text])
            .output()
            .expect("x86_64-linux-gnu-gcc runs; apt-get install gcc");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let bytes = std::fs::read(&program).unwrap();
        Snippet { debug: DebugInfo::parse(bytes, &mut NoCompanions).unwrap() }
    }

    fn symbol(&self, name: &str) -> (u64, u64) {
        let found = self.debug.symbols().iter().find(|symbol| symbol.name == name).unwrap();
        (found.address, found.size_bytes)
    }

    /// The program counter, size and kind of every access of a function outside its frame, in order.
    fn touches(&self, function: &str) -> Vec<(u64, u32, AccessKind)> {
        let (start, size) = self.symbol(function);
        let code = self.debug.code(start..start + size).unwrap();
        let decoded = decode(InstructionSet::X86_64, start, code).unwrap();
        let off_stack =
            |base: Option<lineup_explain::instruction::Register>| base.is_none_or(|base| base.0 != 7);
        decoded
            .iter()
            .flat_map(|one| one.touches.iter().map(move |touch| (one.address, touch)))
            .filter(|(_, touch)| off_stack(touch.at.base))
            .map(|(pc, touch)| (pc, touch.size_bytes, touch.kind))
            .collect()
    }

    /// The nth access of a function, made at an address.
    fn access(&self, function: &str, index: usize, address: u64, value: Option<u64>) -> Access {
        let (pc, size_bytes, kind) = self.touches(function)[index];
        Access { pc, address, size_bytes, kind, value }
    }

    /// The image of the snippet, with all its functions.
    fn image(&self) -> Image<'_> {
        let image = LoadedImage {
            path: "a".into(),
            start: self.debug.first_load_address().unwrap(),
            end: self.debug.segments().iter().map(|segment| segment.addresses.end).max().unwrap(),
            bias: 0,
            build_id: None,
        };
        let functions = self.debug.symbols().iter().filter(|symbol| symbol.kind == SymbolKind::Function);
        let mut entries = functions.map(|symbol| symbol.address);
        Image::new(image, Some(&self.debug), &mut entries)
    }

    /// A namer that has observed some accesses, each made at a time.
    fn namer(&self, accesses: &[(u64, Access)], memory: &[MemoryEvent]) -> Namer<'_> {
        let mut namer = Namer::new(vec![self.image()], &[], memory, &[STACK]);
        for (at, access) in accesses {
            namer.observe(access, &mut AccessContext::default(), *at).unwrap();
        }
        namer.settle();
        namer
    }

    /// Start, size and class of each range of the last access.
    fn ranges(&self, accesses: &[(u64, Access)]) -> Vec<(u64, u32, Class)> {
        let (at, access) = accesses.last().unwrap();
        let mut namer = self.namer(accesses, &[]);
        let ranges = namer.name_ranges(access, &mut AccessContext::default(), *at).unwrap();
        ranges.iter().map(|range| (range.address, range.size_bytes, range.named.class())).collect()
    }

    /// Names the last of some accesses, each made at a time, after all have been observed.
    fn name(&self, accesses: &[(u64, Access)], memory: &[MemoryEvent]) -> (Named, String) {
        let mut namer = self.namer(accesses, memory);
        let (at, access) = accesses.last().unwrap();
        let named = namer.name(access, &mut AccessContext::default(), *at).unwrap();
        let text = match named.name {
            Name::Member { ty, offset, .. } => {
                let field = namer.catalog().field(ty, offset, u64::from(access.size_bytes)).unwrap();
                format!("{}.{}", namer.catalog().name(ty), field.path)
            }
            Name::Variable { image, variable, offset } => {
                let found = &namer.images()[image].globals()[variable as usize];
                format!("{}+{offset}", found.name.as_deref().unwrap())
            }
            Name::Stack { local: Some((variable, _, offset)) } => {
                format!("{}+{offset}", namer.names().text(variable))
            }
            other => format!("{other:?}"),
        };
        (named, text)
    }
}

impl Snippet {
    /// The names of a function's accesses when each is known alone, and goes to an address.
    fn texts(&self, function: &str, address: u64) -> Vec<String> {
        let all = 0..self.touches(function).len();
        all.map(|index| self.name(&[(1, self.access(function, index, address, None))], &[]).1).collect()
    }
}

fn allocated(at: u64, address: u64, size: u64) -> MemoryEvent {
    let kind = MemoryEventKind::Allocated;
    MemoryEvent { at, process: ProcessId(0), thread: ThreadId(0), kind, address, size_bytes: Some(size) }
}

fn freed(at: u64, address: u64) -> MemoryEvent {
    MemoryEvent {
        at,
        process: ProcessId(0),
        thread: ThreadId(0),
        kind: MemoryEventKind::Freed,
        address,
        size_bytes: None,
    }
}

const DEVICE: &str = "
    struct link { struct link *next, *prev; };
    struct device { long id; struct link link; int counts[4]; struct device *peer; char *text; };
    struct device *find(int);
    struct device first, *current;
    void keep(void *);
";

fn device(rest: &str) -> Snippet {
    Snippet::new(&format!("{DEVICE}{rest}"))
}

#[test]
fn a_parameter_in_a_register_names_the_member_by_its_location() {
    let snippet = device("long f(struct device *d) { return d->id; }");
    let (named, text) = snippet.name(&[(1, snippet.access("f", 0, 0x10_0000, None))], &[]);
    assert_eq!((text.as_str(), named.evidence), ("device.id", Evidence::LocatedRegister));
}

#[test]
fn a_pointer_loaded_from_a_member_is_followed() {
    let snippet = device("long f(struct device *d) { return d->peer->peer->id; }");
    let (named, text) = snippet.name(&[(1, snippet.access("f", 2, 0x10_0000, None))], &[]);
    assert_eq!((text.as_str(), named.evidence), ("device.id", Evidence::Propagated));
}

#[test]
fn a_result_has_the_type_that_the_callee_declares() {
    let snippet = device(
        "__attribute__((noinline, noclone)) struct device *find(int i) { return i ? current : 0; }
         long f(int i) { return find(i)->id; }",
    );
    let (_, text) = snippet.name(&[(1, snippet.access("f", 0, 0x10_0000, None))], &[]);
    assert_eq!(text, "device.id");
}

#[test]
fn a_result_of_no_type_has_that_of_the_member_it_is_stored_to_wherever_else_it_is_held() {
    let snippet = device(
        "void *make(void) { return current; }
         long f(struct device *d) {
             void *raw = ((void *(*volatile)(void))make)();
             d->peer = raw;
             asm volatile(\"\" ::: \"memory\");
             return *(long *)raw;
         }",
    );
    let last = snippet.touches("f").len() - 1;
    let (named, text) = snippet.name(&[(1, snippet.access("f", last, 0x10_0000, None))], &[]);
    assert_eq!((text.as_str(), named.evidence), ("device.id", Evidence::Propagated));
}

#[test]
fn a_pointer_that_is_added_from_memory_is_followed() {
    let snippet = device(
        "struct table { long count; struct row { long id; struct row *up; } *rows; };
         long f(struct table *t, long i) {
             i *= sizeof(struct row);
             asm(\"add 8(%1), %0\" : \"+r\"(i) : \"r\"(t));
             return *(long *)i;
         }",
    );
    let last = snippet.touches("f").len() - 1;
    let (_, text) = snippet.name(&[(1, snippet.access("f", last, 0x10_0000, None))], &[]);
    assert_eq!(text, "row.id");
}

#[test]
fn any_number_of_elements_away_is_the_only_array_of_a_type() {
    let node =
        "struct node { long key; struct node *back; struct { struct node *next; long span; } level[]; };
                long f(struct node *n, long i) {
                    long sum = 0;
                    while (i-- > 0)
                        sum += n->level[i].span;
                    return sum;
                }";
    let snippet = device(node);
    let (_, text) = snippet.name(&[(1, snippet.access("f", 0, 0x10_0018, None))], &[]);
    assert_eq!(text, "node.level[].span");
    // Either of two arrays may be meant.
    let snippet = device(&node.replace("long key", "struct { long a, b; } first[4]"));
    let (named, _) = snippet.name(&[(1, snippet.access("f", 0, 0x10_0058, None))], &[]);
    assert_eq!(named.class(), Class::Unnamed);
}

#[test]
fn a_distance_out_of_a_type_names_the_container_once_that_is_known() {
    let snippet = device(
        "long f(struct link *at) { return ((struct device *)((char *)at - __builtin_offsetof(struct device, link)))->id; }
         long g(struct device *d) { return (long)d->peer; }",
    );
    let outside = (1, snippet.access("f", 0, 0x10_0000, None));
    assert_eq!(snippet.name(&[outside], &[]).0.class(), Class::Unnamed);
    let seen = (1, snippet.access("g", 0, 0x10_0028, None));
    let (named, text) = snippet.name(&[seen, outside], &[]);
    assert_eq!((text.as_str(), named.evidence), ("device.id", Evidence::ObjectMap));
}

#[test]
fn an_embedded_member_is_named_by_the_known_object_around_it() {
    let snippet =
        device("void *f(struct link *at) { return at->next; } long g(struct device *d) { return d->id; }");
    let seen = (1, snippet.access("g", 0, 0x10_0000, None));
    let link = (1, snippet.access("f", 0, 0x10_0008, None));
    assert_eq!(snippet.name(&[link], &[]).1, "link.next");
    assert_eq!(snippet.name(&[seen, link], &[]).1, "device.link.next");
}

#[test]
fn an_index_is_folded_and_resolved_by_the_known_object() {
    let snippet = device(
        "int f(struct device *d, long i) { return d->counts[i - 1]; } long g(struct device *d) { return d->id; }",
    );
    let seen = (1, snippet.access("g", 0, 0x10_0000, None));
    let element = (1, snippet.access("f", 0, 0x10_0018, None));
    assert_eq!(snippet.name(&[seen, element], &[]).1, "device.counts[]");
}

#[test]
fn a_pointer_to_a_scalar_names_no_member() {
    let snippet = device("int f(struct device *d) { return d->text[3]; }");
    let (named, _) = snippet.name(&[(1, snippet.access("f", 1, 0x10_0003, None))], &[]);
    assert_eq!(named.class(), Class::Buffer);
}

#[test]
fn an_object_seen_once_types_other_accesses_until_it_is_freed() {
    let snippet = device("long g(struct device *d) { return d->id; } char f(char *any) { return any[24]; }");
    let seen = (2, snippet.access("g", 0, 0x10_0000, None));
    let again = (4, snippet.access("g", 0, 0x10_0000, None));
    let life = [allocated(1, 0x10_0000, 64), freed(5, 0x10_0000), allocated(6, 0x10_0000, 64)];
    let (named, text) = snippet.name(&[seen, again, (3, snippet.access("f", 0, 0x10_0018, None))], &life);
    assert_eq!((text.as_str(), named.evidence), ("device.counts[]", Evidence::ObjectMap));
    let (named, _) = snippet.name(&[seen, (7, snippet.access("f", 0, 0x10_0018, None))], &life);
    assert_eq!(named.class(), Class::Buffer);
}

#[test]
fn a_pointer_that_held_an_address_types_what_is_there() {
    let snippet =
        device("void *g(struct device *d) { return d->peer; } long f(long *any) { return any[0]; }");
    let pointer = (1, snippet.access("g", 0, 0x10_0028, Some(0x20_0000)));
    let (named, text) = snippet.name(&[pointer, (1, snippet.access("f", 0, 0x20_0000, None))], &[]);
    assert_eq!((text.as_str(), named.evidence), ("device.id", Evidence::PointerValue));
}

/// A call of a function at this entry, which was given this in registers.
fn given(entry: u64, values: &[u64]) -> Call {
    Call {
        region: RegionId(0),
        process: ProcessId(0),
        thread: ThreadId(0),
        sequence: 0,
        entered_at: 1,
        end: CallEnd::Returned,
        depth: 0,
        instructions: 1,
        binding_instructions: 0,
        missed_blocks: 0,
        arguments: Some(Arguments::new(entry, values)),
        accesses: Vec::new(),
        code_granules: Vec::new(),
        times: Vec::new(),
    }
}

#[test]
fn a_pointer_that_a_call_was_given_types_what_is_there_by_its_parameter() {
    let snippet = device(
        "long g(long n, struct device *d, char *text) { return n + d->id + *text; } long f(long *any) { return any[0]; }",
    );
    let (entry, _) = snippet.symbol("g");
    let named = |arguments: &[u64], address: u64| {
        let access = snippet.access("f", 0, address, None);
        let mut namer = Namer::new(vec![snippet.image()], &[], &[], &[STACK]);
        namer.observe_arguments(&given(entry, arguments));
        namer.observe(&access, &mut AccessContext::default(), 1).unwrap();
        namer.settle();
        let named = namer.name(&access, &mut AccessContext::default(), 1).unwrap();
        let name = match named.name {
            Name::Member { ty, base, offset, .. } => Some((namer.catalog().name(ty), base, offset)),
            _ => None,
        };
        (name, named.evidence)
    };
    let device = (Some(("device".to_owned(), Some(0x20_0000), 0)), Evidence::Argument);
    assert_eq!(named(&[0x30_0000, 0x20_0000, 0x40_0000], 0x20_0000), device);
    for other in [0x30_0000, 0x40_0000] {
        let (name, _) = named(&[0x30_0000, 0x20_0000, 0x40_0000], other);
        assert_eq!(name, None, "neither a number nor a pointer to characters says what lies there");
    }
    assert_eq!(named(&[0x20_0000], 0x20_0000).0, None, "the second register was not told");
    assert_eq!(
        named(&[0, STACK.start, 0], STACK.start).1,
        Evidence::StackRange,
        "a local variable is the stack's"
    );
}

#[test]
fn a_global_is_named_by_address_whoever_touches_it() {
    let snippet = device("char f(char *any) { return *any; }");
    let (address, _) = snippet.symbol("first");
    let (named, text) = snippet.name(&[(1, snippet.access("f", 0, address + 24, None))], &[]);
    assert_eq!((text.as_str(), named.evidence), ("first+24", Evidence::GlobalAddress));
}

#[test]
fn an_object_on_the_stack_keeps_its_type_and_says_where_it_is() {
    let snippet = device("long f(struct device *d) { return d->id; }");
    let (named, text) = snippet.name(&[(1, snippet.access("f", 0, STACK.start + 64, None))], &[]);
    assert_eq!(text, "device.id");
    assert!(matches!(named.name, Name::Member { is_on_stack: true, .. }));
}

#[test]
fn an_unknown_pointer_into_the_heap_stays_unnamed() {
    let snippet = device("char f(void *any) { return *(char *)any; }");
    let accesses = [(2, snippet.access("f", 0, 0x10_0000, None))];
    let (named, _) = snippet.name(&accesses, &[allocated(1, 0x10_0000, 64)]);
    assert_eq!((named.name, named.class()), (Name::Heap, Class::Unnamed));
}

#[test]
fn a_wider_type_with_the_same_beginning_is_the_object() {
    let snippet = Snippet::new(
        "struct head { struct head *next; char kind; };
         struct table { struct head *next; char kind; long rows[4]; };
         long g(struct table *t) { return t->rows[1]; } char f(struct head *h) { return h->kind; }",
    );
    let seen = (1, snippet.access("g", 0, 0x10_0018, None));
    let (_, text) = snippet.name(&[seen, (1, snippet.access("f", 0, 0x10_0008, None))], &[]);
    assert_eq!(text, "table.kind");
}

/// A block of a pool: read as a link when it is handed out, written as one when it comes back.
const POOL: &str = "
    struct chunk { struct chunk *next; } *pool;
    void *pop(struct chunk *c) { return c->next; } void push(struct chunk *c) { c->next = pool; }
    char get(char *text) { return text[2]; } void set(char *text) { text[2] = 1; }
    long number(long *numbers) { return numbers[0]; }
";

#[test]
fn a_handed_out_block_is_no_link_of_the_free_list() {
    let snippet = Snippet::new(POOL);
    let touch = |at, function: &str| {
        let index = snippet.touches(function).len() - 1;
        (at, snippet.access(function, index, 0x10_0000 + if function.len() == 3 { 2 } else { 0 }, None))
    };
    let (pop, push) = (|at| (at, snippet.access("pop", 0, 0x10_0000, None)), |at| touch(at, "push"));
    for foreign in ["get", "set", "number"] {
        // Handed out at 2, back at 4, handed out again at 5.
        let (named, text) = snippet.name(&[push(1), pop(2), push(4), pop(5), touch(3, foreign)], &[]);
        assert_eq!(named.class(), Class::Buffer, "{foreign}: {text}");
        // For ever.
        let (named, text) = snippet.name(&[push(1), pop(2), touch(3, foreign)], &[]);
        assert_eq!(named.class(), Class::Buffer, "{foreign}: {text}");
    }
    // Between push and pop the bytes belong to the link, for every access.
    let (_, text) = snippet.name(&[push(1), pop(5), touch(3, "get")], &[]);
    assert_eq!(text, "chunk.next");
}

#[test]
fn newer_evidence_of_another_type_ends_the_older_ones_time() {
    let snippet = Snippet::new(
        "struct chunk { struct chunk *next; long size; }; struct user { int a, b; long total; };
         void *old(struct chunk *c) { return c->next; } long new(struct user *u) { return u->total; }
         void fill(struct user *u) { u->total = 1; } void link(struct chunk *c) { c->next = c; }
         void any(void *at) { asm volatile(\"movq (%0), %%rax\" : : \"r\"(at) : \"rax\", \"memory\"); }",
    );
    let made = |at, function: &str, offset: u64| (at, snippet.access(function, 0, 0x10_0000 + offset, None));
    let life = [
        made(1, "link", 0),
        made(2, "old", 0),
        made(4, "fill", 8),
        made(6, "new", 8),
        made(8, "link", 0),
        made(9, "old", 0),
    ];
    let at = |when, offset: u64| {
        let unknown = Access { size_bytes: 8, ..snippet.access("any", 0, 0x10_0000 + offset, None) };
        snippet.name(&[life.as_slice(), &[(when, unknown)]].concat(), &[]).1
    };
    assert_eq!([at(2, 8), at(5, 8), at(9, 8)], ["chunk.size", "user.total", "chunk.size"]);
}

#[test]
fn objects_of_a_pool_that_lie_apart_are_no_array() {
    let snippet = Snippet::new(POOL);
    let pop = |at, address| (at, snippet.access("pop", 0, address, None));
    let between = (3, snippet.access("number", 0, 0x10_0018, None));
    let heap = [allocated(1, 0x10_0000, 256)];
    let (named, text) = snippet.name(&[pop(2, 0x10_0000), pop(2, 0x10_0040), between], &heap);
    assert_eq!(named.class(), Class::Buffer, "{text}");
}

#[test]
fn a_copy_of_many_objects_has_a_name_for_each() {
    let snippet = device(
        "long g(struct device *d) { return d->id; }
         void copy(struct device *to, struct device *from, long n)
         { asm volatile(\"rep movsq\" : \"+D\"(to), \"+S\"(from), \"+c\"(n) : : \"memory\"); }",
    );
    let size = 56;
    let ids: Vec<(u64, Access)> =
        (0..3).map(|index| (1, snippet.access("g", 0, 0x10_0000 + index * size, None))).collect();
    let load = snippet.touches("copy").iter().position(|(_, _, kind)| *kind == AccessKind::Load).unwrap();
    let copy = Access { size_bytes: 3 * size as u32 + 40, ..snippet.access("copy", load, 0x10_0000, None) };
    let ranges = snippet.ranges(&[ids.as_slice(), &[(2, copy)]].concat());
    let whole = |index: u64| (0x10_0000 + index * size, size as u32, Class::Member);
    assert_eq!(ranges, [whole(0), whole(1), whole(2), (0x10_0000 + 3 * size, 40, Class::Unnamed)]);
}

#[test]
fn a_struct_without_a_tag_has_the_name_of_its_typedef() {
    let snippet = Snippet::new(
        "typedef struct { long id; struct { int a, b; } *inner; } item_t; typedef item_t other_t;
         long f(other_t *item) { return item->id; } int g(item_t *item) { return item->inner->b; }",
    );
    assert_eq!(snippet.name(&[(1, snippet.access("f", 0, 0x10_0000, None))], &[]).1, "item_t.id");
    assert_eq!(
        snippet.name(&[(1, snippet.access("g", 1, 0x20_0004, None))], &[]).1,
        "(anonymous at a.c:1).b"
    );
}

#[test]
fn functions_of_cpp_are_spelled_as_in_their_source() {
    let snippet = Snippet::new("void _ZN3app3runEi(int i) { }");
    let namer = snippet.namer(&[], &[]);
    let (entry, _) = snippet.symbol("_ZN3app3runEi");
    assert_eq!(namer.function_at(entry).0, "app::run(int)");
}

/// Two processes that were forked off give out the same address, each for an object of its own type, at the same time.
#[test]
fn objects_of_forked_processes_at_one_address_keep_their_types_and_those_from_before_the_fork_theirs() {
    let snippet = Snippet::new(
        "struct alpha { long first, second; }; struct beta { int counts[4]; };
         void set_alpha(struct alpha *a) { a->first = 1; }
         long get_alpha(struct alpha *a) { return a->first; }
         void set_beta(struct beta *b) { b->counts[0] = 1; }
         int get_beta(struct beta *b) { return b->counts[0]; }
         int raw(unsigned long at) { return *(int *)at; }",
    );
    const SAME: u64 = 0x10_0000;
    const BEFORE: u64 = 0x20_0000;
    let (parent, one, two) = (ProcessId(0), ProcessId(1), ProcessId(2));
    let accesses = [
        (parent, 1, "set_alpha", BEFORE),
        (one, 11, "set_alpha", SAME),
        (two, 12, "set_beta", SAME),
        (one, 13, "raw", SAME),
        (two, 14, "raw", SAME),
        (one, 15, "raw", BEFORE),
        (one, 16, "get_alpha", SAME),
        (two, 17, "get_beta", SAME),
        (parent, 18, "get_alpha", BEFORE),
    ];
    let mut namer = Namer::new(vec![snippet.image()], &[], &[], &[STACK]);
    let forked = |id: ProcessId, began_at: u64| Process {
        id,
        origin: Origin::Forked(parent),
        system_id: 100 + id.0,
        began_at,
        program: "a".into(),
    };
    namer.see_processes(&[forked(one, 9), forked(two, 10)]);
    for (process, at, function, address) in accesses {
        let access = snippet.access(function, 0, address, None);
        namer.observe(&access, &mut AccessContext::of(process), at).unwrap();
    }
    namer.settle();
    let mut named = |process: ProcessId, at: u64, address: u64| {
        let access = snippet.access("raw", 0, address, None);
        let named = namer.name(&access, &mut AccessContext::of(process), at).unwrap();
        match named.name {
            Name::Member { ty, .. } => namer.catalog().name(ty).to_owned(),
            other => format!("{other:?}"),
        }
    };
    assert_eq!(named(one, 13, SAME), "alpha");
    assert_eq!(named(two, 14, SAME), "beta");
    assert_eq!(named(one, 15, BEFORE), "alpha");
}

const HEADERS: &str = "
    struct object { long count; void *type; };
    struct list { long count; void *type; long length; };
    struct header { struct header *next; long marks; };
    long f(struct header *h) { return ((struct object *)(h + 1))->count; }
    long of_object(struct object *o) { return (long)o->type; }
    long of_list(struct list *l) { return l->length; }
    long beyond(struct header *h) { return ((long *)(h + 1))[2]; }
";

/// Objects behind headers, some of which are seen through their types, and the address of one of which nothing else is
/// known.
fn headers(snippet: &Snippet, [objects, lists, others]: [u64; 3]) -> (Vec<(u64, Access)>, u64) {
    let end = |number: u64| 0x10_0010 + 0x100 * number;
    let all = objects + lists + others;
    let seen = (0..all).map(|number| match number {
        number if number < objects => snippet.access("of_object", 0, end(number) + 8, None),
        number if number < objects + lists => snippet.access("of_list", 0, end(number) + 16, None),
        // This list begins before the end of the header.
        number => snippet.access("of_list", 0, end(number) + 8, None),
    });
    let reached = (0..=all).map(|number| snippet.access("f", 0, end(number), None));
    ((1..).zip(seen.chain(reached)).collect(), end(all))
}

/// The name of the last of them.
fn behind_headers(snippet: &Snippet, function: &str, objects: u64, lists: u64, others: u64) -> String {
    let (accesses, end) = headers(snippet, [objects, lists, others]);
    let last = snippet.access(function, 0, end + if function == "f" { 0 } else { 16 }, None);
    let accesses = [accesses, vec![(1000, last)]].concat();
    snippet.name(&accesses, &[]).1
}

/// The code gives the same name to an instruction that was not watched.
#[test]
fn what_lies_behind_headers_is_known_of_code_that_was_not_watched() {
    let snippet = Snippet::new(HEADERS);
    let named = |function: &str, known: [u64; 3]| {
        let mut namer = snippet.namer(&headers(&snippet, known).0, &[]);
        let named = namer.name_by_code(&snippet.access(function, 0, 0x90_0000, None)).unwrap();
        named.map(|named| match named.name {
            Name::Member { ty, offset, .. } => (namer.catalog().name(ty).to_owned(), offset),
            other => (format!("{other:?}"), 0),
        })
    };
    assert_eq!(named("f", [6, 4, 0]), Some(("object".to_owned(), 0)));
    assert_eq!(named("beyond", [6, 4, 0]), None);
    assert_eq!(named("f", [6, 4, 2]), None);
}

#[test]
fn what_lies_behind_a_header_is_what_lies_behind_nearly_all_others() {
    let snippet = Snippet::new(HEADERS);
    assert_eq!(behind_headers(&snippet, "f", 6, 4, 0), "object.count");
    assert_eq!(behind_headers(&snippet, "f", 0, 9, 0), "list.count");
    // Beyond the part they have in common.
    assert_eq!(behind_headers(&snippet, "beyond", 6, 4, 0), "Unknown");
    assert_eq!(behind_headers(&snippet, "f", 6, 1, 0), "Unknown", "too few are known");
    assert_eq!(behind_headers(&snippet, "f", 6, 4, 2), "Unknown", "of some it is not so");
    assert_eq!(behind_headers(&snippet, "f", 60, 40, 2), "object.count");
}

const QUEUE: &str = "
    struct link { struct link *next, *prev; };
    struct packet { char flags; long dma; unsigned length; char name[24]; struct link link; unsigned hash, mark; };
    struct queue { char name[20]; unsigned most; long bytes; struct link packets; };
    #define packet_of(l) ((struct packet *)((char *)(l) - __builtin_offsetof(struct packet, link)))
";

fn has_all(texts: &[String], names: &[&str]) {
    for name in names {
        assert!(texts.iter().any(|text| text == name), "{name}: {texts:?}");
    }
    assert!(!texts.iter().any(|text| text == "Unknown"), "{texts:?}");
}

#[test]
fn objects_on_an_embedded_list_are_named_by_what_holds_the_link() {
    let snippet = Snippet::new(&format!(
        "{QUEUE} long poll(struct queue *q) {{
             long sum = 0;
             for (struct link *l = q->packets.next; l != &q->packets; l = l->next) {{
                 struct packet *p = packet_of(l);
                 if (p->length > q->most)
                     continue;
                 if (p->flags & 1) {{
                     q->bytes += p->length;
                     p->mark ^= p->hash;
                 }}
                 sum += p->mark & 0xff;
             }}
             return sum;
         }}"
    ));
    let texts = snippet.texts("poll", 0x10_0100);
    has_all(&texts, &["packet.length", "packet.flags", "packet.mark", "packet.hash", "queue.most"]);
}

#[test]
fn a_node_of_a_tree_in_the_middle_of_an_object_leads_to_the_object() {
    let snippet = Snippet::new(
        "struct node { struct node *left, *right; unsigned long color; };
         struct entry { long key; int count; struct node node; long value; };
         long find(struct node *n, long key) {
             while (n) {
                 struct entry *e = (struct entry *)((char *)n - __builtin_offsetof(struct entry, node));
                 if (e->key == key)
                     return e->value;
                 n = key < e->key ? n->left : n->right;
             }
             return 0;
         }",
    );
    has_all(&snippet.texts("find", 0x10_0100), &["entry.key", "entry.value"]);
}

#[test]
fn arithmetic_names_an_object_that_no_variable_points_to_when_one_type_alone_fits() {
    let sum = "long sum(struct link *l) {
                   long sum = 0;
                   for (; l; l = l->next)
                       sum += packet_of(l)->length + packet_of(l)->mark;
                   return sum;
               }";
    let snippet = Snippet::new(&format!("{QUEUE} {sum}"));
    has_all(&snippet.texts("sum", 0x10_0100), &["packet.length", "packet.mark"]);
    // Another type has a link at that place, with the same scalars around it.
    let twin = "struct frame { char kind; long a; unsigned b; char c[24]; struct link link; unsigned d, e; };
                struct frame *frames;";
    let snippet = Snippet::new(&format!("{QUEUE} {twin} {sum}"));
    let texts = snippet.texts("sum", 0x10_0100);
    assert!(!texts.iter().any(|text| text.starts_with("packet.") || text.starts_with("frame.")), "{texts:?}");
}

#[test]
fn objects_in_a_programs_own_pool_are_named_by_what_the_code_uses_it_as() {
    let snippet = Snippet::new(
        "struct item { struct item *next; long key; };
         char pool[1 << 16];
         unsigned long words[512];
         struct state { int table[100]; long used; } state;
         long list(struct item *n) { long t = 0; for (; n; n = n->next) t += n->key; return t; }
         int byte(unsigned i) { return pool[i]; }
         unsigned long word(unsigned i) { return words[i]; }
         int entry(struct state *s, int i) { return s->table[i]; }",
    );
    let pool = snippet.symbol("pool").0;
    let texts = snippet.texts("list", pool + 0x140);
    has_all(&texts, &["item.key", "item.next"]);
    has_all(&snippet.texts("list", snippet.symbol("words").0 + 0x20), &["item.key"]);
    // If nothing else is known the variable's name is left, and a variable that holds the array is no pool's object.
    assert_eq!(snippet.texts("byte", pool + 0x140), ["pool+320"]);
    assert_eq!(snippet.texts("entry", snippet.symbol("state").0 + 8), ["state+8"]);
    // A later access without a type goes to an object that is known there.
    let key = texts.iter().position(|text| text == "item.key").unwrap();
    let known = [
        (1, snippet.access("list", key, pool + 0x148, None)),
        (2, snippet.access("byte", 0, pool + 0x148, None)),
    ];
    assert_eq!(snippet.name(&known, &[]).1, "item.key");
}
