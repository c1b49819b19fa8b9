/* One-shot timers on the simulated clock: the program calls those that are due. */
#ifndef HRTIMER_H
#define HRTIMER_H

#include <kernel.h>

enum hrtimer_restart { HRTIMER_NORESTART, HRTIMER_RESTART };

struct hrtimer {
	ktime_t expires;
	enum hrtimer_restart (*function)(struct hrtimer *);
	struct hrtimer *next;
	bool armed;
};

void hrtimer_start(struct hrtimer *timer, ktime_t in_ns);
void hrtimer_forward(struct hrtimer *timer, ktime_t by_ns);

/* Calls every timer that is due at a time. */
void hrtimer_run(ktime_t now);

#endif
