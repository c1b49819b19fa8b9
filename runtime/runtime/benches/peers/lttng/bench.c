/* Prints nanoseconds per LTTng-UST tracepoint, median of 401 batches; whether it is on is the session's choice. */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "provider.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { BATCHES = 401, PER_BATCH = 5000 };

static double now_ns(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

__attribute__((noinline)) static double batch(int traced)
{
	double start = now_ns();
	for (unsigned long i = 0; i < PER_BATCH; i++) {
		if (traced)
			lttng_ust_tracepoint(lineup_bench, event, i);
		__asm__ volatile("" ::: "memory");
	}
	return (now_ns() - start) / PER_BATCH;
}

int main(void)
{
	double cost[BATCHES];
	for (int i = 0; i < BATCHES; i++) {
		double empty = batch(0);
		cost[i] = batch(1) - empty;
	}
	qsort(cost, BATCHES, sizeof *cost, ascending);
	printf("%.3f\n", cost[BATCHES / 2]);
	return 0;
}
