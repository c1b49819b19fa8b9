/* A clock event device descriptor as it stood in 2016, reduced to its layout. */
#ifndef CLOCKCHIPS_H
#define CLOCKCHIPS_H

#include <stdint.h>

typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t s64;
typedef s64 ktime_t;

struct module;
struct cpumask;

struct list_head {
	struct list_head *next, *prev;
};

enum clock_event_state {
	CLOCK_EVT_STATE_DETACHED,
	CLOCK_EVT_STATE_SHUTDOWN,
	CLOCK_EVT_STATE_PERIODIC,
	CLOCK_EVT_STATE_ONESHOT,
};

#define ____cacheline_aligned __attribute__((__aligned__(64)))

/**
 * struct clock_event_device - clock event device descriptor
 * @event_handler:	called by the low level handler
 *			of the event source
 * @set_next_event:	programs a delta
 * @set_next_ktime:	programs an absolute time
 * @next_event:		storage for the next event
 * @max_delta_ns:	maximum delta value in ns
 * @max_delta_ticks:	maximum delta value in ticks
 * @min_delta_ticks_adjusted: minimum delta in ticks, adjusted
 * @mult_adjusted:	adjusted multiplier
 * @shift:		divisor, a power of two
 * @state_use_accessors: current state
 * @features:		features
 * @retries:		forced programming retries
 * @broadcast:		broadcasts events
 * @name:		name
 * @min_delta_ticks:	minimum delta value in ticks
 * @mult:		multiplier as configured
 * @rating:		how good the device is
 * @irq:		interrupt number
 * @bound_on:		bound on CPU
 * @cpumask:		CPUs the device works for
 * @list:		list head for the management code
 * @owner:		module reference
 */
struct clock_event_device {
	void			(*event_handler)(struct clock_event_device *);
	int			(*set_next_event)(unsigned long evt, struct clock_event_device *);
	int			(*set_next_ktime)(ktime_t expires, struct clock_event_device *);
	ktime_t			next_event;
	u64			max_delta_ns;
	unsigned long		max_delta_ticks;
	unsigned int		min_delta_ticks_adjusted;
	u32			mult_adjusted;
	u32			shift;
	enum clock_event_state	state_use_accessors:8;
	unsigned int		features:24;
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
	u32			mult;
	int			rating;
	int			irq;
	int			bound_on;
	const struct cpumask	*cpumask;
	struct list_head	list;
	struct module		*owner;
} ____cacheline_aligned;

#endif
