/*
 * Traps of three parties: the program's own handler, set first; the runtime's; and a library that sets its handler
 * after that and hands on what it does not know. Then the runtime puts itself in front again and hands on to the library.
 */
#include <lineup/imv.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

DEFINE_IMV(unsigned long, value) = 1;

static volatile sig_atomic_t seen_by_first, seen_by_library;
static volatile sig_atomic_t jumps;
static sigjmp_buf back;

static void first(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)info, (void)context;
	seen_by_first++;
	if (jumps)
		siglongjmp(back, 1);
}

static struct sigaction behind_library;

static void library(int signal, siginfo_t *info, void *context)
{
	seen_by_library++;
	behind_library.sa_sigaction(signal, info, context);
}

static void install(void (*handler)(int, siginfo_t *, void *), struct sigaction *old)
{
	struct sigaction action;
	memset(&action, 0, sizeof action);
	action.sa_sigaction = handler;
	action.sa_flags = SA_SIGINFO | SA_NODEFER;
	sigaction(SIGTRAP, &action, old);
}

/* Sets by the trap protocol, which makes the runtime put its handler in place if it is not. */
static int set(unsigned long to)
{
	return imv_set(value, to) == 0 && imv_read(value) == to;
}

/* A trap that none of them knows reaches everyone's predecessor, and the program goes on. */
static int raise_is_passed_on(void)
{
	seen_by_first = seen_by_library = 0;
	raise(SIGTRAP);
	return seen_by_first == 1;
}

static int fail(const char *what)
{
	fprintf(stderr, "%s: first %d, library %d\n", what, (int)seen_by_first, (int)seen_by_library);
	return 1;
}

int main(void)
{
	lineup_imv_set_mode(LINEUP_IMV_CONSERVATIVE);
	install(first, NULL);
	if (!set(2) || !raise_is_passed_on())
		return fail("runtime in front");
	install(library, &behind_library);
	if (!raise_is_passed_on() || seen_by_library != 1)
		return fail("library in front");
	if (!set(3) || !raise_is_passed_on() || seen_by_library != 1)
		return fail("runtime in front of the library");
	for (volatile int i = 0; i < 500; i++) {
		jumps = 1;
		if (sigsetjmp(back, 1) == 0) {
			raise(SIGTRAP);
			return fail("no jump");
		}
		jumps = 0;
		if (!raise_is_passed_on() || seen_by_library != 1)
			return fail("after a jump out of the handlers");
	}
	struct sigaction ours;
	sigaction(SIGTRAP, NULL, &ours);
	for (unsigned long i = 0; i < 200; i++) {
		install(library, &behind_library);
		if (!raise_is_passed_on() || !set(i) || !raise_is_passed_on())
			return fail("taking turns in front");
	}
	printf("ok\n");
	return 0;
}
