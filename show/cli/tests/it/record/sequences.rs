//! Random sequences of instructions do the same natively and in the native engine's cache: registers, flags and
//! memory are equal.
//!
//! `LINEUP_SEQUENCE_SEEDS=N` tries N programs of 200 sequences each instead of one, and N times a thousand sequences of
//! decodable random bytes instead of two thousand. `LINEUP_SEQUENCE_SECONDS=S` tries as many as S seconds allow, always
//! the same ones first.

use super::program::{Program, X86_64, c};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::fmt::Write;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

const SEQUENCES: usize = 200;
const INSTRUCTIONS: usize = 30;

/// Registers that sequences write, by their names of 64, 32, 16 and 8 bits.
const REGISTERS: [[&str; 4]; 13] = [
    ["rax", "eax", "ax", "al"],
    ["rbx", "ebx", "bx", "bl"],
    ["rcx", "ecx", "cx", "cl"],
    ["rdx", "edx", "dx", "dl"],
    ["rbp", "ebp", "bp", "bpl"],
    ["r8", "r8d", "r8w", "r8b"],
    ["r9", "r9d", "r9w", "r9b"],
    ["r10", "r10d", "r10w", "r10b"],
    ["r11", "r11d", "r11w", "r11b"],
    ["r12", "r12d", "r12w", "r12b"],
    ["r13", "r13d", "r13w", "r13b"],
    ["r14", "r14d", "r14w", "r14b"],
    ["r15", "r15d", "r15w", "r15b"],
];
const SIZES: [&str; 4] = ["qword", "dword", "word", "byte"];
const CONDITIONS: [&str; 16] =
    ["o", "no", "b", "ae", "e", "ne", "be", "a", "s", "ns", "p", "np", "l", "ge", "le", "g"];

struct Maker {
    random: ChaCha8Rng,
    labels: u32,
}

impl Maker {
    fn one_of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.random.random_range(0..all.len())]
    }

    fn register(&mut self, size: usize) -> &'static str {
        REGISTERS[self.random.random_range(0..REGISTERS.len())][size]
    }

    fn memory(&mut self, size: usize) -> String {
        let at = self.random.random_range(0..20) * 8 + self.random.random_range(0..3);
        let place = match self.random.random_range(0..5) {
            0 => format!("[rsi + {at}]"),
            1 => format!("[rsi + rdi * 8 + {at}]"),
            2 => format!("[rip + buffer + {at}]"),
            // The red zone.
            3 => format!("[rsp - {}]", 8 + at % 112),
            _ => format!("fs:[buffer_of_thread@tpoff + {at}]"),
        };
        format!("{} ptr {place}", SIZES[size])
    }

    fn operand(&mut self, size: usize) -> String {
        if self.random.random_bool(0.4) { self.memory(size) } else { self.register(size).to_owned() }
    }

    fn condition(&mut self) -> &'static str {
        CONDITIONS[self.random.random_range(0..CONDITIONS.len())]
    }

    fn label(&mut self) -> String {
        self.labels += 1;
        format!(".Lsequence{}", self.labels)
    }

    fn instruction(&mut self) -> String {
        let size = self.random.random_range(0..4);
        let (one, other) = (self.register(size), self.register(size));
        let wide = size.min(2);
        let (left, right) = (self.register(wide), self.register(wide));
        let number = self.random.random_range(-100..100);
        let alu = self.one_of(&["add", "sub", "adc", "sbb", "and", "or", "xor", "cmp", "test"]);
        let shift = self.one_of(&["shl", "shr", "sar", "rol", "ror", "rcl", "rcr"]);
        match self.random.random_range(0..36) {
            0..=3 => format!("{alu} {one}, {other}"),
            4 => format!("{alu} {one}, {number}"),
            5..=6 => format!("{} {one}, {}", if alu == "test" { "add" } else { alu }, self.memory(size)),
            7..=8 => format!("{alu} {}, {one}", self.memory(size)),
            9 => format!("lock {} {}, {one}", self.one_of(&["add", "sub", "xor", "adc"]), self.memory(size)),
            10 => format!("mov {one}, {}", self.operand(size)),
            11 => format!("mov {}, {one}", self.memory(size)),
            12 => format!(
                "{} {}, {}",
                self.one_of(&["movzx", "movsx"]),
                self.register(0),
                self.operand(2 + size % 2)
            ),
            13 => format!(
                "lea {}, [{} + {} * 4 + {number}]",
                self.register(0),
                self.register(0),
                self.register(0)
            ),
            14 => format!("{} {}", self.one_of(&["inc", "dec", "neg", "not"]), self.operand(size)),
            15 => format!("{shift} {}, {}", self.operand(size), self.random.random_range(0..40) % 32),
            16 => format!("{shift} {}, cl", self.operand(size)),
            17 => format!("imul {left}, {}", self.operand(wide)),
            18 => format!("{} {}", self.one_of(&["mul", "imul"]), self.operand(size)),
            19 => format!("{} {left}, {}", self.one_of(&["tzcnt", "lzcnt", "popcnt"]), self.operand(wide)),
            20 => format!(
                "{} {left}, {}",
                self.one_of(&["bt", "bts", "btr", "btc"]),
                self.random.random_range(0..16)
            ),
            21 => format!("cmov{} {left}, {}", self.condition(), self.operand(wide)),
            22 => format!("set{} {}", self.condition(), self.operand(3)),
            23 => format!(
                "{} {}, {one}",
                self.one_of(&["xchg", "xadd", "cmpxchg", "lock xadd", "lock cmpxchg"]),
                self.memory(size)
            ),
            24 => beyond(&format!("push {}\npop {}", self.register(0), self.register(0))),
            25 => beyond(&format!("pushfq\npop {}", self.register(0))),
            26 => format!("shld {left}, {right}, 5"),
            27 => {
                let label = self.label();
                format!(
                    "j{} {label}\n{}\n{}\n{label}:",
                    self.condition(),
                    self.instruction(),
                    self.instruction()
                )
            }
            28 => {
                let label = self.label();
                let inner = self.instruction();
                let kind = self.one_of(&["loop", "loopne", "loope"]);
                format!(
                    "lea rsp, [rsp - 128]\npush rcx\nmov ecx, 3\n{label}:\n{alu} rax, 7\nlea rbx, [rbx + rcx]\n{kind} {label}\npop rcx\nlea rsp, [rsp + 128]\n{inner}"
                )
            }
            29 => format!("lea rsp, [rsp - 128]\ncall helper\nlea rsp, [rsp + 128]\n{alu} {one}, {other}"),
            30 => {
                let count = self.random.random_range(0..20);
                let string = self.one_of(&[
                    "rep movsb",
                    "rep stosq",
                    "repe cmpsb",
                    "repne scasb",
                    "movsd",
                    "lodsq",
                    "std\nrep movsw\ncld",
                ]);
                format!(
                    "lea rsp, [rsp - 128]\npush rsi\npush rdi\npush rcx\nlea rdi, [rsi + 300]\nmov ecx, {count}\n{string}\npop rcx\npop rdi\npop rsi\nlea rsp, [rsp + 128]"
                )
            }
            31 => format!("movdqu xmm{}, xmmword ptr [rsi + {}]", number & 7, number & 63),
            32 => format!(
                "{} xmm{}, xmm{}\nmovdqu xmmword ptr [rsi + {}], xmm{}",
                self.one_of(&["paddb", "pxor", "pcmpeqd", "mulpd", "pmuludq"]),
                number & 7,
                number >> 3 & 7,
                number & 127,
                number & 7
            ),
            33 => format!(
                "vmovdqu ymm5, ymmword ptr [rsi + {}]\nvpsrld ymm6, ymm{}, 24\n\
                 vpgatherdd ymm3, [rsi + ymm6 + {}], ymm5\nvmovdqu ymmword ptr [rsi + 128], ymm3",
                number & 63,
                number & 7,
                number & 127
            ),
            34 => format!("vpmaskmovd ymmword ptr [rsi + {}], ymm{}, ymm7", number & 127, number & 7),
            _ => format!(
                "vpaddd ymm1, ymm{}, ymmword ptr [rip + buffer + 32]\nvmovdqu ymmword ptr [rsi + 64], ymm1\nbswap {}",
                number & 7,
                self.register(0)
            ),
        }
    }

    fn sequence(&mut self, number: usize) -> String {
        let mut text = format!(
            ".globl sequence{number}\nsequence{number}:\npush rbx\npush rbp\npush r12\npush r13\npush r14\npush r15\npush rdi\n"
        );
        for (at, [register, ..]) in REGISTERS.iter().enumerate() {
            let _ = writeln!(text, "mov {register}, [rdi + {}]", 8 * at);
        }
        text += "lea rsi, [rip + buffer]\nmov rdi, 3\n";
        // Otherwise the words there are addresses, which differ from run to run.
        for at in 1..=16 {
            let _ = writeln!(text, "mov qword ptr [rsp - {}], {}", 8 * at, 12345 * at);
        }
        for at in 0..8 {
            let _ = writeln!(text, "vmovdqu ymm{at}, ymmword ptr [rsi + {}]", 32 * at);
        }
        for _ in 0..INSTRUCTIONS {
            let _ = writeln!(text, "{}", self.instruction());
        }
        text += "lea rsp, [rsp - 128]\npushfq\npush rax\nmov rax, [rsp + 144]\n";
        for (at, [register, ..]) in REGISTERS.iter().enumerate().skip(1) {
            let _ = writeln!(text, "mov [rax + {}], {register}", 8 * at);
        }
        text += "pop rbx\nmov [rax], rbx\npop rbx\nmov [rax + 104], rbx\nlea rsp, [rsp + 136]\n";
        text + "pop r15\npop r14\npop r13\npop r12\npop rbp\npop rbx\nret\n"
    }
}

/// Pushes beyond the red zone, which sequences read: a pushed value may be an address.
fn beyond(text: &str) -> String {
    format!("lea rsp, [rsp - 128]\n{text}\nlea rsp, [rsp + 128]")
}

/// The sequences, each run from several states, and a sum of their results for each.
fn source(seed: u64) -> String {
    let mut maker = Maker { random: ChaCha8Rng::seed_from_u64(seed), labels: 0 };
    let mut text = String::from(
        "#include <stdint.h>\n#include <stdio.h>\nuint64_t buffer[64] __attribute__((aligned(64)));\n__thread uint64_t buffer_of_thread[64];\n\
         __asm__(\".intel_syntax noprefix\\n.text\\nhelper: lea rax, [rax + rdx]\\nadc rdx, rax\\nret\\n\"\n",
    );
    for number in 0..SEQUENCES {
        maker.sequence(number).lines().for_each(|line| {
            let _ = writeln!(text, "\"{line}\\n\"");
        });
    }
    text += "\".att_syntax\\n\");\n";
    for number in 0..SEQUENCES {
        let _ = writeln!(text, "void sequence{number}(uint64_t *);");
    }
    text += "static void (*const all[])(uint64_t *) = {";
    (0..SEQUENCES).for_each(|number| {
        let _ = write!(text, "sequence{number},");
    });
    text + r#"};
        static uint64_t next(uint64_t *x) { *x ^= *x << 13; *x ^= *x >> 7; *x ^= *x << 17; return *x; }
        __attribute__((noinline)) uint64_t run(unsigned number, uint64_t seed) {
            uint64_t x = seed * 2654435761u + 88172645463325252u, state[14], sum = 0;
            for (int i = 0; i < 64; i++) buffer[i] = next(&x), buffer_of_thread[i] = next(&x);
            for (int i = 0; i < 13; i++) state[i] = next(&x) >> (i % 3 * 20);
            all[number](state);
            state[13] &= 0x8c5;
            for (int i = 0; i < 14; i++) sum = sum * 31 + state[i];
            for (int i = 0; i < 64; i++) sum = sum * 31 + buffer[i], sum = sum * 31 + buffer_of_thread[i];
            return sum;
        }
        int main(void) {
            for (unsigned number = 0; number < sizeof all / sizeof *all; number++)
                for (unsigned seed = 0; seed < 6; seed++)
                    printf("sequence%u %llx\n", number, (unsigned long long)run(number, seed));
        }
    "#
}

/// The numbers of the rounds that are tried: as many as were asked for, or as the time allows.
fn rounds(usual: u64) -> impl Iterator<Item = u64> {
    let asked = |name: &str| std::env::var(name).ok().and_then(|number| number.parse::<u64>().ok());
    let (seconds, count) =
        (asked("LINEUP_SEQUENCE_SECONDS"), asked("LINEUP_SEQUENCE_SEEDS").unwrap_or(usual));
    let begun = Instant::now();
    (1..).take_while(move |round| match seconds {
        Some(seconds) => begun.elapsed() < Duration::from_secs(seconds),
        None => *round <= count,
    })
}

/// The command's recording options; `None` for the program alone.
fn output(program: &Program, what: Option<&[&str]>) -> String {
    let folder = program.folder.path();
    let output = match what {
        Some(what) => super::program::lineup_record(
            folder,
            &[&["--engine", "native"], what, &["--", "./program"]].concat(),
        ),
        None => Command::new("./program").current_dir(folder).output().expect("running the program"),
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter(|line| line.starts_with("sequence"))
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn random_sequences_do_the_same_natively_and_in_the_cache() {
    let mut seeds = ChaCha8Rng::seed_from_u64(9);
    for _ in rounds(1) {
        let seed = seeds.next_u64();
        // Without optimisation: the compiler has nothing to do but assemble.
        let program = c(X86_64, &source(seed), &["-O1", "-mno-red-zone"]);
        let native = output(&program, None);
        assert_eq!(native.lines().count(), 6 * SEQUENCES);
        for what in [&["--region", "run"][..], &["--whole-program"]] {
            let cached = output(&program, Some(what));
            let different = native.lines().zip(cached.lines()).find(|(native, cached)| native != cached);
            assert_eq!((different, native.len()), (None, cached.len()), "seed {seed}, {what:?}");
        }
    }
}

/// The engine's own program for it.
fn example() -> PathBuf {
    lineup_fixtures::beside("examples/sequences")
}

#[test]
fn whatever_random_bytes_decode_to_does_the_same_natively_and_in_the_cache() {
    const AT_ONCE: u64 = 1000;
    let example = example();
    let example = example.to_str().expect("a path");
    for seed in rounds(2) {
        let folder = tempfile::tempdir().expect("a folder");
        let (seed, count) = (seed.to_string(), AT_ONCE.to_string());
        let options = ["--engine", "native", "--region", "run_watched", "--", example, &seed, &count];
        let output = super::program::lineup_record(folder.path(), &options);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let number = |name: &str| {
            let line = said.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.and_then(|number| number.parse::<u64>().ok()).unwrap_or_else(|| panic!("{name}: {said}"))
        };
        let (runs, faulted) = (number("runs"), number("faulted"));
        assert_eq!((number("different"), runs + faulted), (0, 2 * AT_ONCE), "{said}");
        // Two thirds of the sequences fault on a processor without AVX-512.
        assert!(runs > AT_ONCE / 5, "{said}");
        assert!(said.contains(&format!("{} calls recorded of {}", grouped(runs), grouped(runs))), "{said}");
    }
}

/// A program's output for each sequence.
fn sums(output: &std::process::Output) -> Vec<String> {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8_lossy(&output.stdout);
    said.lines().filter(|line| line.starts_with("sum ")).map(str::to_owned).collect()
}

#[test]
fn whatever_random_bytes_decode_to_does_the_same_when_all_of_the_program_is_counted() {
    let example = example();
    let example = example.to_str().expect("a path");
    for seed in rounds(2) {
        let seed = (100 + seed).to_string();
        let alone =
            || sums(&Command::new(example).args([&seed, "1000", "sums"]).output().expect("the example"));
        let folder = tempfile::tempdir().expect("a folder");
        let options = ["--engine", "native", "--whole-program", "--", example, &seed, "1000", "sums"];
        let counted = sums(&super::program::lineup_record(folder.path(), &options));
        let (one, other) = (alone(), alone());
        assert_eq!((one.len(), one.len()), (other.len(), counted.len()), "seed {seed}");
        // A sequence that reads the stack pointer differs from run to run.
        let same: Vec<usize> = (0..one.len()).filter(|place| one[*place] == other[*place]).collect();
        assert!(same.len() > one.len() / 2, "{} of {}", same.len(), one.len());
        let different: Vec<&str> = same
            .iter()
            .filter(|place| one[**place] != counted[**place])
            .map(|place| one[*place].as_str())
            .collect();
        assert_eq!(different, Vec::<&str>::new(), "seed {seed}");
    }
}

/// A number as summaries write it.
fn grouped(number: u64) -> String {
    match number {
        0..1000 => number.to_string(),
        _ => format!("{},{:03}", number / 1000, number % 1000),
    }
}
