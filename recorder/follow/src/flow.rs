//! The way that control leaves an instruction, and its other properties for whoever follows a program.

/// The way that control leaves a block.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Flow {
    /// Falls through, branches to a fixed place, or traps.
    Plain,
    /// Calls: control comes back to the instruction after it.
    Call,
    /// Returns to an address in a register or on the stack.
    Return,
    /// Jumps to an address in a register or in memory: a switch, a stub, a tail call.
    Indirect,
}

/// An instruction's properties that matter to the recorder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Insn {
    /// The way that it passes control on.
    pub flow: Flow,
    /// An x86 string instruction under a repeat prefix: executed once per element.
    pub repeats: bool,
    /// Loads or stores several registers, each an access of its own.
    pub multiple: bool,
    /// Whether it addresses memory through the stack pointer, as far as its bytes show easily.
    pub on_stack: bool,
}

impl Insn {
    /// An instruction after which control continues with the next, and that accesses memory once at most.
    pub const PLAIN: Insn = Insn { flow: Flow::Plain, repeats: false, multiple: false, on_stack: false };
}

/// The properties of an x86 instruction, by the opcode maps of Intel's manual, volume 2, appendix A.
pub fn of_x86(bytes: &[u8]) -> Insn {
    let mut repeat = false;
    let mut rest = bytes;
    loop {
        match rest {
            [0xf2 | 0xf3, tail @ ..] => {
                repeat = true;
                rest = tail;
            }
            [0x66 | 0x67 | 0x2e | 0x36 | 0x3e | 0x26 | 0x64 | 0x65 | 0x40..=0x4f, tail @ ..] => rest = tail,
            _ => break,
        }
    }
    let (flow, on_stack) = match rest {
        [0xe8, ..] => (Flow::Call, true),
        [0xc2 | 0xc3 | 0xca | 0xcb, ..] => (Flow::Return, true),
        [0xff, modrm, ..] => match (modrm >> 3) & 7 {
            2 | 3 => (Flow::Call, true),
            4 | 5 => (Flow::Indirect, false),
            // push with a memory operand
            _ => (Flow::Plain, false),
        },
        // push and pop of a register
        [0x50..=0x5f, ..] => (Flow::Plain, true),
        _ => (Flow::Plain, false),
    };
    let string = matches!(rest.first(), Some(0x6c..=0x6f | 0xa4..=0xa7 | 0xaa..=0xaf));
    Insn { flow, repeats: repeat && string, multiple: false, on_stack }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(bytes: &[u8]) -> Flow {
        of_x86(bytes).flow
    }

    #[test]
    fn calls_returns_and_jumps_are_told_apart() {
        assert_eq!(flow(&[0xe8, 1, 2, 3, 4]), Flow::Call);
        assert_eq!(flow(&[0xff, 0xd0]), Flow::Call); // call *%rax
        assert_eq!(flow(&[0x41, 0xff, 0xd4]), Flow::Call); // call *%r12
        assert_eq!(flow(&[0xff, 0x15, 0, 0, 0, 0]), Flow::Call); // call *0(%rip)
        assert_eq!(flow(&[0xff, 0x25, 0, 0, 0, 0]), Flow::Indirect); // jmp *0(%rip)
        assert_eq!(flow(&[0xf2, 0xff, 0x25, 0, 0, 0, 0]), Flow::Indirect); // bnd jmp *0(%rip)
        assert_eq!(flow(&[0xc3]), Flow::Return);
        assert_eq!(flow(&[0xf3, 0xc3]), Flow::Return); // rep ret
        assert_eq!(flow(&[0xff, 0x30]), Flow::Plain); // push (%rax)
        assert_eq!(flow(&[0xeb, 0x10]), Flow::Plain);
        assert_eq!(flow(&[0x0f, 0x84, 0, 0, 0, 0]), Flow::Plain);
    }

    #[test]
    fn repeated_string_instructions_are_known() {
        assert!(of_x86(&[0xf3, 0xa4]).repeats); // rep movsb
        assert!(of_x86(&[0xf3, 0x48, 0xa5]).repeats); // rep movsq
        assert!(!of_x86(&[0xa4]).repeats);
        assert!(!of_x86(&[0xf3, 0xc3]).repeats);
    }
}
