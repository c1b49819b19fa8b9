/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The tracer: regions, marks and locks recorded into a mapped file that survives a kill.
 *
 *     LINEUP_REGION(parse);                      once, at file scope
 *     LINEUP_BEGIN(parse); ... LINEUP_END(parse);
 *
 *     LINEUP_MARK_NAME(queue_length);
 *     LINEUP_MARK(queue_length, n);
 *
 *     LINEUP_LOCK(queue_lock);
 *     LINEUP_MUTEX_LOCK(queue_lock, &mutex); ... LINEUP_MUTEX_UNLOCK(&mutex);
 *
 *     struct lineup_trace_config config = { .path = "run.trace" };
 *     lineup_trace_start(&config); ... lineup_trace_stop();
 *
 * In C++: lineup::region guard(parse);
 *
 * A dormant probe is a nop that loads no data.
 */
#ifndef LINEUP_TRACE_H
#define LINEUP_TRACE_H

#include <lineup/imv.h>
#include <pthread.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

struct lineup_region {
	const char *name;
	uint32_t kind;
	uint32_t arms;
	const void *code;
	size_t code_bytes;
	const void *data;
	size_t data_bytes;
	uint64_t give_up_ns;
	uint64_t cached;
};

enum { LINEUP_EVENTS = 1, LINEUP_HIGH_WATER = 2, LINEUP_HISTOGRAMS = 4 };
enum { LINEUP_NO_COUNTERS = 0, LINEUP_HARDWARE_COUNTERS = 1, LINEUP_SOFTWARE_COUNTERS = 2 };

/* A zero takes the default: every event, overwriting the oldest of 8192 per thread, 64 threads, no counters. */
struct lineup_trace_config {
	const char *path;
	uint32_t modes;
	uint32_t stop_when_full;
	uint32_t ring_records;
	uint32_t high_water_records;
	uint32_t threads;
	uint32_t names;
	uint32_t counters;
	const char *locks_inside;
};

struct lineup_lock_functions {
	int (*try_take)(void *);
	int (*take)(void *);
	int (*release)(void *);
};

/* 0, or an errno value: EBUSY, EINVAL, ENOEXEC, or what the system said of the file. */
int lineup_trace_start(const struct lineup_trace_config *config);
void lineup_trace_stop(void);

void lineup_trace_begin(struct lineup_region *region);
void lineup_trace_end(struct lineup_region *region);
void lineup_trace_mark(struct lineup_region *mark, uint64_t value);
int lineup_lock_take(struct lineup_region *name, void *lock, struct lineup_lock_functions functions);
int lineup_lock_take_bounded(struct lineup_region *name, void *lock, struct lineup_lock_functions functions);
int lineup_lock_release(void *lock, struct lineup_lock_functions functions);
/* For functions that take or release a lock and are not wrapped, such as waits for a condition. */
void lineup_lock_note_taken(struct lineup_region *name, void *lock);
void lineup_lock_note_released(void *lock);

/* The variable behind every dormant probe, imported from the runtime into each image. */
extern void *const lineup_tracing_address;

#ifdef __cplusplus
} /* extern "C" */
#endif

LINEUP_IMV_EXTERN uint8_t lineup_tracing__imv __attribute__((weak, visibility("hidden")));
uint8_t lineup_tracing__imv __attribute__((weak, visibility("hidden"))) = 0;
LINEUP_IMV_RECORD(uint8_t, lineup_tracing, &lineup_tracing_address);

/* Bits of `arms`: what may be tried, by chance, before a call. */
#define LINEUP_ARM_NONE (1u << 0)
#define LINEUP_ARMS_CODE (1u << 1 | 1u << 2)
#define LINEUP_ARMS_DATA (1u << 3 | 1u << 4)
#define LINEUP_ARM_GIVE_UP (1u << 5)
#define LINEUP_ARM_REMOVE_ALL (1u << 6)

#define LINEUP_REGION_OF(identifier, of_kind) \
	static struct lineup_region identifier __attribute__((unused)) = { #identifier, of_kind, 0, NULL, 0, NULL, 0, 0, 0 }

#define LINEUP_REGION(identifier) LINEUP_REGION_OF(identifier, 0)
#define LINEUP_MARK_NAME(identifier) LINEUP_REGION_OF(identifier, 1)
#define LINEUP_LOCK(identifier) LINEUP_REGION_OF(identifier, 2)

/* Before tracing starts: lets the tracer flush or fetch the region's code or data lines, or give up its locks. */
#define LINEUP_TRY_CODE(region, start, bytes)                                       \
	((void)((region).code = (const void *)(start), (region).code_bytes = (bytes), \
		(region).arms |= LINEUP_ARM_NONE | LINEUP_ARM_REMOVE_ALL | LINEUP_ARMS_CODE))
#define LINEUP_TRY_DATA(region, start, bytes)                                       \
	((void)((region).data = (const void *)(start), (region).data_bytes = (bytes), \
		(region).arms |= LINEUP_ARM_NONE | LINEUP_ARM_REMOVE_ALL | LINEUP_ARMS_DATA))
#define LINEUP_TRY_GIVE_UP(region, bound_ns) \
	((void)((region).give_up_ns = (bound_ns),      \
		(region).arms |= LINEUP_ARM_NONE | LINEUP_ARM_REMOVE_ALL | LINEUP_ARM_GIVE_UP))

#define LINEUP_BEGIN(region)                               \
	do {                                               \
		if (imv_cond(lineup_tracing))              \
			lineup_trace_begin(&(region));     \
	} while (0)
#define LINEUP_END(region)                                 \
	do {                                               \
		if (imv_cond(lineup_tracing))              \
			lineup_trace_end(&(region));       \
	} while (0)
#define LINEUP_MARK(mark, value)                                  \
	do {                                                      \
		if (imv_cond(lineup_tracing))                     \
			lineup_trace_mark(&(mark), (value));      \
	} while (0)

#define LINEUP_LOCK_FUNCTIONS(family, type)                                                     \
	static inline int lineup_##family##_try(void *lock)                                     \
	{                                                                                       \
		return pthread_##family##_trylock((type *)lock);                                \
	}                                                                                       \
	static inline int lineup_##family##_take(void *lock)                                    \
	{                                                                                       \
		return pthread_##family##_lock((type *)lock);                                   \
	}                                                                                       \
	static inline int lineup_##family##_release(void *lock)                                 \
	{                                                                                       \
		return pthread_##family##_unlock((type *)lock);                                 \
	}                                                                                       \
	static inline struct lineup_lock_functions lineup_##family##_functions(void)            \
	{                                                                                       \
		struct lineup_lock_functions functions = { lineup_##family##_try, lineup_##family##_take, \
							   lineup_##family##_release };         \
		return functions;                                                               \
	}

LINEUP_LOCK_FUNCTIONS(mutex, pthread_mutex_t)
#define LINEUP_MUTEX_LOCK(name, mutex) \
	(imv_cond(lineup_tracing) ? lineup_lock_take(&(name), (mutex), lineup_mutex_functions()) : pthread_mutex_lock(mutex))
#define LINEUP_MUTEX_LOCK_BOUNDED(name, mutex)                                                       \
	(imv_cond(lineup_tracing) ? lineup_lock_take_bounded(&(name), (mutex), lineup_mutex_functions()) \
				  : pthread_mutex_lock(mutex))
#define LINEUP_MUTEX_UNLOCK(mutex)                                                        \
	(imv_cond(lineup_tracing) ? lineup_lock_release((mutex), lineup_mutex_functions()) \
				  : pthread_mutex_unlock(mutex))

#if defined(_POSIX_SPIN_LOCKS) && _POSIX_SPIN_LOCKS > 0
LINEUP_LOCK_FUNCTIONS(spin, pthread_spinlock_t)
#define LINEUP_SPIN_LOCK(name, spin)                                                                          \
	(imv_cond(lineup_tracing) ? lineup_lock_take(&(name), (void *)(spin), lineup_spin_functions()) \
				  : pthread_spin_lock(spin))
#define LINEUP_SPIN_LOCK_BOUNDED(name, spin)                                                                  \
	(imv_cond(lineup_tracing) ? lineup_lock_take_bounded(&(name), (void *)(spin), lineup_spin_functions()) \
				  : pthread_spin_lock(spin))
#define LINEUP_SPIN_UNLOCK(spin)                                                                       \
	(imv_cond(lineup_tracing) ? lineup_lock_release((void *)(spin), lineup_spin_functions()) \
				  : pthread_spin_unlock(spin))
#endif

#ifdef __cplusplus
namespace lineup {
/* Opens a region until the end of the scope. */
class region {
	lineup_region *open_;

    public:
	explicit region(lineup_region &region) : open_(nullptr)
	{
		if (imv_cond(lineup_tracing)) {
			lineup_trace_begin(&region);
			open_ = &region;
		}
	}
	~region()
	{
		if (open_)
			lineup_trace_end(open_);
	}
	region(const region &) = delete;
	region &operator=(const region &) = delete;
};
} /* namespace lineup */
#endif

#endif /* LINEUP_TRACE_H */
