/* The scheduler's clock: nanoseconds from a free-running counter, read in any context. */
#ifndef SCHED_CLOCK_H
#define SCHED_CLOCK_H

#include <kernel.h>

unsigned long long sched_clock(void);
void sched_clock_register(u64 (*read)(void), int bits, unsigned long rate);
void sched_clock_postinit(void);
int sched_clock_suspend(void);
void sched_clock_resume(void);

#endif
