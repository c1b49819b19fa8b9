//! `lineup find`: the places of allocations, in a generated program where all of them are known, and compared with
//! DHAT.

use crate::place::Place;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::process::Command;

/// Places that allocate.
const SITES: u64 = 40;
/// Rounds in which all objects are allocated, used and released.
const ROUNDS: u64 = 3;

/// Objects that a place allocates in a round.
fn objects(site: u64) -> u64 {
    5 + 7 * site % 23
}

/// Bytes of each.
fn bytes(site: u64) -> u64 {
    24 + 16 * (site % 9)
}

/// The number of walks over all objects of a place in a round.
fn walks(site: u64) -> u64 {
    1 + 5 * (site % 4)
}

/// A place's way to allocate: through a function that another calls, by each function of the C library, or as an object
/// that grew.
fn allocation(site: u64) -> String {
    let size = format!("sizeof(struct t{site})");
    match site % 6 {
        0 => format!("outer_wrapper({size})"),
        1 => format!("malloc({size})"),
        2 => format!("calloc(1, {size})"),
        3 => format!("realloc(malloc(8), {size})"),
        4 => format!("aligned_alloc(16, ({size} + 15) / 16 * 16)"),
        _ => format!("by_alignment({size})"),
    }
}

/// All places take turns, so that objects of all kinds lie between each other, and in the next round where others lay
/// before.
fn source() -> String {
    let mut out = String::from(
        "#include <stdio.h>\n#include <stdlib.h>\n\
         __attribute__((noinline)) void *inner_wrapper(size_t size) { void *one = malloc(size); if (!one) exit(1); return one; }\n\
         __attribute__((noinline)) void *outer_wrapper(size_t size) { void *one = inner_wrapper(size); *(char *)one = 0; return one; }\n\
         __attribute__((noinline)) void *by_alignment(size_t size) { void *one = 0; if (posix_memalign(&one, 64, size)) exit(1); return one; }\n",
    );
    for site in 0..SITES {
        let rest = bytes(site) - 16;
        let _ = write!(
            out,
            "struct t{site} {{ struct t{site} *next; long value; char rest[{rest}]; }};\n\
             static struct t{site} *list{site};\n\
             __attribute__((noinline)) struct t{site} *make{site}(long value) {{ struct t{site} *one = {}; one->value = value; return one; }}\n\
             __attribute__((noinline)) long walk{site}(void) {{ long sum = 0; for (struct t{site} *one = list{site}; one; one = one->next) sum += one->value; return sum; }}\n",
            allocation(site)
        );
    }
    let _ =
        writeln!(out, "int main(void) {{ long sum = 0; for (int round = 0; round < {ROUNDS}; round++) {{");
    let most = (0..SITES).map(objects).max().unwrap_or(0);
    let _ = writeln!(out, "for (int turn = 0; turn < {most}; turn++) {{");
    for site in 0..SITES {
        let count = objects(site);
        let _ = writeln!(
            out,
            "if (turn < {count}) {{ struct t{site} *one = make{site}(turn); one->next = list{site}; list{site} = one; }}"
        );
    }
    out.push_str("}\n");
    for site in 0..SITES {
        let _ = writeln!(out, "for (int turn = 0; turn < {}; turn++) sum += walk{site}();", walks(site));
    }
    for site in 0..SITES {
        let _ = writeln!(
            out,
            "while (list{site}) {{ struct t{site} *next = list{site}->next; free(list{site}); list{site} = next; }}"
        );
    }
    out.push_str("}\nprintf(\"%ld\\n\", sum);\nreturn 0;\n}\n");
    out
}

fn found(place: &Place, more: &[&str]) -> Value {
    let caches = ["--cache", "l1i=32K,8,64", "--cache", "l1d=2K,4,64", "--cache", "l2=4K,8,64"];
    let all = [&["find", "--json", "--no-clock", "--least", "0"][..], &caches, more, &["--", "./program"]];
    let output = place.lineup(&all.concat()).output().expect("lineup runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    place.assert_clean();
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn number(value: &Value, path: &str) -> f64 {
    value.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("no number at {path} of {value}"))
}

/// The places of the program, by their numbers.
fn sites(found: &Value) -> BTreeMap<u64, &Value> {
    let all = found["allocation_sites"].as_array().unwrap_or_else(|| panic!("no allocations in {found}"));
    let numbered = all.iter().filter_map(|site| {
        let number = site["function"].as_str()?.strip_prefix("make")?.parse().ok()?;
        Some((number, site))
    });
    numbered.collect()
}

#[test]
fn every_place_that_allocates_is_told_with_its_objects_and_what_they_cost() {
    let place = Place::new(&source(), &[]);
    let found = found(&place, &[]);
    let sites = sites(&found);
    assert_eq!(sites.keys().copied().collect::<Vec<_>>(), (0..SITES).collect::<Vec<_>>());
    for (site, told) in sites {
        let all = objects(site) * ROUNDS;
        // An object that grew was allocated twice at the same place.
        let (twice, grown) = if site % 6 == 3 { (2, 8) } else { (1, 0) };
        let own = if site % 6 == 4 { bytes(site).next_multiple_of(16) } else { bytes(site) };
        assert_eq!(number(told, "/objects"), (twice * all) as f64, "{site}: {told}");
        assert_eq!(number(told, "/bytes"), ((own + grown) * all) as f64, "{site}: {told}");
        assert_eq!(told["caller"], "main", "{site}: {told}");
        assert!(told["line"].as_str().is_some_and(|line| line.starts_with("main.c:")), "{told}");
        // A value stored, a pointer stored and loaded, and in each walk both loaded; the C library clears, grows and
        // frees.
        let least = (all * (3 + 2 * walks(site))) as f64;
        let accesses = number(told, "/accesses");
        assert!(accesses >= 0.98 * least && accesses < least + 40.0 * all as f64, "{site}: {least}, {told}");
        let ty = told["types"][0][0].as_str().unwrap_or_default();
        assert_eq!(ty, format!("t{site}"), "{told}");
    }
    misses_are_those_of_the_types(&found);
}

/// A type's misses are those of its place, except for the C library's own accesses to the memory: `free` writes there
/// after the object was released.
fn misses_are_those_of_the_types(found: &Value) {
    let owners = found["owners"].as_array().expect("owners");
    for (site, told) in sites(found) {
        let ty = format!("t{site}");
        let of_type = owners.iter().find(|owner| owner["name"] == ty.as_str());
        let of_type = of_type.map_or(0.0, |owner| number(owner, "/l1_misses"));
        let of_site = number(told, "/l1_misses");
        assert!(of_site >= 0.7 * of_type && of_site <= 1.6 * of_type + 40.0, "{ty}: {of_type}, {told}");
    }
}

/// Objects and bytes by place, as DHAT counts them: its frames are those of the allocator, then of who called it.
fn of_dhat(place: &Place) -> BTreeMap<u64, (u64, u64)> {
    let file = place.root.path().join("dhat.json");
    let mut valgrind = Command::new("valgrind");
    valgrind.current_dir(place.source()).arg("--tool=dhat");
    valgrind.arg(format!("--dhat-out-file={}", file.display())).arg("./program");
    let run = valgrind.output().expect("cannot run valgrind; install it: apt install valgrind");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let told: Value = serde_json::from_slice(&std::fs::read(file).expect("a file")).expect("JSON");
    let mut sums: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for point in told["pps"].as_array().expect("points") {
        let frames = point["fs"].as_array().expect("frames").iter();
        let names = frames.filter_map(|frame| told["ftbl"][frame.as_u64()? as usize].as_str());
        let site =
            names.filter_map(|name| name.split_once(": make")?.1.split(' ').next()?.parse().ok()).next();
        let count = |field: &str| point[field].as_u64().unwrap_or_default();
        let Some(site) = site else { continue };
        let sum = sums.entry(site).or_default();
        *sum = (sum.0 + count("tbk"), sum.1 + count("tb"));
    }
    sums
}

#[test]
fn objects_and_bytes_are_those_that_dhat_counts() {
    let place = Place::new(&source(), &[]);
    let found = found(&place, &[]);
    let ours = sites(&found).into_iter().map(|(site, told)| {
        let count = |path: &str| number(told, path) as u64;
        (site, (count("/objects"), count("/bytes")))
    });
    assert_eq!(ours.collect::<BTreeMap<_, _>>(), of_dhat(&place));
}

#[test]
fn allocations_that_were_not_seen_are_told_to_be_unknown() {
    let program =
        "#include <stdlib.h>\nint main(void) { char *one = malloc(9); *one = 1; free(one); return 0; }\n";
    let place = Place::new(program, &[]);
    let found = found(&place, &["--engine", "qemu"]);
    assert!(found["allocation_sites"].is_null(), "{found}");
    let notes = found["notes"].to_string();
    assert!(notes.contains("where objects were allocated is not known"), "{notes}");
}

/// Code that the program writes, and changes each time before it calls it. In one instruction it allocates as many
/// bytes as it holds, and after the allocator's return it returns the number that it holds in another.
const WRITTEN: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
static const unsigned char code[] = {
	0x48, 0x83, 0xec, 0x08, 0xbf, 0, 0, 0, 0,        /* sub rsp, 8; mov edi, bytes */
	0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xd0,  /* mov rax, malloc; call rax */
	0xb8, 0, 0, 0, 0, 0x48, 0x83, 0xc4, 0x08, 0xc3,  /* mov eax, number; add rsp, 8; ret */
};
int main(void)
{
	unsigned char *written = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (written == MAP_FAILED) return 1;
	void *(*allocate)(size_t) = malloc;
	long sum = 0;
	memcpy(written, code, sizeof code);
	memcpy(written + 11, &allocate, 8);
	for (int number = 1; number <= 50; number++) {
		int bytes = 100 + number;
		memcpy(written + 5, &bytes, 4);
		memcpy(written + 22, &number, 4);
		sum = sum * 31 % 1000003 + ((int (*)(void))written)();
	}
	printf("%ld\n", sum);
	return 0;
}
"#;

#[test]
fn what_code_allocates_that_changes_between_is_counted_and_that_code_runs_as_it_is() {
    let place = Place::new(WRITTEN, &[]);
    let alone = Command::new("./program").current_dir(place.source()).output().expect("it runs");
    let recorded = place.lineup(&["find", "--no-clock", "--", "./program"]).output().expect("lineup runs");
    let printed = String::from_utf8_lossy(&recorded.stdout).into_owned();
    let sum = String::from_utf8_lossy(&alone.stdout).into_owned();
    assert!(!sum.is_empty() && printed.starts_with(&sum), "{sum} {printed}");
    let found = found(&place, &[]);
    let all = found["allocation_sites"].as_array().expect("allocations");
    let written = all.iter().find(|site| number(site, "/objects") == 50.0);
    assert_eq!(
        number(written.unwrap_or_else(|| panic!("{all:?}")), "/bytes"),
        (101..=150).sum::<u64>() as f64
    );
}

/// A program whose allocator changes no vector register, as an allocator known to the compiler may: the registers keep
/// their contents, up to their upper ends, across each call.
const VECTORS: &str = r#"
#include <immintrin.h>
#include <stdio.h>
#include <string.h>
static char heap[1 << 20] __attribute__((aligned(64)));
static unsigned long used;
__attribute__((noinline, target("general-regs-only"))) void *malloc(unsigned long size) { void *one = heap + used; used = (used + size + 63) % (sizeof heap / 2) & -64ul; return one; }
__attribute__((noinline, target("general-regs-only"))) void free(void *one) { (void)one; }
static unsigned char before[32][64] __attribute__((aligned(64))), after[32][64] __attribute__((aligned(64)));
#define EACH(do) do(0) do(1) do(2) do(3) do(4) do(5) do(6) do(7) do(8) do(9) do(10) do(11) do(12) do(13) do(14) do(15)
#define HIGH(do) do(16) do(17) do(18) do(19) do(20) do(21) do(22) do(23) do(24) do(25) do(26) do(27) do(28) do(29) do(30) do(31)
#define GET_YMM(n) "vmovdqu 64*" #n "(%0), %%ymm" #n "\n"
#define PUT_YMM(n) "vmovdqu %%ymm" #n ", 64*" #n "(%1)\n"
#define GET_ZMM(n) "vmovdqu64 64*" #n "(%0), %%zmm" #n "\n"
#define PUT_ZMM(n) "vmovdqu64 %%zmm" #n ", 64*" #n "(%1)\n"
#define ROUND(get, put) __asm__ volatile(get "push %0\npush %1\nsub $128, %%rsp\nmov $48, %%edi\ncall malloc\nmov %%rax, %%rdi\ncall free\nadd $128, %%rsp\npop %1\npop %0\n" put \
    : "+b"(from), "+r"(to) : : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "cc", "memory")
int main(void) {
    unsigned long changed = 0;
    int wide = __builtin_cpu_supports("avx512f"), some = __builtin_cpu_supports("avx");
    unsigned long bytes = wide ? 64 : 32, registers = wide ? 32 : some ? 16 : 0;
    for (unsigned round = 0; round < 3000; round++) {
        for (unsigned at = 0; at < sizeof before; at++) ((unsigned char *)before)[at] = (unsigned char)(at * 7 + round * 13 + 1);
        register unsigned char *from __asm__("rbx") = before[0];
        register unsigned char *to __asm__("r12") = after[0];
        if (wide) ROUND(EACH(GET_ZMM) HIGH(GET_ZMM), EACH(PUT_ZMM) HIGH(PUT_ZMM));
        else if (some) ROUND(EACH(GET_YMM), EACH(PUT_YMM));
        for (unsigned one = 0; one < registers; one++) changed += memcmp(before[one], after[one], bytes) != 0;
    }
    printf("%lu changed\n", changed);
    return changed != 0;
}
"#;

#[test]
fn what_vector_registers_hold_stays_there_while_an_allocation_is_noted() {
    let place = Place::new(VECTORS, &["-fno-builtin", "-fcf-protection=none"]);
    let found = found(&place, &[]);
    let objects: f64 =
        found["allocation_sites"].as_array().expect("sites").iter().map(|one| number(one, "/objects")).sum();
    assert!((3000.0..3100.0).contains(&objects), "{}", found["allocation_sites"]);
}

/// A tree that is made by recursion through four calls: a chain of return addresses of its own leads to each object.
const TREE: &str = r#"
#include <stdio.h>
#include <stdlib.h>
struct branch { struct branch *next[4]; long depth; };
static __attribute__((noinline)) struct branch *grow(long depth) {
    struct branch *own = calloc(1, sizeof *own);
    own->depth = depth;
    if (depth) { own->next[0] = grow(depth - 1); own->next[1] = grow(depth - 1); own->next[2] = grow(depth - 1); own->next[3] = grow(depth - 1); }
    return own;
}
int main(void) { printf("%ld\n", grow(7)->depth); return 0; }
"#;

#[test]
fn objects_of_a_recursion_are_counted_at_their_place_and_its_levels_are_one() {
    let place = Place::new(TREE, &[]);
    let found = found(&place, &["--engine", "native"]);
    let all = found["allocation_sites"].as_array().expect("sites");
    let own: Vec<&Value> = all.iter().filter(|site| site["function"] == "grow").collect();
    let objects: f64 = own.iter().map(|site| number(site, "/objects")).sum();
    assert_eq!(objects, f64::from((4_u32.pow(8) - 1) / 3));
    let chains: f64 = own.iter().map(|site| number(site, "/chains")).sum();
    assert!(chains < 1000.0, "{chains} chains of {objects} objects");
}
