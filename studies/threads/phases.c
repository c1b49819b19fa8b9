/* Distances in phases with barriers between them. Each thread's cell is padded, but for lines of 32 bytes. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 2, POINTS = 4000, PHASES = 4, PADDED = 32 / sizeof(double) };

static double points[POINTS];
static double cells[THREADS * PADDED] __attribute__((aligned(64)));
static int passes;
static pthread_barrier_t together;

static void *gain(void *number) {
    long own = (long)number;
    for (int phase = 0; phase < PHASES; phase++) {
        pthread_barrier_wait(&together);
        for (int pass = 0; pass < passes; pass++) {
            for (int i = own; i < POINTS; i += THREADS) {
                *(volatile double *)&cells[own * PADDED] += (points[i] - phase) * (points[i] - phase);
            }
        }
    }
    pthread_barrier_wait(&together);
    return 0;
}

int main(int count, char **arguments) {
    passes = count > 1 ? atoi(arguments[1]) : 200;
    for (int i = 0; i < POINTS; i++) points[i] = i % 97;
    pthread_barrier_init(&together, 0, THREADS);
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], 0, gain, (void *)i);
    double sum = 0;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], 0);
        sum += cells[i * PADDED];
    }
    printf("%.0f\n", sum);
    return 0;
}
