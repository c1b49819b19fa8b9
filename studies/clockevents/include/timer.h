/* A per-processor timer whose registers are banked: each processor sees its own at one place. */
#ifndef TIMER_H
#define TIMER_H

#include <clockevents.h>

struct timer_bank {
	u32 compare;
	u32 control;
	u64 armed;
};

extern struct timer_bank *timer_banks;
extern unsigned int this_cpu;

/* Makes one device per processor. Returns 0, or -ENOMEM. */
int timers_create(unsigned int count, unsigned int dummies);

#endif
