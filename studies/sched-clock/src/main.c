/* Reads the clock in a tight loop while the counter runs, its timer renews the epoch, and the system
 * sleeps now and then. */
#include <errno.h>
#include <hardware.h>
#include <hrtimer.h>
#include <sched_clock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define READS_BETWEEN_TIMERS 64
#define READS_BETWEEN_SLEEPS 65536

static const char usage[] =
	"usage: sched_clock [--reads N]\n"
	"  --reads N  how often the clock is read, up to 4000000000 (5000000)\n";

/* Ticks between two reads: mostly a few, sometimes so many that the counter wraps within seconds. */
static u32 ticks_to_next_read(u32 *state)
{
	*state = *state * 1664525U + 1013904223U;
	return (*state >> 28) ? (*state >> 24) : (*state >> 12);
}

static int run(unsigned long reads)
{
	u64 sum = 0, last = 0, backwards = 0;
	u32 random = 12345;
	unsigned long i;

	sched_clock_register(counter_read, COUNTER_BITS, counter_hz);
	sched_clock_postinit();
	for (i = 1; i <= reads; i++) {
		u64 now = sched_clock();

		backwards += now < last;
		last = now;
		sum = sum * 31 + now;
		hardware_advance(ticks_to_next_read(&random));
		if (i % READS_BETWEEN_TIMERS == 0)
			hrtimer_run(hardware_now());
		if (i % READS_BETWEEN_SLEEPS == 0) {
			sched_clock_suspend();
			hardware_advance(1000000);
			sched_clock_resume();
		}
	}
	printf("reads %lu, last %llu ns, went back %llu times, checksum %016llx\n", reads,
	       (unsigned long long)last, (unsigned long long)backwards, (unsigned long long)sum);
	return backwards != 0;
}

int main(int argc, char **argv)
{
	unsigned long reads = 5000000;
	char *end = NULL;

	if (argc == 3 && !strcmp(argv[1], "--reads") && argv[2][0] >= '0' && argv[2][0] <= '9') {
		errno = 0;
		reads = strtoul(argv[2], &end, 10);
		if (errno || *end || reads > 4000000000UL)
			end = NULL;
	}
	if (argc != 1 && !end) {
		fputs(usage, stderr);
		return 2;
	}
	return run(reads);
}
