/* Keys that threads look up in a table. Each thread counts for itself, in an array of counts. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 2, SLOTS = 1 << 12 };

struct stats {
    uint64_t gets;
    uint64_t hits;
    uint64_t misses;
    uint64_t bytes;
};

static uint64_t keys[SLOTS], sizes[SLOTS], lookups;
static struct stats stats[THREADS] __attribute__((aligned(64)));
static pthread_barrier_t together;

static void count(uint64_t *counter, uint64_t more) {
    __atomic_store_n(counter, *counter + more, __ATOMIC_RELAXED);
}

static void get(struct stats *own, uint64_t key) {
    uint64_t slot = key * 0x9e3779b97f4a7c15u >> 52;
    count(&own->gets, 1);
    if (keys[slot] == key) {
        count(&own->hits, 1);
        count(&own->bytes, sizes[slot]);
    } else {
        count(&own->misses, 1);
    }
}

static void *serve(void *own) {
    pthread_barrier_wait(&together);
    for (uint64_t i = 0; i < lookups; i++) get(own, i % 3000);
    pthread_barrier_wait(&together);
    return 0;
}

int main(int count, char **arguments) {
    lookups = count > 1 ? strtoull(arguments[1], 0, 10) : 6000000;
    for (uint64_t key = 0; key < 2000; key++) {
        uint64_t slot = key * 0x9e3779b97f4a7c15u >> 52;
        keys[slot] = key;
        sizes[slot] = key % 100;
    }
    pthread_t threads[THREADS];
    pthread_barrier_init(&together, 0, THREADS);
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], 0, serve, &stats[i]);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], 0);
    struct stats all = { 0 };
    for (int i = 0; i < THREADS; i++) {
        all.gets += stats[i].gets;
        all.hits += stats[i].hits;
        all.misses += stats[i].misses;
        all.bytes += stats[i].bytes;
    }
    printf("%lu gets, %lu hits, %lu misses, %lu bytes\n", all.gets, all.hits, all.misses, all.bytes);
    return 0;
}
