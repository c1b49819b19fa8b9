/* The few kernel idioms that the study needs, written for user space. */
#ifndef KERNEL_H
#define KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t s64;
typedef s64 ktime_t;

#define NSEC_PER_SEC 1000000000ULL
#define HZ 100
#define SMP_CACHE_BYTES 64
#define ____cacheline_aligned __attribute__((__aligned__(SMP_CACHE_BYTES)))
#define __read_mostly __attribute__((__section__("read_mostly")))

/* A sequence counter: odd while a writer is at work. */
typedef struct seqcount {
	unsigned int sequence;
} seqcount_t;

static inline unsigned int read_seqcount_begin(const seqcount_t *s)
{
	unsigned int sequence;

	while ((sequence = __atomic_load_n(&s->sequence, __ATOMIC_ACQUIRE)) & 1)
		;
	return sequence;
}

static inline bool read_seqcount_retry(const seqcount_t *s, unsigned int start)
{
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return __atomic_load_n(&s->sequence, __ATOMIC_RELAXED) != start;
}

static inline void write_seqcount_begin(seqcount_t *s)
{
	__atomic_store_n(&s->sequence, s->sequence + 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

static inline void write_seqcount_end(seqcount_t *s)
{
	__atomic_store_n(&s->sequence, s->sequence + 1, __ATOMIC_RELEASE);
}

#endif
