/* The device descriptor in the member order that the 2016 patch arrived at. */
#ifndef CLOCKCHIPS_H
#define CLOCKCHIPS_H

#include <clockstate.h>
#include <kernel.h>

struct cpumask;
struct module;

/**
 * struct clock_event_device - one piece of hardware that can raise an interrupt at a given time
 * @next_event:		when the device fires next, in oneshot mode
 * @max_delta_ns:	longest distance that may be asked for, in ns
 * @max_delta_ticks:	longest distance that the hardware takes, in ticks
 * @min_delta_ticks_adjusted: shortest distance to program, in ticks at the adjusted rate
 * @mult_adjusted:	ns to ticks multiplier that follows the rate of the system's clock
 * @shift:		ns to ticks divisor, as a power of two
 * @state_use_accessors: what the device is doing now
 * @features:		what the device can do
 * @event_handler:	what the interrupt handler calls; installed by the framework
 * @set_next_event:	arms the hardware, given a distance in its own ticks
 * @set_next_ktime:	arms the hardware, given an absolute time
 * @list:		links the device to all others
 * @mult:		ns to ticks multiplier at the nominal rate
 * @retries:		how often the shortest distance had to be forced
 * @set_state_periodic:	enters periodic mode
 * @set_state_oneshot:	enters oneshot mode
 * @set_state_oneshot_stopped: enters oneshot mode without a pending event
 * @set_state_shutdown:	turns the device off
 * @tick_resume:	brings the device back after the system slept
 * @broadcast:		passes an event on to other processors
 * @suspend:		called before the system sleeps
 * @resume:		called after the system slept
 * @name:		what the device is called
 * @min_delta_ticks:	shortest distance that the hardware takes, in ticks
 * @rating:		how good the device is, compared with others
 * @irq:		interrupt number
 * @bound_on:		processor that the device is bound to
 * @cpumask:		processors that the device works for
 * @owner:		module that the device belongs to
 */
struct clock_event_device {
	ktime_t			next_event;
	u64			max_delta_ns;
	unsigned long		max_delta_ticks;
	unsigned int		min_delta_ticks_adjusted;
	u32			mult_adjusted;
	u32			shift;
	enum clock_event_state	state_use_accessors:8;
	unsigned int		features:24;
	void			(*event_handler)(struct clock_event_device *);
	int			(*set_next_event)(unsigned long evt, struct clock_event_device *);
	int			(*set_next_ktime)(ktime_t expires, struct clock_event_device *);
	struct list_head	list;
	u32			mult;
	unsigned int		retries;

	int			(*set_state_periodic)(struct clock_event_device *);
	int			(*set_state_oneshot)(struct clock_event_device *);
	int			(*set_state_oneshot_stopped)(struct clock_event_device *);
	int			(*set_state_shutdown)(struct clock_event_device *);
	int			(*tick_resume)(struct clock_event_device *);

	void			(*broadcast)(const struct cpumask *mask);
	void			(*suspend)(struct clock_event_device *);
	void			(*resume)(struct clock_event_device *);

	const char		*name;
	unsigned int		min_delta_ticks;
	int			rating;
	int			irq;
	int			bound_on;
	const struct cpumask	*cpumask;
	struct module		*owner;
} ____cacheline_aligned;

#endif
