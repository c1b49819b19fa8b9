#include <hrtimer.h>

static struct hrtimer *timers;

void hrtimer_start(struct hrtimer *timer, ktime_t in_ns)
{
	timer->expires += in_ns;
	if (!timer->armed) {
		timer->armed = true;
		timer->next = timers;
		timers = timer;
	}
}

void hrtimer_forward(struct hrtimer *timer, ktime_t by_ns)
{
	timer->expires += by_ns;
}

void hrtimer_run(ktime_t now)
{
	struct hrtimer **link = &timers;

	while (*link) {
		struct hrtimer *timer = *link;

		if (timer->expires <= now && timer->function(timer) == HRTIMER_NORESTART) {
			timer->armed = false;
			*link = timer->next;
		} else {
			link = &timer->next;
		}
	}
}
