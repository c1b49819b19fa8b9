/* Random operations of several threads against what each object should hold. Threads hand objects to each other. */
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { OWN = 2000, SHARED = 256 };

struct object { unsigned char *at; size_t size; unsigned char fill; };

/* An object that travels: its first words say what it holds. */
struct traveller { uint32_t size; uint32_t seed; unsigned char rest[]; };

static _Atomic(struct traveller *) shared[SHARED];
static long operations;
static time_t end;

static void fail(const char *what, const void *at, size_t size) {
    fprintf(stderr, "model: %s at %p of %zu\n", what, at, size);
    exit(1);
}

static uint64_t next(uint64_t *state) {
    *state ^= *state << 13; *state ^= *state >> 7; *state ^= *state << 17;
    return *state;
}

static size_t some_size(uint64_t *state) {
    switch (next(state) % 8) {
    case 0: return next(state) % 20;
    case 1: return next(state) % 2000;
    case 2: return next(state) % 20000;
    case 3: return next(state) % 400 == 0 ? next(state) % 400000 : 24;
    default: return next(state) % 200;
    }
}

static void check(struct object *one, size_t size) {
    for (size_t i = 0; i < size; i++)
        if (one->at[i] != one->fill) fail("other content", one->at, one->size);
}

static void check_new(const void *at, size_t size, size_t alignment) {
    if (!at) fail("no memory", at, size);
    if ((uintptr_t)at % alignment) fail("not aligned", at, size);
    if (malloc_usable_size((void *)at) < size) fail("less is usable than was asked for", at, size);
}

static void make(struct object *one, uint64_t *state) {
    size_t size = some_size(state), alignment = size >= 16 ? 16 : 8;
    void *at = NULL;
    switch (next(state) % 8) {
    case 0:
        at = calloc(1, size);
        for (size_t i = 0; i < size; i++) if (((char *)at)[i]) fail("calloc is not zero", at, size);
        break;
    case 1: alignment = 1 << next(state) % 13; at = memalign(alignment, size); break;
    case 2: alignment = 16 << next(state) % 8; at = aligned_alloc(alignment, size); break;
    case 3: alignment = 8 << next(state) % 10; if (posix_memalign(&at, alignment, size)) at = NULL; break;
    case 4: at = reallocarray(NULL, 1, size); break;
    default: at = malloc(size);
    }
    check_new(at, size, alignment);
    one->at = at; one->size = size; one->fill = (unsigned char)next(state);
    memset(at, one->fill, size);
}

static void resize(struct object *one, uint64_t *state) {
    size_t size = some_size(state) + 1, both = size < one->size ? size : one->size;
    one->at = realloc(one->at, size);
    check_new(one->at, size, size >= 16 ? 16 : 8);
    one->size = size;
    check(one, both);
    memset(one->at, one->fill, size);
}

static void meet(uint64_t *state) {
    struct traveller *sent = NULL;
    if (next(state) % 4) {
        size_t size = sizeof *sent + next(state) % 120;
        sent = malloc(size);
        sent->size = (uint32_t)size; sent->seed = (uint32_t)next(state);
        memset(sent->rest, (int)sent->seed & 0xff, size - sizeof *sent);
    }
    struct traveller *got = atomic_exchange(&shared[next(state) % SHARED], sent);
    if (!got) return;
    for (size_t i = 0; i < got->size - sizeof *got; i++)
        if (got->rest[i] != (got->seed & 0xff)) fail("a traveller has other content", got, got->size);
    free(got);
}

static void *work(void *argument) {
    uint64_t state = (uint64_t)(uintptr_t)argument * 0x9e3779b97f4a7c15u | 1;
    struct object *own = calloc(OWN, sizeof *own);
    for (long i = 0; end ? time(NULL) < end : i < operations; i++) {
        struct object *one = &own[next(&state) % OWN];
        switch (next(&state) % 8) {
        case 0: case 1: meet(&state); break;
        case 2: if (one->at) { resize(one, &state); break; } /* fall through */
        default:
            if (one->at) { check(one, one->size); free(one->at); one->at = NULL; }
            else make(one, &state);
        }
        if (next(&state) % 50000 == 0) malloc_trim(0);
    }
    for (int i = 0; i < OWN; i++) if (own[i].at) { check(&own[i], own[i].size); free(own[i].at); }
    free(own);
    return NULL;
}

/* Arguments: a seed, threads, operations of each, rounds of new threads, and seconds that replace the operations. */
int main(int argc, char **argv) {
    if (argc < 5) return 2;
    int threads = atoi(argv[2]), rounds = atoi(argv[4]);
    operations = atol(argv[3]);
    if (argc > 5) end = time(NULL) + atol(argv[5]);
    for (int round = 0; round < rounds; round++) {
        pthread_t all[64];
        for (int i = 0; i < threads; i++)
            pthread_create(&all[i], NULL, work, (void *)(uintptr_t)(atol(argv[1]) + round * 64 + i + 1));
        for (int i = 0; i < threads; i++) pthread_join(all[i], NULL);
    }
    for (int i = 0; i < SHARED; i++) free(shared[i]);
    puts("as the model says");
    return 0;
}
