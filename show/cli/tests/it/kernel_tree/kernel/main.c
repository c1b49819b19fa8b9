#include "device.h"

static const char banner[] __attribute__((used)) = "Linux version 6.1.0-small (lineup@here) (a compiler) #1 SMP";

void begin(void);
long __x64_sys_sethostname(const char *name);
void __switch_to_asm(void);

static void outb(unsigned short port, unsigned char value)
{
	__asm__ volatile("outb %0, %1" : : "a"(value), "Nd"(port));
}

static void say(const char *text)
{
	for (; *text; text++)
		outb(0x3f8, (unsigned char)*text);
}

static void say_number(unsigned long number)
{
	char digits[24], *at = digits + sizeof(digits) - 1;

	*at = 0;
	do {
		*--at = (char)('0' + number % 10);
	} while (number /= 10);
	say(at);
}

/* Where a recorder begins and ends. */
__attribute__((noinline)) long __x64_sys_sethostname(const char *name)
{
	__asm__ volatile("" : : "r"(name) : "memory");
	return 0;
}

__attribute__((noinline)) void __switch_to_asm(void)
{
	__asm__ volatile("" : : : "memory");
}

/* Ends the machine: an exception that nothing takes. */
static void off(void)
{
	static const struct {
		unsigned short limit;
		unsigned long base;
	} __attribute__((packed)) none;

	__asm__ volatile("lidt %0\n\tint3" : : "m"(none));
	for (;;)
		;
}

void begin(void)
{
	unsigned long sum = 0;

	say("[    0.000000] ");
	say(banner);
	say("\n");
	for (int at = 0; at < DEVICES; at++) {
		devices[at].id = (unsigned long)at;
		devices[at].mult = 1000 + (unsigned int)at;
		devices[at].shift = 3;
	}
	__switch_to_asm();
#ifdef CHECKS_PROBE
	if (probe() != 1000) {
		say("[    0.100000] Kernel panic - not syncing: the first device is not what it was\n");
		off();
	}
#endif
	say("[    0.100000] devices: 64 at 0xffffffff81004000\n");
	say("lineup-guest: booted 6.1.0-small tsc\nlineup-guest: begin\n");
	__x64_sys_sethostname("lineup-begin");
	for (unsigned long turn = 0; turn < 200; turn++)
		sum += walk_devices(turn);
	__x64_sys_sethostname("lineup-end");
	say("sum ");
	say_number(sum);
	say("\nlineup-guest: end 0\n");
	off();
}
