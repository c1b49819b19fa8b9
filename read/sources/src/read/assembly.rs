//! The text of assembly inside a source, of which libclang shows the operands alone.

use super::reader::Reader;
use crate::tree::{Operands, Site};

/// Macros in macros that are looked into.
const MOST_MACROS: u32 = 4;

/// The maximum number of lines read of one statement.
const MOST_LINES: u32 = 64;

/// Instructions that fault where their operand in memory is not at a multiple of these bytes.
const ALIGNED: [(&str, u64); 10] = [
    ("cmpxchg16b", 16),
    ("movaps", 16),
    ("movapd", 16),
    ("movdqa", 16),
    ("movntdq", 16),
    ("movntps", 16),
    ("movntpd", 16),
    ("cmpxchg8b", 8),
    ("fxsave", 16),
    ("xsave", 64),
];

impl Reader<'_, '_> {
    /// The operands' use by the statement of assembly at this place; for one in a macro, by the macro's text.
    pub(super) fn operands(&mut self, site: Site) -> Operands {
        let mut text = Vec::new();
        for line in 0..MOST_LINES {
            let column = if line == 0 { site.column } else { 1 };
            let at = Site { line: site.line + line, column, ..site };
            let Some(rest) = self.texts.line_from(&self.tree, at) else { break };
            text.extend(rest);
            text.push(b'\n');
            if text.contains(&b';') && has_ended(&text) {
                break;
            }
        }
        let body = self.macros.body(&text).map_or(text.clone(), <[u8]>::to_vec);
        let text = String::from_utf8_lossy(&body);
        let mut operands = operands(&self.template(&text, 0));
        operands.are_unused &= text.contains('"');
        operands
    }

    /// The instructions, which come before the first colon outside of quotes, with the texts of macros between them.
    fn template(&self, text: &str, depth: u32) -> String {
        let mut template = String::new();
        for (at, part) in text.split('"').enumerate() {
            if at % 2 == 1 {
                template += part;
                continue;
            }
            let (outside, ends) = part.split_once(':').map_or((part, false), |(before, _)| (before, true));
            let words = outside.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            for body in words.filter_map(|word| self.macros.body(word.as_bytes())) {
                if depth < MOST_MACROS && body.contains(&b'"') {
                    template += &self.template(&String::from_utf8_lossy(body), depth + 1);
                }
            }
            if ends {
                break;
            }
        }
        template
    }
}

/// True where all brackets that were opened are closed.
fn has_ended(text: &[u8]) -> bool {
    let count = |byte: u8| text.iter().filter(|&&known| known == byte).count();
    count(b'(') <= count(b')')
}

fn operands(written: &str) -> Operands {
    let template = &*written.replace("\\n", "\n").replace("\\t", " ");
    let vector = ALIGNED.iter().find(|(name, _)| template.contains(name)).map(|(_, bytes)| *bytes);
    let mnemonics: Vec<&str> = template.split(SEPARATORS).filter_map(mnemonic).collect();
    let has_wide = mnemonics.iter().any(|name| name.ends_with('q') && !NO_MEMORY.contains(name));
    Operands {
        is_moved: moves_operand(template)
            || moves_register(template)
            || template.split(SEPARATORS).any(reaches_further),
        vector_bytes: vector,
        word_bytes: has_wide.then_some(WORD_BYTES),
        names_address: names_address(template),
        are_unused: template.trim().is_empty(),
    }
}

/// The ends of instructions.
const SEPARATORS: [char; 2] = [';', '\n'];

/// The bytes that an instruction with the suffix `q` uses.
const WORD_BYTES: u64 = 8;

/// Instructions that end in `q` and use no memory that is their operand, or only its address.
const NO_MEMORY: [&str; 5] = ["leaq", "callq", "jmpq", "retq", "cltq"];

/// The name of an instruction, without labels and prefixes before it.
fn mnemonic(instruction: &str) -> Option<&str> {
    instruction.split_whitespace().find(|word| !PREFIXES.contains(word) && !word.ends_with(':'))
}

const PREFIXES: [&str; 4] = ["lock", "rep", "repe", "repne"];

/// String instructions move on from their operands, those that name a bit reach others by its number, and a second
/// register in an address is a distance.
fn reaches_further(instruction: &str) -> bool {
    let name = mnemonic(instruction).unwrap_or_default();
    let is_repeated = instruction.split_whitespace().any(|word| word.starts_with("rep"));
    let is_of_bit = ["bt", "bts", "btr", "btc"].iter().any(|known| {
        let rest = name.strip_prefix(known);
        rest.is_some_and(|rest| matches!(rest, "" | "w" | "l" | "q"))
    });
    let by_register =
        instruction.split_once(name).is_some_and(|(_, rest)| !rest.trim_start().starts_with('$'));
    let is_indexed = instruction.match_indices("(%").any(|(at, _)| {
        let inside = instruction[at..].split(')').next().unwrap_or_default();
        inside.contains(",%") || inside.contains(", %")
    });
    is_repeated || (is_of_bit && by_register) || is_indexed
}

/// `16(%%rdi)`, `[x0, #16]`: an address in a register that is no operand's, and no stack's.
fn names_address(template: &str) -> bool {
    const STACK: [&str; 6] = ["rsp", "esp", "rbp", "ebp", "rip", "sp"];
    let is_other = |rest: &str| {
        let name = rest.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
        name.starts_with(|c: char| c.is_ascii_lowercase()) && name.len() > 1 && !STACK.contains(&name)
    };
    let registers = template.match_indices("(%").map(|(at, _)| template[at + 2..].trim_start_matches('%'));
    registers
        .chain(
            template
                .match_indices('[')
                .map(|(at, _)| &template[at + 1..])
                .filter(|rest| rest.starts_with('x') && rest[1..].starts_with(|c: char| c.is_ascii_digit())),
        )
        .any(is_other)
}

/// `128(%1)`, `%c2(%1)`: an operand's register with a number before it; any register, where one is given an address
/// (`lea`).
fn moves_register(template: &str) -> bool {
    let has_address = template.contains("lea");
    let is_displacement = |before: &str| {
        let start = before.rfind(|c: char| !c.is_ascii_alphanumeric() && c != '%').map_or(0, |at| at + 1);
        let number = &before[start..];
        let is_zero = number.chars().all(|c| c == '0');
        !number.is_empty()
            && !is_zero
            && (number.starts_with(|c: char| c.is_ascii_digit()) || number.starts_with("%c"))
    };
    template.match_indices("(%").any(|(at, _)| {
        let register = &template[at + 2..];
        let is_operand = register.starts_with(|c: char| c.is_ascii_digit() || c == '[');
        (is_operand || (has_address && register.starts_with('%'))) && is_displacement(&template[..at])
    })
}

/// `128+%1`, `8%[x]`, `%1+8`, `-4+%0`. A register with a number before it is no operand: `8(%rax)`, `$8, %0`.
fn moves_operand(template: &str) -> bool {
    let bytes = template.as_bytes();
    (0..bytes.len()).filter(|&at| bytes[at] == b'%').any(|at| {
        let before = template[..at].trim_end();
        let is_number = |text: &str| {
            let start = text.rfind(|c: char| !c.is_ascii_alphanumeric()).map_or(0, |end| end + 1);
            let is_immediate = text[..start].ends_with('$');
            text[start..].starts_with(|c: char| c.is_ascii_digit()) && !is_immediate
        };
        let is_added_before = match before.strip_suffix('+') {
            Some(number) => is_number(number.trim_end()),
            None => before.len() == at && is_number(before),
        };
        let name = &template[at + 1..];
        let after = match name.strip_prefix('[') {
            Some(name) => name.split_once(']').map_or("", |(_, after)| after),
            None => name.trim_start_matches(|c: char| c.is_ascii_alphanumeric()),
        };
        let is_operand =
            name.starts_with(|c: char| c.is_ascii_digit() || c == '[' || c.is_ascii_alphabetic());
        let after = after.trim_start();
        let is_added_after = after.starts_with(['+', '-'])
            && after[1..].trim_start().starts_with(|c: char| c.is_ascii_digit());
        is_operand && (is_added_before || is_added_after)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_beside_operands_move_them() {
        for text in ["movl 128+%1, %0", "movl 8%[x], %0", "movl %1+8, %0", "movl 4 + %a1, %0"] {
            assert!(moves_operand(text), "{text}");
        }
        for text in ["movl %1, %0", "movl $8, %0", "addl 8(%%rax), %0", "lock; xaddl %0, %1", "shll $3,%0"] {
            assert!(!moves_operand(text), "{text}");
        }
    }

    #[test]
    fn instructions_of_the_template_alone_count() {
        let aligned = operands("lock cmpxchg16b %0");
        assert_eq!(aligned, Operands { vector_bytes: Some(16), ..Operands::default() });
        assert_eq!(operands("nop"), Operands::default());
        assert!(operands("").are_unused);
        assert_eq!(operands("movq %1, %%xmm0").word_bytes, Some(8));
        assert_eq!(operands("leaq %1, %%rax").word_bytes, None);
    }

    #[test]
    fn instructions_may_reach_beyond_their_operand() {
        for text in
            ["rep stosb", "btsl %1, %0", "lock; btcq %1,%0", "mov (%1,%2,8), %0", "1: lock btr %1, %0"]
        {
            assert!(operands(text).is_moved, "{text}");
        }
        for text in ["btsl $3, %0", "mov (%1), %0", "lock xaddl %0, %1", "addq $1,%0\\n\\taddq $2,%1"] {
            assert!(!operands(text).is_moved, "{text}");
        }
    }

    #[test]
    fn numbers_before_the_register_of_an_operand_move_it() {
        for text in ["movl 128(%1), %0", "movl %c2(%1), %0", "leaq %1, %%rax; movl 8(%%rax), %0"] {
            assert!(operands(text).is_moved, "{text}");
        }
        for text in ["movl (%1), %0", "movl 0(%1), %0", "movl 8(%%rsp), %0", "call %c1"] {
            assert!(!operands(text).is_moved, "{text}");
        }
    }
}
