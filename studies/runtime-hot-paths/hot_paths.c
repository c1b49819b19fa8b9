/*
 * The runtime's own hot paths, to be studied: a clock read must touch one data line, a dormant probe and a read of an
 * immediate value none. Other memory is walked between calls.
 *
 *     lineup study --region clock_read --region dormant_probe --region immediate_read -- ./hot_paths
 */
#include <lineup/clock.h>
#include <lineup/trace.h>
#include <stdio.h>

LINEUP_REGION(work);
DEFINE_IMV(long, limit) = 3;

static unsigned char other[1 << 20];

__attribute__((noinline)) uint64_t clock_read(void)
{
	return lineup_clock_ns();
}

__attribute__((noinline)) long dormant_probe(long n)
{
	LINEUP_BEGIN(work);
	n = n * 2654435761l + 1;
	LINEUP_END(work);
	return n;
}

__attribute__((noinline)) long immediate_read(long n)
{
	return n + imv_read(limit);
}

int main(void)
{
	uint64_t latest = 0;
	long n = 1;
	/* An emulator does not vouch for its counter. */
	if (lineup_clock_start() && lineup_clock_register(NULL, 0, 64))
		return 2;
	for (int round = 0; round < 2000; round++) {
		uint64_t now = clock_read();
		if (now < latest)
			return 1;
		latest = now;
		n = immediate_read(dormant_probe(n));
		for (size_t i = 0; i < sizeof other; i += 4096)
			other[i]++;
	}
	printf("%ld\n", n);
	return 0;
}
