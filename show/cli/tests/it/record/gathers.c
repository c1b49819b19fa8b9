/* Gathers and masked moves before AVX-512: by turns, of all elements, of every other, and of some. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
static int table[4096] __attribute__((aligned(4096)));
static char moved[256] __attribute__((aligned(64)));
int indices[16] __attribute__((aligned(64)));
int mask[16] __attribute__((aligned(64)));
int result[16] __attribute__((aligned(64)));
__thread char own[64];
#define GATHER(name, data, index, scale) \
    __asm__ volatile("vmovdqa indices(%%rip), %%ymm1\n vmovdqa mask(%%rip), %%ymm2\n vpxor %%ymm0, %%ymm0, %%ymm0\n" \
        name " %%" data "2, 8192(%0, %%" index "1, " #scale "), %%" data "0\n vpaddd %%ymm2, %%ymm0, %%ymm0\n vmovdqa %%ymm0, result(%%rip)" \
        :: "r"(table) : "xmm0", "xmm1", "xmm2", "memory")
#define MASKED(text, to) \
    __asm__ volatile("vmovdqa mask(%%rip), %%ymm2\n vmovdqa result(%%rip), %%ymm0\n mov %0, %%rdi\n" text "\n" \
        :: "r"(to) : "rdi", "xmm0", "xmm2", "memory")
__attribute__((noinline)) void hot(int x) {
    switch (x % 24) {
    case 0: GATHER("vgatherdps", "xmm", "xmm", 4); break;
    case 1: GATHER("vgatherdps", "ymm", "ymm", 8); break;
    case 2: GATHER("vgatherdpd", "xmm", "xmm", 1); break;
    case 3: GATHER("vgatherdpd", "ymm", "xmm", 2); break;
    case 4: GATHER("vgatherqps", "xmm", "xmm", 4); break;
    case 5: GATHER("vgatherqps", "xmm", "ymm", 8); break;
    case 6: GATHER("vgatherqpd", "xmm", "xmm", 8); break;
    case 7: GATHER("vgatherqpd", "ymm", "ymm", 1); break;
    case 8: GATHER("vpgatherdd", "xmm", "xmm", 4); break;
    case 9: GATHER("vpgatherdd", "ymm", "ymm", 2); break;
    case 10: GATHER("vpgatherdq", "xmm", "xmm", 8); break;
    case 11: GATHER("vpgatherdq", "ymm", "xmm", 4); break;
    case 12: GATHER("vpgatherqd", "xmm", "xmm", 1); break;
    case 13: GATHER("vpgatherqd", "xmm", "ymm", 4); break;
    case 14: GATHER("vpgatherqq", "xmm", "xmm", 2); break;
    case 15: GATHER("vpgatherqq", "ymm", "ymm", 8); break;
    case 16: MASKED("vmaskmovps %%xmm0, %%xmm2, (%%rdi)", moved + x); break;
    case 17: MASKED("vmaskmovpd %%ymm0, %%ymm2, (%%rdi)", moved + x); break;
    case 18: MASKED("vpmaskmovd %%ymm0, %%ymm2, (%%rdi)", moved + x); break;
    case 19: MASKED("vpmaskmovq %%xmm0, %%xmm2, (%%rdi)", moved + x); break;
    case 20: MASKED("maskmovdqu %%xmm2, %%xmm0", moved + x); break;
    case 21: MASKED("vmaskmovdqu %%xmm2, %%xmm0", moved + x); break;
    case 22: MASKED("movq mask(%%rip), %%mm1; movq result(%%rip), %%mm0; maskmovq %%mm1, %%mm0; emms", moved + x); break;
    case 23: MASKED("vpmaskmovd %%ymm0, %%ymm2, %%fs:own@tpoff", moved + x); break;
    }
}
int main(void) {
    uint64_t x = 88172645463325252u, sum = 0;
    for (int i = 0; i < 4096; i++) table[i] = i * 2654435761u;
    for (int n = 0; n < 24 * 4; n++) {
        for (int i = 0; i < 16; i++) {
            x ^= x << 13; x ^= x >> 7; x ^= x << 17;
            mask[i] = n < 24 ? -1 : n < 48 && i % 2 ? 0 : (int)x;
            int is_wide = (n % 24 >= 4 && n % 24 < 8) || (n % 24 >= 12 && n % 24 < 16);
            indices[i] = is_wide && i % 2 ? indices[i - 1] >> 31 : (int)(x >> 32) % 900;
        }
        hot(n);
        for (int i = 0; i < 16; i++) sum = sum * 31 + result[i];
        for (int i = 0; i < 256; i++) sum = sum * 31 + moved[i];
        for (int i = 0; i < 64; i++) sum = sum * 31 + own[i];
    }
    printf("sum %lx\n", sum);
}
