/*
 * Reads of a clock in a tight loop, alone and while a writer on another CPU renews its epoch at full rate: the
 * runtime's clock, the same clock behind a sequence counter, as the kernel had it, and behind a mutex.
 *
 *     ./contended [ROUNDS]
 *
 * Every round measures every clock, alone and under the writer, in turn; medians over the rounds are printed, and
 * ratios to the runtime's. The runtime's update asks the system for the time and so cannot keep up with the others';
 * the last columns have all of them paced alike.
 */
#define _GNU_SOURCE
#include <kernel.h>
#include <lineup/clock.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define READS 20000
#define MAX_ROUNDS 1001
#define PACE_CYCLES 10000

static u64 counter(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	u64 ticks;
	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
	return ticks;
#endif
}

static u64 system_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (u64)now.tv_sec * NSEC_PER_SEC + (u64)now.tv_nsec;
}

/* One line, as the patch laid it out; `mult` is per 2^24 cycles. */
static struct {
	seqcount_t seq;
	u32 mult;
	u64 epoch_cyc;
	u64 epoch_ns;
} data ____cacheline_aligned;
static pthread_mutex_t mutex ____cacheline_aligned = PTHREAD_MUTEX_INITIALIZER;

static u64 since_epoch(u64 epoch_cyc, u64 epoch_ns)
{
	/* Signed: an epoch just published may lie after the counter just read. */
	return epoch_ns + (u64)(((s64)(counter() - epoch_cyc) * data.mult) >> 24);
}

static void renew(void)
{
	u64 cyc = counter(), ns = since_epoch(data.epoch_cyc, data.epoch_ns);

	data.epoch_cyc = cyc;
	data.epoch_ns = ns;
}

static u64 seqlock_read(void)
{
	u64 epoch_cyc, epoch_ns;
	unsigned int seq;

	do {
		seq = read_seqcount_begin(&data.seq);
		epoch_cyc = __atomic_load_n(&data.epoch_cyc, __ATOMIC_RELAXED);
		epoch_ns = __atomic_load_n(&data.epoch_ns, __ATOMIC_RELAXED);
	} while (read_seqcount_retry(&data.seq, seq));
	return since_epoch(epoch_cyc, epoch_ns);
}

static void seqlock_write(void)
{
	write_seqcount_begin(&data.seq);
	renew();
	write_seqcount_end(&data.seq);
}

static u64 mutex_read(void)
{
	pthread_mutex_lock(&mutex);
	u64 ns = since_epoch(data.epoch_cyc, data.epoch_ns);
	pthread_mutex_unlock(&mutex);
	return ns;
}

static void mutex_write(void)
{
	pthread_mutex_lock(&mutex);
	renew();
	pthread_mutex_unlock(&mutex);
}

static void runtime_write(void)
{
	lineup_clock_maintain();
}

static const struct clock {
	const char *name;
	u64 (*read)(void);
	void (*write)(void);
} clocks[] = {
	{ "runtime", lineup_clock_ns, runtime_write },
	{ "sequence counter", seqlock_read, seqlock_write },
	{ "mutex", mutex_read, mutex_write },
	{ "bare counter", counter, NULL },
	{ "clock_gettime", system_ns, NULL },
};
#define CLOCKS (sizeof clocks / sizeof clocks[0])

/* What the writer writes; -1: nothing, -2: it ends. */
static int written ____cacheline_aligned = -1;
static int is_paced;
static u64 updates ____cacheline_aligned;

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof set, &set);
}

static void *writer(void *unused)
{
	int which;

	(void)unused;
	pin(1);
	while ((which = __atomic_load_n(&written, __ATOMIC_RELAXED)) != -2) {
		if (which < 0)
			continue;
		clocks[which].write();
		__atomic_store_n(&updates, updates + 1, __ATOMIC_RELAXED);
		for (u64 since = counter(); __atomic_load_n(&is_paced, __ATOMIC_RELAXED) && counter() - since < PACE_CYCLES;)
			;
	}
	return NULL;
}

static u64 backwards;

/* Nanoseconds per read. */
static double measure(const struct clock *clock)
{
	u64 start = system_ns(), last = 0;

	for (int i = 0; i < READS; i++) {
		u64 now = clock->read();

		backwards += now < last;
		last = now;
	}
	return (double)(system_ns() - start) / READS;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, int count)
{
	qsort(values, (size_t)count, sizeof *values, by_value);
	return values[count / 2];
}

/* A clock under the writer: nanoseconds per read, and million updates a second. */
static double measure_contended(int which, int paced, double *million_per_second)
{
	u64 before = __atomic_load_n(&updates, __ATOMIC_RELAXED), start = system_ns();

	__atomic_store_n(&is_paced, paced, __ATOMIC_RELAXED);
	__atomic_store_n(&written, which, __ATOMIC_RELAXED);
	while (__atomic_load_n(&updates, __ATOMIC_RELAXED) == before)
		;
	double ns = measure(&clocks[which]);
	__atomic_store_n(&written, -1, __ATOMIC_RELAXED);
	*million_per_second = (double)(__atomic_load_n(&updates, __ATOMIC_RELAXED) - before) * 1e3 /
			      (double)(system_ns() - start);
	return ns;
}

static void calibrate(void)
{
	u64 ns = system_ns(), cyc = counter();

	while (system_ns() - ns < 50000000)
		;
	data.mult = (u32)(((system_ns() - ns) << 24) / (counter() - cyc));
	data.epoch_cyc = counter();
}

enum column { ALONE, FULL, FULL_RATE, PACED, PACED_RATE, COLUMNS };

static double samples[CLOCKS][COLUMNS][MAX_ROUNDS];

static void run_round(int round)
{
	for (size_t i = 0; i < CLOCKS; i++) {
		samples[i][ALONE][round] = measure(&clocks[i]);
		if (!clocks[i].write)
			continue;
		samples[i][FULL][round] = measure_contended((int)i, 0, &samples[i][FULL_RATE][round]);
		samples[i][PACED][round] = measure_contended((int)i, 1, &samples[i][PACED_RATE][round]);
	}
}

static void print_row(size_t clock, int rounds)
{
	double values[COLUMNS];

	for (int column = 0; column < COLUMNS; column++)
		values[column] = median(samples[clock][column], rounds);
	printf("%-17s %8.1f M %6.1f %6.2f", clocks[clock].name, 1e3 / values[ALONE], values[ALONE],
	       values[ALONE] / median(samples[0][ALONE], rounds));
	for (int column = FULL; clocks[clock].write && column < COLUMNS; column += 2)
		printf(" | %8.1f %7.2f %9.2f M", values[column], values[column] / median(samples[0][column], rounds),
		       values[column + 1]);
	printf("\n");
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 31;
	pthread_t thread;

	if (rounds < 1 || rounds > MAX_ROUNDS || lineup_clock_start()) {
		fprintf(stderr, "usage: contended [ROUNDS up to %d]; it needs a counter that the runtime trusts\n", MAX_ROUNDS);
		return 2;
	}
	calibrate();
	pin(0);
	pthread_create(&thread, NULL, writer, NULL);
	for (int round = 0; round < rounds; round++)
		run_round(round);
	__atomic_store_n(&written, -2, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	printf("%-17s %26s | %28s | %28s\n", "", "alone", "writer at full rate", "writers paced alike");
	printf("%-17s %10s %6s %6s", "", "calls/s", "ns", "ratio");
	printf(" | %8s %7s %11s | %8s %7s %11s\n", "ns", "ratio", "updates/s", "ns", "ratio", "updates/s");
	for (size_t i = 0; i < CLOCKS; i++)
		print_row(i, rounds);
	printf("medians of %d rounds of %d reads; went back %llu times\n", rounds, READS, (unsigned long long)backwards);
	return 0;
}
