/* What it would save to open a centre, in phases with barriers between them. Each thread adds up what its points would save, by
 * the centre that each is assigned to. A thread's cells are padded, but for lines of 32 bytes. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 2, POINTS = 4000, PHASES = 4, CENTRES = 3, PADDED = 32 / sizeof(double) };

static double points[POINTS];
static unsigned char assigned[POINTS];
static double cells[THREADS * PADDED] __attribute__((aligned(64)));
static int passes;
static pthread_barrier_t together;

static void *gain(void *number) {
    long own = (long)number;
    for (int phase = 0; phase < PHASES; phase++) {
        pthread_barrier_wait(&together);
        for (int pass = 0; pass < passes; pass++) {
            for (int i = own; i < POINTS; i += THREADS) {
                cells[own * PADDED + assigned[i]] += (points[i] - phase) * (points[i] - phase);
            }
        }
    }
    pthread_barrier_wait(&together);
    return 0;
}

int main(int count, char **arguments) {
    passes = count > 1 ? atoi(arguments[1]) : 2000;
    unsigned next = 1;
    for (int i = 0; i < POINTS; i++) {
        next = next * 1664525u + 1013904223u;
        points[i] = i % 97;
        assigned[i] = (next >> 16) % CENTRES;
    }
    pthread_barrier_init(&together, 0, THREADS);
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], 0, gain, (void *)i);
    double sum = 0;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], 0);
        for (int centre = 0; centre < CENTRES; centre++) sum += cells[i * PADDED + centre];
    }
    printf("%.0f\n", sum);
    return 0;
}
