/* Keeps the processor's state and loads it, with some of it in use. Of each third call it is printed which units of 32 bytes of
   the area it has written, as two calls before have shown: one on zeros, one on ones. */
#include <cpuid.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
enum { AREA = 4096, UNITS = AREA / 32 };
static char area[AREA] __attribute__((aligned(64))), first[AREA] __attribute__((aligned(64)));
/* Everything as it is at first, then what is to be in use. */
#define BEGIN \
    "xrstor64 (%[first])\n\t" \
    "test $1, %[use]\n\tjz 1f\n\tvpcmpeqd %%ymm1, %%ymm1, %%ymm1\n1:\n\t" \
    "test $2, %[use]\n\tjz 1f\n\tvpternlogd $255, %%zmm20, %%zmm20, %%zmm20\n1:\n\t" \
    "test $4, %[use]\n\tjz 1f\n\tkxnorw %%k1, %%k1, %%k1\n1:\n\t" \
    "test $8, %[use]\n\tjz 1f\n\tfld1\n1:\n\t" \
    "test $16, %[use]\n\tjz 1f\n\tldmxcsr %[control]\n1:\n\t" \
    "mov %[mask], %%eax\n\txor %%edx, %%edx\n\t"
#define FUNCTION(name, instruction) \
    __attribute__((noinline)) void name(long use, unsigned mask) { \
        static unsigned control = 0x1fa0, usual = 0x1f80; \
        unsigned low = -1, high = -1; \
        asm volatile(BEGIN instruction " (%[area])\n\tfninit\n\tvzeroupper\n\tldmxcsr %[usual]" \
                     : "+a"(low), "+d"(high) \
                     : [first] "r"(first), [area] "r"(area), [use] "r"(use), [mask] "r"(mask), [control] "m"(control), [usual] "m"(usual) \
                     : "memory", "cc"); \
    }
FUNCTION(save, "xsave64")
FUNCTION(save_compact, "xsavec64")
FUNCTION(restore, "xrstor64")
static uint64_t written[UNITS / 64];
static void look(char fill) {
    for (int i = 0; i < AREA; i++) if (area[i] != fill) written[i / 32 / 64] |= 1ull << (i / 32 % 64);
}
static void show(const char *name, int number, void (*function)(long, unsigned), long use, unsigned mask) {
    memset(written, 0, sizeof written);
    memset(area, 0xff, AREA); function(use, mask); look(-1);
    memset(area, 0, AREA); function(use, mask); look(0);
    memset(area, 0, AREA); function(use, mask);
    printf("%s_low_%d %lx\n%s_high_%d %lx\n", name, number, written[0], name, number, written[1]);
}
int main(void) {
    unsigned a, b, c, d, masks[] = {1, 2, 3, 4, 6, 7, 0xe7, 0xe6, 0xe3, 0x60, 0xff, 0};
    *(unsigned *)(first + 24) = 0x1f80;
    __cpuid_count(13, 1, a, b, c, d);
    int has_compact = a >> 1 & 1, uses = __builtin_cpu_supports("avx512f") ? 32 : 2, number = 0;
    __cpuid_count(13, 0, a, b, c, d);
    printf("area %lx\nhas_compact %x\n", (long)area, has_compact);
    for (int use = 0; use < uses; use += use < 8 ? 1 : 3) {
        for (unsigned i = 0; i < sizeof masks / sizeof *masks; i++, number++) {
            show("save", number, save, use, masks[i]);
            restore(0, masks[i]);
            if (has_compact) { show("compact", number, save_compact, use, masks[i]); restore(0, masks[i]); }
        }
    }
    printf("count %x\n", number);
    return 0;
}
