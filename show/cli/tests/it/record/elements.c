/* Tells which elements instructions access, before they do: where they lie in the table, each with its bytes. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#define TABLE 8192
static char *table;
static int is_used[TABLE];
uint32_t indices[16] __attribute__((aligned(64)));
uint32_t lanes[16] __attribute__((aligned(64)));
uint32_t result[16] __attribute__((aligned(64)));
uint64_t mask;
static volatile int faults;
static uint64_t x = 88172645463325252u;
static void touches(long at, int bytes) { for (int i = 0; i < bytes; i++) is_used[at + i] = 1; }
static int is_set(int element, int bytes, int by_lane) {
    return by_lane ? ((signed char *)lanes)[element * bytes + bytes - 1] < 0 : mask >> element & 1;
}
static void gathers(int elements, int index_bytes, int scale, int bytes, int by_lane) {
    for (int i = 0; i < elements; i++)
        if (is_set(i, bytes, by_lane))
            touches(4096 + scale * (index_bytes == 4 ? (int32_t)indices[i] : ((int64_t *)indices)[i]), bytes);
}
static void moves(int elements, int bytes, int by_lane) {
    for (int i = 0; i < elements; i++) if (is_set(i, bytes, by_lane)) touches(4000 + i * bytes, bytes);
}
#define WIDE "vmovdqu64 indices(%%rip), %%zmm17\n vmovdqu64 result(%%rip), %%zmm21\n kmovq mask(%%rip), %%k3\n"
#define OLD "vmovdqu indices(%%rip), %%ymm1\n vmovdqu lanes(%%rip), %%ymm2\n vmovdqu result(%%rip), %%ymm0\n"
#define USED "rdi", "xmm0", "xmm1", "xmm2", "memory"
#define AVX512(text) __asm__ volatile(WIDE text "\n vmovdqu64 %%zmm21, result(%%rip)\n vzeroupper" :: "r"(table + 4096) : USED)
#define AVX2(text) __asm__ volatile(OLD text "\n vmovdqu %%ymm0, result(%%rip)\n vzeroupper" :: "r"(table + 4096) : USED)
#define CASE(number, expected, code) case number: if (only_tells) { expected; } else { code; } break
#define GATHER(number, name, to, index, scale, elements, index_bytes, bytes) \
    CASE(number, gathers(elements, index_bytes, scale, bytes, 0), \
        AVX512(name " (%0, %%" index "mm17, " #scale "), %%" to "mm21 %{%%k3%}"))
#define SCATTER(number, name, from, index, scale, elements, index_bytes, bytes) \
    CASE(number, gathers(elements, index_bytes, scale, bytes, 0), \
        AVX512(name " %%" from "mm21, (%0, %%" index "mm17, " #scale ") %{%%k3%}"))
static int only_tells;
__attribute__((noinline)) void hot(int number) {
    switch (number) {
    CASE(0, gathers(8, 4, 4, 4, 1), AVX2("vgatherdps %%ymm2, (%0, %%ymm1, 4), %%ymm0"));
    CASE(1, gathers(4, 8, 2, 8, 1), AVX2("vpgatherqq %%ymm2, (%0, %%ymm1, 2), %%ymm0"));
    CASE(2, moves(8, 4, 1), AVX2("vmaskmovps -96(%0), %%ymm2, %%ymm0"));
    CASE(3, moves(2, 8, 1), AVX2("vpmaskmovq -96(%0), %%xmm2, %%xmm0"));
    CASE(4, moves(16, 1, 1), AVX2("lea -96(%0), %%rdi; maskmovdqu %%xmm2, %%xmm0"));
    GATHER(5, "vgatherdps", "z", "z", 4, 16, 4, 4);
    GATHER(6, "vpgatherdd", "y", "y", 2, 8, 4, 4);
    GATHER(7, "vgatherdpd", "z", "y", 4, 8, 4, 8);
    GATHER(8, "vpgatherdq", "x", "x", 8, 2, 4, 8);
    GATHER(9, "vgatherqps", "y", "z", 1, 8, 8, 4);
    GATHER(10, "vpgatherqd", "x", "x", 4, 2, 8, 4);
    GATHER(11, "vgatherqpd", "z", "z", 2, 8, 8, 8);
    GATHER(12, "vpgatherqq", "y", "y", 1, 4, 8, 8);
    SCATTER(13, "vscatterdps", "z", "z", 4, 16, 4, 4);
    SCATTER(14, "vpscatterdq", "y", "x", 2, 4, 4, 8);
    SCATTER(15, "vscatterqps", "x", "y", 4, 4, 8, 4);
    SCATTER(16, "vpscatterqq", "z", "z", 1, 8, 8, 8);
    CASE(17, moves(16, 4, 0), AVX512("vmovdqu32 %%zmm21, -96(%0) %{%%k3%}"));
    CASE(18, moves(64, 1, 0), AVX512("vmovdqu8 -96(%0), %%zmm21 %{%%k3%}"));
    CASE(19, touches(4000, 4 * __builtin_popcount(mask & 0xffff)), AVX512("vpcompressd %%zmm21, -96(%0) %{%%k3%}"));
    CASE(20, touches(4000, 8 * __builtin_popcount(mask & 15)), AVX512("vpexpandq -96(%0), %%ymm21 %{%%k3%}"));
    CASE(21, if (mask & 0xffff) touches(4000, 4), AVX512("vaddps -96(%0)%{1to16%}, %%zmm21, %%zmm21 %{%%k3%}"));
    CASE(22, if (mask & 255) touches(4000, 4), AVX512("vbroadcastss -96(%0), %%ymm21 %{%%k3%}"));
    CASE(23, moves(16, 2, 0), AVX512("vpmovzxwd -96(%0), %%zmm21 %{%%k3%}"));
    }
}
/* An element on the second page: the handler lets it be accessed. */
static void fault(int signal, siginfo_t *info, void *context) {
    faults++;
    mprotect(table + 4096, 4096, PROT_READ | PROT_WRITE);
}
static uint64_t next(void) { x ^= x << 13; x ^= x >> 7; x ^= x << 17; return x; }
static void begin(int number, int round) {
    int is_wide = number == 1 || (number >= 9 && number < 13) || number == 15 || number == 16;
    for (int i = 0; i < 16; i++) {
        lanes[i] = round == 1 ? 0 : next();
        indices[i] = is_wide && i % 2 ? indices[i - 1] >> 31 ? -1 : 0 : (int)(next() >> 20) % 400;
    }
    mask = round == 0 ? -1 : round == 1 ? 0 : round == 2 ? 1u << next() % 8 : next();
}
int main(void) {
    uint64_t sum = 0;
    int has_all = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
    table = mmap((void *)0x21000000, TABLE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    struct sigaction action = {.sa_sigaction = fault, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, 0);
    for (int i = 0; i < TABLE; i++) table[i] = next();
    for (int round = 0; round < 5; round++)
        for (int number = 0; number < (has_all ? 24 : 5); number++) {
            begin(number, round);
            memset(is_used, 0, sizeof is_used);
            only_tells = 1;
            hot(number);
            only_tells = 0;
            if (round % 2 == 0) mprotect(table + 4096, 4096, PROT_NONE);
            hot(number);
            mprotect(table + 4096, 4096, PROT_READ | PROT_WRITE);
            printf("expected");
            for (int i = 0; i < TABLE; i++) if (is_used[i]) printf(" %d", i);
            printf("\n");
            for (int i = 0; i < 16; i++) sum = sum * 31 + result[i];
            for (int i = 0; i < TABLE; i++) sum = sum * 31 + table[i];
        }
    printf("result %lx after %x faults\n", sum, faults);
}
