/* Threads compute results that are known before, under signals, system calls, locks, vectors, jumps and forks. */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { NODES = 4000, SEEDS = 64, WORKERS = 2 };

struct node {
	struct node *next;
	long key;
	char text[48];
};

static struct node *nodes;
static volatile int stop;
static long handled, rounds, locked;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t expected[SEEDS];

static void on_signal(int signal)
{
	double x = 1.5;
	(void)signal;
	for (int k = 0; k < 10; k++)
		x = x * 1.25 + k;
	__atomic_fetch_add(&handled, x > 0, __ATOMIC_RELAXED);
}

static uint64_t mix(uint64_t x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdULL;
	return x ^ x >> 33;
}

__attribute__((noinline)) static long walk(void)
{
	long sum = 0;
	for (struct node *node = nodes; node; node = node->next)
		sum += node->key;
	return sum;
}

__attribute__((noinline)) static double sums(int seed)
{
	double sum = 0;
	long double more = 0;
	for (int i = 1; i < 500; i++) {
		sum += sqrt(i + seed) / i;
		more += 1.0L / (i + seed);
	}
	return sum + (double)more;
}

typedef uint64_t wide __attribute__((vector_size(32)));

__attribute__((noinline)) static uint64_t vectors(uint64_t seed)
{
	wide sum = {0, 0, 0, 0};
	for (uint64_t round = 0; round < 200; round++)
		sum = (sum ^ (wide){seed, seed + 1, seed + 2, round}) * 3 + round;
	return sum[0] ^ sum[1] * 3 ^ sum[2] * 5 ^ sum[3] * 7;
}

static int compared(const void *one, const void *other)
{
	uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
	return a < b ? -1 : a > b;
}

__attribute__((noinline)) static uint64_t sorted(uint64_t seed)
{
	uint64_t all[64], hash = 0;
	for (int i = 0; i < 64; i++)
		all[i] = mix(seed * 64 + i);
	qsort(all, 64, 8, compared);
	for (int i = 0; i < 64; i++)
		hash = hash * 31 + all[i];
	return hash;
}

__attribute__((noinline)) static void jump_out(jmp_buf to, int depth)
{
	if (depth == 0)
		longjmp(to, 7);
	jump_out(to, depth - 1);
	__asm__ volatile("");
}

static uint64_t result(uint64_t seed)
{
	jmp_buf here;
	char text[64];
	double sum = sums(seed);
	uint64_t bits, hash = mix(seed + walk());
	memcpy(&bits, &sum, 8);
	hash = mix(hash ^ bits ^ vectors(seed));
	hash = mix(hash + sorted(seed));
	int jumped = setjmp(here);
	if (jumped == 0)
		jump_out(here, seed % 20);
	int length = snprintf(text, sizeof text, "%d %.6f", (int)seed + jumped, sum);
	for (int i = 0; i < length; i++)
		hash = hash * 131 + text[i];
	char *memory = malloc(100 + seed * 40);
	memset(memory, (int)seed, 100);
	hash += memory[seed];
	free(memory);
	return hash;
}

static void check(uint64_t seed, uint64_t got)
{
	if (got != expected[seed]) {
		printf("wrong\n");
		fflush(stdout);
		_exit(3);
	}
}

static void *work(void *first)
{
	int ends[2];
	uint64_t seed = (uintptr_t)first;
	if (pipe(ends))
		abort();
	while (!stop) {
		char sent = (char)seed, got = 0;
		check(seed % SEEDS, result(seed % SEEDS));
		while (write(ends[1], &sent, 1) != 1)
			if (errno != EINTR)
				abort();
		while (read(ends[0], &got, 1) != 1)
			if (errno != EINTR)
				abort();
		if (sent != got)
			check(0, 0);
		pthread_mutex_lock(&lock);
		locked++;
		pthread_mutex_unlock(&lock);
		__atomic_fetch_add(&rounds, 1, __ATOMIC_RELAXED);
		if (seed % 64 == 9)
			raise(SIGUSR2);
		seed++;
	}
	return NULL;
}

static void *brief(void *seed)
{
	return (void *)(uintptr_t)result((uintptr_t)seed);
}

static void *spawn(void *unused)
{
	uint64_t seed = 0;
	(void)unused;
	while (!stop) {
		pthread_t thread;
		void *got;
		if (pthread_create(&thread, NULL, brief, (void *)(uintptr_t)(seed % SEEDS)) || pthread_join(thread, &got))
			abort();
		check(seed % SEEDS, (uintptr_t)got);
		if (++seed % 64 == 0) {
			int status = -1;
			pid_t made = fork();
			if (made == 0)
				_exit(result(5) == expected[5] ? 0 : 9);
			while (waitpid(made, &status, 0) < 0 && errno == EINTR)
				;
			if (status != 0)
				check(0, 0);
		}
	}
	return NULL;
}

int main(void)
{
	pthread_t all[WORKERS + 1];
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	struct itimerval often = {{0, 5000}, {0, 5000}};
	for (long key = 0; key < NODES; key++) {
		struct node *node = malloc(sizeof *node);
		node->next = nodes;
		node->key = key;
		nodes = node;
	}
	for (uint64_t seed = 0; seed < SEEDS; seed++)
		expected[seed] = result(seed);
	sigaction(SIGALRM, &action, NULL);
	sigaction(SIGUSR2, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (long number = 0; number < WORKERS; number++)
		pthread_create(&all[number], NULL, work, (void *)number);
	pthread_create(&all[WORKERS], NULL, spawn, NULL);
	printf("runs\n");
	fflush(stdout);
	for (char byte; read(0, &byte, 1) != 1;)
		;
	stop = 1;
	for (int number = 0; number <= WORKERS; number++)
		pthread_join(all[number], NULL);
	printf("%s: %ld rounds, %ld signals\n", locked == rounds ? "right" : "wrong", rounds, handled);
	return 0;
}
