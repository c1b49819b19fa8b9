// Counts in slots of processors by restartable sequences. A sum that is too small has lost what another thread did.
// Arguments: how the sequence is made, rounds of each of three threads, processors.
#define _GNU_SOURCE
#include <linux/rseq.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SIGNATURE
#define SIGNATURE 0x53053053
#endif
#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

extern const ptrdiff_t __rseq_offset;

struct slot {
    long count;
} __attribute__((aligned(64)));
struct slot slots[64];
__attribute__((used)) static struct slot *places = slots;
static long rounds;

#ifdef OWN
static __thread struct rseq own __attribute__((aligned(32)));
static struct rseq *area(void) { return &own; }
static void begin_thread(void) {
    own.cpu_id = RSEQ_CPU_ID_UNINITIALIZED;
    if (syscall(SYS_rseq, &own, 32, 0, SIGNATURE)) {
        perror("rseq");
        exit(4);
    }
}
#else
static struct rseq *area(void) {
    return (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);
}
static void begin_thread(void) {}
#endif

#define ABORT                                                                                      \
    ".pushsection __rseq_failure, \"ax\"\n\t.byte 0x0f, 0xb9, 0x3d\n\t.long " TEXT(SIGNATURE)        \
    "\n4:\n\tjmp %l[again]\n\t.popsection\n\t"

// The descriptor is data of the file.
__attribute__((noinline)) int add(void) {
    struct rseq *r = area();
    int cpu = (int)*(volatile uint32_t *)&r->cpu_id_start;
    struct slot *mine = &slots[cpu & 63];
    asm goto(".pushsection __rseq_cs, \"aw\"\n\t.balign 32\n3:\n\t.long 0, 0\n\t.quad 1f, 2f - 1f, 4f\n\t.popsection\n\t"
             "leaq 3b(%%rip), %%rax\n\tmovq %%rax, %[cs]\n"
             "1:\n\tcmpl %[cpu], %[id]\n\tjnz 4f\n\tmovq %[v], %%rcx\n\taddq $1, %%rcx\n\tpause\n\tpause\n\tmovq %%rcx, %[v]\n"
             "2:\n\t" ABORT
             :
             : [cs] "m"(r->rseq_cs), [cpu] "r"(cpu), [id] "m"(r->cpu_id), [v] "m"(mine->count)
             : "memory", "cc", "rax", "rcx"
             : again);
    return 1;
again:
    return 0;
}

// As add, in the middle of a loop, with a loop inside, by names that are relative to the code.
__attribute__((noinline)) long add_often(long times) {
    long left = times;
    struct rseq *r = area();
    while (left > 0) {
        int cpu = (int)*(volatile uint32_t *)&r->cpu_id_start;
        asm goto(".pushsection __rseq_cs, \"aw\"\n\t.balign 32\n3:\n\t.long 0, 0\n\t.quad 1f, 2f - 1f, 4f\n\t.popsection\n\t"
                 "leaq 3b(%%rip), %%rax\n\tmovq %%rax, %[cs]\n"
                 "1:\n\tcmpl %[cpu], %[id]\n\tjne %l[again]\n\tmovq places(%%rip), %%rdx\n\tmovl %[cpu], %%eax\n\tandl $63, %%eax\n\t"
                 "shlq $6, %%rax\n\tmovq (%%rdx,%%rax), %%rcx\n\tmovl $3, %%esi\n5:\n\tpause\n\tdecl %%esi\n\tjnz 5b\n\t"
                 "leaq 1(%%rcx), %%rcx\n\tmovq %%rcx, (%%rdx,%%rax)\n"
                 "2:\n\t" ABORT
                 :
                 : [cs] "m"(r->rseq_cs), [cpu] "r"(cpu), [id] "m"(r->cpu_id)
                 : "memory", "cc", "rax", "rcx", "rdx", "rsi"
                 : again);
        left--;
    again:;
    }
    return times;
}

// The descriptor is made on the stack.
__attribute__((noinline)) int add_made(void) {
    struct rseq *r = area();
    uint64_t words[4] __attribute__((aligned(32)));
    int cpu = (int)*(volatile uint32_t *)&r->cpu_id_start;
    struct slot *mine = &slots[cpu & 63];
    asm goto("movq $0, (%[d])\n\tleaq 1f(%%rip), %%rax\n\tmovq %%rax, 8(%[d])\n\t"
             "movq $2f - 1f, 16(%[d])\n\tleaq 4f(%%rip), %%rax\n\tmovq %%rax, 24(%[d])\n\t"
             "movq %[d], %[cs]\n"
             "1:\n\tcmpl %[cpu], %[id]\n\tjnz 4f\n\tmovq %[v], %%rcx\n\taddq $1, %%rcx\n\tpause\n\tpause\n\tmovq %%rcx, %[v]\n"
             "2:\n\t" ABORT
             :
             : [cs] "m"(r->rseq_cs), [cpu] "r"(cpu), [id] "m"(r->cpu_id), [v] "m"(mine->count), [d] "r"(words)
             : "memory", "cc", "rax", "rcx"
             : again);
    return 1;
again:
    return 0;
}

// Code that the program copies: of which the descriptor's address goes to rdi, and the processor is in esi, its number for
// the kernel at rdx, the count at rcx, the descriptor at r8.
extern const char copied[], copied_start[], copied_end[], copied_abort[], copied_stop[];
__asm__(".text\ncopied:\n\tmovq %r8, (%rdi)\n"
        "copied_start:\n\tcmpl %esi, (%rdx)\n\tjnz copied_abort\n\tmovq (%rcx), %rax\n\taddq $1, %rax\n\tpause\n\tpause\n\tmovq %rax, (%rcx)\n"
        "copied_end:\n\tmovl $1, %eax\n\tret\n\t.long " TEXT(SIGNATURE) "\n"
        "copied_abort:\n\txorl %eax, %eax\n\tret\ncopied_stop:\n");
static uint64_t descriptor[4] __attribute__((aligned(32)));
static int (*written)(void *, int, void *, long *, uint64_t *);

static void write_code(int is_sealed) {
    size_t bytes = copied_stop - copied;
    char *at = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) exit(5);
    memcpy(at, copied, bytes);
    if (is_sealed) mprotect(at, 4096, PROT_READ | PROT_EXEC);
    descriptor[1] = (uint64_t)at + (copied_start - copied);
    descriptor[2] = copied_end - copied_start;
    descriptor[3] = (uint64_t)at + (copied_abort - copied);
    written = (void *)at;
}

// The code and the descriptor are made while the program runs.
__attribute__((noinline)) int add_written(void) {
    struct rseq *r = area();
    int cpu = (int)*(volatile uint32_t *)&r->cpu_id_start;
    return written(&r->rseq_cs, cpu, &r->cpu_id, &slots[cpu & 63].count, descriptor);
}

static const char *how;

__attribute__((noinline)) void work(void) {
    if (!strcmp(how, "often")) {
        add_often(rounds);
    } else if (strstr(how, "written")) {
        for (long i = 0; i < rounds; i++)
            while (!add_written()) {}
    } else if (strstr(how, "made")) {
        for (long i = 0; i < rounds; i++)
            while (!add_made()) {}
    } else {
        for (long i = 0; i < rounds; i++)
            while (!add()) {}
    }
}

static void *thread(void *none) {
    begin_thread();
    work();
    return none;
}

int main(int count, char **words) {
    if (count < 4) return 3;
    how = words[1];
    rounds = atol(words[2]);
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int cpu = 0; cpu < atoi(words[3]); cpu++) CPU_SET(cpu, &set);
    sched_setaffinity(0, sizeof set, &set);
    if (strstr(how, "written")) write_code(!!strstr(how, "sealed"));
    pthread_t threads[3];
    long sum = 0;
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, thread, 0);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    for (int i = 0; i < 64; i++) sum += slots[i].count;
    printf("%ld\n", sum);
    return sum != 3 * rounds;
}
