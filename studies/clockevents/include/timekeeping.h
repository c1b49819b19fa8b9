/* The system's clock, advanced by the program instead of by hardware. */
#ifndef TIMEKEEPING_H
#define TIMEKEEPING_H

#include <kernel.h>

ktime_t ktime_get(void);
void timekeeping_advance(u64 ns);

#endif
