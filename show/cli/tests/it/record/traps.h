// Functions with room for a trap alone: packed, with no filler near by.
#include <stdio.h>
#define FAR ".rept 200\n xor %edx,%edx\n .endr\n"
#define FUNCTION(name, code) ".type " name ",@function\n.globl " name "\n" name ":\n" code ".size " name ", . - " name "\n"
__asm__(".text\n" FAR "ret\n"
    FUNCTION("nothing", "ret\n")
    FUNCTION("same", "mov %edi,%eax\n ret\n")
    FUNCTION("loads", "mov (%rdi),%eax\n ret\n")
    // Its own code jumps behind its first instruction, and in it a call leads back through another.
    FUNCTION("turns", "xor %eax,%eax\n 1: inc %eax\n dec %edi\n jne 1b\n ret\n")
    FUNCTION("through", "call *%rsi\n ret\n")
    FUNCTION("member", "call *8(%rsi)\n add %edi,%eax\n ret\n")
    FUNCTION("onward", "jmp same\n")
    FAR "ret\n");
void nothing(void);
int same(int x), loads(int *at), turns(int n), through(int x, int (*f)(int)), member(int x, void *at), onward(int x);
static int cells[16] __attribute__((aligned(64)));
static int twice(int x) { return 2 * x; }
static void *members[2] = {0, twice};

/// What all of them compute; `x` is not 0.
static __attribute__((unused)) int all(int x) {
    nothing();
    int sum = same(x) + loads(&cells[x & 15]) + turns((x & 7) + 1) + through(x, twice) + member(x, members) + onward(x);
    return sum - (x + cells[x & 15] + (x & 7) + 1 + 2 * x + 3 * x + x);
}
