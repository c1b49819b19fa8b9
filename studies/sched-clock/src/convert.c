#include <convert.h>

void calc_mult_shift(u32 *mult, u32 *shift, unsigned long rate, u32 max_seconds)
{
	u64 most_ticks = (u64)rate * max_seconds;
	u32 sft = 32;
	u64 m = (NSEC_PER_SEC << sft) / rate;

	while (sft && (m > UINT32_MAX || m > UINT64_MAX / most_ticks)) {
		sft--;
		m = (NSEC_PER_SEC << sft) / rate;
	}
	*mult = (u32)m;
	*shift = sft;
}

u64 max_idle_ns(u32 mult, u32 shift, u64 mask)
{
	u64 most_ticks = UINT64_MAX / mult;
	u64 ns;

	if (most_ticks > mask)
		most_ticks = mask;
	ns = cyc_to_ns(most_ticks, mult, shift);
	return ns - (ns >> 3);
}
