/*
 * A fork during which values are set: by a signal handler that interrupts the fork's own handlers, and by those
 * handlers themselves. They are registered before the runtime (ARGV[1], loaded later) registers its own, so that they
 * run while it holds its lock. ARGV[2]: the way to write.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int (*set)(int);
static int (*reads_are)(int);

static volatile sig_atomic_t handled;

static void on_signal(int signal)
{
	(void)signal;
	if (set(40) == 0 && reads_are(40))
		handled++;
}

static void before(void)
{
	if (!set)
		return;
	raise(SIGUSR1);
	if (set(10) != 0 || !reads_are(10))
		_exit(3);
}

static void in_parent(void)
{
	if (set && (set(20) != 0 || !reads_are(20)))
		_exit(4);
}

static void in_child(void)
{
	if (set && (set(30) != 0 || !reads_are(30)))
		_exit(5);
}

static int child(void)
{
	sigset_t open;
	sigprocmask(SIG_BLOCK, NULL, &open);
	if (sigismember(&open, SIGUSR1) || sigismember(&open, SIGTERM))
		return 6;
	if (!reads_are(30))
		return 7;
	return set(31) != 0 || !reads_are(31) ? 8 : 0;
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	pthread_atfork(before, in_parent, in_child);
	signal(SIGUSR1, on_signal);
	void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	int (*set_write_path)(int) = (int (*)(int))dlsym(RTLD_DEFAULT, "lineup_imv_set_write_path");
	if (!set_write_path)
		set_write_path = (int (*)(int))dlsym(library, "lineup_imv_set_write_path");
	reads_are = (int (*)(int))dlsym(library, "reads_are");
	if (set_write_path(atoi(argv[2])) != 0)
		return 9;
	set = (int (*)(int))dlsym(library, "set_all");
	for (int round = 1; round <= 20; round++) {
		pid_t pid = fork();
		if (pid == 0)
			_exit(child());
		int status;
		if (waitpid(pid, &status, 0) != pid || status != 0) {
			fprintf(stderr, "round %d: the child's status is %#x\n", round, status);
			return 1;
		}
		/* The signal was held back until the fork was done: it has the last word. */
		if (handled != round || !reads_are(40)) {
			fprintf(stderr, "round %d: %d signals handled\n", round, (int)handled);
			return 1;
		}
	}
	printf("ok\n");
	return 0;
}
