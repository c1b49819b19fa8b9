/*
 * execve inside a patched program, while another thread patches: the new image starts with its own initial values, its
 * own sites, and can be patched again. Prints "first SEEN" and "second FRESH SEEN".
 */
#include <lineup/imv.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

DEFINE_IMV(int, limit) = 10;
DEFINE_IMV(long, busy) = 0;

static void *patch(void *unused)
{
	(void)unused;
	for (long value = 1;; value++)
		if (imv_set(busy, value))
			return NULL;
}

int main(int argc, char **argv)
{
	int fresh = imv_read(limit), is_second = argc > 1 && !strcmp(argv[1], "second");
	if (imv_set(limit, is_second ? 30 : 20))
		return 3;
	if (is_second) {
		printf("second %d %d\n", fresh, imv_read(limit));
		return 0;
	}
	pthread_t thread;
	if (pthread_create(&thread, NULL, patch, NULL))
		return 4;
	while (imv_read(busy) < 100)
		;
	printf("first %d\n", imv_read(limit));
	fflush(stdout);
	execl(argv[0], argv[0], "second", (char *)NULL);
	return 5;
}
