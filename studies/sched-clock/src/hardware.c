#include <hardware.h>

struct counter_registers counter __attribute__((__aligned__(4096)));

/* The read-mostly section starts on a line of its own, as a kernel's linker script has it. */
unsigned long counter_hz __read_mostly ____cacheline_aligned = 19200000;

static u64 ticks_since_start;

ktime_t hardware_now(void)
{
	return (ktime_t)(ticks_since_start * 625 / 12);
}

void hardware_advance(u32 ticks)
{
	ticks_since_start += ticks;
	counter.count = (u32)ticks_since_start;
}

u64 counter_read(void)
{
	return counter.count;
}
