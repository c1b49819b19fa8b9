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
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

LINEUP_REGION(tick);
LINEUP_LOCK(run_queue);
LINEUP_MARK_NAME(planted);

enum plant { NOTHING, CODE, DATA, LOCK };

#define LINE_BYTES 64
#define DATA_LINES 192
#define CODE_LINES 256
#define HOLD_NS 20000
#define GIVE_UP_NS 100

struct timer {
	struct timer *next;
	uint64_t expires;
	char padding[LINE_BYTES - sizeof(struct timer *) - sizeof(uint64_t)];
};

static struct timer timers[DATA_LINES] __attribute__((aligned(LINE_BYTES)));
static pthread_spinlock_t queue_lock;
static atomic_int hold_request, is_held, is_ticking, is_awaited, is_over;
static uint64_t wakeups;

/*
 * 256 functions, each on a line of its own in one section, called in an order that no prefetcher follows: cold, they
 * cost as many fetches one after the other.
 */
#define LEAF(n)                                                                                           \
	__attribute__((noinline, aligned(LINE_BYTES), section("tick_code"))) static uint64_t leaf_##n(uint64_t state) \
	{                                                                                                  \
		return (state ^ (state >> 7)) * 0x9e3779b97f4a7c15ull + 0x##n##ull;                        \
	}
#define POINTER(n) leaf_##n,
#define SIXTEEN(X, n)                                                                                      \
	X(n##0) X(n##1) X(n##2) X(n##3) X(n##4) X(n##5) X(n##6) X(n##7)                                    \
	X(n##8) X(n##9) X(n##a) X(n##b) X(n##c) X(n##d) X(n##e) X(n##f)
#define ALL(X)                                                                                             \
	SIXTEEN(X, 0) SIXTEEN(X, 1) SIXTEEN(X, 2) SIXTEEN(X, 3) SIXTEEN(X, 4) SIXTEEN(X, 5) SIXTEEN(X, 6) SIXTEEN(X, 7) \
	SIXTEEN(X, 8) SIXTEEN(X, 9) SIXTEEN(X, a) SIXTEEN(X, b) SIXTEEN(X, c) SIXTEEN(X, d) SIXTEEN(X, e) SIXTEEN(X, f)
ALL(LEAF)
static uint64_t (*leaves[CODE_LINES])(uint64_t) = { ALL(POINTER) };
/* The linker's names for the section's ends. */
extern const char __start_tick_code[], __stop_tick_code[];
#define CODE_BYTES ((size_t)(__stop_tick_code - __start_tick_code))

__attribute__((noinline)) static uint64_t account(uint64_t state)
{
	for (int i = 0; i < CODE_LINES; i++)
		state = leaves[i](state);
	return state;
}

__attribute__((noinline)) static uint64_t run_expired(struct timer *timer)
{
	uint64_t latest = 0;
	for (int i = 0; i < DATA_LINES; i++, timer = timer->next)
		latest = timer->expires > latest ? timer->expires : latest;
	return latest;
}

__attribute__((noinline)) static uint64_t work(uint64_t state)
{
	state = account(state);
	return state + run_expired(&timers[0]);
}

__attribute__((noinline)) static uint64_t tick_once(uint64_t state)
{
	LINEUP_BEGIN(tick);
	state = work(state);
	/* The hold counts from here: an intervention before the call takes time, in which a hold would run out. */
	if (atomic_load_explicit(&is_awaited, memory_order_relaxed))
		atomic_store(&is_ticking, 1);
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
		if (!atomic_exchange(&hold_request, 0)) {
			sched_yield();
			continue;
		}
		pthread_spin_lock(&queue_lock);
		atomic_store(&is_held, 1);
		while (!atomic_exchange(&is_ticking, 0))
			;
		uint64_t until = lineup_clock_ns() + HOLD_NS;
		while (lineup_clock_ns() < until)
			;
		pthread_spin_unlock(&queue_lock);
		atomic_store(&is_held, 0);
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

/* Begins with a warm tick that is not traced: without a plant, whatever ran before must not make the next one cold. */
static uint64_t do_plant(enum plant cause, uint64_t state)
{
	if (cause == LOCK) {
		atomic_store(&hold_request, 1);
		while (!atomic_load(&is_held))
			sched_yield();
	}
	state = work(state);
	if (cause == CODE)
		flush(__start_tick_code, CODE_BYTES);
	if (cause == DATA)
		flush(timers, sizeof timers);
	atomic_store_explicit(&is_awaited, cause == LOCK, memory_order_relaxed);
	LINEUP_MARK(planted, (uint64_t)cause);
	return state;
}

static void shuffle(int *order, int count, uint64_t *random)
{
	for (int i = 0; i < count; i++)
		order[i] = i;
	for (int i = count - 1; i > 1; i--) {
		int j = 1 + (int)(next_random(random) % (uint64_t)i);
		int swap = order[i];
		order[i] = order[j];
		order[j] = swap;
	}
}

/* A cycle through all timers and a path through all leaves, in orders that no prefetcher follows. */
static void shuffle_lines(uint64_t *random)
{
	int order[CODE_LINES > DATA_LINES ? CODE_LINES : DATA_LINES];
	shuffle(order, DATA_LINES, random);
	for (int i = 0; i < DATA_LINES; i++)
		timers[order[i]].next = &timers[order[(i + 1) % DATA_LINES]];
	uint64_t (*in_order[CODE_LINES])(uint64_t);
	memcpy(in_order, leaves, sizeof leaves);
	shuffle(order, CODE_LINES, random);
	for (int i = 0; i < CODE_LINES; i++)
		leaves[i] = in_order[order[i]];
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
	shuffle_lines(&random);
	pthread_spin_init(&queue_lock, 0);
	LINEUP_TRY_CODE(tick, __start_tick_code, CODE_BYTES);
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
		state = do_plant(choose(&random, per_thousand), state);
		state = tick_once(state);
		/* A hold outlives a tick that gave the lock up: it must not strike the next one. */
		while (atomic_load(&is_held))
			;
	}
	atomic_store(&is_over, 1);
	pthread_join(other, NULL);
	lineup_trace_stop();
	printf("%ld ticks, %lu wakeups, state %lx\n", calls, (unsigned long)wakeups, (unsigned long)state);
	return 0;
}
