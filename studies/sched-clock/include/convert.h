/* Between a counter's ticks and nanoseconds. */
#ifndef CONVERT_H
#define CONVERT_H

#include <kernel.h>

static inline u64 cyc_to_ns(u64 cyc, u32 mult, u32 shift)
{
	return (cyc * mult) >> shift;
}

/* The bits that a counter of some width has. */
static inline u64 counter_mask(int bits)
{
	return bits < 64 ? (1ULL << bits) - 1 : ~0ULL;
}

/* Multiplier and shift that turn ticks of a rate into ns, exact as far as max_seconds fit 64 bits. */
void calc_mult_shift(u32 *mult, u32 *shift, unsigned long rate, u32 max_seconds);

/* How long a counter may run before it wraps or its conversion overflows; an eighth less, to be safe. */
u64 max_idle_ns(u32 mult, u32 shift, u64 mask);

#endif
