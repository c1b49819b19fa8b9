/* The counter that the clock is read from. It stands for a device's registers: a page of its own,
 * advanced by the program. */
#ifndef HARDWARE_H
#define HARDWARE_H

#include <kernel.h>

#define COUNTER_BITS 32

struct counter_registers {
	volatile u32 count;
	volatile u32 control;
};

extern struct counter_registers counter;
extern unsigned long counter_hz;

/* What has passed since the start, in ns: what the simulated hardware knows, unlike the clock. */
ktime_t hardware_now(void);
void hardware_advance(u32 ticks);
u64 counter_read(void);

#endif
