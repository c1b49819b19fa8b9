#define _GNU_SOURCE
// Wherever the program is interrupted, its handler must be shown a place where it can be, with the stack and the
// registers as they are there.
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <ucontext.h>
#ifndef ROUNDS
#define ROUNDS 1000
#define TICKS 4000
#endif
struct place { char *pc; long depth_bytes; };
extern struct place places[], places_end[];
extern char code[], code_end[];
extern char *base;
volatile long cells[2];
static volatile long ticks, bad, seen[64];
void paths_kept(long rounds);

// AT gives each instruction that is ever reached, and how far the stack pointer then lies below where it was first.
__asm__(
    ".macro AT depth\n.pushsection .data.rel.local,\"aw\"\n.quad 9f, \\depth\n.popsection\n9:\n.endm\n"
    ".pushsection .data.rel.local,\"aw\"\n.balign 8\n.globl places, base\nbase: .quad 0\ninner: .quad one\nplaces:\n.popsection\n"
    ".text\n.globl code, code_end, paths, paths_kept\n.type paths, @function\n.type paths_kept, @function\n"
    "paths_kept:\n"
    "  push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15; sub $8, %rsp\n"
    "  mov $0x1003, %ebx; mov $0x1001, %ecx; mov $0x1002, %edx; mov $0x1005, %ebp\n"
    "  mov $0x1006, %esi; mov $0x1008, %r8d; mov $0x1009, %r9d; mov $0x100a, %r10d\n"
    "  mov $0x100b, %r11d; mov $0x100c, %r12d; mov $0x100d, %r13d; mov $0x100e, %r14d; mov $0x100f, %r15d\n"
    "  lea -8(%rsp), %rax; mov %rax, base(%rip)\n"
    "  call paths\n"
    "  add $8, %rsp; pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx\n"
    "  ret\n.size paths_kept, . - paths_kept\n"
    "code: paths:\n"
    "  AT 0; call one\n"
    "  AT 0; jmp two\n"
    "  ud2\n"
    "two:\n"
    "  AT 0; push $7\n"
    "  AT 8; lea three(%rip), %rax\n"
    "  AT 8; jmp *%rax\n"
    "  ud2\n"
    "one:\n"
    "  AT 8; addl $1, cells(%rip)\n"
    "  AT 8; ret\n"
    "  ud2\n"
    "three:\n"
    "  AT 8; call four\n"
    "  AT 0; test %edi, %edi\n"
    "  AT 0; jne five\n"
    "  AT 0; jmp last\n"
    "  ud2\n"
    "four:\n"
    "  AT 16; addl $1, cells+8(%rip)\n"
    "  AT 16; ret $8\n"
    "  ud2\n"
    "five:\n"
    "  AT 0; call *inner(%rip)\n"
    "  AT 0; dec %rdi\n"
    "  AT 0; jmp paths\n"
    "  ud2\n"
    "last:\n"
    "  AT 0; ret\n"
    "  ud2\n"
    "code_end:\n.size paths, . - paths\n"
    ".pushsection .data.rel.local,\"aw\"\n.globl places_end\nplaces_end: .quad 0, 0\n.popsection\n");

static const int registers[] = {REG_RCX, REG_RDX, REG_RBX, REG_RBP, REG_RSI, REG_R8, REG_R9,
                                REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
static const long values[] = {0x1001, 0x1002, 0x1003, 0x1005, 0x1006, 0x1008, 0x1009,
                              0x100a, 0x100b, 0x100c, 0x100d, 0x100e, 0x100f};

static void tick(int signal, siginfo_t *info, void *context) {
    struct itimerval never = {{0, 0}, {0, 0}};
    greg_t *is = ((ucontext_t *)context)->uc_mcontext.gregs;
    char *pc = (char *)is[REG_RIP];
    if (++ticks == TICKS) setitimer(ITIMER_REAL, &never, 0);
    if (pc < code || pc >= code_end) return;
    struct place *at = places;
    while (at < places_end && at->pc != pc) at++;
    int is_good = at < places_end && base - at->depth_bytes == (char *)is[REG_RSP];
    for (int i = 0; i < 13; i++) is_good &= is[registers[i]] == values[i];
    if (is_good) seen[at - places] = 1;
    else { bad++; printf("bad: at %lx, stack %ld\n", (long)(pc - code), (long)(base - (char *)is[REG_RSP])); }
}

int main(void) {
    struct sigaction action = {.sa_sigaction = tick, .sa_flags = SA_SIGINFO};
    sigaction(SIGALRM, &action, 0);
    struct itimerval often = {{0, 50}, {0, 50}};
    setitimer(ITIMER_REAL, &often, 0);
    long rounds = 0, count = 0;
    while (ticks < TICKS) { paths_kept(ROUNDS); rounds += ROUNDS + 1; }
    for (int i = 0; i < 64; i++) count += seen[i];
    printf("wrong %lx\nplaces %lx\nwhole %x\n", bad, count, cells[0] == 2 * rounds - rounds / (ROUNDS + 1) && cells[1] == rounds);
    return 0;
}
