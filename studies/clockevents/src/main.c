/* Runs the framework the way a machine does: most of the time something else is going on, timers
 * are armed all along, and now and then the rate of the system's clock is adjusted. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <timekeeping.h>
#include <timer.h>

#define CLOCK_MULT 0x01000000U

struct options {
	unsigned int devices;
	unsigned int dummies;
	unsigned int adjustments;
	unsigned int events;
	unsigned int load_kib;
};

static const char usage[] =
	"usage: clockevents [--devices N] [--dummies N] [--adjustments N] [--events N] [--load KIB]\n"
	"  --devices N      clock event devices, 1 to 65536 (64)\n"
	"  --dummies N      how many of them are dummies that are never adjusted (0)\n"
	"  --adjustments N  changes of the clock's rate (2000)\n"
	"  --events N       events programmed between two adjustments (64)\n"
	"  --load KIB       memory walked between two adjustments, up to 1048576 (256)\n";

/* xorshift: the same numbers on every machine. */
static u32 next_random(u32 *state)
{
	u32 x = *state;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	return *state = x;
}

/* Reads and writes a buffer from end to end, as everything else that runs on the machine would. */
static u32 other_load(unsigned char *buffer, size_t bytes, u32 seed)
{
	u32 sum = seed;
	size_t i;

	for (i = 0; i < bytes; i += 32) {
		sum = sum * 31 + buffer[i];
		buffer[i] = (unsigned char)(sum >> 24);
	}
	return sum;
}

/* Programs events on the devices in turn, as their processors would. */
static u64 program_events(unsigned int events, u32 *random)
{
	struct list_head *at = clockevent_devices.next;
	u64 failed = 0;

	while (events--) {
		struct clock_event_device *dev = container_of(at, struct clock_event_device, list);
		ktime_t expires = ktime_get() + (ktime_t)(next_random(random) % 4000000) - 400000;

		this_cpu = (unsigned int)dev->bound_on;
		if (clockevents_program_event(dev, expires, next_random(random) % 8 != 0))
			failed++;
		at = at->next == &clockevent_devices ? clockevent_devices.next : at->next;
	}
	return failed;
}

/* A number that depends on everything the devices and the hardware now hold. */
static u64 checksum(const struct options *options)
{
	struct clock_event_device *dev;
	u64 sum = 14695981039346656037ULL;
	unsigned int cpu;

	list_for_each_entry(dev, &clockevent_devices, list) {
		sum = (sum ^ dev->mult_adjusted) * 1099511628211ULL;
		sum = (sum ^ (u64)dev->next_event) * 1099511628211ULL;
		sum = (sum ^ dev->retries) * 1099511628211ULL;
	}
	for (cpu = 0; cpu < options->devices; cpu++) {
		sum = (sum ^ timer_banks[cpu].compare) * 1099511628211ULL;
		sum = (sum ^ timer_banks[cpu].armed) * 1099511628211ULL;
	}
	return sum;
}

static int run(const struct options *options)
{
	size_t load_bytes = (size_t)options->load_kib * 1024;
	unsigned char *buffer = calloc(1, load_bytes ? load_bytes : 1);
	u32 random = 2463534242U, load = 1;
	u64 failed = 0;
	unsigned int i;

	if (!buffer || timers_create(options->devices, options->dummies)) {
		fprintf(stderr, "clockevents: out of memory\n");
		return 1;
	}
	for (i = 0; i < options->adjustments; i++) {
		load = other_load(buffer, load_bytes, load);
		timekeeping_advance(1000000);
		failed += program_events(options->events, &random);
		clockevents_adjust_all_freqs(CLOCK_MULT + next_random(&random) % 8192 - 4096, CLOCK_MULT);
	}
	printf("devices %u, adjustments %u, too late %llu, load %08x, checksum %016llx\n",
	       options->devices, options->adjustments, (unsigned long long)failed, load,
	       (unsigned long long)checksum(options));
	free(buffer);
	return 0;
}

/* The number after an option, from least to most. Returns 0, or -EINVAL. */
static int parse(const char *text, unsigned int least, unsigned int most, unsigned int *out)
{
	char *end;
	unsigned long value;

	if (!text || *text < '0' || *text > '9')
		return -EINVAL;
	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || *end || value < least || value > most)
		return -EINVAL;
	*out = (unsigned int)value;
	return 0;
}

int main(int argc, char **argv)
{
	struct options options = { 64, 0, 2000, 64, 256 };
	int i, bad = 0;

	for (i = 1; i < argc && !bad; i += 2) {
		if (!strcmp(argv[i], "--devices"))
			bad = parse(argv[i + 1], 1, 65536, &options.devices);
		else if (!strcmp(argv[i], "--dummies"))
			bad = parse(argv[i + 1], 0, 65536, &options.dummies);
		else if (!strcmp(argv[i], "--adjustments"))
			bad = parse(argv[i + 1], 0, 100000000, &options.adjustments);
		else if (!strcmp(argv[i], "--events"))
			bad = parse(argv[i + 1], 0, 100000000, &options.events);
		else if (!strcmp(argv[i], "--load"))
			bad = parse(argv[i + 1], 0, 1048576, &options.load_kib);
		else
			bad = 1;
	}
	if (bad || options.dummies > options.devices) {
		fputs(usage, stderr);
		return 2;
	}
	return run(&options);
}
