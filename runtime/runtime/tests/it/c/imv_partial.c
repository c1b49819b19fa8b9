/*
 * Loads imv_partial_library.so ARGV[1] while the system lets only the first K writes to code through, for K = 0, 1, ...
 * until none is refused. What is set afterwards must be read, or refused with an error: in the refusing system and in
 * one that allows everything again. ARGV[2]: 0 direct, 1 conservative.
 */
#include <dlfcn.h>
#include <errno.h>
#include <lineup/imv.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define UNLIMITED (-1)
static int writes_left = UNLIMITED;
static int refused;

static int is_refused(void)
{
	if (writes_left == UNLIMITED)
		return 0;
	if (writes_left-- > 0)
		return 0;
	writes_left = 0;
	refused++;
	errno = EPERM;
	return 1;
}

/* In place of the C library's, for the runtime's calls too. */
ssize_t pwrite64(int file, const void *bytes, size_t size, off_t at)
{
	return is_refused() ? -1 : syscall(SYS_pwrite64, file, bytes, size, at);
}

void *mremap(void *old, size_t old_bytes, size_t new_bytes, int flags, ...)
{
	__builtin_va_list list;
	__builtin_va_start(list, flags);
	void *at = __builtin_va_arg(list, void *);
	__builtin_va_end(list);
	return is_refused() ? (void *)-1 : (void *)syscall(SYS_mremap, old, old_bytes, new_bytes, flags, at);
}

int memfd_create(const char *name, unsigned int flags)
{
	return is_refused() ? -1 : (int)syscall(SYS_memfd_create, name, flags);
}

static void check(int holds, const char *what, int allowed)
{
	if (holds)
		return;
	fprintf(stderr, "%s, after %d writes\n", what, allowed);
	exit(1);
}

/* Sets while the writes left run out: what failed may leave some sites behind, what succeeded may not. */
static int set_or_say_so(int (*set)(int), int (*reads_are)(int), int value)
{
	return set(value) != 0 || reads_are(value);
}

/* Whether a write was refused. */
static int load_with(const char *path, int allowed)
{
	check(lineup_imv_set_write_path(LINEUP_IMV_PROC_MEM) == 0, "code cannot be written at all", allowed);
	refused = 0;
	writes_left = allowed;
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	int (*reads_are)(int) = (int (*)(int))dlsym(library, "reads_are");
	int (*set)(int) = (int (*)(int))dlsym(library, "set_all");
	int was_refused = refused > 0;
	check(reads_are(1), "the initial value is not read", allowed);
	check(set_or_say_so(set, reads_are, 2), "a set returned success and is not read", allowed);
	check(set_or_say_so(set, reads_are, 0), "a second set returned success and is not read", allowed);
	writes_left = UNLIMITED;
	check(set(3) == 0, "a set fails although everything is allowed again", allowed);
	check(reads_are(3), "a set that everything allows is not read", allowed);
	check(set(0) == 0 && reads_are(0), "nor is the next", allowed);
	dlclose(library);
	return was_refused;
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	lineup_imv_set_mode(atoi(argv[2]));
	int allowed = 0;
	while (load_with(argv[1], allowed))
		allowed++;
	printf("%d writes\n", allowed);
	return 0;
}
