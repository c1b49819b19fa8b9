/* The clock event framework, as far as the study goes: registration, state, programming the next
 * event, and following the rate of the system's clock. */
#include <clockevents.h>
#include <errno.h>
#include <timekeeping.h>

#define NSEC_PER_SEC 1000000000ULL

struct list_head clockevent_devices = LIST_HEAD_INIT(clockevent_devices);

static raw_spinlock_t clockevents_lock;

/* The largest multiplier that converts one second without exceeding 64 bits, and its shift. */
static void calc_mult_shift(u32 *mult, u32 *shift, u32 freq_hz)
{
	u32 sft = 32;
	u64 m = ((u64)freq_hz << sft) / NSEC_PER_SEC;

	while (m > UINT32_MAX) {
		sft--;
		m = ((u64)freq_hz << sft) / NSEC_PER_SEC;
	}
	*mult = (u32)m;
	*shift = sft;
}

void clockevents_config_and_register(struct clock_event_device *dev, u32 freq_hz,
				     unsigned int min_delta_ticks, unsigned long max_delta_ticks)
{
	u64 max_ns;

	calc_mult_shift(&dev->mult, &dev->shift, freq_hz);
	dev->mult_adjusted = dev->mult;
	dev->min_delta_ticks = min_delta_ticks;
	dev->min_delta_ticks_adjusted = min_delta_ticks;
	dev->max_delta_ticks = max_delta_ticks;
	max_ns = (u64)max_delta_ticks * NSEC_PER_SEC / freq_hz;
	dev->max_delta_ns = max_ns - (max_ns >> MAX_DELTA_MARGIN_SHIFT);

	raw_spin_lock(&clockevents_lock);
	list_add_tail(&dev->list, &clockevent_devices);
	raw_spin_unlock(&clockevents_lock);
}

void clockevents_switch_state(struct clock_event_device *dev, enum clock_event_state state)
{
	int (*enter)(struct clock_event_device *) = NULL;

	if (dev->state_use_accessors == state)
		return;
	switch (state) {
	case CLOCK_EVT_STATE_PERIODIC:
		enter = dev->set_state_periodic;
		break;
	case CLOCK_EVT_STATE_ONESHOT:
		enter = dev->set_state_oneshot;
		break;
	case CLOCK_EVT_STATE_ONESHOT_STOPPED:
		enter = dev->set_state_oneshot_stopped;
		break;
	case CLOCK_EVT_STATE_SHUTDOWN:
		enter = dev->set_state_shutdown;
		break;
	case CLOCK_EVT_STATE_DETACHED:
		break;
	}
	if (!enter || enter(dev) == 0)
		dev->state_use_accessors = state;
}

/* Arms the device for the shortest distance that it takes. */
static int program_min_delta(struct clock_event_device *dev)
{
	dev->retries++;
	return dev->set_next_event(dev->min_delta_ticks_adjusted, dev);
}

int clockevents_program_event(struct clock_event_device *dev, ktime_t expires, bool force)
{
	s64 delta;
	u64 ticks;
	int rc;

	if (expires < 0)
		return -ETIME;
	dev->next_event = expires;
	if (dev->state_use_accessors == CLOCK_EVT_STATE_SHUTDOWN)
		return 0;
	if (dev->state_use_accessors != CLOCK_EVT_STATE_ONESHOT)
		return -EINVAL;
	if (dev->features & CLOCK_EVT_FEAT_KTIME)
		return dev->set_next_ktime(expires, dev);

	delta = expires - ktime_get();
	if (delta <= 0)
		return force ? program_min_delta(dev) : -ETIME;
	if (delta > (s64)dev->max_delta_ns)
		delta = (s64)dev->max_delta_ns;
	ticks = ((u64)delta * dev->mult_adjusted) >> dev->shift;
#ifdef BOUND_TICKS
	if (ticks > dev->max_delta_ticks)
		ticks = dev->max_delta_ticks;
#endif
	if (ticks < dev->min_delta_ticks_adjusted)
		ticks = dev->min_delta_ticks_adjusted;
	rc = dev->set_next_event((unsigned long)ticks, dev);
	return rc && force ? program_min_delta(dev) : rc;
}

/* The device's multiplier, scaled by the change of the system clock's own. A device that ticks at
 * most once per ns keeps doing so. */
static u32 adjusted_mult(u32 mult, u32 shift, u32 mult_mono, u32 mult_raw)
{
	u64 limit = 1ULL << shift;
	u64 scaled = (u64)mult * mult_raw / mult_mono;

	if (mult <= limit && scaled > limit)
		scaled = limit;
	return scaled > UINT32_MAX ? UINT32_MAX : (u32)scaled;
}

void clockevents_adjust_all_freqs(u32 mult_mono, u32 mult_raw)
{
	struct clock_event_device *dev;

	raw_spin_lock(&clockevents_lock);
	list_for_each_entry(dev, &clockevent_devices, list) {
		unsigned int features = dev->features;

		if (!(features & CLOCK_EVT_FEAT_ONESHOT) ||
		    (features & (CLOCK_EVT_FEAT_DUMMY | CLOCK_EVT_FEAT_NO_ADJUST)))
			continue;
		dev->mult_adjusted = adjusted_mult(dev->mult, dev->shift, mult_mono, mult_raw);
	}
	raw_spin_unlock(&clockevents_lock);
}
