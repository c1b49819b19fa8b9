/*
 * A timer tick whose tail has causes planted in known shares, traced with interventions.
 *
 *     ./timer_tail FILE CALLS CODE DATA LOCK
 *
 * Before each of CALLS ticks, by chance: in CODE of 1000 calls the tick's code lines are flushed, as other work
 * would evict them; in DATA of 1000 its data lines; in LOCK of 1000 another thread is made to hold the run-queue
 * lock. A mark in the trace says which, so that a test knows the truth; the explanation does not look at it.
 */
#include <lineup/clock.h>
#include <lineup/trace.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

LINEUP_REGION(tick);
LINEUP_LOCK(run_queue);
LINEUP_MARK_NAME(planted);

enum plant { NOTHING, CODE, DATA, LOCK };

#define LINE_BYTES 64
#define DATA_LINES 192
#define HOLD_NS 6000
#define GIVE_UP_NS 100

struct timer {
	struct timer *next;
	uint64_t expires;
	char padding[LINE_BYTES - sizeof(struct timer *) - sizeof(uint64_t)];
};

static struct timer timers[DATA_LINES] __attribute__((aligned(LINE_BYTES)));
static pthread_spinlock_t queue_lock;
static atomic_int hold_request, is_held, is_ticking, is_over;
static uint64_t wakeups;

/* Straight code: about 24 KiB executed once from end to end, so that its cost, cold, is that of fetching it. */
#define STEP(n) state = (state ^ (state >> 7)) * 0x9e3779b97f4a7c15ull + n##ull;
#define STEPS_8(n) STEP(n##1) STEP(n##2) STEP(n##3) STEP(n##4) STEP(n##5) STEP(n##6) STEP(n##7) STEP(n##8)
#define STEPS_64(n) STEPS_8(n##1) STEPS_8(n##2) STEPS_8(n##3) STEPS_8(n##4) STEPS_8(n##5) STEPS_8(n##6) STEPS_8(n##7) STEPS_8(n##8)
__attribute__((noinline, aligned(LINE_BYTES), section(".text.tick_code"))) static uint64_t account(uint64_t state)
{
	STEPS_64(1) STEPS_64(2) STEPS_64(3) STEPS_64(4) STEPS_64(5) STEPS_64(6) STEPS_64(7) STEPS_64(8)
	return state;
}
__attribute__((noinline, aligned(LINE_BYTES), section(".text.tick_code"))) static void account_end(void)
{
	__asm__ volatile("");
}

__attribute__((noinline)) static uint64_t run_expired(struct timer *timer)
{
	uint64_t latest = 0;
	for (int i = 0; i < DATA_LINES; i++, timer = timer->next)
		latest = timer->expires > latest ? timer->expires : latest;
	return latest;
}

__attribute__((noinline)) static uint64_t tick_once(uint64_t state)
{
	LINEUP_BEGIN(tick);
	state = account(state);
	state += run_expired(&timers[0]);
	if (LINEUP_SPIN_LOCK_BOUNDED(run_queue, &queue_lock) == 0) {
		wakeups++;
		LINEUP_SPIN_UNLOCK(&queue_lock);
	}
	LINEUP_END(tick);
	return state;
}

static void flush(const void *start, size_t bytes)
{
	for (const char *line = (const char *)start; line < (const char *)start + bytes; line += LINE_BYTES) {
#if defined(__x86_64__)
		__builtin_ia32_clflush(line);
#elif defined(__aarch64__)
		__asm__ volatile("dc civac, %0\n\tic ivau, %0" ::"r"(line) : "memory");
#endif
	}
	__sync_synchronize();
}

static void *other_cpu(void *unused)
{
	(void)unused;
	while (!atomic_load(&is_over)) {
		if (!atomic_exchange(&hold_request, 0))
			continue;
		pthread_spin_lock(&queue_lock);
		atomic_store(&is_held, 1);
		/* The hold counts from the tick, whenever the scheduler let it begin. */
		while (!atomic_exchange(&is_ticking, 0))
			;
		uint64_t until = lineup_clock_ns() + HOLD_NS;
		while (lineup_clock_ns() < until)
			;
		pthread_spin_unlock(&queue_lock);
	}
	return NULL;
}

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static enum plant choose(uint64_t *state, const long *per_thousand)
{
	long drawn = (long)(next_random(state) % 1000);
	for (int cause = CODE; cause <= LOCK; cause++) {
		if (drawn < per_thousand[cause])
			return (enum plant)cause;
		drawn -= per_thousand[cause];
	}
	return NOTHING;
}

static void do_plant(enum plant cause)
{
	if (cause == CODE)
		flush((const void *)account, (size_t)((const char *)account_end - (const char *)account));
	if (cause == DATA)
		flush(timers, sizeof timers);
	if (cause == LOCK) {
		atomic_store(&is_held, 0);
		atomic_store(&hold_request, 1);
		while (!atomic_load(&is_held))
			;
	}
	LINEUP_MARK(planted, (uint64_t)cause);
	if (cause == LOCK)
		atomic_store(&is_ticking, 1);
}

/* A cycle through all timers in an order that no prefetcher follows. */
static void link_timers(uint64_t *random)
{
	int order[DATA_LINES];
	for (int i = 0; i < DATA_LINES; i++)
		order[i] = i;
	for (int i = DATA_LINES - 1; i > 1; i--) {
		int j = 1 + (int)(next_random(random) % (uint64_t)i);
		int swap = order[i];
		order[i] = order[j];
		order[j] = swap;
	}
	for (int i = 0; i < DATA_LINES; i++)
		timers[order[i]].next = &timers[order[(i + 1) % DATA_LINES]];
}

int main(int argc, char **argv)
{
	if (argc != 6) {
		fprintf(stderr, "usage: %s FILE CALLS CODE DATA LOCK (per thousand calls)\n", argv[0]);
		return 2;
	}
	long calls = atol(argv[2]);
	long per_thousand[] = { 0, atol(argv[3]), atol(argv[4]), atol(argv[5]) };
	uint64_t random = 88172645463325252ull;
	link_timers(&random);
	pthread_spin_init(&queue_lock, 0);
	LINEUP_TRY_CODE(tick, account, (size_t)((const char *)account_end - (const char *)account));
	LINEUP_TRY_DATA(tick, timers, sizeof timers);
	LINEUP_TRY_GIVE_UP(tick, GIVE_UP_NS);
	struct lineup_trace_config config = { .path = argv[1], .threads = 4, .ring_records = 1 << 20 };
	int failed = lineup_trace_start(&config);
	if (failed) {
		fprintf(stderr, "tracing did not start: error %d\n", failed);
		return 2;
	}
	pthread_t other;
	pthread_create(&other, NULL, other_cpu, NULL);
	uint64_t state = 1;
	for (long i = 0; i < calls; i++) {
		do_plant(choose(&random, per_thousand));
		state = tick_once(state);
	}
	atomic_store(&is_over, 1);
	pthread_join(other, NULL);
	lineup_trace_stop();
	printf("%ld ticks, %lu wakeups, state %lx\n", calls, (unsigned long)wakeups, (unsigned long)state);
	return 0;
}
