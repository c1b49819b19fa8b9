/* Pairs of malloc and free. Arguments: pairs, objects that are live at a time, bytes, threads. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static long pairs, live, bytes;

static void *work(void *argument) {
    char **objects = calloc((size_t)live, sizeof *objects);
    unsigned state = 1;
    if (!objects) abort();
    for (long i = 0; i < pairs; i++) {
        state = state * 1664525u + 1013904223u;
        char **at = &objects[(state >> 8) % (unsigned long)live];
        free(*at);
        *at = malloc((size_t)bytes);
        if (!*at) abort();
        **at = 1;
    }
    for (long i = 0; i < live; i++) free(objects[i]);
    free(objects);
    return argument;
}

int main(int argc, char **argv) {
    if (argc < 5) return 2;
    pairs = atol(argv[1]), live = atol(argv[2]), bytes = atol(argv[3]);
    int threads = atoi(argv[4]);
    pthread_t all[64];
    if (threads < 1 || threads > 64) return 2;
    struct timespec from, to;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
    for (int i = 0; i < threads; i++) pthread_create(&all[i], NULL, work, NULL);
    for (int i = 0; i < threads; i++) pthread_join(all[i], NULL);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
    double ns = (double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec);
    printf("%.1f ns\n", ns / (double)(pairs * threads));
    return 0;
}
