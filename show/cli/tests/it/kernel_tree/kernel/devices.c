#include "device.h"

struct device devices[DEVICES] __attribute__((aligned(64)));

/* What is studied: it uses three members, on three lines. */
__attribute__((noinline)) unsigned long walk_devices(unsigned long turn)
{
	unsigned long sum = 0;

	for (int at = 0; at < DEVICES; at++) {
		struct device *device = &devices[at];

		device->id += turn;
		sum += (device->id * device->mult) >> device->shift;
	}
	return sum;
}
