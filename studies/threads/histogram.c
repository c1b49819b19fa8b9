/* Counts of the values of pixels. Each thread has arrays of its own, but the threads' arguments lie in one array: the last counts of
 * one share a line with what the next reads for every pixel. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 2, BYTES = 300000 };

struct args {
    unsigned char *pixels;
    long first, bytes;
    int red[256], green[256], blue[256];
};

static int passes;
static pthread_barrier_t together;

static void *count_pixels(void *argument) {
    struct args *args = argument;
    int *red = args->red, *green = args->green, *blue = args->blue;
    pthread_barrier_wait(&together);
    for (int pass = 0; pass < passes; pass++) {
        for (long i = args->first; i < args->first + args->bytes; i += 3) {
            red[args->pixels[i]]++;
            green[args->pixels[i + 1]]++;
            blue[args->pixels[i + 2]]++;
        }
    }
    pthread_barrier_wait(&together);
    return 0;
}

int main(int count, char **arguments) {
    passes = count > 1 ? atoi(arguments[1]) : 600;
    unsigned char *pixels = malloc(BYTES);
    for (int i = 0; i < BYTES; i++) pixels[i] = i * 7 + i / 256;
    pthread_t threads[THREADS];
    struct args *all = calloc(THREADS, sizeof *all);
    pthread_barrier_init(&together, 0, THREADS);
    for (int i = 0; i < THREADS; i++) {
        all[i].pixels = pixels;
        all[i].first = i * (BYTES / THREADS);
        all[i].bytes = BYTES / THREADS;
        pthread_create(&threads[i], 0, count_pixels, &all[i]);
    }
    long red = 0;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], 0);
        red += all[i].red[100];
    }
    printf("%ld\n", red);
    return 0;
}
