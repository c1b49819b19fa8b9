/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A monotonic nanosecond clock on one cache line, readable while it is updated, in signal handlers too.
 *
 *     lineup_clock_start();                once: about ten milliseconds of calibration
 *     uint64_t ns = lineup_clock_ns();     anywhere; before the start it reads the system's clock
 *     lineup_clock_maintain();             now and then, from any one thread: bounds the drift
 */
#ifndef LINEUP_CLOCK_H
#define LINEUP_CLOCK_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Nanoseconds, monotonic, close to CLOCK_MONOTONIC. */
uint64_t lineup_clock_ns(void);

/* 0, or ENODEV when no counter can be trusted and the system's clock serves. */
int lineup_clock_start(void);

/* Recalibrates; returns the nanoseconds within which to call again. */
uint64_t lineup_clock_maintain(void);

/*
 * Moves to another counter without a step; hz 0 measures it; bits from 8 to 64. 0, EINVAL or ENOSPC. A NULL read is
 * the machine's own counter, where it is fit although the system does not say so.
 */
int lineup_clock_register(uint64_t (*read)(void), uint64_t hz, uint32_t bits);

/* Around a sleep of the machine in which the counter stops or jumps. */
void lineup_clock_suspend(void);
void lineup_clock_resume(void);

#ifdef __cplusplus
}
#endif

#endif /* LINEUP_CLOCK_H */
