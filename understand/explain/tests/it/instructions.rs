//! The effects of each machine's instructions, in the common vocabulary. Bytes come from the assemblers of binutils.

use lineup_explain::instruction::{
    Address, CallTarget, Expression, Flow, Instruction, InstructionSet, Register, decode,
};
use lineup_model::access::AccessKind;

fn one(set: InstructionSet, bytes: &[u8]) -> Instruction {
    let decoded = decode(set, 0x1000, bytes).unwrap();
    assert_eq!(decoded.len(), 1, "{decoded:?}");
    decoded.into_iter().next().unwrap()
}

fn set_to(instruction: &Instruction, register: u16) -> Expression {
    instruction.sets.iter().find(|(to, _)| to.0 == register).unwrap().1
}

fn accesses(instruction: &Instruction) -> Vec<(Address, u32, AccessKind)> {
    instruction.touches.iter().map(|touch| (touch.at, touch.size_bytes, touch.kind)).collect()
}

fn at(base: u16, displacement: i64) -> Address {
    Address::of(Register(base), displacement)
}

fn indexed(base: u16, index: u16, factor: i64, displacement: i64) -> Address {
    Address { index: Some((Register(index), factor)), ..at(base, displacement) }
}

#[test]
fn x86_loads_stores_and_addresses() {
    use InstructionSet::X86_64;
    // mov rax, [rdi+rsi*8+0x10]
    let load = one(X86_64, &[0x48, 0x8b, 0x44, 0xf7, 0x10]);
    assert_eq!(accesses(&load), [(indexed(5, 4, 8, 16), 8, AccessKind::Load)]);
    assert_eq!(set_to(&load, 0), Expression::Loaded { at: indexed(5, 4, 8, 16), size_bytes: 8 });
    // mov [rip+0x100], rax: relative to the next instruction
    let store = one(X86_64, &[0x48, 0x89, 0x05, 0x00, 0x01, 0x00, 0x00]);
    assert_eq!(accesses(&store), [(Address::constant(0x1107), 8, AccessKind::Store)]);
    assert_eq!(store.touches[0].from, Some(Register(0)));
    // lea rcx, [rax+rax*2]
    assert_eq!(set_to(&one(X86_64, &[0x48, 0x8d, 0x0c, 0x40]), 2), Expression::Sum(indexed(0, 0, 2, 0)));
    // imul rax, rdx, 24
    let product = one(X86_64, &[0x48, 0x6b, 0xc2, 0x18]);
    assert_eq!(set_to(&product, 0), Expression::Sum(Address::scaled(Register(1), 24)));
    // add dword [rdi+4], 1 loads and stores
    let both = one(X86_64, &[0x83, 0x47, 0x04, 0x01]);
    assert_eq!(accesses(&both), [(at(5, 4), 4, AccessKind::Load), (at(5, 4), 4, AccessKind::Store)]);
    // add rax, [rbx+0x10]
    let sum = one(X86_64, &[0x48, 0x03, 0x43, 0x10]);
    let expected = Expression::PlusLoaded { register: Register(0), at: at(3, 16), size_bytes: 8 };
    assert_eq!(set_to(&sum, 0), expected);
    // mov eax, edi cannot carry a pointer
    assert_eq!(set_to(&one(X86_64, &[0x89, 0xf8]), 0), Expression::Narrow(at(5, 0)));
}

#[test]
fn i386_has_other_registers_and_32_bits_hold_a_pointer() {
    use InstructionSet::I386;
    // mov eax, [esp+4]
    let load = one(I386, &[0x8b, 0x44, 0x24, 0x04]);
    assert_eq!(set_to(&load, 0), Expression::Loaded { at: at(4, 4), size_bytes: 4 });
    // mov edx, eax keeps a pointer
    assert_eq!(set_to(&one(I386, &[0x89, 0xc2]), 2), Expression::Sum(at(0, 0)));
    // mov [ebx-0x10], esi; a displacement may be negative
    let store = one(I386, &[0x89, 0xb3, 0xf0, 0xff, 0xff, 0xff]);
    assert_eq!(accesses(&store), [(at(3, -0x10), 4, AccessKind::Store)]);
    assert_eq!(store.touches[0].from, Some(Register(6)));
    // mov eax, [0x8049f00]; alone it is an address
    let fixed = one(I386, &[0xa1, 0x00, 0x9f, 0x04, 0x88]);
    assert_eq!(accesses(&fixed), [(Address::constant(0x8804_9f00), 4, AccessKind::Load)]);
    // add ebx, -0x1000
    assert_eq!(set_to(&one(I386, &[0x81, 0xc3, 0x00, 0xf0, 0xff, 0xff]), 3), Expression::Sum(at(3, -0x1000)));
    // inc eax; with 64 bits this byte is a prefix
    assert_eq!(set_to(&one(I386, &[0x40]), 0), Expression::Sum(at(0, 1)));
    // push ebp; leave; ret 4
    assert_eq!(set_to(&one(I386, &[0x55]), 4), Expression::Sum(at(4, -4)));
    assert_eq!(set_to(&one(I386, &[0xc9]), 4), Expression::Sum(at(5, 4)));
    assert_eq!(set_to(&one(I386, &[0xc2, 0x04, 0x00]), 4), Expression::Sum(at(4, 8)));
    // mov eax, gs:[-8]; add edx, gs:[0]
    let own = Address { is_thread_local: true, ..Address::constant(-8) };
    let local = one(I386, &[0x65, 0xa1, 0xf8, 0xff, 0xff, 0xff]);
    assert_eq!(accesses(&local), [(own, 4, AccessKind::Load)]);
    let base = one(I386, &[0x65, 0x03, 0x15, 0, 0, 0, 0]);
    assert_eq!(set_to(&base, 2), Expression::Sum(Address { is_thread_local: true, ..at(2, 0) }));
}

#[test]
fn x86_string_instructions_step_through_memory() {
    // rep movsq
    let copy = one(InstructionSet::X86_64, &[0xf3, 0x48, 0xa5]);
    assert!(copy.touches.iter().all(|touch| touch.size_bytes == 8));
    assert!(copy.touches.iter().all(|touch| touch.at.index == Some((Register::OPAQUE, 8))));
}

#[test]
fn x86_stack_and_control() {
    use InstructionSet::X86_64;
    // push rbp
    let push = one(X86_64, &[0x55]);
    assert_eq!(accesses(&push), [(at(7, -8), 8, AccessKind::Store)]);
    assert_eq!(set_to(&push, 7), Expression::Sum(at(7, -8)));
    // call +0x20
    let call = one(X86_64, &[0xe8, 0x20, 0x00, 0x00, 0x00]);
    assert_eq!(call.flow, Flow::Call(CallTarget::Direct(0x1025)));
    assert!(call.sets.is_empty(), "the callee puts the stack pointer back");
    assert_eq!(one(X86_64, &[0xc3]).flow, Flow::Return);
    assert_eq!(one(X86_64, &[0x74, 0x10]).flow, Flow::Branch(0x1012));
    assert_eq!(one(X86_64, &[0xff, 0xe0]).flow, Flow::Indirect);
    // mov rax, fs:[0x28]
    let local = one(X86_64, &[0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0]);
    assert!(local.touches[0].at.is_thread_local);
}

#[test]
fn aarch64_pairs_indices_and_write_back() {
    use InstructionSet::AArch64;
    // ldp x29, x30, [sp], #32
    let pop = one(AArch64, &[0xfd, 0x7b, 0xc2, 0xa8]);
    assert_eq!(accesses(&pop), [(at(31, 0), 16, AccessKind::Load)]);
    assert_eq!(set_to(&pop, 30), Expression::Loaded { at: at(31, 8), size_bytes: 8 });
    assert_eq!(set_to(&pop, 31), Expression::Sum(at(31, 32)));
    // stp x29, x30, [sp, #-32]!
    let push = one(AArch64, &[0xfd, 0x7b, 0xbe, 0xa9]);
    assert_eq!(accesses(&push), [(at(31, -32), 8, AccessKind::Store), (at(31, -24), 8, AccessKind::Store)]);
    // strb w0, [x1, w2, sxtw]
    let store = one(AArch64, &[0x20, 0xc8, 0x22, 0x38]);
    assert_eq!(accesses(&store), [(indexed(1, 2, 1, 0), 1, AccessKind::Store)]);
    // cmp w6, #8 sets no register
    assert!(one(AArch64, &[0xdf, 0x20, 0x00, 0x71]).sets.is_empty());
    // madd x0, x1, x2, x3
    let product = one(AArch64, &[0x20, 0x0c, 0x02, 0x9b]);
    let factors = [Register(1), Register(2)];
    assert_eq!(set_to(&product, 0), Expression::Product { factors, addend: Some(Register(3)) });
    // mrs x0, tpidr_el0
    assert_eq!(set_to(&one(AArch64, &[0x40, 0xd0, 0x3b, 0xd5]), 0), Expression::ThreadBase);
    assert_eq!(one(AArch64, &[0xc0, 0x03, 0x5f, 0xd6]).flow, Flow::Return);
}

#[test]
fn arm_multiples_shifts_and_conditions() {
    use InstructionSet::{A32, Thumb};
    // push {r4, r5, lr}
    let push = one(A32, &[0x30, 0x40, 0x2d, 0xe9]);
    let stored: Vec<(Address, Option<Register>)> =
        push.touches.iter().map(|touch| (touch.at, touch.from)).collect();
    assert_eq!(
        stored,
        [(at(13, -12), Some(Register(4))), (at(13, -8), Some(Register(5))), (at(13, -4), Some(Register(14)))]
    );
    // pop {r4, pc}
    let pop = one(A32, &[0x10, 0x80, 0xbd, 0xe8]);
    assert_eq!((pop.flow, set_to(&pop, 13)), (Flow::Return, Expression::Sum(at(13, 8))));
    // rsb r0, r1, r1, lsl #3 is seven times r1
    let seven = one(A32, &[0x81, 0x01, 0x61, 0xe0]);
    assert_eq!(set_to(&seven, 0), Expression::Sum(Address::scaled(Register(1), 7)));
    // ldreq r0, [r1]
    assert!(one(A32, &[0x00, 0x00, 0x91, 0x05]).is_conditional);
    // add r0, pc, r0 in A32 reads its own address plus 8
    let relative = one(A32, &[0x00, 0x00, 0x8f, 0xe0]);
    let sum = Address { index: Some((Register(0), 1)), ..Address::constant(0x1008) };
    assert_eq!(set_to(&relative, 0), Expression::Sum(sum));
    // ldr r3, [pc, #16] in Thumb reads the aligned address plus 4
    let literal = one(Thumb, &[0x04, 0x4b]);
    assert_eq!(accesses(&literal), [(Address::constant(0x1014), 4, AccessKind::Load)]);
}

#[test]
fn bytes_that_are_no_instruction_are_passed_over() {
    // An undefined word between two returns.
    let code = [0xc0, 0x03, 0x5f, 0xd6, 0xff, 0xff, 0xff, 0xff, 0xc0, 0x03, 0x5f, 0xd6];
    let decoded = decode(InstructionSet::AArch64, 0x1000, &code).unwrap();
    let addresses: Vec<u64> = decoded.iter().map(|one| one.address).collect();
    assert_eq!(addresses, [0x1000, 0x1008]);
}
