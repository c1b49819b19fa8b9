/* Counts of the values of pixels. Each thread has arrays of its own, in memory of its own: little is beside another's. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 2, BYTES = 300000 };

struct args {
    unsigned char *pixels;
    int bytes;
    int passes;
    int red[256], green[256], blue[256];
};

static pthread_barrier_t together;

static void *count_pixels(void *argument) {
    struct args *args = argument;
    pthread_barrier_wait(&together);
    for (int pass = 0; pass < args->passes; pass++) {
        for (int i = 0; i < args->bytes; i += 3) {
            args->red[args->pixels[i]]++;
            args->green[args->pixels[i + 1]]++;
            args->blue[args->pixels[i + 2]]++;
        }
    }
    pthread_barrier_wait(&together);
    return 0;
}

int main(int count, char **arguments) {
    int passes = count > 1 ? atoi(arguments[1]) : 50;
    unsigned char *pixels = malloc(BYTES);
    for (int i = 0; i < BYTES; i++) pixels[i] = i * 7 + i / 256;
    pthread_t threads[THREADS];
    struct args *all[THREADS];
    pthread_barrier_init(&together, 0, THREADS);
    for (int i = 0; i < THREADS; i++) {
        all[i] = calloc(1, sizeof *all[i]);
        all[i]->pixels = pixels + i * (BYTES / THREADS);
        all[i]->bytes = BYTES / THREADS;
        all[i]->passes = passes;
        pthread_create(&threads[i], 0, count_pixels, all[i]);
    }
    long red = 0;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], 0);
        red += all[i]->red[100];
    }
    printf("%ld\n", red);
    return 0;
}
