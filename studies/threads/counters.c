/* Two threads that add to counters of their own: on one line, and on lines of their own, in turn. Told is what an addition
 * takes while both run. How much longer it takes on one line depends on how many stores the processor keeps until the line
 * comes, which is why members and atomic additions make such a difference.
 *
 *     cc -O2 -pthread [-DMEMBERS=4] [-DATOMIC] counters.c -o counters && ./counters 0 1
 *
 * The arguments are the CPUs of the two threads.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#ifndef MEMBERS
#define MEMBERS 1
#endif
#define RUNS 41
#define ADDITIONS 2000000L
#define TOGETHER 1024

static _Alignas(256) volatile long counters[64];
static _Alignas(256) atomic_int there, is_over;
static int cpus[2], places[2];
static double took[2];

static double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec * 1e9 + at.tv_nsec;
}

/* Until the first of them has done its additions, so that both run all the time that counts. */
static void *count(void *which) {
    long own = (long)which, done = 0;
    volatile long *counter = counters + places[own];
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpus[own], &set);
    sched_setaffinity(0, sizeof set, &set);
    atomic_fetch_add(&there, 1);
    while (atomic_load(&there) < 2) {}
    double begun = now();
    while (done < ADDITIONS && !atomic_load_explicit(&is_over, memory_order_relaxed)) {
        for (int i = 0; i < TOGETHER; i++) {
#ifdef ATOMIC
            __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
#else
            for (int member = 0; member < MEMBERS; member++) ++counter[member];
#endif
        }
        done += TOGETHER;
    }
    took[own] = (now() - begun) / done;
    atomic_store(&is_over, 1);
    return 0;
}

static double run(int other) {
    pthread_t threads[2];
    places[1] = other;
    there = is_over = 0;
    for (long own = 0; own < 2; own++) pthread_create(&threads[own], 0, count, (void *)own);
    for (int own = 0; own < 2; own++) pthread_join(threads[own], 0);
    return (took[0] + took[1]) / 2;
}

static int by_value(const void *one, const void *other) {
    double left = *(const double *)one, right = *(const double *)other;
    return (left > right) - (left < right);
}

int main(int count, char **arguments) {
    static double beside[RUNS], apart[RUNS];
    for (int own = 0; own < 2; own++) cpus[own] = count > own + 1 ? atoi(arguments[own + 1]) : own;
    for (int number = 0; number < RUNS; number++) {
        beside[number] = run(4);
        apart[number] = run(32);
    }
    qsort(beside, RUNS, sizeof *beside, by_value);
    qsort(apart, RUNS, sizeof *apart, by_value);
    printf("CPUs %d and %d, median of %d runs: %.3f ns on one line, %.3f ns apart, %.2f times\n", cpus[0], cpus[1], RUNS,
           beside[RUNS / 2], apart[RUNS / 2], beside[RUNS / 2] / apart[RUNS / 2]);
    return 0;
}
