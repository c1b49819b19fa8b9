/* The few kernel idioms that the study needs, written for user space. */
#ifndef KERNEL_H
#define KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t s64;

/* Nanoseconds; 64 bits wide on every data model. */
typedef s64 ktime_t;

#define SMP_CACHE_BYTES 64
#define ____cacheline_aligned __attribute__((__aligned__(SMP_CACHE_BYTES)))

/* A circular doubly linked list threaded through the objects it links. */
struct list_head {
	struct list_head *next, *prev;
};

#define LIST_HEAD_INIT(name) { &(name), &(name) }

static inline void list_add_tail(struct list_head *entry, struct list_head *head)
{
	struct list_head *last = head->prev;

	entry->next = head;
	entry->prev = last;
	last->next = entry;
	head->prev = entry;
}

#define container_of(ptr, type, member) \
	((type *)((char *)(ptr) - offsetof(type, member)))

#define list_for_each_entry(pos, head, member)                              \
	for (pos = container_of((head)->next, __typeof__(*pos), member);    \
	     &pos->member != (head);                                        \
	     pos = container_of(pos->member.next, __typeof__(*pos), member))

/* A test-and-set lock: enough for what the framework guards here. */
typedef struct {
	u32 locked;
} raw_spinlock_t;

static inline void raw_spin_lock(raw_spinlock_t *lock)
{
	while (__atomic_exchange_n(&lock->locked, 1, __ATOMIC_ACQUIRE))
		;
}

static inline void raw_spin_unlock(raw_spinlock_t *lock)
{
	__atomic_store_n(&lock->locked, 0, __ATOMIC_RELEASE);
}

#endif
