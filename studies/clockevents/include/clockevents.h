/* The framework's entry points. */
#ifndef CLOCKEVENTS_H
#define CLOCKEVENTS_H

#include <clockchips.h>

/* Longest distance that may be asked for is this much below what the hardware takes, so that an
 * adjusted multiplier cannot push it over: 1/8, above the 11 % that a clock may be adjusted by. */
#define MAX_DELTA_MARGIN_SHIFT 3

/* Sets a device up for a tick rate and puts it on the list of all devices. */
void clockevents_config_and_register(struct clock_event_device *dev, u32 freq_hz,
				     unsigned int min_delta_ticks, unsigned long max_delta_ticks);

/* Moves a device into a state. */
void clockevents_switch_state(struct clock_event_device *dev, enum clock_event_state state);

/* Arms a device for a time. Returns 0, or -ETIME when that time has passed and force is off. */
int clockevents_program_event(struct clock_event_device *dev, ktime_t expires, bool force);

/* Follows a change of rate of the system's clock: its multiplier went from mult_raw to mult_mono. */
void clockevents_adjust_all_freqs(u32 mult_mono, u32 mult_raw);

/* The registered devices. */
extern struct list_head clockevent_devices;

#endif
