/* The driver: one timer per processor. Every device is an allocation of its own, as it is when
 * drivers and per-processor areas bring them. */
#include <errno.h>
#include <stdlib.h>
#include <timer.h>

#define TIMER_FREQ_HZ 19200000U
#define TIMER_MIN_TICKS 15U
#define TIMER_MAX_TICKS 0x7fffffffUL
#define CONTROL_ENABLE 1U
#define CONTROL_PERIODIC 2U

struct timer_bank *timer_banks;
unsigned int this_cpu;

static int timer_set_next_event(unsigned long evt, struct clock_event_device *dev)
{
	struct timer_bank *bank = &timer_banks[this_cpu];

	(void)dev;
	bank->compare = (u32)evt;
	bank->armed++;
	return 0;
}

static int timer_set_next_ktime(ktime_t expires, struct clock_event_device *dev)
{
	struct timer_bank *bank = &timer_banks[this_cpu];

	(void)dev;
	bank->compare = (u32)expires;
	bank->armed++;
	return 0;
}

static int timer_set_oneshot(struct clock_event_device *dev)
{
	timer_banks[dev->bound_on].control = CONTROL_ENABLE;
	return 0;
}

static int timer_set_periodic(struct clock_event_device *dev)
{
	timer_banks[dev->bound_on].control = CONTROL_ENABLE | CONTROL_PERIODIC;
	return 0;
}

static int timer_shutdown(struct clock_event_device *dev)
{
	timer_banks[dev->bound_on].control = 0;
	return 0;
}

static struct clock_event_device *timer_new(unsigned int cpu, unsigned int features)
{
	struct clock_event_device *dev;

	dev = aligned_alloc(SMP_CACHE_BYTES, sizeof(*dev));
	if (!dev)
		return NULL;
	*dev = (struct clock_event_device){
		.set_next_event = timer_set_next_event,
		.set_next_ktime = timer_set_next_ktime,
		.features = features,
		.set_state_periodic = timer_set_periodic,
		.set_state_oneshot = timer_set_oneshot,
		.set_state_oneshot_stopped = timer_shutdown,
		.set_state_shutdown = timer_shutdown,
		.name = "timer",
		.rating = 350,
		.irq = 29,
		.bound_on = (int)cpu,
	};
	return dev;
}

int timers_create(unsigned int count, unsigned int dummies)
{
	unsigned int cpu;

	timer_banks = calloc(count, sizeof(*timer_banks));
	if (!timer_banks)
		return -ENOMEM;
	for (cpu = 0; cpu < count; cpu++) {
		unsigned int features = CLOCK_EVT_FEAT_PERIODIC | CLOCK_EVT_FEAT_ONESHOT;
		struct clock_event_device *dev;

		if (cpu >= count - dummies)
			features |= CLOCK_EVT_FEAT_DUMMY;
		dev = timer_new(cpu, features);
		if (!dev)
			return -ENOMEM;
		clockevents_config_and_register(dev, TIMER_FREQ_HZ + 1000 * cpu, TIMER_MIN_TICKS,
						TIMER_MAX_TICKS);
		clockevents_switch_state(dev, CLOCK_EVT_STATE_ONESHOT);
	}
	return 0;
}
