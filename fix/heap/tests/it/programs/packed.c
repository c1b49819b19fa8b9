/* The distances of neighbours of three sizes; aligned objects among them keep their alignment. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    size_t sizes[] = {24, 40, 128};
    for (int i = 0; i < 3; i++) {
        char *volatile one = malloc(sizes[i]), *volatile next = malloc(sizes[i]);
        printf("%td%c", next - one, i < 2 ? ' ' : '\n');
    }
    for (int i = 0; i < 100; i++)
        if ((uintptr_t)aligned_alloc(16, 32 + i % 3 * 16) % 16) return 1;
    return 0;
}
