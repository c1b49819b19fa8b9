//! Generated programs: random control flow, calls, jumps through tables, vectors, strings and structs, in C and C++.
//! Both engines record every call of several of their functions alike.
//!
//! The strings to read stand at fixed addresses: the C library reads across a page's end in another way.
//!
//! `LINEUP_ENGINE_PROGRAMS=N` makes N of each language instead of one.

use super::engines::assert_engines_agree;
use super::program::{X86_64, c, cpp};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::fmt::Write;
use std::process::Command;

const FUNCTIONS: usize = 8;

/// Writes the functions of a program.
struct Author {
    random: ChaCha8Rng,
    text: String,
    is_cpp: bool,
}

impl Author {
    fn below(&mut self, most: usize) -> usize {
        self.random.random_range(0..most)
    }

    fn line(&mut self, depth: usize, text: &str) {
        let _ = writeln!(self.text, "{:indent$}{text}", "", indent = 4 * depth);
    }

    /// A value from the variables that every function has.
    fn value(&mut self) -> String {
        let number = self.below(1000);
        match self.below(8) {
            0 => format!("{number}"),
            1 => format!("table[(x + {number}) & 255]"),
            2 => "s->count".into(),
            3 => format!("(long)s->name[{}]", number % 16),
            4 => format!("(x >> {})", number % 20),
            5 => format!("own[{} & 15]", number),
            6 => format!("(long)numbers[(y + {number}) & 63]"),
            _ => "y".into(),
        }
    }

    fn statement(&mut self, function: usize, depth: usize) {
        let (one, other, number) = (self.value(), self.value(), self.below(256));
        let kinds = if depth < 4 { 15 } else { 9 };
        match self.below(kinds) {
            0 => self.line(depth, &format!("x += {one} * 3 - ({other} ^ {number});")),
            1 => self.line(depth, &format!("table[({one}) & 255] = (int)({other} + y);")),
            2 => self.line(depth, &format!("s->count ^= {one}; y = y * 5 + s->count;")),
            3 => self.line(depth, &format!("own[({one}) & 15] += {other};")),
            4 => self.line(
                depth,
                &format!("memset(s->name, (int)({one}), ({other}) & 15); y += strlen(s->text);"),
            ),
            5 => self.line(
                depth,
                &format!("memcpy(s->text, texts[({one}) & 3], 20); s->text[({other}) & 15] = 'a' + (x & 7);"),
            ),
            6 => self.line(depth, &format!("numbers[({one}) & 63] = numbers[({other}) & 63] * 0.5 + x;")),
            7 => self.line(depth, &format!("y += __builtin_popcountl({one}) + ((({other}) & 1) ? x : -x);")),
            8 => self.extra(depth, &one),
            9 if function + 1 < FUNCTIONS => {
                let callee = function + 1 + self.below(FUNCTIONS - function - 1);
                self.line(depth, &format!("if (--budget > 0) x += f{callee}({one}, s);"));
            }
            10 if function + 1 < FUNCTIONS => {
                let first = function + 1;
                let many = FUNCTIONS - first;
                self.line(
                    depth,
                    &format!("if (--budget > 0) y ^= all[{first} + (unsigned)({one}) % {many}]({other}, s);"),
                );
            }
            11 => {
                self.line(depth, &format!("if (({one}) & {}) {{", 1 << (number % 6)));
                self.statements(function, depth + 1, 2);
                self.line(depth, "} else {");
                self.statements(function, depth + 1, 2);
                self.line(depth, "}");
            }
            12 => {
                self.line(depth, &format!("switch (({one}) & 7) {{"));
                for case in 0..7 {
                    self.line(depth, &format!("case {case}:"));
                    self.statements(function, depth + 1, 1);
                    self.line(depth + 1, "break;");
                }
                self.line(depth, "default: y++; }");
            }
            13 => {
                let counter = format!("i{depth}");
                self.line(
                    depth,
                    &format!("for (int {counter} = 0; {counter} < {}; {counter}++) {{", 1 + number % 9),
                );
                self.line(depth + 1, &format!("x += {counter};"));
                self.statements(function, depth + 1, 2);
                self.line(depth, "}");
            }
            _ => {
                self.line(
                    depth,
                    &format!("for (int k = 0; k < 64; k++) numbers[k] = numbers[k] * 1.25 + {};", number % 7),
                );
                self.line(depth, &format!("for (int k = 0; k < 256; k++) table[k] ^= (int)y + {number};"));
            }
        }
    }

    /// Statements that only one of the languages has.
    fn extra(&mut self, depth: usize, value: &str) {
        let text = match self.is_cpp {
            true => format!(
                "{{ std::vector<long> v(3 + (({value}) & 7), x); std::map<long, std::string> m; for (long e : v) m[e & 3] += \"ab\"; y += v.back() + (long)m.size() + shapes[({value}) & 1]->area(x & 15); }}"
            ),
            false => format!(
                "{{ char *copy = malloc(24 + (({value}) & 63)); copy[x & 15] = (char)x; y += copy[x & 15]; free(copy); }}"
            ),
        };
        self.line(depth, &text);
    }

    fn statements(&mut self, function: usize, depth: usize, many: usize) {
        (0..many).for_each(|_| self.statement(function, depth));
    }

    fn program(seed: u64, is_cpp: bool) -> String {
        let mut author = Author { random: ChaCha8Rng::seed_from_u64(seed), text: String::new(), is_cpp };
        let language = match is_cpp {
            true => {
                "#include <map>\n#include <string>\n#include <vector>\n\
                     struct Shape { virtual long area(long x) const { return x; } virtual ~Shape() {} };\n\
                     struct Square : Shape { long area(long x) const override { return x * x + 1; } };\n\
                     static Shape plain; static Square square; static Shape *shapes[] = {&plain, &square};\n\
                     #define API extern \"C\" __attribute__((noinline))\n"
            }
            false => "#define API __attribute__((noinline))\n",
        };
        author.text.push_str(
            "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\
             struct S { long count; char name[16]; char text[32]; };\n\
             static int table[256]; static double numbers[64]; static long budget; static int called[8];\n\
             static const char *texts[] = {\"a text of some length\", \"another text here..\", \"the third of them all\", \"the last of the texts\"};\n",
        );
        author.text.push_str(language);
        for function in 0..FUNCTIONS {
            author.line(0, &format!("API long f{function}(long x, struct S *s);"));
        }
        let names: Vec<String> = (0..FUNCTIONS).map(|function| format!("f{function}")).collect();
        author.line(0, &format!("static long (*all[])(long, struct S *) = {{{}}};", names.join(", ")));
        for function in 0..FUNCTIONS {
            author.line(0, &format!("API long f{function}(long x, struct S *s) {{"));
            author.line(1, &format!("long y = x, own[16] = {{x, 1, 2, 3}}; called[{function}] = 1;"));
            let many = 4 + author.below(6);
            author.statements(function, 1, many);
            author.line(1, "return x + y + own[(x + y) & 15];\n}");
        }
        author.text.push_str(
            "int main(void) { static struct S s; long total = 0; strcpy(s.text, \"begin\");\n\
             for (long i = 0; i < 12; i++) { budget = 40; total = total * 31 + f0(i, &s); }\n\
             for (int i = 0; i < 8; i++) if (called[i]) printf(\"called f%d\\n\", i);\n\
             printf(\"total %lx\\n\", total); }\n",
        );
        author.text
    }
}

fn agree(is_cpp: bool) {
    let many = std::env::var("LINEUP_ENGINE_PROGRAMS").ok().and_then(|many| many.parse().ok()).unwrap_or(1);
    for seed in 0..many {
        let source = Author::program(seed, is_cpp);
        let level = ["-O2", "-O1", "-O3", "-Os"][seed as usize % 4];
        let options = [level, "-fwrapv", "-fno-strict-aliasing"];
        let program = if is_cpp { cpp(X86_64, &source, &options) } else { c(X86_64, &source, &options) };
        let ran = Command::new(program.folder.path().join("program")).output().expect("running the program");
        let said = String::from_utf8_lossy(&ran.stdout).into_owned();
        let is_called = |name: &&str| said.contains(&format!("called {name}"));
        let called: Vec<&str> = ["f0", "f3", "f7"].into_iter().filter(is_called).collect();
        let regions: Vec<&str> = called.iter().flat_map(|name| ["--region", name]).collect();
        assert!(!regions.is_empty(), "{said}");
        println!("seed {seed}: {regions:?}");
        assert_engines_agree(&program, &regions);
    }
}

#[test]
fn c_programs() {
    agree(false);
}

#[test]
fn cpp_programs() {
    agree(true);
}
