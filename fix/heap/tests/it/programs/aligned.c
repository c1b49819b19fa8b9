/* The distances of neighbours of four alignments, by each of the three functions in turn. */
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static void *object(int by, size_t alignment, size_t size) {
    void *at = NULL;
    if (by == 0) at = memalign(alignment, size);
    if (by == 1) at = aligned_alloc(alignment, size);
    if (by == 2 && posix_memalign(&at, alignment, size)) return NULL;
    return at;
}

int main(void) {
    size_t alignments[] = {32, 64, 128, 512};
    for (int i = 0; i < 4; i++) {
        size_t alignment = alignments[i];
        char *one = object(0, alignment, 100), *next = object(1, alignment, 120), *last = object(2, alignment, 110);
        if ((uintptr_t)one % alignment || (uintptr_t)next % alignment || (uintptr_t)last % alignment) return 1;
        printf("%td %td%s", next - one, last - next, i < 3 ? ", " : "\n");
        free(next);
        free(realloc(last, 1000));
        free(one);
    }
    return 0;
}
