/*
 * The tables of the immediate values document, on this machine. Prints lines "NAME VALUE ERROR" in cycles: median and
 * standard deviation over RUNS runs (10, as the document has them), ready for `lineup measure --derive`. A run's figure is the
 * median of its calls: on a shared machine a mean is mostly the scheduler's.
 *
 *     ./immediate_values [RUNS]    every table
 *     lineup measure --derive '2*(memory-hit)/path' memory=... hit=... path=...
 */
#include <lineup/imv.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_RUNS 100
#define BRANCHES 2000
#define CALLS 40
#define LINE_BYTES 64
#define THRASH_BYTES (8 << 20)

DEFINE_IMV(char, marker) = 0;
static char *arena;
static unsigned *next_line;
static volatile unsigned sink;
static int runs = 10;

static inline unsigned long long cycles(void)
{
#if defined(__x86_64__)
	unsigned low, high;
	__asm__ volatile("lfence\n\trdtsc\n\tlfence" : "=a"(low), "=d"(high)::"memory");
	return (unsigned long long)high << 32 | low;
#else
	unsigned long long value;
	__asm__ volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(value)::"memory");
	return value;
#endif
}

static unsigned random_state = 1;
static unsigned random_line(void)
{
	random_state = random_state * 1664525u + 1013904223u;
	return (random_state >> 8) % (THRASH_BYTES / LINE_BYTES);
}

/* The walk the document found not to thrash: prefetchers see through it. */
static void thrash_linear(void)
{
	memset(arena, (int)random_state++, THRASH_BYTES);
}

static void thrash_random(void)
{
	unsigned at = 0;
	for (int i = 0; i < THRASH_BYTES / LINE_BYTES; i++)
		at = next_line[at * (LINE_BYTES / sizeof(unsigned))];
	sink = at;
}

static void link_lines(void)
{
	unsigned lines = THRASH_BYTES / LINE_BYTES;
	unsigned *order = malloc(lines * sizeof *order);
	for (unsigned i = 0; i < lines; i++)
		order[i] = i;
	for (unsigned i = lines - 1; i > 0; i--) {
		unsigned j = random_line() % i;
		unsigned swap = order[i];
		order[i] = order[j];
		order[j] = swap;
	}
	for (unsigned i = 0; i < lines; i++)
		next_line[order[i] * (LINE_BYTES / sizeof(unsigned))] = order[(i + 1) % lines];
	free(order);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void report(const char *name, double *values)
{
	double mean = 0, squares = 0;
	for (int i = 0; i < runs; i++)
		mean += values[i] / runs;
	for (int i = 0; i < runs; i++)
		squares += (values[i] - mean) * (values[i] - mean);
	qsort(values, (size_t)runs, sizeof *values, by_value);
	printf("%-32s %10.2f %8.2f\n", name, (values[(runs - 1) / 2] + values[runs / 2]) / 2, sqrt(squares / (runs - 1)));
}

static int ascending(const void *a, const void *b)
{
	unsigned long long x = *(const unsigned long long *)a, y = *(const unsigned long long *)b;
	return (x > y) - (x < y);
}

static double median(unsigned long long *samples, int count)
{
	qsort(samples, (size_t)count, sizeof *samples, ascending);
	return (double)samples[count / 2];
}

/* One timed branch per round; what is branched on differs. */
enum branch { BASE, STREAM, HIT, MEMORY };

static double branches(enum branch kind)
{
	static unsigned long long samples[BRANCHES];
	char *fixed = arena;
	for (int i = 0; i < BRANCHES; i++) {
		char *variable = kind == MEMORY || kind == BASE ? &arena[(size_t)random_line() * LINE_BYTES] : fixed;
#if defined(__x86_64__)
		if (kind == MEMORY)
			__builtin_ia32_clflush(variable);
		__builtin_ia32_mfence();
#endif
		unsigned long long start = cycles();
		if (kind == STREAM ? imv_read(marker) : kind == BASE ? 0 : *(volatile char *)variable)
			sink++;
		samples[i] = cycles() - start;
	}
	return median(samples, BRANCHES);
}

static void branch_table(void)
{
	static const char *names[] = { "base", "instruction_stream", "l1_hit", "memory_read" };
	printf("\n# one branch, cycles: name, median, standard deviation of %d runs\n", runs);
	memset(arena, 0, THRASH_BYTES);
	for (int kind = BASE; kind <= MEMORY; kind++) {
		double values[MAX_RUNS];
		for (int run = 0; run < runs; run++)
			values[run] = branches((enum branch)kind);
		report(names[kind], values);
	}
}

/* Two markers around a system call, as entry and exit of the document's traced call. */
enum markers { NONE, IMMEDIATE, GLOBAL };

__attribute__((noinline)) static double system_call(enum markers markers, void (*thrash)(void), volatile char *global)
{
	unsigned long long samples[CALLS];
	for (int i = 0; i < CALLS; i++) {
		if (thrash)
			thrash();
		unsigned long long start = cycles();
		if (markers == IMMEDIATE ? imv_read(marker) : markers == GLOBAL ? *global : 0)
			sink++;
		syscall(SYS_getppid);
		if (markers == IMMEDIATE ? imv_read(marker) : markers == GLOBAL ? *global : 0)
			sink++;
		samples[i] = cycles() - start;
	}
	return median(samples, CALLS);
}

static void call_table(void)
{
	static const char *markers[] = { "no_markers", "immediate_markers", "global_markers" };
	static const struct {
		const char *name;
		void (*thrash)(void);
	} pressures[] = { { "calm", NULL }, { "linear", thrash_linear }, { "random", thrash_random } };
	static volatile char global;
	printf("\n# getppid with two markers, cycles: name, median, standard deviation of %d runs of %d calls\n", runs, CALLS);
	for (size_t p = 0; p < sizeof pressures / sizeof *pressures; p++) {
		double values[3][MAX_RUNS];
		/* The three in turn within each run: what drifts, drifts for all. */
		link_lines();
		for (int run = 0; run < runs; run++)
			for (int kind = NONE; kind <= GLOBAL; kind++)
				values[kind][run] = system_call((enum markers)kind, pressures[p].thrash, &global);
		for (int kind = NONE; kind <= GLOBAL; kind++) {
			char name[64];
			snprintf(name, sizeof name, "%s_%s", pressures[p].name, markers[kind]);
			report(name, values[kind]);
		}
	}
}

int main(int argc, char **argv)
{
	char status[200];
	if (argc > 1)
		runs = atoi(argv[1]);
	if (argc > 2 || runs < 2 || runs > MAX_RUNS) {
		fprintf(stderr, "usage: %s [RUNS, 2 to %d]\n", argv[0], MAX_RUNS);
		return 2;
	}
	arena = aligned_alloc(4096, THRASH_BYTES);
	if (!arena)
		return 2;
	memset(arena, 0, THRASH_BYTES);
	next_line = (unsigned *)(void *)arena;
	lineup_imv_status(status, sizeof status);
	printf("# %s\n", status);
	branch_table();
	call_table();
	free(arena);
	return 0;
}
