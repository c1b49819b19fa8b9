#include <timekeeping.h>

static ktime_t monotonic_now;

ktime_t ktime_get(void)
{
	return monotonic_now;
}

void timekeeping_advance(u64 ns)
{
	monotonic_now += (ktime_t)ns;
}
