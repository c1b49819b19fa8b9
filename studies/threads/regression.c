/* Least squares over points of two bytes. Each thread keeps its sums in its own arguments, which lie beside the others'. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 2, POINTS = 200000 };

struct point { char x, y; };

struct args {
    pthread_t thread;
    struct point *points;
    int count;
    int passes;
    long long sx, sy, sxx, syy, sxy;
};

static pthread_barrier_t together;

static void *regress(void *argument) {
    struct args *args = argument;
    pthread_barrier_wait(&together);
    for (int pass = 0; pass < args->passes; pass++) {
        for (int i = 0; i < args->count; i++) {
            args->sx += args->points[i].x;
            args->sxx += args->points[i].x * args->points[i].x;
            args->sy += args->points[i].y;
            args->syy += args->points[i].y * args->points[i].y;
            args->sxy += args->points[i].x * args->points[i].y;
        }
    }
    pthread_barrier_wait(&together);
    return 0;
}

int main(int count, char **arguments) {
    int passes = count > 1 ? atoi(arguments[1]) : 50;
    struct point *points = malloc(POINTS * sizeof *points);
    for (int i = 0; i < POINTS; i++) points[i] = (struct point){ i % 101, i % 37 };
    struct args *all = calloc(THREADS, sizeof *all);
    pthread_barrier_init(&together, 0, THREADS);
    for (int i = 0; i < THREADS; i++) {
        all[i].points = points + i * (POINTS / THREADS);
        all[i].count = POINTS / THREADS;
        all[i].passes = passes;
        pthread_create(&all[i].thread, 0, regress, &all[i]);
    }
    long long sx = 0, sxy = 0;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(all[i].thread, 0);
        sx += all[i].sx;
        sxy += all[i].sxy;
    }
    printf("%lld %lld\n", sx, sxy);
    return 0;
}
