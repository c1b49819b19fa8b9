//! Names from code of kernels, with the types and prototypes of BTF alone: a snippet is compiled as kernels are, its
//! accesses are made up, and the name must agree with the source.

use lineup_debuginfo::{DebugInfo, NoCompanions, btf};
use lineup_explain::access_context::AccessContext;
use lineup_explain::image::Image;
use lineup_explain::instruction::{InstructionSet, decode};
use lineup_explain::name::Name;
use lineup_explain::namer::Namer;
use lineup_model::access::{Access, AccessKind};
use lineup_model::image::LoadedImage;
use lineup_model::program::SymbolKind;
use std::path::Path;
use std::process::Command;

/// Functions begin with a call of the tracer, and every CPU has a copy of a section, which it finds by `gs`.
const SOURCE: &str = r#"
#define PERCPU __attribute__((section(".data..percpu")))
asm(".globl __fentry__\n.type __fentry__, @function\n__fentry__: ret\n.size __fentry__, . - __fentry__");

struct task { long state; struct task *parent; int pid; };
struct slab { long transactions; struct task *last; };
struct cache { struct slab *per_cpu; struct slab *all[4]; };

PERCPU struct task *current_task = (void *)1;
PERCPU unsigned long this_cpu_off = 1;
PERCPU struct slab local_slab = {1};
unsigned long __per_cpu_offset[4] = {1};

long first_of(struct task *task) { return task->state; }

int pid_here(void) {
    struct task *task;
    asm volatile("movq %%gs:current_task, %0" : "=r"(task));
    return task->pid;
}

long transactions_here(struct cache *cache) {
    long found;
    asm volatile("movq %%gs:8(%1), %0" : "=r"(found) : "r"(cache->per_cpu));
    return found;
}

long added_here(struct cache *cache) {
    struct slab *slab = cache->per_cpu;
    asm volatile("addq %%gs:this_cpu_off, %0" : "+r"(slab));
    return (long)slab->last;
}

int added_there(long cpu) {
    struct slab *slab = &local_slab;
    slab = (struct slab *)((char *)slab + __per_cpu_offset[cpu]);
    return slab->last->pid;
}

__attribute__((noinline, noipa)) void keep(struct task *task) { task->state = 1; }

long passed_on(long number) {
    keep((struct task *)number);
    return *(long *)(number + 8);
}

long only_passed_a_copy(long number, long *other) {
    keep((struct task *)number);
    return *other;
}

struct list_head { struct list_head *next, *prev; };
struct entry { long vma, anon; struct list_head same; long rb[4]; };
struct area { long start, end, rest[13]; struct list_head entries; long tail; };
struct inner { long mode; long owner[4]; };
struct outer { long fsdata[9]; struct inner inode; long more[5]; };

long start_of(struct area *area) { return area->start; }
long tail_of(struct area *area) { return area->tail; }
long vma_of(struct entry *entry) { return entry->vma; }
long anon_of(struct entry *entry) { return entry->anon; }
void *next_of(struct entry *entry) { return entry->same.next; }
long fsdata_of(struct outer *outer) { return outer->fsdata[2]; }
long more_of(struct outer *outer) { return outer->more[1]; }
long mode_of(struct inner *inode) { return inode->mode; }
"#;

/// The same of 64-bit Arm, where the running task and the distance of the CPU's copies are in registers of their own.
const ARM: &str = r#"
struct task_struct { long state; struct task_struct *parent; int pid; };
__attribute__((section(".data..percpu"))) struct task_struct *idle = (void *)1;

int pid_here(void) {
    struct task_struct *task;
    asm volatile("mrs %0, sp_el0" : "=r"(task));
    return task->pid;
}

int pid_of_idle(void) {
    long distance;
    asm volatile("mrs %0, tpidr_el1" : "=r"(distance));
    return (*(struct task_struct **)((char *)&idle + distance))->pid;
}
"#;

/// A snippet with its symbols and types, as a kernel's image has them.
fn compiled(folder: &Path, set: InstructionSet) -> DebugInfo {
    let run = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).current_dir(folder).output();
        let output = output.unwrap_or_else(|error| panic!("{program}: {error}; see scripts/setup test"));
        assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    };
    let (source, machine, own): (_, _, &[&str]) = match set {
        InstructionSet::AArch64 => (ARM, "aarch64", &[]),
        _ => (SOURCE, "x86_64", &["-pg", "-mfentry", "-fcf-protection=none"]),
    };
    std::fs::write(folder.join("a.c"), source).unwrap();
    let usual = ["-g", "-O2", "-w", "-nostdlib", "-static", "-no-pie", "-Wl,-e,0", "-o", "a", "a.c"];
    let sections = "-Wl,--unique=.data..percpu";
    run(&format!("{machine}-linux-gnu-gcc"), &[&usual[..], own, &[sections]].concat());
    run("pahole", &["--btf_encode_detached=a.btf", "a"]);
    run(&format!("{machine}-linux-gnu-objcopy"), &["--strip-debug", "a"]);
    let bytes = std::fs::read(folder.join("a")).unwrap();
    let symbols = DebugInfo::parse(bytes.clone(), &mut NoCompanions).unwrap().symbols().to_vec();
    let types = btf::parse(&std::fs::read(folder.join("a.btf")).unwrap(), None).unwrap();
    DebugInfo::with_btf(bytes, symbols, types).unwrap()
}

/// The image, with all its functions.
fn image(info: &DebugInfo) -> Image<'_> {
    let loaded = LoadedImage {
        path: "vmlinux".into(),
        start: info.first_load_address().unwrap(),
        end: info.segments().iter().map(|segment| segment.addresses.end).max().unwrap(),
        bias: 0,
        build_id: None,
    };
    let functions = info.symbols().iter().filter(|symbol| symbol.kind == SymbolKind::Function);
    Image::new(loaded, Some(info), &mut functions.map(|symbol| symbol.address))
}

/// The target of the last access off its stack of an x86 function.
fn last_access_of(function: &str) -> String {
    last_access(InstructionSet::X86_64, function)
}

fn last_access(set: InstructionSet, function: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let info = compiled(folder.path(), set);
    let symbol = info.symbols().iter().find(|symbol| symbol.name == function).unwrap();
    let range = symbol.address..symbol.address + symbol.size_bytes;
    let code = decode(set, range.start, info.code(range).unwrap()).unwrap();
    let touches = code.iter().flat_map(|one| one.touches.iter().map(move |touch| (one.address, touch)));
    let stack_pointer = if set == InstructionSet::AArch64 { 31 } else { 7 };
    let off_stack = touches.filter(|(_, touch)| touch.at.base.is_none_or(|base| base.0 != stack_pointer));
    let accesses: Vec<Access> = off_stack
        .zip(1u64..)
        .map(|((pc, touch), number)| {
            let address = 0xffff_8880_0000_0000 + (number << 16);
            Access { pc, address, size_bytes: touch.size_bytes, kind: touch.kind, value: None }
        })
        .collect();
    let mut namer = Namer::new(vec![image(&info)], &[], &[], &[]);
    let last = accesses.last().unwrap();
    assert_eq!(last.kind, AccessKind::Load);
    namer.observe(last, &mut AccessContext::default(), 1).unwrap();
    namer.settle();
    let named = namer.name(last, &mut AccessContext::default(), 1).unwrap();
    match named.name {
        Name::Member { ty, offset, .. } => {
            let field = namer.catalog().field(ty, offset, u64::from(last.size_bytes)).unwrap();
            format!("{}.{}", namer.catalog().name(ty), field.path)
        }
        other => format!("{other:?}"),
    }
}

#[test]
fn a_prototypes_parameter_is_known_behind_the_call_of_the_tracer() {
    assert_eq!(last_access_of("first_of"), "task.state");
}

#[test]
fn what_a_cpus_copy_of_a_pointer_points_to_is_known() {
    assert_eq!(last_access_of("pid_here"), "task.pid");
}

#[test]
fn a_pointer_to_what_every_cpu_has_points_to_the_same_type_in_each_cpus_copy() {
    assert_eq!(last_access_of("transactions_here"), "slab.last", "by the segment");
    assert_eq!(last_access_of("added_here"), "slab.last", "by adding this CPU's distance");
    assert_eq!(last_access_of("added_there"), "task.pid", "by adding another CPU's distance");
}

#[test]
fn a_number_that_is_passed_as_a_pointer_is_that_pointer() {
    assert_eq!(last_access_of("passed_on"), "task.parent");
    // Another register is not.
    assert!(last_access_of("only_passed_a_copy").starts_with("Buffer"), "a pointer to numbers");
}

#[test]
fn the_running_task_and_a_cpus_distance_are_read_from_registers_on_64_bit_arm() {
    let last = |function| last_access(InstructionSet::AArch64, function);
    assert_eq!((last("pid_here"), last("pid_of_idle")), ("task_struct.pid".into(), "task_struct.pid".into()));
}

/// The names that a kernel's code and memory give to accesses, each of a function's only load at an address.
fn names_of(accesses: &[(&str, u64)]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let info = compiled(folder.path(), InstructionSet::X86_64);
    let load = |(function, address): &(&str, u64)| {
        let symbol = info.symbols().iter().find(|symbol| symbol.name == *function).unwrap();
        let range = symbol.address..symbol.address + symbol.size_bytes;
        let code = decode(InstructionSet::X86_64, range.start, info.code(range).unwrap()).unwrap();
        let touches = code.iter().flat_map(|one| one.touches.iter().map(move |touch| (one.address, touch)));
        let (pc, touch) =
            touches.into_iter().find(|(_, touch)| touch.at.base.is_some_and(|base| base.0 != 7)).unwrap();
        Access { pc, address: *address, size_bytes: touch.size_bytes, kind: touch.kind, value: None }
    };
    let all: Vec<Access> = accesses.iter().map(load).collect();
    let mut namer = Namer::new(vec![image(&info)], &[], &[], &[]);
    namer.see_kernel(0xffff_8000_0000_0000);
    let mut context = AccessContext::default();
    all.iter().for_each(|access| namer.observe(access, &mut context, 1).unwrap());
    namer.settle();
    let mut context = AccessContext::default();
    let named = |access: &Access| {
        let named = namer.name(access, &mut context, 1).unwrap();
        let Name::Member { ty, offset, .. } = named.name else { return format!("{:?}", named.name) };
        let field = namer.catalog().field(ty, offset, u64::from(access.size_bytes)).unwrap();
        format!("{}.{}", namer.catalog().name(ty), field.path)
    };
    all.iter().map(named).collect()
}

/// The start of a page of slabs.
const PAGE: u64 = 0xffff_8880_0010_0000;

/// The accesses of a real entry: it lies where its cache has entries, 64 bytes apart.
fn entry(number: u64) -> [(&'static str, u64); 3] {
    let at = PAGE + 64 * number;
    [("vma_of", at), ("anon_of", at + 8), ("next_of", at + 16)]
}

/// As `list_for_each_entry_safe` does at the end of a list: the head is read as the link of an entry.
#[test]
fn a_lists_head_that_code_reads_as_an_entry_belongs_to_the_object_that_has_it() {
    let area = PAGE + 0x10_0040;
    let head = area + 120;
    let mut accesses = vec![("start_of", area), ("tail_of", area + 136), ("next_of", head)];
    accesses.extend(entry(3));
    let names = names_of(&accesses);
    assert_eq!(names[2], "area.entries.next");
    assert_eq!(names[3..], ["entry.vma", "entry.anon", "entry.same.next"]);
    // An entry of which only the link was seen is one, if nothing else has its bytes.
    let names = names_of(&[("next_of", PAGE + 16)]);
    assert_eq!(names, ["entry.same.next"]);
}

/// Nothing is known of the object that has the head, but no entry of the cache lies there.
#[test]
fn a_head_that_lies_where_the_cache_has_no_entries_is_a_head_alone() {
    let mut accesses: Vec<(&str, u64)> = (0..9).flat_map(entry).collect();
    accesses.push(("next_of", PAGE + 0x20_0000 + 24));
    accesses.push(("next_of", PAGE + 64 * 30 + 16));
    let names = names_of(&accesses);
    assert_eq!(names[names.len() - 2..], ["list_head.next", "entry.same.next"]);
}

/// A slab has objects of one type: what lies in one as a part of it is counted there, whichever pointer led to it.
#[test]
fn an_object_in_a_slab_of_larger_ones_is_part_of_one() {
    // Objects of 152 bytes, 152 apart.
    let of = |number: u64| PAGE + 152 * number;
    let mut accesses: Vec<(&str, u64)> = [0, 1, 2, 5, 8, 9, 12, 20]
        .into_iter()
        .flat_map(|at| [("fsdata_of", of(at) + 16), ("more_of", of(at) + 120)])
        .collect();
    accesses.push(("mode_of", of(15) + 72));
    // In another slab, and at another place.
    accesses.push(("mode_of", PAGE + 0x40_0000 + 72));
    accesses.push(("mode_of", of(17) + 80));
    let names = names_of(&accesses);
    assert_eq!(names[names.len() - 3..], ["outer.inode.mode", "inner.mode", "inner.mode"]);
}
